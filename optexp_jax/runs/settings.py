"""Settings objects as JSON and back: methods, bounds, guides, ways to open a source.

A dataclass (every Equinox module is one) becomes its class and its fields. That is enough to tell
whether two are the same, and to make it again in another process.
"""

import dataclasses
import hashlib
import importlib
from pathlib import Path
from typing import Any, cast

import numpy as np

from optexp_jax.operators import Operator, operator_from_json, operator_to_json

CLASS, OPERATOR, ARRAY = "class", "operator", "array"


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
            CLASS: f"{kind.__module__}:{kind.__qualname__}",
            **{name: describe(item) for name, item in fields.items()},
        }
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        digest = hashlib.blake2b(array.tobytes(), digest_size=16).hexdigest()
        return {ARRAY: f"{array.dtype.str}{list(array.shape)} {digest}"}
    raise TypeError(
        f"{value!r} cannot be kept in a run: settings are numbers, strings, tuples and dataclasses."
    )


def rebuild(data: Any) -> Any:
    """Inverse of `describe`, for what does not hold arrays. Lists come back as tuples."""
    if isinstance(data, list):
        return tuple(rebuild(item) for item in cast(list[Any], data))
    if not isinstance(data, dict):
        return data
    fields = cast(dict[str, Any], data)
    if OPERATOR in fields:
        return operator_from_json(fields[OPERATOR])
    if CLASS not in fields:
        raise ValueError(f"These settings hold an array and cannot be made again: {data!r}.")
    settings = {name: rebuild(item) for name, item in fields.items() if name != CLASS}
    return find_class(fields[CLASS])(**settings)


def find_class(text: str) -> type[Any]:
    """The class that `module:Class` names."""
    module, colon, name = text.partition(":")
    if not colon or not name:
        raise ValueError(f"{text!r} does not name a class; write module:Class.")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{text!r} does not name a class that can be imported: {error}.") from None
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
