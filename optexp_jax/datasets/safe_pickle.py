"""Reading pickles that may hold data only: numbers, strings, containers and numpy arrays.

Nothing that a pickle names is called. Not even numpy is: it trusts what is pickled, and a forged
array can crash it. So arrays are read as their parts and put together, with everything checked, at
the end.
"""

import collections
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from optexp_jax.datasets.layout import short
from optexp_jax.datasets.pickle_machine import Makers, RefusedNameError, check_key, run_pickle
from optexp_jax.datasets.protocol import LayoutError

MOST_BYTES = 2**32
MOST_VALUES = 2**24
"""Of data, shared parts counted as often as they occur: 300 bytes can hold a list of lists of
lists that would fill all memory when it is printed."""
DEEPEST = 64
_MOST_AXES = 32
_PLAIN_TYPE = re.compile(r"[biufcSU][0-9]{1,9}|O[0-9]{0,9}")


class UnsafePickleError(LayoutError):
    """A pickle that asks for more than data, and so could run code when it is read."""


class _PickledType:
    """A numpy dtype: its code, and the byte order that comes with the state."""

    def __init__(self, code: Any, *_flags: object):
        self.code = code
        self.order = "|"

    def take_state(self, state: tuple[Any, ...]) -> None:
        _, self.order, sub_type, names, fields = state[:5]
        if (sub_type, names, fields) != (None, None, None):
            raise ValueError("arrays of records are not accepted")

    def numpy(self) -> np.dtype[Any]:
        if not isinstance(self.code, str) or self.order not in ("<", ">", "|", "="):
            raise ValueError("an array whose type is not text, or of an unknown byte order")
        if not _PLAIN_TYPE.fullmatch(self.code):
            raise ValueError(f"arrays of type {short(self.code)} are not accepted")
        return np.dtype("O" if self.code[0] == "O" else self.order + self.code)


class _PickledArray:
    """A numpy array, or one of its elements: shape, type and content."""

    shape: Any = (0,)
    dtype: Any = _PickledType("b1")
    content: Any = b""
    order: Any = "C"
    is_scalar = False

    def take_state(self, state: tuple[Any, ...]) -> None:
        self.shape, self.dtype, fortran, self.content = state[-4:]
        self.order = "F" if fortran else "C"

    def numpy(self, items: list[Any] | None) -> Any:
        """The array; `items` are those of an array of objects."""
        axes = isinstance(self.shape, tuple) and len(self.shape) <= _MOST_AXES
        if not axes or not all(type(n) is int and 0 <= n < 2**62 for n in self.shape):
            raise ValueError("an array whose shape is not some whole numbers")
        if self.order not in ("C", "F") or not isinstance(self.dtype, _PickledType):
            raise ValueError("an array without an order or a type")
        dtype = self.dtype.numpy()
        if dtype.hasobject:
            if items is None:
                raise ValueError("an array of objects that is not a list")
            flat = np.empty(len(items), dtype)
            for place, item in enumerate(items):
                flat[place] = item
        else:
            # Python 2 wrote strings, which are read as latin-1.
            old = isinstance(self.content, str)
            raw = self.content.encode("latin1") if old else self.content
            if not isinstance(raw, bytes) or len(raw) != math.prod(self.shape) * dtype.itemsize:
                size = len(raw) if isinstance(raw, bytes) else "no"
                raise ValueError(f"an array of shape {self.shape} from {size} bytes")
            flat = np.frombuffer(raw, dtype)
        whole = flat.reshape(self.shape, order=self.order)
        return whole[()] if self.is_scalar else whole


def _reconstruct(*_: object) -> _PickledArray:
    return _PickledArray()


def _from_buffer(content: Any, dtype: Any, shape: Any, order: Any, *_: object) -> _PickledArray:
    array = _PickledArray()
    array.content, array.dtype, array.shape, array.order = content, dtype, shape, order
    return array


def _scalar(dtype: Any, content: Any) -> _PickledArray:
    array = _PickledArray()
    array.content, array.dtype, array.shape, array.is_scalar = content, dtype, (), True
    return array


def _encode(text: Any, encoding: Any = "utf-8") -> bytes:
    """How old protocols write bytes."""
    if not isinstance(text, str) or encoding not in ("latin1", "utf-8"):
        raise ValueError("bytes in an unknown encoding")
    return text.encode(encoding)


def _no_bytes() -> bytes:
    """How old protocols write b""."""
    return b""


def _complex(real: Any, imaginary: Any) -> complex:
    if not (isinstance(real, float) and isinstance(imaginary, float)):
        raise ValueError("a complex number of other things than two numbers")
    return complex(real, imaginary)


def _ordered(pairs: Any = ()) -> dict[Any, Any]:
    return collections.OrderedDict((check_key(key), value) for key, value in pairs)


def _set(members: Any = ()) -> set[Any]:
    return set(_members(members))


def _frozen_set(members: Any = ()) -> frozenset[Any]:
    return frozenset(_members(members))


def _members(members: Any) -> Iterable[Any]:
    if not isinstance(members, list | tuple):
        raise ValueError("a set of something that is no list")
    return map(check_key, members)


_MAKERS: Makers = {
    ("numpy", "ndarray"): None,
    ("numpy", "dtype"): _PickledType,
    ("collections", "OrderedDict"): _ordered,
    ("_codecs", "encode"): _encode,
    **{
        (f"numpy.{core}.{module}", name): value
        for core in ("core", "_core")
        for module, name, value in (
            ("multiarray", "_reconstruct", _reconstruct),
            ("multiarray", "scalar", _scalar),
            ("numeric", "_frombuffer", _from_buffer),
        )
    },
    **{
        (module, name): value
        for module in ("builtins", "__builtin__")
        for name, value in (
            ("bytes", _no_bytes),
            ("complex", _complex),
            ("frozenset", _frozen_set),
            ("set", _set),
        )
    },
}


def read_pickle(path: Path) -> Any:
    """The data in a pickle; UnsafePickleError if there is more than data in it."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"it is larger than {MOST_BYTES} bytes")
        return _Resolver().resolve(run_pickle(path.read_bytes(), _MAKERS), 0)
    except RefusedNameError as error:
        raise UnsafePickleError(
            f"{path} is a pickle that asks for {error}. Reading it could run code, so only plain "
            "data and numpy arrays are accepted."
        ) from None
    except Exception as error:  # A damaged pickle can make its reader raise anything.
        reason = str(error) or type(error).__name__
        raise LayoutError(f"{path} cannot be read as a pickle: {reason}") from error


class _Resolver:
    """Puts arrays in the place of their parts, and refuses data that is too large to handle."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}
        self._left = MOST_VALUES
        self._done: dict[int, Any] = {}
        self._kept: list[Any] = []  # So that no other object gets the id of one.

    def resolve(self, value: Any, depth: int) -> Any:
        """The value, for which `_sizes` then has an entry if it has parts."""
        if isinstance(value, str | bytes | int | float | complex | None):
            return value
        if id(value) in self._done:
            return self._done[id(value)]
        if depth > DEEPEST or id(value) in self._sizes:
            raise ValueError(f"data that holds itself, or is nested more than {DEEPEST} deep")
        self._sizes[id(value)] = 0  # Under way.
        self._kept.append(value)
        parts = _parts(value)
        self._left -= len(parts)
        if self._left < 0:
            raise ValueError(f"more than {MOST_VALUES} values")
        resolved = [self.resolve(part, depth + 1) for part in parts]
        size = 1 + sum(self._size(part) for part in parts)
        if size > MOST_VALUES:
            raise ValueError(f"more than {MOST_VALUES} values")
        self._sizes[id(value)] = size
        self._done[id(value)] = _assembled(value, resolved)
        return self._done[id(value)]

    def _size(self, part: Any) -> int:
        if isinstance(part, str):
            return 1 + len(part) // 64
        return self._sizes.get(id(part), 1)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if isinstance(value, _PickledArray) and isinstance(value.content, list):
        return value.content
    if isinstance(value, _PickledArray | _PickledType):
        return []
    raise ValueError(f"a bare {type(value).__name__} among the data")


def _assembled(value: Any, parts: list[Any]) -> Any:
    if isinstance(value, _PickledArray):
        return value.numpy(parts if isinstance(value.content, list) else None)
    if isinstance(value, _PickledType):
        return value.numpy()
    if isinstance(value, dict):
        half = len(parts) // 2
        return dict(zip(parts[:half], parts[half:], strict=True))
    return type(value)(parts)
