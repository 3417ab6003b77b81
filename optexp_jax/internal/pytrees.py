"""Plain dataclasses as pytrees.

They take a tenth of the time of an Equinox module to make, which counts for what is made and taken
apart at every call of a compiled program, and need nothing else of what a module is.
"""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

import jax

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False)
def pytree(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass whose fields are the children of a pytree."""
    return jax.tree_util.register_dataclass(dataclass(frozen=True, eq=False)(cls))
