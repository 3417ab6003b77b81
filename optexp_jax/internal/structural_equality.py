"""Whether two settings objects say the same, down to the last bit of their arrays.

A `repr` does not tell: it shortens arrays, and may leave fields out. `==` does not tell either: for
arrays it gives an array, and NaN differs from itself.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

_UNSET = object()


def structurally_equal(one: object, other: object) -> bool:
    """Whether both are of the same classes with the same fields, numbers and arrays.

    Dataclasses (every Equinox module is one), tuples, lists and dictionaries are compared part by
    part; arrays by shape, type and bits. An object of another class is equal to what its own `==`
    says is; where it has none, as functions, only to itself.
    """
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if dataclasses.is_dataclass(one):
        return all(
            structurally_equal(getattr(one, field.name, _UNSET), getattr(other, field.name, _UNSET))
            for field in dataclasses.fields(one)
        )
    if isinstance(one, tuple | list):
        return _all_equal(cast(Sequence[object], one), cast(Sequence[object], other))
    if isinstance(one, Mapping):
        mine, theirs = cast(Mapping[Any, object], one), cast(Mapping[Any, object], other)
        return mine.keys() == theirs.keys() and all(
            structurally_equal(mine[key], theirs[key]) for key in mine
        )
    if isinstance(one, jax.Array | np.ndarray | np.generic):
        return _equal_arrays(one, cast(Any, other))
    if isinstance(one, float | complex):
        return repr(one) == repr(other)  # exact, tells -0.0 from 0.0, and NaN is itself
    try:
        return (one == other) is True
    except Exception:  # it is not our code, and may raise anything
        return False


def _all_equal(one: Sequence[object], other: Sequence[object]) -> bool:
    return len(one) == len(other) and all(map(structurally_equal, one, other))


def _equal_arrays(
    one: "jax.Array | np.ndarray | np.generic", other: "jax.Array | np.ndarray | np.generic"
) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if isinstance(one, jax.Array) and jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
        return _equal_arrays(jax.random.key_data(one), jax.random.key_data(cast(Any, other)))
    mine, theirs = np.asarray(one), np.asarray(other)
    if mine.dtype.hasobject:
        return _all_equal(mine.ravel().tolist(), theirs.ravel().tolist())
    return mine.tobytes() == theirs.tobytes()
