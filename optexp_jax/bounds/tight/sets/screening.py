"""U of every set of a level, for one neuron or several in one product.

Here W is summed in floating point, which is quicker than whole numbers and exact enough to rule
sets out: what is left is looked at again, in whole numbers.

With I and E exact, W of an intersection is off by 2·u of its m = I + v·E, in the words of
`bounds.tight.rounding`. Every value on the way is W of some part of the locations that have a
concept, so its magnitude is at most M, the m of all of these. A cell of k concepts comes of at most
2**k intersections with k + 2 roundings each, and U adds 2**k cells: it is off by at most
4**k · (k + 2 + 2**k) · 2·u · M (`allowance`). For k = 5 that is below 1.5e-11 · M.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float64, Int32, Int64

from optexp_jax.bounds.tight.rounding import ROUNDOFF
from optexp_jax.bounds.tight.sets.cells import moebius, moebius_on_host
from optexp_jax.bounds.tight.sets.every_set import EverySet, Level, every_set
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.table_cache import per_table
from optexp_jax.internal.kernel_choice import prefers_host_kernels
from optexp_jax.internal.transfers import fetch, put, run

BLOCK = 1024
"""Sets whose cells are made at once on a device, and cells on the host: they stay in a cache."""
BLOCK_CELLS = 2**16


def allowance(k: int, mass: float) -> float:
    """How much U of k concepts may be too low, where locations with a concept have this m."""
    return 4.0**k * (k + 2 + 2**k) * 2 * ROUNDOFF * mass


@dataclass(frozen=True, eq=False)
class Intersections:
    """What the concepts of every set that occurs have in common, for some neurons."""

    inside: Int64[np.ndarray, "rows neurons"]
    outside: Int64[np.ndarray, "rows neurons"]

    def __len__(self) -> int:
        """Number of neurons."""
        return self.inside.shape[1]

    @classmethod
    def of(cls, sets: EverySet, neurons: Sequence[NeuronCounts]) -> "Intersections":
        inside = np.stack([neuron.inside for neuron in neurons], axis=1)
        outside = np.stack([neuron.outside for neuron in neurons], axis=1)
        return cls(sets.together @ inside, sets.together @ outside)

    def mass(self, sets: EverySet, v: float) -> float:
        """At least I + v·E of all locations that have a concept, for the first neuron."""
        single = sets.rows[0]
        return float(self.inside[single, 0].sum() + v * self.outside[single, 0].sum())

    def one(self, k: int) -> "Intersections":
        """Those of one neuron."""
        return Intersections(self.inside[:, k : k + 1], self.outside[:, k : k + 1])

    def w(self, v: Float64[np.ndarray, " neurons"]) -> Float64[np.ndarray, "rows neurons"]:
        """W of each."""
        return self.inside - v * self.outside


def screen(
    table: ConceptTable,
    length: int,
    shared: Intersections,
    v: Float64[np.ndarray, " neurons"],
    first: int,
    last: int,
) -> list[Float64[np.ndarray, "_ neurons"]]:
    """U of all sets of `first` to `last` concepts, not rounded: see `allowance`.

    `length` tells which sets of the table are meant (`every_set`).
    """
    w = shared.w(v)
    if prefers_host_kernels():
        return _screen_on_host(every_set(table, length), w, first, last)
    return _screen_on_device(_levels_on_device(table, length), w, first, last)


def _screen_on_host(
    sets: EverySet, w: Float64[np.ndarray, "rows neurons"], first: int, last: int
) -> list[Float64[np.ndarray, "_ neurons"]]:
    n_neurons = w.shape[1]
    cells = np.zeros((1, 1, n_neurons))
    found: list[Float64[np.ndarray, "_ neurons"]] = []
    for k, level in enumerate(sets.levels[:last], start=1):
        upper = np.empty((len(level), n_neurons))
        made = np.empty((1 << k if k < last else 0, len(level), n_neurons))
        step = max(BLOCK_CELLS // (n_neurons << k), 1)
        for start in range(0, len(level), step):
            some = slice(start, start + step)
            holds = moebius_on_host(w[level.with_largest[:, some]])
            fails = cells[:, level.parent[some]]
            fails -= holds
            fails[0] = 0.0  # where no concept of the set holds
            if k < last:
                made[: 1 << (k - 1), some], made[1 << (k - 1) :, some] = fails, holds
            np.maximum(holds, 0.0, out=holds)
            np.maximum(fails, 0.0, out=fails)
            holds += fails
            holds.sum(0, out=upper[some])
        cells = made
        if k >= first:
            found.append(upper)
    return found


@dataclass(frozen=True, eq=False)
class LevelOnDevice:
    """A level in blocks, filled up with sets that nobody asks for."""

    n_sets: int
    parent: Int32[Array, "blocks block"]
    with_largest: Int32[Array, "blocks parent_subsets block"]

    @classmethod
    def of(cls, level: Level) -> "LevelOnDevice":
        n_sets, block = len(level), min(BLOCK, len(level))
        n_blocks = -(-n_sets // block)
        spare = n_blocks * block - n_sets
        parent = np.pad(level.parent, (0, spare)).reshape(n_blocks, block)
        rows = np.pad(level.with_largest, ((0, 0), (0, spare)))
        rows = rows.reshape(len(rows), n_blocks, block).transpose(1, 0, 2)
        return cls(n_sets, *put(parent, np.ascontiguousarray(rows)))


@per_table
def _levels_on_device(table: ConceptTable, length: int) -> tuple[LevelOnDevice, ...]:
    return tuple(LevelOnDevice.of(level) for level in every_set(table, length).levels)


def _screen_on_device(
    levels: tuple[LevelOnDevice, ...],
    weights: Float64[np.ndarray, "rows neurons"],
    first: int,
    last: int,
) -> list[Float64[np.ndarray, "_ neurons"]]:
    found: list[Float64[np.ndarray, "_ neurons"]] = []
    with jax.enable_x64(True):
        w, cells = put(weights, np.zeros((1, 1, weights.shape[1])))
        for k, level in enumerate(levels[:last], start=1):
            cells, upper = run(_level, w, cells, level.parent, level.with_largest, last=k == last)
            if k >= first:
                found.append(fetch(upper)[: level.n_sets])
        return found


@partial(jax.jit, static_argnames=("last",))
def _level(
    w: Float64[Array, "rows neurons"],
    cells: Float64[Array, "parent_cells parents neurons"],
    parent: Int32[Array, "blocks block"],
    with_largest: Int32[Array, "blocks parent_subsets block"],
    *,
    last: bool,
) -> tuple[Float64[Array, "cells sets neurons"], Float64[Array, "sets neurons"]]:
    """Cells and U of the sets of one level, from the cells of the level before."""

    def block(
        at: tuple[Int32[Array, " block"], Int32[Array, "parent_subsets block"]],
    ) -> tuple[Float64[Array, "cells block neurons"], Float64[Array, "block neurons"]]:
        before, rows = at
        holds = moebius(w[rows])
        fails = (cells[:, before] - holds).at[0].set(0.0)  # where no concept of the set holds
        upper = (jnp.maximum(holds, 0.0) + jnp.maximum(fails, 0.0)).sum(0)
        return jnp.concatenate([fails, holds])[: 0 if last else None], upper

    made, upper = jax.lax.map(block, (parent, with_largest))
    made = jnp.moveaxis(made, 0, 1).reshape(made.shape[1], parent.size, w.shape[1])
    return made, upper.reshape(parent.size, w.shape[1])
