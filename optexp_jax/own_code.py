"""Code of the user's own, named as `module:object`: models, bounds, datasets, operators.

Naming runs it, so only what a user wrote may come here (a command line, its `--config`, Python), no
name that was read from a file of results or data.
"""

import contextlib
import difflib
import importlib
import re
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

_PATH = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
OWN_OBJECT = re.compile(rf"({_PATH}):({_PATH})")
"""`module:object`; both may have dots."""


def find_object(text: str, what: str = "object") -> Any:
    """The object that `module:object` names; modules of the current folder are found too."""
    named = OWN_OBJECT.fullmatch(text)
    if named is None:
        raise ValueError(f"{text!r} does not name {_a(what)}; write module:{what}.")
    with _current_folder():
        return import_object(named[1], named[2], what)


def import_object(module: str, name: str, what: str = "object") -> Any:
    """The object of this name in a module that Python finds; ValueError tells what is wrong."""
    text = f"{module}:{name}"
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A module that the user's own needs may be missing as well.
        missing = error.name or module
        where = "" if (module + ".").startswith(missing + ".") else f", which {module} imports"
        raise ValueError(
            f"{text} does not name {_a(what)} that can be imported: there is no module {missing}"
            f"{where}, installed or in the current folder ({Path.cwd()})."
        ) from None
    except Exception as error:  # it is not our code, and may raise anything
        raise ValueError(
            f"{text} does not name {_a(what)} that can be imported: {module} raised "
            f"{type(error).__name__}: {error}."
        ) from error
    for part in name.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, [n for n in dir(found) if n[0] != "_"], n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ValueError(
                f"{text} does not name {_a(what)} that can be imported: {module} has no {part}."
                f"{hint}"
            )
        found = getattr(found, part)
    return found


def _a(what: str) -> str:
    return f"{'an' if what[0].lower() in 'aeiou' else 'a'} {what}"


@contextlib.contextmanager
def _current_folder() -> Generator[None]:
    """The current folder is searched first, as `python -m` does; a console command would not.

    Afterwards it comes last. The user's module still finds those beside it, and no file there takes
    the place of an installed module that is imported later.
    """
    here = str(Path.cwd())
    if "" in sys.path or here in sys.path[:1]:
        yield
        return
    sys.path[:] = [here, *(path for path in sys.path if path != here)]
    try:
        yield
    finally:
        sys.path.remove(here)
        sys.path.append(here)
