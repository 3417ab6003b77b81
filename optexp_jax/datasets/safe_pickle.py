"""Reading pickles that may hold data only: numbers, strings, containers and numpy arrays.

Nothing that a pickle names is called but what stands here. Not even numpy is: it trusts what is
pickled, and a forged array can crash it. So arrays are read as their parts and put together, with
everything checked, at the end.
"""

import collections
import math
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from optexp_jax.datasets.protocol import LayoutError

_PLAIN_TYPE = re.compile(r"[biufcSU][0-9]+|O[0-9]*")


class UnsafePickleError(LayoutError):
    """A pickle that asks for more than data, and so could run code when it is read."""


class _PickledType:
    """A numpy dtype: its code, and the byte order that comes with the state."""

    def __init__(self, code: str, *_flags: object):
        self.code = code
        self.order = "|"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, self.order, sub_type, names, fields = state[:5]
        if (sub_type, names, fields) != (None, None, None):
            raise ValueError("arrays of records are not accepted")

    def numpy(self) -> np.dtype[Any]:
        if not _PLAIN_TYPE.fullmatch(self.code) or self.order not in ("<", ">", "|", "="):
            raise ValueError(f"arrays of type {self.code!r} are not accepted")
        return np.dtype("O" if self.code[0] == "O" else self.order + self.code)


class _PickledArray:
    """A numpy array, or one of its elements: shape, type and content."""

    shape: tuple[int, ...] = (0,)
    dtype: _PickledType = _PickledType("b1")
    content: Any = b""
    order: Any = "C"
    is_scalar = False

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.shape, self.dtype, fortran, self.content = state[-4:]
        self.order = "F" if fortran else "C"

    def numpy(self) -> Any:
        if self.order not in ("C", "F") or not all(type(n) is int and n >= 0 for n in self.shape):
            raise ValueError(f"an array of shape {self.shape} in order {self.order!r}")
        dtype = self.dtype.numpy()
        if dtype.hasobject:
            flat = np.empty(len(self.content), dtype)
            for place, item in enumerate(self.content):
                flat[place] = _resolve(item)
        else:
            # Python 2 wrote strings, which are read as latin-1.
            old = isinstance(self.content, str)
            raw = bytes(self.content, "latin1") if old else bytes(self.content)
            if len(raw) != math.prod(self.shape) * dtype.itemsize:
                raise ValueError(f"an array of shape {self.shape} from {len(raw)} bytes")
            flat = np.frombuffer(raw, dtype)
        whole = flat.reshape(self.shape, order=self.order)
        return whole[()] if self.is_scalar else whole


def _reconstruct(*_: object) -> _PickledArray:
    return _PickledArray()


def _from_buffer(content: Any, dtype: _PickledType, shape: Any, order: Any, *_: object) -> Any:
    array = _PickledArray()
    array.content, array.dtype, array.shape, array.order = content, dtype, tuple(shape), order
    return array


def _scalar(dtype: _PickledType, content: Any) -> _PickledArray:
    array = _PickledArray()
    array.content, array.dtype, array.shape, array.is_scalar = content, dtype, (), True
    return array


def _encode(text: str, encoding: str = "utf-8") -> bytes:
    """How old protocols write bytes."""
    if encoding not in ("latin1", "utf-8"):
        raise ValueError(f"bytes in the encoding {encoding!r}")
    return text.encode(encoding)


def _no_bytes() -> bytes:
    """How old protocols write b""; `bytes` itself would take a number and fill the memory."""
    return b""


_ADMITTED: Mapping[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _PickledArray,
    ("numpy", "dtype"): _PickledType,
    ("collections", "OrderedDict"): collections.OrderedDict,
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
            ("complex", complex),
            ("frozenset", frozenset),
            ("set", set),
        )
    },
}


class _DataUnpickler(pickle.Unpickler):
    def __init__(self, file: IO[bytes], path: Path):
        super().__init__(file, encoding="latin1")
        self._path = path

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        try:
            return _ADMITTED[module_name, global_name]
        except KeyError:
            raise UnsafePickleError(
                f"{self._path} is a pickle that asks for {module_name}.{global_name}. Reading it "
                "could run code, so only plain data and numpy arrays are accepted."
            ) from None


def read_pickle(path: Path) -> Any:
    """The data in a pickle; UnsafePickleError if there is more than data in it."""
    try:
        with path.open("rb") as file:
            return _resolve(_DataUnpickler(file, path).load())
    except UnsafePickleError:
        raise
    except Exception as error:  # A damaged pickle can make its reader raise anything.
        raise LayoutError(f"{path} cannot be read as a pickle: {error}") from error


def _resolve(value: Any) -> Any:
    """The value with arrays in the place of their parts."""
    if isinstance(value, _PickledArray | _PickledType):
        return value.numpy()
    if isinstance(value, dict):
        return {_resolve(key): _resolve(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return type(value)(map(_resolve, value))
    return value
