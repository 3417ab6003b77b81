"""Methods by their short names, with options made from their fields."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from optexp_jax.cli.fields import read_fields
from optexp_jax.cli.nearest import did_you_mean
from optexp_jax.cli.options import Option, options_of
from optexp_jax.cli.values import BOUNDS

if TYPE_CHECKING:
    from optexp_jax.methods import AbstractMethod

METHODS = {
    "optimal": "optexp_jax.methods.optimal:Optimal",
    "beam": "optexp_jax.methods.beam.beam:Beam",
    "mmesh": "optexp_jax.methods.beam.beam:Beam",
    "vanilla": "optexp_jax.methods.beam.beam:Beam",
    "netdissect": "optexp_jax.methods.netdissect:NetDissect",
    "exhaustive": "optexp_jax.methods.exhaustive:Exhaustive",
}
"""What each name begins with; options change single fields."""

FAMILIES = {
    "tight": "optexp_jax.bounds.tight.family:TightBounds",
    "paper": "optexp_jax.bounds.paper.space:PaperBounds",
}

NOT_OPTIONS = ("callback", "guide")
"""Fields that the name decides, or that only Python can give."""

OF_BOUNDS = "bounds_"
"""In front of the names of the bounds' own fields: `--no-bounds-rewriting`."""


def parse_method(text: str) -> str:
    """The name of a method."""
    if text not in METHODS:
        near = did_you_mean(text, METHODS)
        raise ValueError(f"{text!r} is not one of {', '.join(METHODS)}.{near}")
    return text


METHOD = Option(
    "method",
    parse_method,
    "how to explain; beam, mmesh and vanilla are beam searches with three guides "
    "(default: optimal)",
    "|".join(METHODS),
)


def method_options() -> list[Option]:
    """The options of all methods; one that several share appears once."""
    return _options_of_all(METHODS, skip=NOT_OPTIONS)


def bounds_options() -> list[Option]:
    """The options of all families of bounds."""
    return _options_of_all(FAMILIES, prefix=OF_BOUNDS)


def _options_of_all(
    classes: Mapping[str, str], *, prefix: str = "", skip: Iterable[str] = ()
) -> list[Option]:
    found: dict[str, Option] = {}
    for cls in classes.values():
        for option in options_of(cls, prefix=prefix, skip=skip):
            having = _having(option.name.removeprefix(prefix), classes)
            users = "" if len(having) > 3 else f"[{', '.join(having)}] "
            found.setdefault(option.name, dataclasses.replace(option, help=f"{users}{option.help}"))
    return list(found.values())


def make_method(name: str, given: Mapping[str, Any]) -> "AbstractMethod":
    """The method of this name with the given fields; refuses ones that it does not have."""
    of_bounds = {
        option.removeprefix(OF_BOUNDS): value
        for option, value in given.items()
        if option.startswith(OF_BOUNDS)
    }
    method, fields = starting_method(name), dict[str, Any]()
    known = {field.name for field in dataclasses.fields(method)} - set(NOT_OPTIONS)
    for option, value in given.items():
        asked = "bounds" if option.startswith(OF_BOUNDS) else option
        if asked not in known:
            raise ValueError(
                f"{_key(option)} is not a setting of {name}; it is one of "
                f"{', '.join(_having(asked, METHODS))}."
            )
        if asked == option:
            fields[option] = value
    if of_bounds:
        family = fields.get("bounds", getattr(method, "bounds", None))
        fields["bounds"] = _with_fields(family, of_bounds)
    return dataclasses.replace(method, **fields)


def starting_method(name: str) -> "AbstractMethod":
    """What a name begins with."""
    import optexp_jax as ox

    match name:
        case "beam":
            return ox.Beam(guide=ox.QuantityGuide())
        case "mmesh":
            return ox.Beam(guide=ox.MMESHGuide())
        case "vanilla":
            return ox.Beam(guide=None)
        case _:
            return getattr(ox, METHODS[name].rpartition(":")[2])()


def _with_fields(family: Any, given: Mapping[str, Any]) -> Any:
    """The bounds with other settings."""
    known = {field.name for field in dataclasses.fields(family)}
    short = {cls: name for name, cls in BOUNDS.items()}
    called = short.get(type(family).__name__, type(family).__name__)
    for field in given:
        if field not in known:
            others = " or ".join(f"--bounds {name}" for name in _having(field, FAMILIES))
            raise ValueError(
                f"{_key(OF_BOUNDS + field)} is not a setting of the bounds {called}; it goes with "
                f"{others}."
            )
    return dataclasses.replace(family, **given)


def _having(field: str, classes: Mapping[str, str]) -> list[str]:
    return [
        name for name, cls in classes.items() if field in {each.name for each in read_fields(cls)}
    ]


def _key(option: str) -> str:
    return f"--{option.replace('_', '-')}"
