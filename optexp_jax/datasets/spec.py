"""DatasetSpec: how to open a dataset again."""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from optexp_jax.datasets.layout import files_below, short
from optexp_jax.datasets.protocol import Dataset, ListsFiles, files_of
from optexp_jax.datasets.registry import KINDS, OptionValue, import_kind, open_kind
from optexp_jax.internal.own_code import OWN_OBJECT

# An option starts like this; a folder with "=" in its name has a "/" in front of it.
_OPTION = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_OWN_KIND = re.compile(rf"({OWN_OBJECT.pattern})(?::(.*))?", re.DOTALL)
_INTEGER = re.compile(r"[+-]?\d+")
_FLOAT = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?")


@dataclass(frozen=True)
class DatasetSpec:
    """A dataset by kind, folder and options; stored beside what was made from it.

        DatasetSpec.parse("broden:/data/broden1_224,subset=ade20k").open()

    Options keep no order: they are sorted by name.
    """

    kind: str
    root: str | None = None
    options: tuple[tuple[str, OptionValue], ...] = ()
    add: tuple[str, ...] = ()
    """Concepts to derive from the images, in addition: "colour", "position"."""
    trusted: bool = field(default=True, compare=False, repr=False)
    """Whether the user has named it, so that the module of a kind of theirs may be imported.

    Not so if a file did: then only kinds are opened that are known already.
    """

    def __post_init__(self) -> None:
        names = [name for name, _ in self.options]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"Dataset options are given twice: {', '.join(repeated)}.")
        object.__setattr__(self, "options", tuple(sorted(self.options)))

    @classmethod
    def parse(cls, text: str, *, add: Iterable[str] = ()) -> Self:
        """From text: `shapes`, `shapes:n=200,seed=1`, `broden:/data/broden1_224,subset=all`.

        After the kind come the folder, if there is one, and options, separated by commas.
        `add=colour+position` among the options adds derived concepts, as the argument does. A kind
        of your own is `module:function`: `mine:photographs:/data/x`.
        """
        kind, rest = _split_kind(text)
        if not kind or "/" in kind:
            raise ValueError(
                f"A dataset is given as KIND:FOLDER,OPTION=VALUE,...; got {text!r}. A folder of "
                f"one's own is 'folder:{text or '/path'}'."
            )
        pieces = rest.split(",") if rest else []
        first = next((i for i, piece in enumerate(pieces) if _OPTION.fullmatch(piece)), len(pieces))
        root = ",".join(pieces[:first]) or None  # A folder may have commas in its name.
        options: list[tuple[str, OptionValue]] = []
        added = list(add)
        for piece in pieces[first:]:
            option = _OPTION.fullmatch(piece)
            if option is None:
                raise ValueError(f"Dataset options are NAME=VALUE; got {piece!r} in {text!r}.")
            if option[1] == "add":
                added += [name for name in option[2].split("+") if name]
            else:
                options.append((option[1], _value(option[2])))
        return cls(kind, root, tuple(options), tuple(dict.fromkeys(added)))

    def __str__(self) -> str:
        """Text for `parse`. Option values with commas, or "12" in place of 12, need JSON."""
        pieces = [] if self.root is None else [self.root]
        pieces += [f"{name}={_text(value)}" for name, value in self.options]
        pieces += [f"add={'+'.join(self.add)}"] if self.add else []
        return self.kind + (":" + ",".join(pieces) if pieces else "")

    def open(self) -> Dataset:
        """The dataset, with the derived concepts asked for."""
        dataset = self._open_plain()
        if not self.add:
            return dataset
        from optexp_jax.datasets.derived import with_derived

        return with_derived(dataset, self.add)

    def to_json(self) -> str:
        """As JSON text."""
        return json.dumps(
            {
                "kind": self.kind,
                "root": self.root,
                "options": dict(self.options),
                "add": list(self.add),
            }
        )

    @classmethod
    def from_json(cls, stored: str | Mapping[str, Any]) -> Self:
        """From what `to_json` wrote, as text or already parsed."""
        try:
            fields: Any = json.loads(stored) if isinstance(stored, str) else stored
            options = tuple(fields["options"].items())
            kind, root, add = fields["kind"], fields["root"], tuple(fields["add"])
        except (TypeError, KeyError, AttributeError, ValueError, RecursionError) as error:
            raise ValueError(f"This is not a dataset spec: {short(stored)}.") from error
        texts = (kind, "" if root is None else root, *add, *(name for name, _ in options))
        if not all(isinstance(text, str) for text in texts) or not all(
            isinstance(value, OptionValue) for _, value in options
        ):
            raise ValueError(f"This is not a dataset spec: {short(stored)}.")
        return cls(kind, root, options, add, trusted=False)

    @cached_property
    def fingerprint(self) -> str:
        """Checksum of the spec and of what it names: concepts, file names and file sizes.

        File contents are not read. Where the folder lies does not count, so a dataset that was
        moved keeps its fingerprint.
        """
        dataset = self._open_plain()
        concepts = [[concept.name, concept.category] for concept in dataset.concepts()]
        options, files = self._plain_options(), self._files(dataset)
        told = [self.kind, options, list(self.add), len(dataset), concepts, files]
        return hashlib.blake2b(json.dumps(told).encode(), digest_size=16).hexdigest()

    def _open_plain(self) -> Dataset:
        root = None if self.root is None else Path(self.root).expanduser()
        if self.trusted:
            import_kind(self.kind)
        return open_kind(self.kind, root, dict(self.options))

    def _files(self, dataset: Dataset) -> list[tuple[str, int]]:
        """Names, relative to the folder, and sizes of the files that the dataset reads."""
        files = files_of(dataset)
        if self.root is None:
            return sorted((path.as_posix(), _size(path)) for path in files)
        root = Path(self.root).expanduser()
        if not isinstance(dataset, ListsFiles):
            files = files_below(root, [""]) if root.is_dir() else (root,)
        base = str(root if root.is_dir() else root.parent)
        return sorted((_relative(path, base), _size(path)) for path in files)

    def _plain_options(self) -> list[list[Any]]:
        # A file given by its full path is listed among the files, relative to the folder.
        return [
            [name, Path(value).name if isinstance(value, str) and os.path.isabs(value) else value]
            for name, value in self.options
        ]


def open_dataset(text: str, *, add: Iterable[str] = ()) -> Dataset:
    """Open a dataset by text, as `DatasetSpec.parse` reads it: `open_dataset("folder:/data/x")`."""
    return DatasetSpec.parse(text, add=add).open()


def _split_kind(text: str) -> tuple[str, str]:
    """The kind, a known name or the user's own `module:function`, and the rest."""
    own = _OWN_KIND.fullmatch(text)
    if own is not None and own[2] not in KINDS:
        return own[1], own[4] or ""
    kind, _, rest = text.partition(":")
    return kind, rest


def _relative(path: Path, base: str) -> str:
    text = str(path)  # There may be a hundred thousand of them, and relpath is slow.
    inside = text.startswith(base + os.sep)
    relative = text[len(base) + 1 :] if inside else os.path.relpath(text, base)
    return relative.replace(os.sep, "/")


def _size(path: Path) -> int:
    # A file that is missing is a bad sample of its own, not a dataset that cannot be named.
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


def _value(text: str) -> OptionValue:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if _INTEGER.fullmatch(text) and str(int(text)) == text:  # "007" is a name.
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _text(value: OptionValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
