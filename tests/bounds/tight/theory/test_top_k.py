"""The few largest values of each row, against `jax.lax.top_k`."""

import jax
import jax.numpy as jnp
import numpy as np
from helpers.support import examples
from hypothesis import given
from hypothesis import strategies as st

from optexp_jax.bounds.tight.theory.top_k import sum_of_top_k, sums_of_top_k, top_k


@given(
    rows=st.integers(1, 4),
    values=st.lists(st.sampled_from([-np.inf, -2.5, 0.0, 1.0, 1.5, 3.0]), min_size=12, max_size=12),
    k=st.integers(1, 3),
)
@examples(20)
def test_largest_is_top_k(rows: int, values: list[float], k: int):
    with jax.enable_x64(True):
        matrix = jnp.asarray(values).reshape(rows, -1)
        expected = np.asarray(jax.lax.top_k(matrix, k)[0])
        np.testing.assert_array_equal(top_k(matrix, k), expected)
        np.testing.assert_allclose(sum_of_top_k(matrix, jnp.int32(k)), expected.sum(1))


@given(
    rows=st.integers(1, 4),
    values=st.lists(st.sampled_from([0.0, 1.0, 1.5, 3.0]), min_size=12, max_size=12),
    longest=st.integers(0, 14),
)
@examples(20)
def test_sums_of_each_length(rows: int, values: list[float], longest: int):
    with jax.enable_x64(True):
        matrix = jnp.asarray(values).reshape(rows, -1)
        found = np.asarray(sums_of_top_k(matrix, longest))
    ordered = -np.sort(-np.asarray(matrix), axis=1)
    assert found.shape == (min(longest, matrix.shape[1]) + 1, rows)
    for k, sums in enumerate(found):
        np.testing.assert_array_equal(sums, ordered[:, :k].sum(1))
