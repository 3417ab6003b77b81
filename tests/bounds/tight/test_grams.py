"""Exact overlaps over regions: both kernels against plain numpy, and exact scores at a place."""

from collections.abc import Sequence
from dataclasses import replace

import jax
import numpy as np
import pytest
from helpers.search_cases import SUBSETS, seeds
from helpers.support import examples
from helpers.tight_cases import DIRECTED, N, Setting, any_case, some_setting
from hypothesis import example, given

import optexp_jax as ox
from optexp_jax.bounds.tight.expanded import LabelsAt, expand
from optexp_jax.bounds.tight.forms import DIFFERENCE, INTERSECTION, UNION, Forms
from optexp_jax.bounds.tight.grams import (
    Counted,
    Gram,
    Overlaps,
    Within,
    count_several,
    one_of_several,
    total_gram,
)
from optexp_jax.bounds.tight.label_counts import LabelCounts
from optexp_jax.bounds.tight.labels import Labels, count_labels, count_labels_on_device
from optexp_jax.bounds.tight.local_concepts import LocalConcepts
from optexp_jax.bounds.tight.place import Place, Places, Spot, Step
from optexp_jax.bounds.tight.root import RootScores, fused_alone
from optexp_jax.bounds.tight.tuning import Tuning
from optexp_jax.concepts.signatures import ranges
from optexp_jax.search.clock import Clock
from optexp_jax.search.problem import Problem
from optexp_jax.testing import Case

kernels = pytest.mark.parametrize("on_host", [True, False], ids=["host", "device"])


def members(case: Case) -> np.ndarray:
    """Membership by signature, `[concept, signature]`, as integers."""
    signatures = case.table.signatures
    found = np.zeros((signatures.n_concepts, len(signatures)), np.int64)
    for s in range(len(signatures)):
        found[signatures[s], s] = 1
    return found


def plain_gram(case: Case, region: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    masks, neuron = members(case), case.neuron
    inside, outside = (part * region for part in (neuron.inside, neuron.outside))
    return (masks * inside) @ masks.T, (masks * outside) @ masks.T


def assert_same(found: Gram, expected: Sequence[np.ndarray]) -> None:
    for part, true in zip((found.inside, found.outside), expected, strict=True):
        assert np.asarray(part).dtype == np.int64
        np.testing.assert_array_equal(np.asarray(part)[0], true)


@kernels
def test_several_neurons_at_once(on_host: bool):
    rng = np.random.default_rng(1)
    table = ox.ConceptTable.from_masks(rng.random((N, 3, 40)) < 0.4)
    bitmaps = rng.random((3, 3, 40)) < 0.3
    neurons = table.count_many(bitmaps)
    together = count_several(table, neurons, on_host)
    for k, neuron in enumerate(neurons):
        expected = Overlaps(table, neuron, on_host).everywhere
        counts = np.asarray(expected.inside)[0], np.asarray(expected.outside)[0]
        counted = Counted(active=one_of_several(together, k))
        assert_same(Overlaps(table, neuron, on_host, counted=counted).everywhere, counts)


def some_region(rng: np.random.Generator, case: Case) -> np.ndarray:
    """Any set of signatures: none, all, few (summed directly), most (by the complement)."""
    share = rng.choice([0.0, 0.1, 0.5, 0.9, 1.0])
    return rng.random(len(case.table.signatures)) < share


@kernels
@examples(12)
@given(seed=seeds)
def test_grams_of_regions(on_host: bool, seed: int):
    rng = np.random.default_rng(seed)
    case = any_case(rng)
    overlaps = Overlaps(case.table, case.neuron, on_host)
    everything = np.ones(len(case.table.signatures), bool)
    assert_same(overlaps.everywhere, plain_gram(case, everything))
    for _ in range(3):
        region = some_region(rng, case)
        within, expected = Within(overlaps, region), plain_gram(case, region)
        assert_same(within.gram(LocalConcepts.everything(N)), expected)
        np.testing.assert_array_equal(within.own.inside, expected[0].diagonal())
        np.testing.assert_array_equal(within.own.outside, expected[1].diagonal())
        # Some of the concepts, and empty ones after them.
        ids = np.sort(rng.permutation(N)[: rng.integers(1, 5)]).astype(np.int32)
        padded = np.zeros((2, 4, 4), np.int64)
        padded[:, : len(ids), : len(ids)] = np.stack(expected)[:, ids[:, None], ids[None, :]]
        assert_same(within.gram(LocalConcepts(ids, 4, N)), list(padded))


def counts_of(place: Place, labels: Labels, on_host: bool) -> LabelCounts:
    """The counts of labels by one of the kernels, on the host."""
    if on_host:
        return count_labels(place, labels)
    first = 2  # Some rows of those that a program is made for.
    with jax.enable_x64(True):
        found = count_labels_on_device(place, labels, first, 16)
    rows = slice(first, first + len(labels))
    return jax.tree.map(lambda part: np.asarray(part)[rows], found)


@kernels
@pytest.mark.parametrize("length", [1, 2, 3])
@examples(10)
@given(seed=seeds)
def test_labels_of_places(length: int, on_host: bool, seed: int):
    rng = np.random.default_rng(seed)
    setting = some_setting(rng, ox.DEFAULT_OPERATORS)
    case, place = setting.case, setting.place
    inner = np.stack([rng.permutation(setting.free)[:length] for _ in range(7)]).astype(np.int32)
    forms = rng.integers(3, size=(7, length - 1)).astype(np.int32)
    ids = np.unique(inner).astype(np.int32)
    if len(ids) < N and rng.random() < 0.7:  # Only these concepts, and empty ones.
        place.concepts = LocalConcepts(ids, int(rng.integers(len(ids), N)), N)
    found = counts_of(place, Labels(inner, forms), on_host)
    masks, region = members(case).astype(bool), place.undecided
    held = masks[inner[:, 0]]
    for step in range(1, length):
        right, form = masks[inner[:, step]], forms[:, step - 1, None]
        held = np.select(
            [form == UNION, form == INTERSECTION], [held | right, held & right], held & ~right
        )
    for own, shared, counts in (
        (found.inside, found.shared_inside, case.neuron.inside),
        (found.outside, found.shared_outside, case.neuron.outside),
    ):
        assert own.dtype == shared.dtype == np.int64
        np.testing.assert_array_equal(own, held @ (counts * region))
        expected = place.concepts.pick((held * counts * region) @ masks.T)
        np.testing.assert_array_equal(shared, expected)


def test_labels_of_a_table_without_concepts_anywhere():
    table = ox.ConceptTable.from_masks(np.zeros((N, 1, 4), bool))
    neuron = table.count(np.ones((1, 4), bool))
    place = Places(Problem(table, neuron, 3, ox.DEFAULT_OPERATORS)).at(Spot())
    labels = Labels(np.array([[0, 1]], np.int32), np.array([[UNION]], np.int32))
    for on_host in (True, False):
        found = counts_of(place, labels, on_host)
        assert not found.inside.any()
        assert not found.shared_outside.any()


@kernels
def test_counts_that_doubles_and_small_integers_cannot_hold(on_host: bool):
    # Sums are exact up to the most locations that a table may have, 2**53.
    sizes = [2**52 - 1, 2**51 + 1, 2**33 + 7, 1]
    table = ox.ConceptTable.from_signatures([[0, 1], [0], [1, 2], [0, 1, 2]], sizes)
    inside = [2**52 - 3, 3, 2**33, 0]
    neuron = ox.NeuronCounts.from_signatures(table, inside)
    gram = Overlaps(table, neuron, on_host).everywhere
    assert int(gram.inside[0, 0, 0]) == 2**52
    assert int(gram.inside[0, 0, 1]) == 2**52 - 3
    assert int(gram.outside[0, 0, 0]) == 2 + 2**51 - 2 + 1
    assert int(gram.inside[0, 1, 1]) == 2**52 - 3 + 2**33
    assert int(gram.outside[0, 1, 2]) == 7 + 1


def test_the_total_is_computed_once_a_table():
    rng = np.random.default_rng(0)
    case = any_case(rng)
    overlaps = Overlaps(case.table, case.neuron)
    other = ox.NeuronCounts.from_signatures(case.table, case.table.sizes[case.table.given_rows] * 0)
    assert Overlaps(case.table, other).total is overlaps.total
    by_kernel = [total_gram(case.table, sizes) for sizes in (None, overlaps.sizes)]
    np.testing.assert_array_equal(*map(np.asarray, by_kernel))


def test_kernels_are_the_same_in_both_number_modes():
    case = DIRECTED["all pairs"]
    expected = plain_gram(case, np.ones(len(case.table.signatures), bool))
    for on in (False, True):
        with jax.enable_x64(on):
            for on_host in (False, True):
                assert_same(Overlaps(case.table, case.neuron, on_host).everywhere, expected)


def test_ranges():
    np.testing.assert_array_equal(
        ranges(np.array([5, 0, 9]), np.array([2, 0, 3])), [5, 6, 9, 10, 11]
    )
    assert len(ranges(np.empty(0, np.int64), np.empty(0, np.int64))) == 0


# Exact scores at a place.


def plain_scores(setting: Setting, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Intersections and unions of masks inside the outer steps, decided by walking outward."""
    case = setting.case
    for step in reversed(setting.steps):
        member = case.columns[step.concept]
        held = {UNION: held | member, INTERSECTION: held & member, DIFFERENCE: held & ~member}[
            step.form
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
        place = setting.place
    labels, masks = setting.chains(length), setting.case.columns
    allowed = Forms.of(setting.operators)
    some = rng.permutation(len(labels))[: rng.choice([1, 10, 200])]
    operators = [op in setting.operators for op in ox.DEFAULT_OPERATORS]
    given = Labels(labels.concepts[some].astype(np.int32), labels.forms[some].astype(np.int32))
    rows = iter(some.tolist())
    for children in expand([LabelsAt(place, given)], allowed):
        for k in range(len(children.labels)):
            row = next(rows)
            held = labels.masks[row]
            joined = np.stack([held | masks, held & masks, held & ~masks])
            intersections, unions = plain_scores(setting, joined)
            inner = labels.concepts[row]
            np.testing.assert_array_equal(children.labels.inner[k], inner)
            possible = np.outer(operators, place.allowed & ~np.isin(np.arange(N), inner))
            possible &= ~needless(setting, joined, held, masks)
            np.testing.assert_array_equal(
                children.iou[k], np.where(possible, intersections / unions, -1.0)
            )
            for form, x in zip(*np.nonzero(possible), strict=True):
                score = children.score(k, int(form), int(x))
                assert (score.intersection, score.union) == (
                    intersections[form, x],
                    unions[form, x],
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
    label = Labels(pairs.concepts[[row]].astype(np.int32), pairs.forms[[row]].astype(np.int32))
    forms = Forms.of(setting.operators)
    (children,) = expand([LabelsAt(setting.place, label)], forms)
    here = (triples.concepts[:, :2] == pairs.concepts[row]).all(1)
    here &= triples.forms[:, 0] == pairs.forms[row, 0]
    triples = triples.take(here)
    needed = children.iou[0, triples.forms[:, 1], triples.concepts[:, 2]] >= 0
    highest = triples.take(needed).w(setting.v).max(initial=-np.inf)
    (found,) = children.highest_w(setting.v, forms)
    # It is rounded up, by a share of what it is made of.
    rounding = 2.0**-41 * (setting.counts[0] + setting.v * setting.counts[1]).sum()
    np.testing.assert_allclose(found, highest, rtol=1e-9, atol=1e-9 + rounding)


def needless(
    setting: Setting, joined: np.ndarray, left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """Which of `left∘right` hold nowhere that is undecided, or just where one of the sides does."""
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
    place = setting.place
    forms = Forms(True, True, True)
    if fused:
        scores = RootScores.of_fused(fused_alone(setting.problem, forms))
    else:
        scores = RootScores.of(place, forms, Clock(), Tuning.large())
    assert scores is not None
    expected = np.full((3, N, N), -np.inf)
    chains = setting.chains(2)
    intersections, unions = plain_scores(setting, chains.masks)
    for row in range(len(chains)):
        form, (a, b) = int(chains.forms[row, 0]), chains.concepts[row].tolist()
        score = place.pair_score(form, a, b)
        assert (score.intersection, score.union) == (intersections[row], unions[row])
        sides = setting.case.columns[[a, b]]
        if (form == DIFFERENCE or a < b) and not needless(setting, chains.masks[row], *sides):
            expected[form, a, b] = intersections[row] / unions[row]
    np.testing.assert_array_equal(scores.highest, expected.max(2).T)
    for reached in (np.finfo(float).tiny, 0.25, 0.5, 1.0):
        pairs = scores.pairs_from(reached)
        found = np.full_like(expected, -np.inf)
        found[pairs.form, pairs.a, pairs.b] = pairs.value
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


def test_a_place_decides_what_its_steps_say():
    # Inside `… AND NOT f OR a`, a is decided positive and f is decided negative.
    setting = some_setting(np.random.default_rng(3), ox.DEFAULT_OPERATORS)
    setting = Setting(setting.case, setting.operators, (Step(UNION, 0), Step(DIFFERENCE, 5)), 0.5)
    case, place = setting.case, setting.place
    a, f = case.columns[0], case.columns[5]
    assert place.decided_inside == (a * case.inside.reshape(-1)).sum()
    assert place.decided_outside == (a * case.outside.reshape(-1)).sum()
    np.testing.assert_array_equal(
        place.undecided[case.table.given_rows] if case.weighted else ~a & ~f, ~a & ~f
    )
    assert place.unused.tolist() == [False, True, True, True, True, False]
