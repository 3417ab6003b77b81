"""Stored JSON as dataclasses: every field there, none besides, each of the type it should have."""

import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

T = TypeVar("T")


def fits(value: object, hint: Any) -> bool:
    """Whether a value is what a field's annotation says. Annotations of arrays are not looked at.

    Whole numbers are floats too, but True is no number.
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return any(fits(value, each) for each in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin is tuple and len(arguments) == 2 and arguments[1] is ...:
        return isinstance(value, tuple) and all(
            fits(item, arguments[0]) for item in cast(tuple[object, ...], value)
        )
    if hint is None:
        return value is None
    if hint in (int, float):
        return isinstance(value, (int, hint)) and not isinstance(value, bool)
    if origin is Callable:
        return False  # functions cannot be stored
    if isinstance(hint, type) and issubclass(hint, enum.StrEnum):
        return value in list(hint)  # Settings keep the string, of which the class makes its own.
    return not isinstance(hint, type) or isinstance(value, hint)


def make(cls: type[T], fields: object, *, complete: bool = True) -> T:
    """A dataclass of values by name; ValueError says what does not fit."""
    known = {field.name for field in dataclasses.fields(cast(Any, cls)) if field.init}
    given = cast(Mapping[str, Any], fields) if isinstance(fields, Mapping) else {}
    if not isinstance(fields, Mapping) or not given.keys() <= known:
        raise ValueError(f"{cls.__name__} has {', '.join(sorted(known))}; got {fields!r}")
    if complete and given.keys() != known:
        raise ValueError(f"{cls.__name__} lacks {', '.join(sorted(known - given.keys()))}")
    for name, hint in typing.get_type_hints(cls).items():
        if name in given and not fits(given[name], hint):
            raise ValueError(f"{name} of {cls.__name__} cannot be {given[name]!r}")
    return cls(**given)
