"""Command line options made from dataclasses, so that they say what the Python interface says.

Each field of a settings class becomes an option: its name, type and default from the field, its
help from the string below the field, or else from the sentence of the class's docstring that names
it. The same options can be given in a TOML file.

Cyclopts and tyro make options of dataclasses, too. Both want the class itself, and to import a
method is to import JAX: `optexp explain --help` would take a second, not a fraction of one. Both
print errors in boxes of several lines, where a log should have one. So these options are made here,
of what `fields` reads from the source, for argparse.
"""

import argparse
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

from optexp_jax.cli.fields import Field, read_fields
from optexp_jax.cli.nearest import did_you_mean
from optexp_jax.cli.values import CONVERTERS, METAVARS, SHOWN_DEFAULTS

GIVEN = "given_"
"""In front of the names of these options in a namespace, apart from what commands keep there."""


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
    cls: str,
    *,
    rename: Mapping[str, str] | None = None,
    prefix: str = "",
    skip: Iterable[str] = (),
) -> list[Option]:
    """The options of a dataclass `module:Class`, one a field; fields in `skip` have none."""
    names = rename or {}
    return [
        make_option(field, prefix + names.get(field.name, field.name))
        for field in read_fields(cls)
        if field.name not in skip
    ]


def make_option(field: Field, name: str) -> Option:
    """The option of one field."""
    if field.kind not in CONVERTERS:
        raise TypeError(f"There is no way yet to write {field.kind} on the command line.")
    text = field.help[:1].lower() + field.help[1:].rstrip(".;")
    default = field.default and SHOWN_DEFAULTS.get(field.default, field.default)
    return Option(
        name=name,
        convert=CONVERTERS[field.kind],
        help=text if default in (None, "False") else f"{text} (default: {_shown(default)})",
        metavar=METAVARS.get(field.kind),
        is_switch=field.kind == "bool",
    )


def _shown(default: str | None) -> str | None:
    return {"True": "on"}.get(default or "", default)


def given_options(namespace: argparse.Namespace) -> dict[str, Any]:
    """The options that were given on the command line, by name."""
    found = vars(namespace).items()
    return {name.removeprefix(GIVEN): value for name, value in found if name.startswith(GIVEN)}


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
            hint = did_you_mean(key, known) or f" It may have: {', '.join(known)}."
            raise ValueError(f"{path} sets {key}, which is not an option.{hint}")
        given[option.name] = option.from_file(value)
    return given


def _for_argparse(convert: Callable[[str], Any]) -> Callable[[str], Any]:
    """Errors with our words; argparse shows only those of one kind."""

    def converted(text: str) -> Any:
        try:
            return convert(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return converted
