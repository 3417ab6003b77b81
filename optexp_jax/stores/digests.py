"""Digests of the files of a store, by their place in it: nothing but what was written is read.

The list of digests is a file of the store too, and its last line is a digest of the others. A file
that is gone, damaged, exchanged with another of the store or taken from another store does not fit
its line.
"""

import hashlib
from pathlib import Path

from optexp_jax.stores.durable import write_whole

DIGESTS = "digests.txt"

Digests = dict[str, str]
"""The digest of each file, by its path in the store."""


class MisfitError(ValueError):
    """A file is not the one that was written in its place."""


def digest_of(content: bytes | memoryview) -> str:
    """A digest of a file's content."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def read_checked(folder: Path, name: str, digests: Digests) -> bytes:
    """A file of a store, if it is the one that was written there."""
    if name not in digests:
        raise MisfitError(f"{name} is no part of it")
    try:
        content = (folder / name).read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise MisfitError(f"{name} is missing") from None
    if digest_of(content) != digests[name]:
        raise MisfitError(f"{name} is not what was written there")
    return content


def read_digests(folder: Path) -> Digests:
    """The list of a complete store."""
    try:
        text = (folder / DIGESTS).read_bytes().decode()
    except (FileNotFoundError, NotADirectoryError):
        raise MisfitError(f"{DIGESTS} is missing") from None
    except UnicodeDecodeError:
        raise MisfitError(f"{DIGESTS} is damaged") from None
    lines = text.splitlines(keepends=True)
    if not lines or lines[-1] != _line(DIGESTS, digest_of("".join(lines[:-1]).encode())):
        raise MisfitError(f"{DIGESTS} is damaged")
    found = (line.rstrip("\n").partition("  ") for line in lines[:-1])
    return {name: digest for digest, _, name in found}


def write_digests(folder: Path, digests: Digests) -> None:
    """Write the list, after which the store is complete."""
    body = "".join(_line(name, digests[name]) for name in sorted(digests))
    write_whole(folder / DIGESTS, (body + _line(DIGESTS, digest_of(body.encode()))).encode())


def add_file(folder: Path, name: str, content: bytes) -> None:
    """Put one more file into a complete store."""
    digests = read_digests(folder)
    write_whole(folder / name, content)
    write_digests(folder, {**digests, name: digest_of(content)})


def _line(name: str, digest: str) -> str:
    return f"{digest}  {name}\n"
