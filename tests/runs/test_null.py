"""The null model: draws, p-values, and what they tell apart."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from helpers.run_cases import memory_layer, same, small_table, stored_layer

import optexp_jax as ox
from optexp_jax.concepts import ConceptTable
from optexp_jax.counts.scores import Score
from optexp_jax.runs import BitmapUnits, NullModel, NullResult, explain_layer
from optexp_jax.runs.null import compare_with_null


def test_p_values_count_the_unit_itself():
    below, same, above = Score(1, 4), Score(2, 6), Score(2, 5)
    assert NullResult.of([below] * 99, Score(1, 3)).p_value == 0.01
    assert NullResult.of([same] * 99, Score(1, 3)).p_value == 1.0
    assert NullResult.of([below, below, above, below], Score(1, 3)).p_value == 0.4


@pytest.mark.parametrize("shift", [False, True])
def test_every_draw_is_explained_as_if_it_were_a_unit(shift: bool):
    layer = memory_layer(3)
    model = NullModel(6, shift=shift, seed=4)
    method = ox.NetDissect()
    draws = list(model.draws(layer.table))
    for unit in range(3):
        bitmap = layer.bitmap(unit)
        ratios: list[Fraction] = []
        for draw in draws:
            moved = bitmap[draw.order]
            if shift:
                assert draw.shifts is not None
                pairs = zip(moved, draw.shifts, strict=True)
                moved = np.stack([np.roll(each, tuple(by), (0, 1)) for each, by in pairs])
            assert moved.sum() == bitmap.sum()
            ratios.append(ox.explain(layer.table, moved, method).score.ratio)
        found = ox.explain(layer.table, bitmap, method)
        result = compare_with_null(model, layer, {unit: found}, method)[unit]
        assert result.at_least == sum(ratio >= found.score.ratio for ratio in ratios)
        assert result.highest == float(max(ratios))
        assert result.mean == pytest.approx(float(sum(ratios)) / 6)


def test_draws_are_permutations_of_their_seed():
    table = small_table()
    one, same_again, other = (
        [draw.order.tolist() for draw in NullModel(5, seed=seed).draws(table)] for seed in (1, 1, 2)
    )
    assert one == same_again != other
    assert len({tuple(order) for order in one}) == 5
    assert all(sorted(order) == list(range(table.n_samples)) for order in one)
    # A longer null model begins with the draws of a shorter one.
    longer = [draw.order.tolist() for draw in NullModel(8, seed=1).draws(table)]
    assert longer[:5] == one


def test_a_unit_that_fires_on_a_concept_is_above_chance_and_noise_is_not(tmp_path: Path):
    table = small_table()
    noise = np.random.default_rng(0).random((4, *table.mask("boat").shape)) < 0.1
    layer = BitmapUnits(table, np.concatenate([table.mask("boat")[None], noise]))
    run = explain_layer(tmp_path / "run", layer, ox.NetDissect(), null=NullModel(39))
    p_values = [result.null.p_value for result in run.results if result.null is not None]
    assert p_values[0] == 1 / 40
    assert max(p_values[1:]) > 0.2
    assert run.rows()[0]["p_value"] == p_values[0]


def test_units_on_disk_are_shuffled_the_same(tmp_path: Path):
    model = NullModel(4, shift=True)
    one = explain_layer(tmp_path / "one", memory_layer(3), ox.NetDissect(), null=model)
    stored = stored_layer(tmp_path, 3)
    assert same(one, explain_layer(tmp_path / "two", stored, ox.NetDissect(), null=model))


def test_null_models_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        NullModel(0)
    with pytest.raises(ValueError, match="at most"):
        NullModel(10**9)
    with pytest.raises(ValueError, match="negative"):
        NullModel(3, seed=-1)
    flat = ConceptTable.from_masks(np.ones((1, 3, 4), bool), ["a"])
    with pytest.raises(ValueError, match="rows and columns"):
        next(NullModel(1, shift=True).draws(flat))
