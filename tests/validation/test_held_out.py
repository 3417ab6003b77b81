"""Held-out scores against a plain computation with slices of the raw masks."""

import numpy as np
import pytest
from helpers.strategies import Case, cases
from hypothesis import assume, given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.validation.groups import Groups, prefix_groups
from optexp_jax.validation.resamples import make_folds


def plain_fold(case: Case, fold: np.ndarray, method: ox.AbstractMethod):
    """What the formula found without a fold scores on it, from the raw masks."""
    rest = ~fold
    if not case.bitmap[rest].any():
        return None, ox.Score(0, int(case.bitmap[fold].sum()))
    table = ox.ConceptTable.from_masks(case.masks[:, rest], case.names)
    found = ox.explain(table, case.bitmap[rest], method)
    if found.formula is None:
        return None, ox.Score(0, int(case.bitmap[fold].sum()))
    held = case.mask(found.formula)[fold]
    active = case.bitmap[fold]
    return found.formula, ox.Score(int((held & active).sum()), int((held | active).sum()))


@given(cases(), st.integers(2, 4), st.integers(0, 99), st.data())
def test_equals_slices_differential(case, folds, seed, data):
    n = case.masks.shape[1]
    assume(n >= 2 and case.bitmap.any())
    labels = data.draw(st.none() | st.lists(st.integers(0, 3), min_size=n, max_size=n))
    assume(labels is None or len(set(labels)) >= 2)
    method = ox.Optimal(2)
    found = ox.held_out(case.table, [case.bitmap], method, folds=folds, groups=labels, seed=seed)[0]
    dealt = make_folds(Groups.of(labels, n), folds, seed)
    expected = [plain_fold(case, dealt.held_out(k), method) for k in range(dealt.n)]
    assert [(each.formula, each.held_out) for each in found.folds] == expected
    assert found.score.intersection == sum(score.intersection for _, score in expected)
    assert found.score.union == sum(score.union for _, score in expected)
    assert all(each.proved for each in found.folds)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=30), st.integers(2, 8), st.integers(0, 9))
def test_groups_are_never_split(labels, n, seed):
    assume(len(set(labels)) >= 2)
    dealt = make_folds(Groups.of(labels, len(labels)), n, seed)
    for label in set(labels):
        assert len({int(dealt.fold[x]) for x in range(len(labels)) if labels[x] == label}) == 1
    sizes = np.bincount(dealt.fold, minlength=dealt.n)
    assert dealt.n == min(n, len(set(labels)))
    assert sizes.min() > 0
    largest = max(labels.count(label) for label in set(labels))
    assert sizes.max() - sizes.min() <= largest
    assert (dealt.note is not None) == (len(set(labels)) < n)


def test_other_seeds_deal_otherwise():
    groups = Groups.of(None, 40)
    assert make_folds(groups, 5, 0).fold.tolist() == make_folds(groups, 5, 0).fold.tolist()
    assert make_folds(groups, 5, 0).fold.tolist() != make_folds(groups, 5, 1).fold.tolist()
    assert np.bincount(make_folds(groups, 5, 0).fold).tolist() == [8] * 5


def test_the_best_formula_by_chance_falls():
    """A unit of noise: whatever is found on some images scores less on the others."""
    rng = np.random.default_rng(3)
    table = ox.ConceptTable.from_masks(rng.random((12, 60, 4)) < 0.2)
    found = ox.held_out(table, [rng.random((60, 4)) < 0.1], ox.Optimal(3))[0]
    assert found.iou < found.found.iou
    assert "held-out IoU" in str(found)


def test_spread_leaves_out_folds_with_nothing_to_score():
    scores = [ox.Score(1, 2), ox.Score(0, 0), ox.Score(1, 4)]
    folds = tuple(
        ox.validation.FoldScore(None, ox.Score(0, 0), score, proved=True) for score in scores
    )
    found = ox.validation.HeldOut(folds)
    assert found.spread == pytest.approx(0.125)
    assert found.score == ox.Score(2, 6)


def test_wrong_groups_and_folds_are_refused():
    table = ox.ConceptTable.from_masks(np.ones((1, 3, 2), bool))
    unit = np.ones((3, 2), bool)
    for groups, message in (
        (["a", "b"], "2 group labels"),
        (["a", None, "b"], "must belong to a group"),
        ("prefix", "prefix_groups"),
        (["a", "a", "a"], "one group"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            ox.held_out(table, [unit], groups=groups)
    with pytest.raises(ValueError, match="at least two folds"):
        ox.held_out(table, [unit], folds=1)
    with pytest.raises(ValueError, match="never fires"):
        ox.held_out(table, [~unit])


def test_prefixes_of_file_names():
    names = ("0001TP_006690.png", "a/clip-07.jpg", "a/clip-08.jpg", "b/clip-08.jpg", "x12", "12")
    assert prefix_groups(names) == ("0001TP", "a/clip", "a/clip", "b/clip", "x", "12")


def test_progress_is_told():
    table = ox.ConceptTable.from_masks(np.ones((1, 4, 2), bool))
    told: list[tuple[int, int]] = []
    ox.held_out(
        table,
        [np.ones((4, 2), bool)] * 2,
        ox.NetDissect(),
        folds=2,
        progress=lambda done, of: told.append((done, of)),
    )
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
