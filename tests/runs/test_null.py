"""The null model: draws, p-values, and what they tell apart."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from helpers.run_cases import memory_layer, same, small_table, stored_layer

import optexp_jax as ox
from optexp_jax.concepts import ConceptTable
from optexp_jax.counts.scores import Score
from optexp_jax.explanation import SearchStats
from optexp_jax.runs import BitmapUnits, NullModel, NullResult, RunFamily, UnitResult, explain_layer
from optexp_jax.runs.null import compare_with_null
from optexp_jax.runs.verify import verify_run
from optexp_jax.validation import Groups, family_p_values, holm


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


def test_groups_are_shifted_along_their_order():
    labels = ["a", "b", "a", "b", "b", "a", "a", "c", "c", "b"]
    groups = Groups.of(labels, 10)
    seen: set[tuple[int, ...]] = set()
    for draw in NullModel(60, seed=1).draws(small_table(), groups):
        seen.add(tuple(draw.order))
        for name in "abc":
            own = [sample for sample in range(10) if labels[sample] == name]
            given = [int(draw.order[sample]) for sample in own]
            turns = [own[k:] + own[:k] for k in range(len(own))]
            assert given in turns, "only whole turns of the group's own maps"
    assert 20 < len(seen) <= 4 * 4 * 2


def test_whole_groups_change_places_with_enough_of_their_size():
    def orders(sizes: list[int]) -> tuple[np.ndarray, list[np.ndarray]]:
        member = np.repeat(np.arange(len(sizes)), sizes)
        masks = np.ones((1, len(member), 1, 1), bool)
        table = ConceptTable.from_masks(masks, ["a"])
        drawn = NullModel(40).draws(table, Groups.of(member.tolist(), len(member)))
        return member, [draw.order for draw in drawn]

    member, drawn = orders([2] * 20 + [3] * 19)
    moved = 0
    for order in drawn:
        assert sorted(order) == list(range(len(member)))
        given = member[order]
        for group in range(39):
            (from_group,) = set(given[member == group].tolist())
            moved += from_group != group
            assert (from_group < 20) == (group < 20)
            assert group < 20 or from_group == group, "19 of a size stay where they are"
    assert moved > 40 * 15


def test_draws_end_when_enough_reach_the_unit(tmp_path: Path):
    layer = memory_layer(4)
    full = explain_layer(tmp_path / "full", layer, ox.NetDissect(), null=NullModel(30))
    short = explain_layer(tmp_path / "short", layer, ox.NetDissect(), null=NullModel(30, stop=3))
    stopped = 0
    for one, other in zip(full.results, short.results, strict=True):
        assert one.null is not None
        assert other.null is not None
        n = other.null.n
        assert other.null.scores == one.null.scores[:n]
        if other.null.stopped:
            stopped += n < 30
            assert other.null.at_least == 3
            assert other.null.p_value == 3 / n
            assert one.explanation is not None
            again = NullResult.of(one.null.scores[: n - 1], one.explanation.score)
            assert again.at_least == 2, "the last draw is the one that ended it"
        else:
            assert n == 30
            assert other.null.p_value == one.null.p_value
    assert stopped
    assert all(check.good for check in verify_run(short, layer))
    family = RunFamily.of(short.results)
    assert family is not None
    assert family.how == "Holm"
    plain = np.array([row["p_value"] for row in short.rows()])
    assert [each.family_wise for each in family.units.values()] == holm(plain).tolist()


def test_draws_without_a_proof_count_with_their_bound():
    null = NullResult.of([Score(1, 4)] * 4, Score(1, 3), [None, 0.5, 0.3, 0.25])
    assert null.at_least == 1
    assert null.values == (0.25, 0.5, 0.3, 0.25)
    assert null.highest == 0.5
    found = ox.Explanation(None, 0, 3, 0.0, ox.Status.OPTIMAL, stats=SearchStats())
    result = UnitResult(0, found, NullResult.of([Score(0, 3)] * 2, found.score, [None, 0.7]))
    assert UnitResult.from_json(result.to_json()) == result


def test_a_stopped_search_gives_its_bound():
    layer = memory_layer(1)
    method = ox.Optimal(length=3, gap=10.0, bounds=ox.PaperBounds())
    found = ox.explain(layer.table, layer.bitmap(0), method)
    null = compare_with_null(NullModel(5), layer, {0: found}, method)[0]
    exact = compare_with_null(NullModel(5), layer, {0: found}, ox.Optimal(length=3))[0]
    for draw in range(5):
        assert null.values[draw] >= exact.values[draw] - 1e-12
    assert any(bound is not None for bound in null.upper_bounds)


def test_the_family_is_that_of_all_units(tmp_path: Path):
    layer = memory_layer(6)
    run = explain_layer(tmp_path / "run", layer, ox.NetDissect(), null=NullModel(19))
    draws = np.array([each.null.values for each in run.results if each.null is not None]).T
    expected = family_p_values([row["iou"] for row in run.rows()], draws)
    rows = run.rows()
    assert [row["p_family"] for row in rows] == expected.family_wise.tolist()
    assert [row["q_value"] for row in rows] == expected.false_discovery.tolist()
    assert RunFamily.of([]) is None
