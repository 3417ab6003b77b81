"""Errors in one line, in words that say what to do."""

import errno
from collections.abc import Iterable


class UsageError(ValueError):
    """The command was asked for what cannot be: bad usage, where nothing was done."""


_DOINGS = {
    errno.ENOENT: "there is nothing at {}; check the path",
    errno.EACCES: "{} may not be read or written by you; change its permissions or name another",
    errno.EPERM: "{} may not be changed by you; change its permissions or name another",
    errno.EISDIR: "{} is a folder; name a file",
    errno.ENOTDIR: "{} is not a folder, or lies below a file; name a folder",
    errno.EEXIST: "{} is there already; name another",
    errno.ENOTEMPTY: "{} is not empty; name another",
    errno.EROFS: "{} lies on a disk that can only be read; name another place",
    errno.ENOSPC: "no space is left for {}; make room and run the command again",
    errno.EDQUOT: "your quota leaves no space for {}; make room and run the command again",
    errno.ENAMETOOLONG: "{} is too long a name; name a shorter one",
    errno.ELOOP: "{} is a circle of links; name another",
    errno.EMFILE: "too many files are open ({}); raise the limit with ulimit -n",
    errno.EIO: "the disk could not read or write {}; look whether it is sound",
}
_NO_MEMORY = (
    "RESOURCE_EXHAUSTED",  # of a device
    "can't start new thread",  # no room for its stack
    "failed to map segment from shared object",  # of a library
)


def lacks_memory(error: BaseException) -> bool:
    """Whether there was too little memory; JAX and Python have no class for all of that."""
    said = str(error)
    return isinstance(error, MemoryError) or any(sign in said for sign in _NO_MEMORY)


def error_text(error: BaseException) -> str:
    """What an error says, in one line and without numbers that only a system knows."""
    if lacks_memory(error):
        text = f"out of memory; what was stored before is whole. {error}"
    elif isinstance(error, OSError) and error.errno is not None:
        text = _system_text(error)
    else:
        text = str(error) or type(error).__name__
    return " ".join(text.split())


def _system_text(error: OSError) -> str:
    said = error.strerror or str(error)
    if error.filename is None:  # raised by us, with a sentence of its own, or of no file
        return said if said.endswith(".") else f"{said}."
    doing = _DOINGS.get(error.errno or 0)
    if doing is None:
        return f"{error.filename}: {said}."
    text = doing.format(error.filename)
    return f"{text if doing.startswith('{}') else text[0].upper() + text[1:]}."


def plural(n: int, what: str, many: str | None = None) -> str:
    """So many of them: `1 unit`, `2 units`."""
    return f"{n} {what if n == 1 else many or what + 's'}"


def in_option_spelling(text: str, names: Iterable[str]) -> str:
    """A text about Python's fields with the options in their place: `max_nodes`, `--max-nodes`.

    A field without an underscore is an English word as well: only in front is it surely the field.
    """
    words = text.split(" ")
    known = set(names)
    for at, word in enumerate(words):
        name, sign, value = word.strip("(),.;:").partition("=")
        if name in known and ("_" in name or (at == 0 and words[1:2] in (["must"], ["can"]))):
            option = "--" + name.replace("_", "-")
            words[at] = word.replace(name + sign, option + (" " if sign and value else ""))
    return " ".join(words)
