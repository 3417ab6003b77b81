"""Methods by their short names, with options made from their fields."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from optexp_jax.cli.options import Option, options_of
from optexp_jax.guides import MMESHGuide, QuantityGuide
from optexp_jax.methods import AbstractMethod, Beam, Exhaustive, NetDissect, Optimal

MethodName = Literal["optimal", "beam", "mmesh", "vanilla", "netdissect", "exhaustive"]

METHODS: Mapping[MethodName, AbstractMethod] = {
    "optimal": Optimal(),
    "beam": Beam(guide=QuantityGuide()),
    "mmesh": Beam(guide=MMESHGuide()),
    "vanilla": Beam(guide=None),
    "netdissect": NetDissect(),
    "exhaustive": Exhaustive(),
}
"""What each name begins with; options change single fields."""

NOT_OPTIONS = ("callback", "guide")
"""Fields that the name decides, or that only Python can give."""


def method_options() -> list[Option]:
    """The options of all methods; one that several share appears once."""
    found: dict[str, Option] = {}
    for method in METHODS.values():
        for option in options_of(type(method), skip=NOT_OPTIONS):
            if option.name not in found:
                found[option.name] = option
    return [
        dataclasses.replace(option, help=f"{_users(option.name)}{option.help}")
        for option in found.values()
    ]


def make_method(name: MethodName, given: Mapping[str, Any]) -> AbstractMethod:
    """The method of this name with the given fields; refuses ones that it does not have."""
    method = METHODS[name]
    fields = {field.name for field in dataclasses.fields(method)} - set(NOT_OPTIONS)
    for option in given:
        if option not in fields:
            key = option.replace("_", "-")
            raise ValueError(
                f"--{key} is not a setting of {name}; it is one of {', '.join(_having(option))}."
            )
    return dataclasses.replace(method, **given)


def _having(option: str) -> list[str]:
    return [
        name
        for name, method in METHODS.items()
        if option in {field.name for field in dataclasses.fields(method)}
    ]


def _users(option: str) -> str:
    having = _having(option)
    return "" if len(having) > 2 else f"[{', '.join(having)}] "
