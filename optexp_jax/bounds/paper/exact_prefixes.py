"""Sub-labels whose exact quantities were computed on the way, for use in later estimates."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Int32, Int64

from optexp_jax.bounds.paper.chains import UNKNOWN
from optexp_jax.counts.quantities import Quantities
from optexp_jax.formulas.batch import PADDING
from optexp_jax.internal.tracing import note_trace

MEMORY = 2**26
"""Bytes that exact sub-labels may take on the device."""


@dataclass(frozen=True, eq=False)
class ExactPrefixes:
    """For each chain, its longest prefix that is known exactly."""

    length: Int32[np.ndarray, " chains"]
    """Concepts in it; 1 (the leaf) where nothing else is known."""
    slot: Int32[np.ndarray, " chains"]
    """Where its quantities are, or UNKNOWN."""


class ExactLabels:
    """A ring of exact quantities on the device; when it is full the oldest ones are forgotten.

    Forgetting loosens later estimates, never breaks them.
    """

    def __init__(self, n_samples: int, dtype: type[np.int32 | np.int64] = np.int64):
        """`dtype` is of quantities per sample; aggregated ones always have 64 bits."""
        row_bytes = 4 * n_samples * np.dtype(dtype).itemsize
        self.capacity = int(np.clip(MEMORY // row_bytes, 16, 1024))
        with jax.enable_x64(True):
            self.per_sample = _empty(self.capacity, n_samples, dtype)
            self.aggregated = _empty(self.capacity, 1, np.int64)
        self._slots: dict[bytes, int] = {}
        self._keys: list[bytes | None] = [None] * self.capacity
        self._next = 0

    def __contains__(self, key: bytes) -> bool:
        return key in self._slots

    def slots(self, keys: list[bytes]) -> Int32[np.ndarray, " keys"]:
        """Where labels' quantities are, or UNKNOWN."""
        return np.array([self._slots.get(key, UNKNOWN) for key in keys], np.int32)

    def prefixes(
        self,
        concepts: Int32[np.ndarray, "chains length"],
        operators: Int32[np.ndarray, "chains length"],
    ) -> ExactPrefixes:
        """What is known of each chain."""
        known = ExactPrefixes(
            np.ones(len(concepts), np.int32), np.full(len(concepts), UNKNOWN, np.int32)
        )
        for length in range(2, concepts.shape[1] + 1) if self._slots else ():
            rows = np.flatnonzero(concepts[:, length - 1] != PADDING)
            slots = self.slots(chain_keys(concepts[rows], operators[rows], length))
            rows, slots = rows[slots != UNKNOWN], slots[slots != UNKNOWN]
            known.length[rows], known.slot[rows] = length, slots
        return known

    def store(self, keys: list[bytes], quantities: Quantities) -> None:
        """Keep the quantities of new labels, as many as fit; rows past the keys are padding.

        The arrays that were held before are overwritten and must not be used any more.
        """
        slots = np.full(len(quantities.iu), self.capacity, np.int32)  # Past the end: not written.
        kept = keys[: self.capacity]
        slots[: len(kept)] = [self._claim(key) for key in kept]
        with jax.enable_x64(True):
            self.per_sample, self.aggregated = _put(
                self.per_sample, self.aggregated, slots, quantities
            )

    def _claim(self, key: bytes) -> int:
        slot = self._next
        self._next = (self._next + 1) % self.capacity
        forgotten = self._keys[slot]
        if forgotten is not None:
            del self._slots[forgotten]
        self._keys[slot] = key
        self._slots[key] = slot
        return slot


def _empty(capacity: int, width: int, dtype: type[np.int32 | np.int64]) -> Quantities:
    return Quantities(*(jnp.zeros((capacity, width), dtype) for _ in range(4)))


@partial(jax.jit, donate_argnums=(0, 1))
def _put(
    per_sample: Quantities,
    aggregated: Quantities,
    slots: Int32[Array | np.ndarray, " rows"],
    rows: Quantities,
) -> tuple[Quantities, Quantities]:
    note_trace("put")

    def put(
        held: Int[Array, "slots samples"], new: Int64[Array, "rows samples"]
    ) -> Int[Array, "slots samples"]:
        return held.at[slots].set(new.astype(held.dtype), mode="drop")

    return jax.tree.map(put, per_sample, rows), jax.tree.map(put, aggregated, rows.aggregate())


def chain_keys(
    concepts: Int32[np.ndarray, "chains length"],
    operators: Int32[np.ndarray, "chains length"],
    prefix: int,
) -> list[bytes]:
    """Keys of the first `prefix` concepts of chains, and of the operators that join them."""
    return row_bytes(np.concatenate([concepts[:, :prefix], operators[:, 1:prefix]], axis=1))


def row_bytes(rows: Int32[np.ndarray, "rows columns"]) -> list[bytes]:
    """Each row as bytes, for use in sets and dicts."""
    width, packed = rows.shape[1] * rows.itemsize, rows.tobytes()
    return [packed[at : at + width] for at in range(0, len(packed), width)]
