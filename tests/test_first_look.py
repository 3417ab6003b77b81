"""Scores and bounds of a small table, in one program."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from search_cases import seeds
from tight_cases import N, any_case
from tight_helpers import each_subset

import optexp_jax as ox
from optexp_jax.operators import Operator
from optexp_jax.tight.first_look import first_look
from optexp_jax.tight.forms import Forms
from optexp_jax.tight.grams import Overlaps
from optexp_jax.tight.pair_bounds import pair_bounds
from optexp_jax.tight.rows import rows_of
from optexp_jax.tight.views import Views
from support import examples


@each_subset
@examples(5)
@given(seed=seeds)
def test_same_as_in_programs_of_their_own(operators: tuple[Operator, ...], seed: int):
    # Those are tested to be exact, or admissible; what they may be off by rounding is not.
    case, forms = any_case(np.random.default_rng(seed)), Forms.of(operators)
    overlaps = Overlaps(case.table, case.neuron)
    with jax.enable_x64(True):
        look = first_look(*overlaps.counted(), jnp.int64(case.neuron.size), forms=forms)
        regions, every = look.regions, jnp.arange(N, dtype=jnp.int32)
        rows = rows_of(regions)
        bounds = pair_bounds(regions, rows, jnp.zeros_like(every), every, forms=forms)
    best = max(np.asarray(look.scores.single).max(), np.asarray(look.scores.pairs).max())
    assert float(regions.v) == np.nextafter(float(best), 0.0)
    both = jax.tree.leaves((look.rows, look.bounds)), jax.tree.leaves((rows, bounds))
    for found, true in zip(*both, strict=True):
        rounding = 1e-13 * case.table.n_locations
        np.testing.assert_allclose(np.asarray(found), np.asarray(true), 1e-12, rounding)
    assert (np.asarray(regions.gram.inside) == np.asarray(overlaps.everywhere.inside)).all()
    assert (np.asarray(regions.gram.outside) == np.asarray(overlaps.everywhere.outside)).all()


@pytest.mark.parametrize(("top_k", "length", "used"), [(1, 3, True), (2, 3, False), (1, 4, False)])
def test_used_where_its_v_is_right(
    top_k: int, length: int, used: bool, monkeypatch: pytest.MonkeyPatch
):
    # With runners-up wanted the threshold is lower; a longer search first raises it by a beam.
    asked: list[Views] = []
    original = Views.at_first_look

    def note(*args: Any) -> Views:
        asked.append(original(*args))
        return asked[-1]

    monkeypatch.setattr(Views, "at_first_look", note)
    case = any_case(np.random.default_rng(3))
    ox.explain(case.table, case.neuron, ox.Optimal(length, top_k=top_k))
    assert bool(asked) == used
