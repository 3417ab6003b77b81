"""Children that may still hold the optimum: those that reach the threshold.

A batch has millions of children, of which a few hundred survive. Two kernels find the same ones in
the same order. On a CPU the host reads all bounds where they are. Elsewhere they stay on the device
and the host gets *pages* of survivors, which have one of two sizes, so that two programs serve all
searches on a table.

On the device the n-th survivor is found by counting: survivors are counted in blocks, blocks are
added up, the block that holds the n-th is found by bisection, and its values are looked through.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float64, Int, Int64

from optexp_jax.bounds.paper.path import IMPOSSIBLE
from optexp_jax.internal.kernel_choice import prefers_host_kernels
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.tracing import note_trace

FIRST_PAGE, FURTHER_PAGE = 2**10, 2**12
"""Survivors that are moved at once: to begin with, and if there are more."""

BLOCK = 64
"""Values that are counted together."""


@pytree
class HostSurvivors:
    """Survivors on the host."""

    position: Int[np.ndarray, " survivors"]
    """Where they stand among all values `[node, concept, kind]`, ascending."""
    upper: Float64[np.ndarray, " survivors"]


def survivors_of(
    upper: Float64[Array, "nodes concepts kinds"],
    n_nodes: int,
    threshold: float,
    on_host: bool | None = None,
) -> HostSurvivors:
    """Those of the first `n_nodes` nodes that are not below the threshold, which is 0 or more."""
    if prefers_host_kernels() if on_host is None else on_host:
        return _on_host(upper, n_nodes, threshold)
    return _on_device(upper, n_nodes, threshold)


def _on_host(
    upper: Float64[Array, "nodes concepts kinds"], n_nodes: int, threshold: float
) -> HostSurvivors:
    flat = np.asarray(upper)[:n_nodes].reshape(-1)
    position = np.flatnonzero(flat >= threshold)
    return HostSurvivors(position, flat[position])


def _on_device(
    upper: Float64[Array, "nodes concepts kinds"], n_nodes: int, threshold: float
) -> HostSurvivors:
    with jax.enable_x64(True):
        found, first = _find(upper, np.int64(n_nodes), np.float64(threshold))
        count, page = jax.device_get((found.count, first))
        starts = range(len(page.upper), int(count), FURTHER_PAGE)
        pages = [page, *jax.device_get([_further_page(found, np.int64(at)) for at in starts])]
    return HostSurvivors(
        np.concatenate([page.position for page in pages])[: int(count)],
        np.concatenate([page.upper for page in pages])[: int(count)],
    )


class _Page(eqx.Module):
    """Some survivors in their order; those past the last one mean nothing."""

    position: Int[Array, " page"]
    upper: Float64[Array, " page"]


class _Survivors(eqx.Module):
    """Upper bounds of all children, and how many of them survive."""

    upper: Float64[Array, "blocks block"]
    """In blocks; IMPOSSIBLE where a child does not."""
    ends: Int64[Array, " blocks"]
    """Survivors up to the end of each block."""

    @property
    def count(self) -> Int64[Array, ""]:
        return self.ends[-1]

    def page(self, start: Int64[Array, ""], size: int) -> _Page:
        """Survivors number `start`, `start + 1`, ..., counted from 0."""
        number = start + jnp.arange(1, size + 1, dtype=jnp.int64)
        block = jnp.searchsorted(self.ends, number).astype(jnp.int64)  # the first that reaches it
        before = jnp.where(block > 0, self.ends[block - 1], 0)
        upper = self.upper[block]
        passed = jnp.cumsum(_survives(upper), axis=1, dtype=jnp.int64)
        column = (passed < (number - before)[:, None]).sum(1, dtype=jnp.int64)
        column = jnp.minimum(column, BLOCK - 1)
        found = jnp.take_along_axis(upper, column[:, None], axis=1)[:, 0]
        # Half the bytes, unless there are so many.
        narrow = jnp.int32 if self.upper.size < 2**31 else jnp.int64
        return _Page((block * BLOCK + column).astype(narrow), found)


@jax.jit
def _find(
    upper: Float64[Array, "nodes concepts kinds"],
    n_nodes: Int64[Array, ""],
    threshold: Float64[Array, ""],
) -> tuple[_Survivors, _Page]:
    note_trace("survivors")
    present = jnp.arange(len(upper)) < n_nodes
    kept = present[:, None, None] & (upper >= threshold)
    flat = jnp.where(kept, upper, IMPOSSIBLE).reshape(-1)
    blocks = jnp.pad(flat, (0, -flat.size % BLOCK), constant_values=IMPOSSIBLE).reshape(-1, BLOCK)
    found = _Survivors(blocks, jnp.cumsum(_survives(blocks).sum(1, dtype=jnp.int64)))
    return found, found.page(jnp.int64(0), min(FIRST_PAGE, flat.size))


@jax.jit
def _further_page(found: _Survivors, start: Int64[Array, ""]) -> _Page:
    note_trace("further_survivors")
    return found.page(start, FURTHER_PAGE)


def _survives(upper: Float64[Array, "*shape"]) -> Bool[Array, "*shape"]:
    return upper >= 0
