"""The fused root, against the programs that it fuses."""

import jax
import jax.numpy as jnp
import numpy as np
from helpers.search_cases import seeds
from helpers.support import examples
from helpers.tight_cases import N, any_case
from helpers.tight_helpers import each_subset
from hypothesis import given

from optexp_jax.bounds.tight.counts.gram import Overlaps
from optexp_jax.bounds.tight.operator_set import OperatorSet
from optexp_jax.bounds.tight.search.root import fused_alone
from optexp_jax.bounds.tight.theory.one_step import pair_bounds
from optexp_jax.bounds.tight.theory.row_maxima import row_maxima
from optexp_jax.formulas.operators import Operator
from optexp_jax.search.problem import Problem


@each_subset
@examples(5)
@given(seed=seeds)
def test_same_as_in_programs_of_their_own(operators: tuple[Operator, ...], seed: int):
    # Those are tested to be exact, or admissible; what they may be off by rounding is not.
    case, ops = any_case(np.random.default_rng(seed)), OperatorSet.of(operators)
    overlaps = Overlaps(case.table, case.neuron)
    with jax.enable_x64(True):
        look = fused_alone(Problem(case.table, case.neuron, 3, operators), ops)
        inputs, every = look.inputs, jnp.arange(N, dtype=jnp.int32)
        rows = row_maxima(inputs)
        bounds = pair_bounds(inputs, rows, jnp.zeros_like(every), every, ops=ops)
    best = max(np.asarray(look.scores.single).max(), np.asarray(look.scores.pairs).max())
    assert look.v == np.nextafter(float(best), 0.0)
    both = jax.tree.leaves((look.maxima, look.bounds[0])), jax.tree.leaves((rows, bounds))
    for found, true in zip(*both, strict=True):
        rounding = 1e-13 * case.table.n_locations
        np.testing.assert_allclose(np.asarray(found), np.asarray(true), 1e-12, rounding)
    assert (np.asarray(inputs.gram.inside) == np.asarray(overlaps.everywhere.inside)).all()
    assert (np.asarray(inputs.gram.outside) == np.asarray(overlaps.everywhere.outside)).all()
