"""Exact scores of pairs and of labels' children, against plain numpy."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.search_cases import SUBSETS, seeds
from helpers.support import examples
from helpers.tight_cases import N, Setting, some_setting
from hypothesis import example, given

import optexp_jax as ox
from optexp_jax.bounds.tight.operator_set import DIFFERENCE, INTERSECTION, UNION, OperatorSet
from optexp_jax.bounds.tight.search.label_scores import SubproblemLabels, expand
from optexp_jax.bounds.tight.search.labels import Labels
from optexp_jax.bounds.tight.search.root import RootScores, fused_alone
from optexp_jax.bounds.tight.tuning import Tuning
from optexp_jax.search.clock import Clock

kernels = pytest.mark.parametrize("on_host", [True, False], ids=["host", "device"])


def plain_scores(setting: Setting, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Intersections and unions of masks inside the outer steps, captured by walking outward."""
    case = setting.case
    for step in reversed(setting.steps):
        member = case.columns[step.concept]
        held = {UNION: held | member, INTERSECTION: held & member, DIFFERENCE: held & ~member}[
            step.op
        ]
    inside, outside = case.inside.reshape(-1), case.outside.reshape(-1)
    return held @ inside, inside.sum() + held @ outside


@kernels
@pytest.mark.parametrize("length", [2, 3])
@examples(8)
@given(seed=seeds)
def test_children_are_exact(length: int, on_host: bool, seed: int):
    rng = np.random.default_rng(seed)
    setting = some_setting(rng, SUBSETS[rng.integers(len(SUBSETS))])
    with ox.kernels("host" if on_host else "device"):
        sub = setting.sub
    labels, masks = setting.chains(length), setting.case.columns
    allowed = OperatorSet.of(setting.operators)
    some = rng.permutation(len(labels))[: rng.choice([1, 10, 200])]
    operators = [op in setting.operators for op in ox.DEFAULT_OPERATORS]
    given = Labels(labels.concepts[some].astype(np.int32), labels.ops[some].astype(np.int32))
    rows = iter(some.tolist())
    for children in expand([SubproblemLabels(sub, given)], allowed):
        for k in range(len(children.labels)):
            row = next(rows)
            held = labels.masks[row]
            joined = np.stack([held | masks, held & masks, held & ~masks])
            intersections, unions = plain_scores(setting, joined)
            inner = labels.concepts[row]
            np.testing.assert_array_equal(children.labels.inner[k], inner)
            possible = np.outer(operators, sub.allowed & ~np.isin(np.arange(N), inner))
            possible &= ~needless(setting, joined, held, masks)
            np.testing.assert_array_equal(
                children.iou[k], np.where(possible, intersections / unions, -1.0)
            )
            for op, x in zip(*np.nonzero(possible), strict=True):
                score = children.score(k, int(op), int(x))
                assert (score.intersection, score.union) == (
                    intersections[op, x],
                    unions[op, x],
                )
    assert next(rows, None) is None


@examples(12)
@given(seed=seeds)
@example(seed=21960)  # A unit of a few locations in concepts of 2**44.
def test_the_highest_w_of_children(seed: int):
    rng = np.random.default_rng(seed)
    setting = some_setting(rng, ox.DEFAULT_OPERATORS)
    pairs, triples = setting.chains(2), setting.chains(3)
    row = int(rng.integers(len(pairs)))
    label = Labels(pairs.concepts[[row]].astype(np.int32), pairs.ops[[row]].astype(np.int32))
    ops = OperatorSet.of(setting.operators)
    (children,) = expand([SubproblemLabels(setting.sub, label)], ops)
    here = (triples.concepts[:, :2] == pairs.concepts[row]).all(1)
    here &= triples.ops[:, 0] == pairs.ops[row, 0]
    triples = triples.take(here)
    needed = children.iou[0, triples.ops[:, 1], triples.concepts[:, 2]] >= 0
    highest = triples.take(needed).w(setting.v).max(initial=-np.inf)
    (found,) = children.highest_w(setting.v, ops)
    # It is rounded up, by a share of what it is made of.
    rounding = 2.0**-41 * (setting.counts[0] + setting.v * setting.counts[1]).sum()
    np.testing.assert_allclose(found, highest, rtol=1e-9, atol=1e-9 + rounding)


def needless(
    setting: Setting, joined: np.ndarray, left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """Which of `left∘right` hold nowhere that is residual, or just where one of the sides does."""
    inside, outside = setting.counts
    there = inside + outside > 0
    joined, left, right = (part[..., there] for part in (joined, left, right))
    same = (joined == left).all(-1) | (joined == right).all(-1)
    return same | ~joined.any(-1)


@pytest.mark.parametrize("fused", [False, True], ids=["by rows", "fused"])
@examples(12)
@given(seed=seeds)
def test_scores_of_pairs(fused: bool, seed: int):
    rng = np.random.default_rng(seed)
    setting = replace(some_setting(rng, ox.DEFAULT_OPERATORS), steps=())
    sub = setting.sub
    ops = OperatorSet(True, True, True)
    if fused:
        scores = RootScores.of_fused(fused_alone(setting.problem, ops))
    else:
        scores = RootScores.of(sub, ops, Clock(), Tuning.large())
    assert scores is not None
    expected = np.full((3, N, N), -np.inf)
    chains = setting.chains(2)
    intersections, unions = plain_scores(setting, chains.masks)
    for row in range(len(chains)):
        op, (a, b) = int(chains.ops[row, 0]), chains.concepts[row].tolist()
        score = sub.pair_score(op, a, b)
        assert (score.intersection, score.union) == (intersections[row], unions[row])
        sides = setting.case.columns[[a, b]]
        if (op == DIFFERENCE or a < b) and not needless(setting, chains.masks[row], *sides):
            expected[op, a, b] = intersections[row] / unions[row]
    np.testing.assert_array_equal(scores.highest, expected.max(2).T)
    for reached in (np.finfo(float).tiny, 0.25, 0.5, 1.0):
        pairs = scores.pairs_from(reached)
        found = np.full_like(expected, -np.inf)
        found[pairs.op, pairs.a, pairs.b] = pairs.value
        np.testing.assert_array_equal(found, np.where(expected >= reached, expected, -np.inf))
    positive = np.sort(expected[expected > 0])[::-1]
    for k in (1, 6, 1000):
        np.testing.assert_array_equal(scores.highest_pairs(k).value, positive[:k])
    alone = np.full(N, -np.inf)
    ones = setting.chains(1)
    intersections, unions = plain_scores(setting, ones.masks)
    alone[ones.concepts[:, 0]] = intersections / unions
    np.testing.assert_array_equal(scores.single, alone)
    assert scores.best == max(expected.max(), alone.max())
