"""What bounds are made of: rows of Gram matrices asked for alone are those of the whole matrix."""

import jax
import jax.numpy as jnp
import numpy as np
from helpers.search_cases import seeds
from helpers.support import examples
from helpers.tight_cases import N, some_setting
from helpers.tight_helpers import HERE, every_row, gram, inputs_of
from hypothesis import given

import optexp_jax as ox
from optexp_jax.bounds.tight.operator_set import DIFFERENCE, OperatorSet
from optexp_jax.bounds.tight.theory.bound_inputs import GramRows

PARTS = ("i", "e", "ve", "both", "shared", "union", "without", "others")


@examples(10)
@given(seed=seeds)
def test_some_rows_are_those_of_all(seed: int):
    setting = some_setting(np.random.default_rng(seed), ox.DEFAULT_OPERATORS)
    with jax.enable_x64(True):
        inputs = inputs_of(setting)
        every, some = inputs.all_rows(), inputs.rows(*every_row())
        for part in PARTS:
            whole = np.broadcast_to(np.asarray(getattr(every, part)), (2, N, N))[HERE]
            np.testing.assert_array_equal(np.asarray(getattr(some, part)), whole, part)
        for all_of_them, these in ((every.proper(), some.proper()), (usable(every), usable(some))):
            np.testing.assert_array_equal(np.asarray(all_of_them)[HERE], np.asarray(these))
    i, e = gram(setting)
    np.testing.assert_array_equal(np.asarray(some.inside), i)
    np.testing.assert_array_equal(np.asarray(some.outside), e)


def usable(rows: GramRows) -> jax.Array:
    return rows.usable(OperatorSet(True, False, True))


def test_symmetric_pairs_are_usable_once():
    setting = some_setting(np.random.default_rng(0), ox.DEFAULT_OPERATORS)
    with jax.enable_x64(True):
        found = np.asarray(jnp.asarray(usable(inputs_of(setting).rows(*every_row()))))
    free = np.isin(np.arange(N), setting.free)
    both = np.outer(free, free) & ~np.eye(N, dtype=bool)
    np.testing.assert_array_equal(found[:, 0], both & (np.arange(N)[:, None] < np.arange(N)))
    assert not found[:, 1].any()
    np.testing.assert_array_equal(found[:, DIFFERENCE], both)
