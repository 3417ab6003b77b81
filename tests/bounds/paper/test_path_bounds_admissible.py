"""Estimates of paths against every way to go on from a label."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.search_cases import as_chains, seeds, view_of
from helpers.strategies import XOR
from helpers.support import examples, thorough
from hypothesis import given

import optexp_jax as ox
from optexp_jax.bounds.paper.chains import Chains, View, label_batch, label_bounds
from optexp_jax.bounds.paper.label import LabelBounds
from optexp_jax.bounds.paper.path import (
    IMPOSSIBLE,
    Estimates,
    Reach,
    _loosest,
    estimate_path,
    estimate_paths,
    exclusive_path,
)
from optexp_jax.methods.oracle import enumerate_formulas
from optexp_jax.testing import Case, random_case

N_CONCEPTS, N_SAMPLES, DEPTH = 4, 3, 4
OPERATORS = (*ox.DEFAULT_OPERATORS, XOR) if thorough() else ox.DEFAULT_OPERATORS
FINAL = len(OPERATORS)

views = pytest.mark.parametrize("aggregated", [False, True], ids=["per sample", "aggregated"])


@dataclass(frozen=True)
class Everything:
    """All chains, each with its intersection and extras by sample."""

    concepts: np.ndarray
    operators: np.ndarray
    i: np.ndarray
    e: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        return (self.concepts >= 0).sum(1)

    def starting_with(self, label: int) -> np.ndarray:
        """Which chains begin with a label and are longer."""
        length = self.lengths[label]
        same = self.concepts[:, :length] == self.concepts[label, :length]
        same &= self.operators[:, :length] == self.operators[label, :length]
        return same.all(1) & (self.lengths > length)


def enumerate_case(case: Case) -> Everything:
    columns = case.columns
    ones = np.ones(columns.shape[1], np.int64)
    concepts, operators, held = [], [], []
    for scored in enumerate_formulas(columns, ones, ones, DEPTH, OPERATORS):
        n, length = scored.concepts.shape
        concepts.append(np.pad(scored.concepts, ((0, 0), (0, DEPTH - length)), constant_values=-1))
        operators.append(
            np.pad(scored.operators, ((0, 0), (1, DEPTH - length)), constant_values=-1)
        )
        held.append(scored.masks.reshape(n, *case.inside.shape))
    masks = np.concatenate(held)
    return Everything(
        np.concatenate(concepts).astype(np.int32),
        np.concatenate(operators).astype(np.int32),
        (masks * case.inside).sum(2),
        (masks * case.outside).sum(2),
    )


@dataclass(frozen=True)
class Paths:
    """The limits of each path that uses one operator, and all estimates."""

    reaches: list[Reach]
    estimates: Estimates
    """Of all paths at once."""
    single: list[Estimates]
    """Of one path at a time."""


@jax.jit
def every_path(view: View, chains: Chains) -> tuple[list[Reach], Estimates, list[Estimates]]:
    further = DEPTH - chains.lengths
    label = label_bounds(view, chains)
    vectors = view.vectors.of_labels(view.prepared, label_batch(view, chains, label))
    reaches = [exclusive_path(label, vectors, view.neuron, o) for o in OPERATORS]
    single = [
        estimate_path(
            label,
            vectors,
            further,
            jnp.full(further.shape, kind, jnp.int32),
            view.neuron,
            OPERATORS,
            DEPTH - 1,
        )
        for kind in range(len(OPERATORS))
    ]
    return reaches, estimate_paths(label, vectors, further, view.neuron, OPERATORS), single


def paths_of(
    case: Case, everything: Everything, aggregated: bool, vectors: ox.AbstractVectors
) -> Paths:
    view = view_of(case, OPERATORS, DEPTH, aggregated=aggregated, vectors=vectors)
    with jax.enable_x64(True):
        found = every_path(view, as_chains(everything.concepts, everything.operators))
        return Paths(*jax.tree.map(np.asarray, found))


def within(reach: Reach, row: int, i: np.ndarray, e: np.ndarray) -> bool:
    return bool(
        (reach.i_min[row] <= i).all()
        and (i <= reach.i_max[row]).all()
        and (reach.e_min[row] <= e).all()
        and (e <= reach.e_max[row]).all()
    )


def some_labels(rng: np.random.Generator, everything: Everything) -> list[int]:
    """Labels from which a path goes on: all single concepts, some longer ones."""
    longer = np.flatnonzero((everything.lengths > 1) & (everything.lengths < DEPTH))
    return [*range(N_CONCEPTS), *rng.choice(longer, 40, replace=False).tolist()]


@views
@examples(8)
@given(seed=seeds)
def test_paths_lie_within_their_reach(aggregated: bool, seed: int):
    # A path that mixes operators lies within the loosest of their limits.
    rng = np.random.default_rng(seed)
    case = random_case(rng, N_CONCEPTS, N_SAMPLES)
    everything = enumerate_case(case)
    reaches = paths_of(case, everything, aggregated, ox.PublishedVectors()).reaches
    i, e = everything.i, everything.e
    if aggregated:
        i, e = i.sum(1, keepdims=True), e.sum(1, keepdims=True)
    codes = range(len(OPERATORS))
    mixes = [mix for n in codes for mix in combinations(codes, n + 1)]
    with jax.enable_x64(True):
        limits = [
            jax.tree.map(np.asarray, _loosest([reaches[code] for code in mix])) for mix in mixes
        ]
    for label in some_labels(rng, everything):
        rows = np.flatnonzero(everything.starting_with(label))
        steps = everything.operators[rows, everything.lengths[label] :]
        for mix, limit in zip(mixes, limits, strict=True):
            on_path = rows[np.isin(steps, (-1, *mix)).all(1)]
            assert within(limit, label, i[on_path], e[on_path]), (label, mix)


@pytest.mark.parametrize(
    ("vectors", "aggregated"),
    [
        (ox.PublishedVectors(), False),
        (ox.PublishedVectors(), True),
        (ox.LabelVectors(), False),
        pytest.param(ox.LabelVectors(), True, marks=pytest.mark.slow),
        (ox.PairVectors(), False),
        (ox.PairVectors(ranks=1), False),
        (ox.PairVectors(), True),
    ],
)
@examples(8)
@given(seed=seeds)
def test_estimates_hold_for_every_completion(
    vectors: ox.AbstractVectors, aggregated: bool, seed: int
):
    rng = np.random.default_rng(seed)
    case = random_case(rng, N_CONCEPTS, N_SAMPLES)
    everything = enumerate_case(case)
    paths = paths_of(case, everything, aggregated, vectors)
    estimates = paths.estimates
    iou = everything.i.sum(1) / (case.inside.sum() + everything.e.sum(1))
    for label in some_labels(rng, everything):
        length = everything.lengths[label]
        completions = everything.starting_with(label)
        for kind in range(len(OPERATORS)):
            reached = iou[completions & (everything.operators[:, length] == kind)]
            assert reached.max() <= estimates.upper[label, kind]
            assert estimates.lower[label, kind] <= reached.min()
    assert (iou <= estimates.upper[:, FINAL]).all()
    assert (estimates.lower[:, FINAL] <= iou).all()
    # No path goes on from a chain of full length.
    full = everything.lengths == DEPTH
    assert (estimates.upper[full, :FINAL] == IMPOSSIBLE).all()
    assert (estimates.upper[~full] >= 0).all()
    # One path at a time is the same, to the last bit.
    for kind, one in enumerate(paths.single):
        np.testing.assert_array_equal(one.upper[~full], estimates.upper[~full, kind])
        np.testing.assert_array_equal(one.lower[~full], estimates.lower[~full, kind])


@examples(6)
@given(seed=seeds)
def test_label_vectors_are_never_looser(seed: int):
    case = random_case(np.random.default_rng(seed), N_CONCEPTS, N_SAMPLES)
    everything = enumerate_case(case)
    for aggregated in (False, True) if thorough() else (False,):
        published = paths_of(case, everything, aggregated, ox.PublishedVectors()).estimates
        label = paths_of(case, everything, aggregated, ox.LabelVectors()).estimates
        assert (label.upper <= published.upper).all()
        assert (label.lower >= published.lower).all()


def test_estimates_are_rounded_outward():
    # 1/3 and 2/3 have no float64: the upper estimate lies above, the lower one below.
    masks = np.array([[[True, True, False]], [[False, True, True]], [[True] * 3], [[False] * 3]])
    case = Case(np.repeat(masks, N_SAMPLES, 1), *np.array([[[1, 0, 0]] * 3, [[0, 1, 1]] * 3]))
    everything = enumerate_case(case)
    estimates = paths_of(case, everything, False, ox.PublishedVectors()).estimates
    for concept, iou in ((0, Fraction(1, 2)), (2, Fraction(1, 3)), (3, Fraction(0))):
        upper, lower = (float(part[concept, FINAL]) for part in (estimates.upper, estimates.lower))
        assert Fraction(lower) <= iou <= Fraction(upper)
        assert upper - lower < 1e-12


def test_an_operator_of_the_users_own_reaches_anything():
    case = random_case(np.random.default_rng(5), N_CONCEPTS, N_SAMPLES)
    view = view_of(case, OPERATORS, DEPTH, aggregated=False)
    leaves = as_chains(np.arange(N_CONCEPTS, dtype=np.int32)[:, None], -np.ones((4, 1), np.int32))
    with jax.enable_x64(True):
        label = LabelBounds.exact(view.concepts)
        vectors = view.vectors.of_labels(view.prepared, label_batch(view, leaves, label))
        reach = jax.tree.map(np.asarray, exclusive_path(label, vectors, view.neuron, XOR))
    covered = case.masks.any(0)
    inside, outside = ((weight * covered).sum(1) for weight in (case.inside, case.outside))
    assert not reach.i_min.any()
    assert not reach.e_min.any()
    np.testing.assert_array_equal(reach.i_max, np.broadcast_to(inside, reach.i_max.shape))
    np.testing.assert_array_equal(reach.e_max, np.broadcast_to(outside, reach.e_max.shape))
