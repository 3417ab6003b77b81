"""Settings objects as JSON and back: methods, bounds, guides, ways to open a source.

A dataclass (every Equinox module is one) becomes its class and its fields. That is enough to tell
whether two are the same, and to make it again in another process. Nothing is made, and nothing is
imported, because a file says so: only the classes named here, and those that the caller allows.
"""

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from optexp_jax.formulas.operators import Operator, operator_from_json, operator_to_json
from optexp_jax.internal.own_code import find_object, import_object
from optexp_jax.runs.typed import make

CLASS, OPERATOR, ARRAY = "class", "operator", "array"

OWN_CLASSES: Mapping[str, str] = {
    "Optimal": "optexp_jax.methods.optimal",
    "Beam": "optexp_jax.methods.beam.beam",
    "Exhaustive": "optexp_jax.methods.exhaustive",
    "NetDissect": "optexp_jax.methods.netdissect",
    "BestFirst": "optexp_jax.search.order",
    "DepthFirst": "optexp_jax.search.order",
    "BreadthFirst": "optexp_jax.search.order",
    "TightBounds": "optexp_jax.bounds.tight.family",
    "PaperBounds": "optexp_jax.bounds.paper.space",
    "PublishedVectors": "optexp_jax.bounds.paper.vectors",
    "LabelVectors": "optexp_jax.bounds.paper.vectors",
    "PairVectors": "optexp_jax.bounds.paper.pair_vectors",
    "QuantityGuide": "optexp_jax.methods.beam.guides.quantity",
    "MMESHGuide": "optexp_jax.methods.beam.guides.mmesh",
    "NullModel": "optexp_jax.runs.null",
    "OtherImages": "optexp_jax.runs.other_images",
    "StoredLayer": "optexp_jax.runs.layers",
    "SharedBitmaps": "optexp_jax.runs.shared",
}
"""Classes that hold settings only, so that making one does nothing else, and where they are.

Files call them `optexp_jax:Class`, wherever they are."""
OWN = "optexp_jax:"


class ForeignClassError(ValueError):
    """A file names a class that is not one of ours and that nobody has allowed."""

    def __init__(self, name: object):
        super().__init__(
            f"These settings name the class {str(name)!r}, which is not part of optexp_jax. Its "
            "code runs only if you name it too: if it is yours, pass --allow "
            f"{name}, or in Python Run(path, allow=[...]) with the class."
        )


def class_name(kind: type[Any]) -> str:
    """How a class is named in descriptions: `module:Class`, for our own `optexp_jax:Class`."""
    if OWN_CLASSES.get(kind.__qualname__) == kind.__module__:
        return f"{OWN}{kind.__qualname__}"
    return f"{kind.__module__}:{kind.__qualname__}"


def classes_in(value: object) -> set[type[Any]]:
    """The classes of all dataclasses that settings are made of."""
    if isinstance(value, tuple | list):
        return {kind for item in cast(list[object], value) for kind in classes_in(item)}
    if not dataclasses.is_dataclass(value) or isinstance(value, type | Operator):
        return set()
    fields = [getattr(value, field.name) for field in dataclasses.fields(value)]
    return {type(value), *classes_in(fields)}


def describe(value: object) -> Any:
    """A settings object as JSON. Functions are not settings: a field that holds one is null."""
    if value is None or _is_function(value):
        return None
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Operator):
        return {OPERATOR: operator_to_json(value)}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple | list):
        return [describe(item) for item in cast(tuple[object, ...], value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        kind = type(value)
        return {
            CLASS: class_name(kind),
            **{name: describe(item) for name, item in fields.items()},
        }
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        digest = hashlib.blake2b(array.tobytes(), digest_size=16).hexdigest()
        return {ARRAY: f"{array.dtype.str}{list(array.shape)} {digest}"}
    raise TypeError(
        f"{value!r} cannot be kept in a run: settings are numbers, strings, tuples and dataclasses."
    )


def rebuild(data: Any, allow: Iterable[type[Any]] = ()) -> Any:
    """Inverse of `describe`, for what does not hold arrays. Lists come back as tuples.

    ValueError for anything that `describe` could not have written of our classes and those in
    `allow`.
    """
    try:
        return _rebuild(data, {class_name(kind): kind for kind in allow})
    except (TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(f"These are no settings ({type(error).__name__}: {error}).") from None


def _rebuild(data: Any, allowed: Mapping[str, type[Any]]) -> Any:
    if isinstance(data, list):
        return tuple(_rebuild(item, allowed) for item in cast(list[Any], data))
    if not isinstance(data, dict):
        return data
    fields = cast(dict[str, Any], data)
    if fields.keys() == {OPERATOR}:
        return operator_from_json(fields[OPERATOR])
    if CLASS not in fields:
        raise ValueError(f"These settings hold an array and cannot be made again: {data!r}.")
    kind = _own_class(fields[CLASS]) or allowed.get(fields[CLASS])
    if kind is None:
        raise ForeignClassError(fields[CLASS])
    return make(kind, {key: _rebuild(fields[key], allowed) for key in fields if key != CLASS})


def _own_class(name: object) -> type[Any] | None:
    """The class of ours that a file names so, if it may."""
    plain = str(name).removeprefix(OWN)
    if name != f"{OWN}{plain}" or plain not in OWN_CLASSES:
        return None
    return import_object(OWN_CLASSES[plain], plain, "class")


def find_class(text: str) -> type[Any]:
    """The class that `module:Class` names. It is imported, so only users may name it, no file."""
    found = find_object(text, "Class")
    if not isinstance(found, type):
        raise ValueError(f"{text!r} is not a class.")
    return found


def differences(stored: Any, now: Any, where: str = "") -> list[str]:
    """What differs between two descriptions, one short line each."""
    if isinstance(stored, dict) and isinstance(now, dict):
        before, after = cast(dict[str, Any], stored), cast(dict[str, Any], now)
        if before.get(CLASS) == after.get(CLASS):
            return [
                line
                for key in dict.fromkeys([*before, *after])
                for line in differences(
                    before.get(key), after.get(key), f"{where}.{key}" if where else key
                )
            ]
    if stored == now:
        return []
    return [f"{where} was {_short(stored)} and is now {_short(now)}"]


def _short(value: Any) -> str:
    if isinstance(value, dict):
        settings = cast(dict[str, Any], value)
        return str(settings.get(CLASS, settings)).rpartition(":")[2]
    if isinstance(value, list) and len(cast(list[Any], value)) > 8:
        items = cast(list[Any], value)
        return f"{len(items)} of them, {items[0]} to {items[-1]}"
    return repr(value)


def _is_function(value: object) -> bool:
    return callable(value) and not dataclasses.is_dataclass(value) and not isinstance(value, type)
