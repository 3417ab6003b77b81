"""Work on a varying number of rows in one compiled program."""

from collections.abc import Callable
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Int32

Rows = TypeVar("Rows")
Results = TypeVar("Results", bound=eqx.Module)


def map_chunks(
    function: Callable[[Rows], Results], rows: Rows, n_chunks: Int[Array, ""], size: int
) -> Results:
    """Apply a function to the first `n_chunks` chunks of `size` rows, one after another.

    How many chunks there are is not compiled in, so a program made for many rows takes no longer
    than the rows at hand. Results of rows past the last chunk are zeros.
    """

    def results_of(index: Int[Array, ""] | int) -> Results:
        start = index * size
        return function(
            jax.tree.map(lambda part: jax.lax.dynamic_slice_in_dim(part, start, size), rows)
        )

    def add_chunk(index: Int[Array, ""], results: Results) -> Results:
        return jax.tree.map(
            lambda whole, part: jax.lax.dynamic_update_slice_in_dim(whole, part, index * size, 0),
            results,
            results_of(index),
        )

    n_rows = jax.tree.leaves(rows)[0].shape[0]
    empty = jax.tree.map(
        lambda part: jnp.zeros((n_rows, *part.shape[1:]), part.dtype),
        jax.eval_shape(results_of, 0),
    )
    return jax.lax.fori_loop(0, n_chunks, add_chunk, empty)


def map_blocks(
    function: Callable[[Int32[Array, " block"]], Results], n_rows: int, size: int
) -> Results:
    """Apply a function to the numbers of `size` rows at a time, of `n_rows` in all.

    The last block is filled up with the last row; what comes of that is left out.
    """
    if size >= n_rows:
        return function(jnp.arange(n_rows, dtype=jnp.int32))
    n_blocks = -(-n_rows // size)
    rows = jnp.minimum(jnp.arange(n_blocks * size, dtype=jnp.int32), n_rows - 1)
    blocks = jax.lax.map(function, rows.reshape(n_blocks, size))
    return jax.tree.map(lambda part: part.reshape(-1, *part.shape[2:])[:n_rows], blocks)
