"""Command line options made from dataclasses, so that they say what the Python interface says.

Each field of a settings class becomes an option: its name, type and default from the field, its
help from the string below the field, or else from the sentence of the class's docstring that names
it. The same options can be given in a TOML file.
"""

import argparse
import ast
import dataclasses
import difflib
import functools
import inspect
import itertools
import re
import textwrap
import tomllib
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

from optexp_jax.bounds import Bounds, PaperBounds, TightBounds
from optexp_jax.operators import DEFAULT_OPERATORS, Operator
from optexp_jax.runs.settings import find_class

GIVEN = "given_"
"""In front of the names of these options in a namespace, apart from what commands keep there."""

BOUNDS: Mapping[str, type[Bounds]] = {"tight": TightBounds, "paper": PaperBounds}


@runtime_checkable
class HasOptions(Protocol):
    """A parser, or a group of one."""

    def add_argument(self, *names: str, **settings: Any) -> Any:
        """Add an option."""
        ...


@dataclass(frozen=True)
class Option:
    """One option of the command line and of configuration files."""

    name: str
    """As in Python: `top_k`."""
    convert: Callable[[str], Any]
    default: Any
    help: str
    metavar: str | None = None
    is_switch: bool = False

    @property
    def key(self) -> str:
        """As on the command line: `top-k`."""
        return self.name.replace("_", "-")

    def add_to(self, group: HasOptions) -> None:
        """Add it to a parser. What is not given does not appear in the namespace."""
        settings: dict[str, Any] = {"dest": GIVEN + self.name, "default": argparse.SUPPRESS}
        if self.is_switch:
            settings["action"] = argparse.BooleanOptionalAction
        else:
            settings |= {"type": _for_argparse(self.convert), "metavar": self.metavar}
        group.add_argument(f"--{self.key}", help=self.help.replace("%", "%%"), **settings)

    def from_file(self, value: Any) -> Any:
        """A value of a TOML file: its own type, text as on the command line, or a list."""
        items = cast(list[Any], value) if isinstance(value, list) else [value]
        if not all(isinstance(item, bool | int | float | str) for item in items):
            raise ValueError(f"{self.key} must be text, a number or a list of these.")
        if isinstance(value, list):
            text = ",".join(str(item) for item in items)
        else:
            text = str(value).lower() if isinstance(value, bool) else str(value)
        try:
            return self.convert(text)
        except ValueError as error:
            raise ValueError(f"{self.key} = {value!r}: {error}") from None


def options_of(
    cls: type[Any], *, rename: Mapping[str, str] | None = None, skip: Iterable[str] = ()
) -> list[Option]:
    """The options of a dataclass, one a field; fields in `skip` have none."""
    hints, docs = typing.get_type_hints(cls), field_docs(cls)
    names, found = dict(rename or {}), list[Option]()
    for field in dataclasses.fields(cls):
        if field.name in set(skip):
            continue
        kind = _without_none(hints[field.name])
        default = None if field.default is dataclasses.MISSING else field.default
        found.append(
            Option(
                name=names.get(field.name, field.name),
                convert=_converter(kind),
                default=default,
                help=_help(docs.get(field.name, ""), default),
                metavar=_metavar(kind),
                is_switch=kind is bool,
            )
        )
    return found


def given_options(namespace: argparse.Namespace) -> dict[str, Any]:
    """The options that were given on the command line, by name."""
    found = vars(namespace).items()
    return {name.removeprefix(GIVEN): value for name, value in found if name.startswith(GIVEN)}


@functools.cache
def field_docs(cls: type[Any]) -> dict[str, str]:
    """What is written about each field of a class, in one paragraph of plain text."""
    docs: dict[str, str] = {}
    for parent in reversed(cls.__mro__):
        if dataclasses.is_dataclass(parent):
            docs |= _docs_below_fields(parent)
    sentences = re.split(r"(?<=[.;])\s+", " ".join((inspect.getdoc(cls) or "").split()))
    for field in dataclasses.fields(cls):
        naming = [text for text in sentences if f"`{field.name}" in text]
        if field.name not in docs and naming:
            docs[field.name] = naming[0]
    return {name: " ".join(text.replace("`", "").split()) for name, text in docs.items()}


def _docs_below_fields(cls: type[Any]) -> dict[str, str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError):
        return {}
    body = cast(ast.ClassDef, tree.body[0]).body
    docs: dict[str, str] = {}
    for field, below in itertools.pairwise(body):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            docs[field.target.id] = str(below.value.value)
    return docs


def _help(text: str, default: Any) -> str:
    text = text[:1].lower() + text[1:].rstrip(".;")
    if default is None or default is False:
        return text
    shown = default
    if isinstance(default, Bounds):
        shown = next((name for name, cls in BOUNDS.items() if type(default) is cls), default)
    elif isinstance(default, tuple):
        shown = ",".join(str(item) for item in cast(tuple[Any, ...], default))
    return f"{text} (default: {shown})"


def read_file(path: Path, options: Sequence[Option]) -> dict[str, Any]:
    """The options that a TOML file gives, by name."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not a TOML file: {error}.") from None
    known = {option.key: option for option in options}
    given: dict[str, Any] = {}
    for key, value in content.items():
        option = known.get(key.replace("_", "-"))
        if option is None:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f" Did you mean {near[0]}?" if near else f" It may have: {', '.join(known)}."
            raise ValueError(f"{path} sets {key}, which is not an option.{hint}")
        given[option.name] = option.from_file(value)
    return given


def parse_bounds(text: str) -> Bounds:
    """A family of bounds by its short name or as `module:Class`."""
    cls = BOUNDS.get(text)
    if cls is None:
        if ":" not in text:
            raise ValueError(f"{text!r} is not {', '.join(BOUNDS)} or module:Class")
        cls = find_class(text)
    if not issubclass(cls, Bounds):
        raise ValueError(f"{text} is not a family of bounds: it must be a subclass of Bounds")
    return cls()


def parse_operators(text: str) -> tuple[Operator, ...]:
    """Operators by name, with commas between."""
    known = {operator.name: operator for operator in DEFAULT_OPERATORS}
    chosen: list[Operator] = []
    for part in text.split(","):
        name = " ".join(part.upper().replace("_", " ").split())
        if name not in known:
            raise ValueError(f"{part.strip()!r} is not one of {', '.join(known)}")
        chosen.append(known[name])
    return tuple(chosen)


def _parse_bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is not true or false")
    return text.lower() == "true"


def _parse_int(text: str) -> int:
    try:
        return int(text.replace("_", ""))
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None


def _parse_float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None


_CONVERTERS: dict[Any, Callable[[str], Any]] = {
    int: _parse_int,
    float: _parse_float,
    bool: _parse_bool,
    str: str,
    Path: Path,
    Bounds: parse_bounds,
    tuple[Operator, ...]: parse_operators,
}
_METAVARS: dict[Any, str] = {
    int: "N",
    float: "X",
    str: "TEXT",
    Path: "PATH",
    Bounds: "tight|paper|module:Class",
    tuple[Operator, ...]: "OP,OP",
}


def _metavar(kind: Any) -> str | None:
    if typing.get_origin(kind) is typing.Literal:
        return "|".join(typing.get_args(kind))
    return _METAVARS.get(kind)


def _parse_choice(text: str, choices: tuple[str, ...]) -> str:
    if text not in choices:
        raise ValueError(f"{text!r} is not one of {', '.join(choices)}")
    return text


def _converter(kind: Any) -> Callable[[str], Any]:
    if typing.get_origin(kind) is typing.Literal:
        return functools.partial(_parse_choice, choices=typing.get_args(kind))
    if kind not in _CONVERTERS:
        raise TypeError(f"There is no way yet to write {kind} on the command line.")
    return _CONVERTERS[kind]


def _without_none(hint: Any) -> Any:
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
        return kinds[0] if len(kinds) == 1 else hint
    return hint


def _for_argparse(convert: Callable[[str], Any]) -> Callable[[str], Any]:
    """Errors with our words; argparse shows only those of one kind."""

    def converted(text: str) -> Any:
        try:
            return convert(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return converted
