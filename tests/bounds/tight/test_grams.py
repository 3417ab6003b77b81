"""Exact overlaps over regions: both kernels against plain numpy, and exact scores."""

from collections.abc import Sequence

import jax
import numpy as np
import pytest
from helpers.search_cases import seeds
from helpers.support import examples
from helpers.tight_cases import DIRECTED, N, Setting, any_case, some_setting
from hypothesis import given

import optexp_jax as ox
from optexp_jax.bounds.tight.counts.device_labels import LabelCounts
from optexp_jax.bounds.tight.counts.gram import (
    Counted,
    Gram,
    Overlaps,
    RegionCounts,
    count_several,
    one_of_several,
    total_gram,
)
from optexp_jax.bounds.tight.counts.local_concepts import LocalConcepts
from optexp_jax.bounds.tight.operator_set import DIFFERENCE, INTERSECTION, UNION
from optexp_jax.bounds.tight.search.labels import Labels, count_labels, count_labels_on_device
from optexp_jax.bounds.tight.search.subproblem import Prefix, Step, Subproblem, SubproblemCache
from optexp_jax.concepts.signatures import ranges
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
        within, expected = RegionCounts(overlaps, region), plain_gram(case, region)
        assert_same(within.gram(LocalConcepts.everything(N)), expected)
        np.testing.assert_array_equal(within.own.inside, expected[0].diagonal())
        np.testing.assert_array_equal(within.own.outside, expected[1].diagonal())
        # Some of the concepts, and empty ones after them.
        ids = np.sort(rng.permutation(N)[: rng.integers(1, 5)]).astype(np.int32)
        padded = np.zeros((2, 4, 4), np.int64)
        padded[:, : len(ids), : len(ids)] = np.stack(expected)[:, ids[:, None], ids[None, :]]
        assert_same(within.gram(LocalConcepts(ids, 4, N)), list(padded))


def counts_of(sub: Subproblem, labels: Labels, on_host: bool) -> LabelCounts:
    """The counts of labels by one of the kernels, on the host."""
    if on_host:
        return count_labels(sub, labels)
    first = 2  # Some rows of those that a program is made for.
    with jax.enable_x64(True):
        found = count_labels_on_device(sub, labels, first, 16)
    rows = slice(first, first + len(labels))
    return jax.tree.map(lambda part: np.asarray(part)[rows], found)


@kernels
@pytest.mark.parametrize("length", [1, 2, 3])
@examples(10)
@given(seed=seeds)
def test_labels_of_subproblems(length: int, on_host: bool, seed: int):
    rng = np.random.default_rng(seed)
    setting = some_setting(rng, ox.DEFAULT_OPERATORS)
    case, sub = setting.case, setting.sub
    inner = np.stack([rng.permutation(setting.free)[:length] for _ in range(7)]).astype(np.int32)
    ops = rng.integers(3, size=(7, length - 1)).astype(np.int32)
    ids = np.unique(inner).astype(np.int32)
    if len(ids) < N and rng.random() < 0.7:  # Only these concepts, and empty ones.
        sub.concepts = LocalConcepts(ids, int(rng.integers(len(ids), N)), N)
    found = counts_of(sub, Labels(inner, ops), on_host)
    masks, region = members(case).astype(bool), sub.residual
    held = masks[inner[:, 0]]
    for step in range(1, length):
        right, op = masks[inner[:, step]], ops[:, step - 1, None]
        held = np.select(
            [op == UNION, op == INTERSECTION], [held | right, held & right], held & ~right
        )
    for own, shared, counts in (
        (found.inside, found.shared_inside, case.neuron.inside),
        (found.outside, found.shared_outside, case.neuron.outside),
    ):
        assert own.dtype == shared.dtype == np.int64
        np.testing.assert_array_equal(own, held @ (counts * region))
        expected = sub.concepts.pick((held * counts * region) @ masks.T)
        np.testing.assert_array_equal(shared, expected)


def test_labels_of_a_table_without_concepts_anywhere():
    table = ox.ConceptTable.from_masks(np.zeros((N, 1, 4), bool))
    neuron = table.count(np.ones((1, 4), bool))
    sub = SubproblemCache(Problem(table, neuron, 3, ox.DEFAULT_OPERATORS)).at(Prefix())
    labels = Labels(np.array([[0, 1]], np.int32), np.array([[UNION]], np.int32))
    for on_host in (True, False):
        found = counts_of(sub, labels, on_host)
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
    host, device = (np.asarray(total_gram(case.table, k)) for k in (None, overlaps.sizes))
    np.testing.assert_array_equal(host, device)


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


def test_a_subproblem_captures_what_its_steps_say():
    # Inside `… AND NOT f OR a`, a is captured positive and f is captured negative.
    setting = some_setting(np.random.default_rng(3), ox.DEFAULT_OPERATORS)
    setting = Setting(setting.case, setting.operators, (Step(UNION, 0), Step(DIFFERENCE, 5)), 0.5)
    case, sub = setting.case, setting.sub
    a, f = case.columns[0], case.columns[5]
    assert sub.captured_inside == (a * case.inside.reshape(-1)).sum()
    assert sub.captured_outside == (a * case.outside.reshape(-1)).sum()
    np.testing.assert_array_equal(
        sub.residual[case.table.given_rows] if case.weighted else ~a & ~f, ~a & ~f
    )
    assert sub.unused.tolist() == [False, True, True, True, True, False]
