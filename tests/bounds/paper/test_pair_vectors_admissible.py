"""Vectors against what they promise of labels as sets of locations, by trying every choice."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import jax
import numpy as np
import pytest
from helpers.search_cases import Split, as_chains, hold, random_chains, seeds, split, view_of
from helpers.strategies import ALL_OPERATORS
from helpers.support import examples
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.bounds import TopBott
from optexp_jax.bounds.paper.chains import Chains, View, label_batch, label_bounds
from optexp_jax.bounds.paper.exact_prefixes import ExactLabels
from optexp_jax.bounds.paper.label import Interval
from optexp_jax.bounds.paper.pair_vectors import SharedCounts, label_overlaps
from optexp_jax.counts.pair_overlaps import pair_overlaps
from optexp_jax.formulas.operators import Operator
from optexp_jax.search.problem import Problem
from optexp_jax.testing import Case, random_case

N_CONCEPTS, DEPTH, N_ROWS = 5, 3, 12
PARTS = ("iu", "ic", "eu", "ec")
# With all operators, labels are what the published search never makes; with few ranks, a sample
# has concepts that are not looked at.
FEW_RANKS = ox.PairVectors(ranks=1)
views = pytest.mark.parametrize("aggregated", [False, True], ids=["samples", "totals"])


@dataclass(frozen=True)
class Labels:
    """Labels of a case, as chains and as sets of locations."""

    case: Case
    operators: tuple[Operator, ...]
    concepts: np.ndarray
    steps: np.ndarray

    @classmethod
    def draw(
        cls, seed: int, n_samples: int, operators: tuple[Operator, ...] = ox.DEFAULT_OPERATORS
    ) -> "Labels":
        rng = np.random.default_rng(seed)
        case = random_case(rng, N_CONCEPTS, n_samples)
        chains = random_chains(rng, N_CONCEPTS, N_ROWS, DEPTH, len(operators))
        return cls(case, operators, *chains)

    @property
    def held(self) -> np.ndarray:
        """Where each label holds, `[row, sample, cell]`."""
        return hold(self.case, self.concepts, self.steps, self.operators)

    def choices(self) -> Iterator[tuple[int, list[int]]]:
        """Each row with each choice of further concepts."""
        for row, chain in enumerate(self.concepts.tolist()):
            free = sorted(set(range(len(self.case.masks))) - set(chain))
            for n in range(1, DEPTH - sum(k >= 0 for k in chain) + 1):
                for chosen in combinations(free, n):
                    yield row, list(chosen)

    def vectors(self, vectors: ox.AbstractVectors, aggregated: bool) -> TopBott:
        view = view_of(
            self.case,
            self.operators,
            DEPTH,
            aggregated=aggregated,
            vectors=vectors,
            known=ExactLabels(self.case.masks.shape[1], np.int64),
        )
        with jax.enable_x64(True):
            found = of_labels(view, as_chains(self.concepts, self.steps))
            return jax.tree.map(np.asarray, found)

    def counts(self, masks: np.ndarray, aggregated: bool) -> Split:
        """The quantities of some locations, `[row, sample]`."""
        counted = split(self.case, masks)
        return counted.aggregate() if aggregated else counted


@jax.jit
def of_labels(view: View, chains: Chains) -> TopBott:
    labels = label_batch(view, chains, label_bounds(view, chains))
    return view.vectors.of_labels(view.prepared, labels)


def check_promise(labels: Labels, found: TopBott, aggregated: bool) -> None:
    """Every line of what `TopBott` says, for every choice of concepts."""
    rows, chosen = zip(*labels.choices(), strict=True)
    masks, held = labels.case.masks, labels.held[list(rows)]
    together = np.array([masks[some].any(0) for some in chosen])
    added = labels.counts(together & ~held, aggregated)
    single = np.array([len(some) == 1 for some in chosen])
    shared = labels.counts((together & held)[single], aggregated)
    whole = labels.counts(together[single], aggregated)
    every, ones = np.array(rows), np.array(rows)[single]
    for part in PARTS:
        assert (getattr(added, part) <= getattr(found.top, part)[every]).all(), part
        assert (getattr(shared, part) <= getattr(found.top_one, part)[ones]).all(), part
        assert (getattr(whole, part) >= getattr(found.bottom, part)[ones]).all(), part


@views
@pytest.mark.parametrize(
    "vectors",
    [ox.PairVectors(), FEW_RANKS, ox.LabelVectors(), ox.PublishedVectors()],
    ids=["pairs", "few ranks", "label", "published"],
)
@examples(15, in_thorough=3000)
@given(seed=seeds, n_samples=st.sampled_from([1, 3]))
def test_vectors_keep_their_promise(
    vectors: ox.AbstractVectors, aggregated: bool, seed: int, n_samples: int
):
    labels = Labels.draw(seed, n_samples)
    check_promise(labels, labels.vectors(vectors, aggregated), aggregated)


@views
@examples(10, in_thorough=2000)
@given(seed=seeds)
def test_pair_vectors_keep_it_with_any_operator(aggregated: bool, seed: int):
    labels = Labels.draw(seed, 3, ALL_OPERATORS)
    check_promise(labels, labels.vectors(ox.PairVectors(), aggregated), aggregated)


@views
@examples(10)
@given(seed=seeds, n_samples=st.sampled_from([1, 3]))
def test_pair_vectors_are_never_looser(aggregated: bool, seed: int, n_samples: int):
    labels = Labels.draw(seed, n_samples)
    label = labels.vectors(ox.LabelVectors(), aggregated)
    growing = labels.concepts[:, -1] < 0
    for vectors in (ox.PairVectors(), FEW_RANKS):
        pairs = labels.vectors(vectors, aggregated)
        for part in PARTS:
            below = getattr(pairs.top, part) <= getattr(label.top, part)
            one_below = getattr(pairs.top_one, part) <= getattr(label.top_one, part)
            above = getattr(pairs.bottom, part) >= getattr(label.bottom, part)
            assert (below & one_below & above)[growing].all()


# Directed cases. Every cell is common to two concepts, unless it says otherwise.


def chosen_labels(
    masks: list[list[int]], chains: list[list[int]], steps: list[list[int]]
) -> Labels:
    """Labels over one sample in which every cell is one active location."""
    held = np.array(masks, bool)[:, None]
    ones = np.ones(held.shape[1:], np.int64)
    return Labels(
        Case(held, ones, 1 - ones),
        ox.DEFAULT_OPERATORS,
        np.array(chains, np.int32),
        np.array(steps, np.int32),
    )


OR, AND, NOT = range(3)
LEAF = [-1, -1, -1]


@views
def test_what_is_shared_is_no_gain(aggregated: bool):
    # c1 lies within c0; c2 has one cell more; c3 meets none of them and is common with c4.
    masks = [[1, 1, 1, 0, 0], [1, 1, 0, 0, 0], [0, 1, 1, 1, 0], [0, 0, 0, 0, 1], [0, 0, 0, 1, 1]]
    labels = chosen_labels(masks, [[0, -1, -1]], [LEAF])
    found = labels.vectors(ox.PairVectors(), aggregated)
    # c2 and c4 add the fourth cell each, c4 and c3 the fifth: the gains are 0, 1, 1, 2.
    assert found.top.ic.tolist() == ([[3]] if aggregated else [[5]])
    assert found.top_one.ic.tolist() == [[2]]
    assert found.top.iu.tolist() == [[0]]
    assert found.bottom.ic.tolist() == [[1]]


@views
def test_a_concept_apart_from_the_label_may_meet_the_next_one(aggregated: bool):
    # c0 and c2 are disjoint and c1 meets both. Alone, c0 AND c2 is empty, so top_one is 1; but
    # (c0 OR c1) AND c2 is not, and the path with an OR must allow for it.
    masks = [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]]
    labels = chosen_labels(masks, [[0, -1, -1]], [LEAF])
    assert not (labels.case.masks[0] & labels.case.masks[2]).any()
    found = labels.vectors(ox.PairVectors(), aggregated)
    assert found.top_one.ic.tolist() == [[1]]
    assert found.top.ic[0, 0] >= 2
    check_promise(labels, found, aggregated)


@views
def test_a_label_that_grew_meets_what_its_parts_meet(aggregated: bool):
    masks = [[1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [1, 0, 1, 0, 1], [0, 1, 0, 1, 1]]
    chains = [[0, 1, -1]] * 3
    labels = chosen_labels(masks, chains, [[-1, step, -1] for step in (OR, AND, NOT)])
    found = labels.vectors(ox.PairVectors(), aggregated)
    # c2 and c3 share two cells with c0 OR c1, none with their AND, one with c0 AND NOT c1.
    assert found.top_one.ic.tolist() == [[2], [0], [1]]
    check_promise(labels, found, aggregated)


def test_a_concept_that_is_not_among_the_ranks_counts():
    # Of six concepts the three largest of the sample never meet c0.
    masks = [[0] * 6 + [1, 1, 1], *([1] * 6 + [0] * 3 for _ in range(3)), [0] * 6 + [1, 1, 0]]
    labels = chosen_labels([*masks, [0] * 6 + [0, 1, 1]], [[0, -1, -1]], [LEAF])
    assert labels.vectors(ox.PairVectors(), False).top_one.ic.tolist() == [[2]]
    assert labels.vectors(FEW_RANKS, False).top_one.ic.tolist() == [[6]]


# The parts.


@jax.jit
def limits_of(view: View, chains: Chains, overlaps: SharedCounts) -> Interval:
    labels = label_batch(view, chains, label_bounds(view, chains))
    return label_overlaps(overlaps, view.disjoint, labels, view.operators)


@examples(10, in_thorough=2000)
@given(seed=seeds)
def test_overlaps_of_labels_lie_within_their_limits(seed: int):
    labels = Labels.draw(seed, 3, ALL_OPERATORS)
    case = labels.case
    view = view_of(case, ALL_OPERATORS, DEPTH, aggregated=True)
    pairs = pair_overlaps(case.table, case.neuron)
    shared = labels.held[:, None] & case.masks[None]
    counted = split(case, shared.reshape(-1, *shared.shape[2:])).aggregate()
    unheld = ~(labels.concepts[:, :, None] == np.arange(N_CONCEPTS)).any(1)
    with jax.enable_x64(True):
        chains = as_chains(labels.concepts, labels.steps)
        for matrix, sizes, true in (
            (pairs.inside, view.concepts.ic, counted.ic),
            (pairs.outside, view.concepts.ec, counted.ec),
        ):
            limits = limits_of(view, chains, SharedCounts(matrix, sizes[:, 0]))
            overlap = true.reshape(unheld.shape)
            assert (np.asarray(limits.low) <= overlap)[unheld].all()
            assert (overlap <= np.asarray(limits.high))[unheld].all()
            # Of a single concept it is exact.
            single = np.asarray(labels.concepts[:, 1:] < 0).all(axis=1)
            exact = unheld & np.expand_dims(single, 1)
            np.testing.assert_array_equal(np.asarray(limits.low)[exact], overlap[exact])
            np.testing.assert_array_equal(np.asarray(limits.high)[exact], overlap[exact])


@examples(10)
@given(seed=seeds, n_samples=st.sampled_from([1, 3]))
def test_pair_overlaps_are_counted_exactly(seed: int, n_samples: int):
    case = random_case(np.random.default_rng(seed), 4, n_samples)
    pairs = pair_overlaps(case.table, case.neuron)
    both = case.columns[:, None] & case.columns[None]
    np.testing.assert_array_equal(pairs.inside, both @ case.inside.reshape(-1))
    np.testing.assert_array_equal(pairs.outside, both @ case.outside.reshape(-1))


@pytest.mark.parametrize(
    ("vectors", "counted"), [(ox.LabelVectors(), False), (ox.PairVectors(), True)]
)
def test_only_who_asks_for_pairs_pays_for_them(vectors: ox.AbstractVectors, counted: bool):
    case = random_case(np.random.default_rng(3), 4, 3)
    problem = Problem(case.table, case.neuron, 3, ox.DEFAULT_OPERATORS)
    ox.PaperBounds(vectors).open(problem)
    assert ("pairs" in vars(problem)) == counted


@pytest.mark.parametrize("ranks", [0, -1])
def test_ranks_must_be_a_number(ranks: int):
    with pytest.raises(ValueError, match="ranks must be"):
        ox.PairVectors(ranks=ranks)
