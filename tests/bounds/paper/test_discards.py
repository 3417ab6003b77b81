"""Discards: steps left out because a shorter formula is at least as good, and where they may be."""

from dataclasses import replace
from fractions import Fraction

import jax
import numpy as np
import pytest
from helpers.search_cases import USUAL, as_chains, seeds, view_of
from helpers.strategies import XOR
from helpers.support import examples
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.bounds.paper import space as paper
from optexp_jax.bounds.paper.chains import View, label_bounds, row_bits
from optexp_jax.bounds.paper.discards import useless_paths, useless_steps
from optexp_jax.formulas.batch import PADDING
from optexp_jax.testing import Case, admissible, check_admissible
from optexp_jax.testing.truth import Trial, Truth

OPERATORS = ox.DEFAULT_OPERATORS
OR, AND, NOT = range(3)


def case_of(sets: list[set[int]], neuron: set[int], n: int) -> Case:
    """One sample: which locations each concept holds, and where the neuron is active."""
    masks = np.array([[[k in held for k in range(n)]] for held in sets])
    inside = np.array([[int(k in neuron) for k in range(n)]])
    return Case(masks, inside, 1 - inside)


def useless(
    view: View, concepts: np.ndarray, operators: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """For each label: which operators cannot pay, and which concepts joined by OR cannot."""
    with jax.enable_x64(True):
        paths, steps = compiled(view, as_chains(concepts, operators))
        return np.asarray(paths), np.asarray(steps)


@jax.jit
def compiled(view: View, chains):
    labels = label_bounds(view, chains)
    n_concepts = len(view.disjoint)
    bits = row_bits((ox.OR,), jax.numpy.zeros(n_concepts, "int32"))

    def of_label(label):
        wide = jax.tree.map(
            lambda part: jax.numpy.broadcast_to(part, (n_concepts, *part.shape)), label
        )
        return useless_steps(wide, view.concepts, bits, view.neuron)

    return useless_paths(labels, OPERATORS), jax.vmap(of_label)(labels)


# Where they must not be at work.

# `(c0 OR c3) XOR c2` is {0, 4, 6}: c3 pays although it misses the neuron.
BY_XOR = case_of([{0, 1, 4, 5}, {2, 4, 5}, {1, 2, 3, 5, 6}, {1, 2, 3}], {0, 4}, 7)
WITH_XOR = ox.Optimal(3, bounds=ox.PaperBounds(), operators=(ox.OR, XOR))


def test_operators_that_are_not_monotone():
    truth = Truth(Trial(BY_XOR, 3, (ox.OR, XOR), 8, False))
    ratios = sorted({truth.score(row).ratio for row in range(len(truth.formulas))})
    assert ratios[-2:] == [Fraction(1, 2), Fraction(2, 3)]
    found = ox.explain(BY_XOR.table, BY_XOR.neuron, WITH_XOR)
    names = BY_XOR.names
    assert found.formula == ox.Formula((names[0], names[3], names[2]), (ox.OR, XOR))
    assert found.score.ratio == Fraction(2, 3)

    # The rules would leave out the step all the same. (c0 covers what c1 has of the neuron.)
    leaf = np.array([[0, PADDING, PADDING]], np.int32), np.full((1, 3), PADDING, np.int32)
    _, steps = useless(view_of(BY_XOR, OPERATORS, 3, aggregated=False), *leaf)
    assert steps[0].tolist() == [False, True, True, True]


def test_runners_up(monkeypatch: pytest.MonkeyPatch):
    # c0 is the neuron; what the others add to it is worse, and wanted.
    case = case_of([{0, 1}, {2}, {3}], {0, 1}, 4)
    a, b, c = (ox.Formula.concept(name) for name in case.names)
    method = ox.Optimal(3, bounds=ox.PaperBounds(), top_k=5, batch_size=8)
    expected = {a.then(ox.OR, b.concepts[0]), a.then(ox.OR, c.concepts[0])}

    def runners_up() -> list[ox.Formula]:
        found = ox.explain(case.table, case.neuron, method)
        assert found.formula == a
        return [other.formula for other in found.runners_up]

    assert expected <= set(runners_up())
    plain = paper.Estimator.discard
    monkeypatch.setattr(paper.Estimator, "discard", lambda self, _: plain(self, True))
    assert runners_up() == []


def test_within_a_share():
    case = case_of([{0, 1}, {2}, {3}], {0, 1}, 4)
    on, off = (
        ox.explain(
            case.table,
            case.neuron,
            ox.Optimal(3, bounds=ox.PaperBounds(discards=discards), within=0.6, batch_size=8),
        )
        for discards in (True, False)
    )
    assert on.runners_up == off.runners_up != ()


# What they leave out.


@examples(25, in_thorough=3000)
@given(seed=seeds, aggregated=st.booleans())
def test_a_shorter_formula_is_at_least_as_good(seed: int, aggregated: bool):
    case = USUAL.case(seed)
    truth = Truth(Trial(case, 3, OPERATORS, 8, False))
    concepts, operators = np.asarray(truth.formulas.concepts), np.asarray(truth.formulas.operators)
    labels = np.flatnonzero(truth.lengths < 3)
    view = view_of(case, OPERATORS, 3, aggregated=aggregated)
    paths, steps = useless(view, concepts[labels], operators[labels])
    for label, path, step in zip(labels.tolist(), paths, steps, strict=True):
        n = truth.lengths[label]
        same = (concepts[:, :n] == concepts[label, :n]).all(1)
        same &= (operators[:, :n] == operators[label, :n]).all(1) & (truth.lengths > n)
        rows = np.flatnonzero(same)
        code, concept = operators[rows, n], concepts[rows, n]
        left_out = path[code] | (step[concept] & (code == OR))
        assert truth.outdone[rows[left_out]].all()


@pytest.mark.parametrize(
    ("counts", "label", "operator"),
    [
        ({"a": (0, 2), "b": (2, 1)}, "a", OR),  # nothing inside
        ({"a": (2, 0), "ab": (1, 0), "b": (1, 1)}, "a", AND),  # no extras
        ({"a": (2, 2), "b": (1, 1)}, "a", AND),  # nothing common inside: nothing would be left
        ({"a": (2, 2), "ab": (1, 0), "b": (1, 1)}, "a", NOT),  # no common extras
        ({"ac": (0, 1), "bc": (0, 1), "a": (1, 0), "b": (1, 0)}, "ab", OR),
    ],
    ids=["or", "and", "and nothing", "and not", "compound"],
)
def test_each_rule_by_itself(counts: dict[str, tuple[int, int]], label: str, operator: int):
    masks, inside = [], []
    for names, pair in counts.items():
        for active, count in zip((1, 0), pair, strict=True):
            masks += [[name in names for name in "abc"]] * count
            inside += [active] * count
    case = Case(np.array(masks).T[:, None], np.array([inside]), 1 - np.array([inside]))
    concepts = np.array([[*range(len(label)), *[PADDING] * (3 - len(label))]], np.int32)
    operators = np.full((1, 3), PADDING, np.int32)
    operators[0, 1 : len(label)] = AND
    paths, _ = useless(view_of(case, OPERATORS, 3, aggregated=True), concepts, operators)
    assert paths[0, operator]


def test_a_lower_limit_of_nothing_proves_nothing():
    # I^C_min of `a AND b` is 0 although the two share active locations: OR may follow. And c is
    # not known to cover what it may miss.
    case = case_of([{0, 1, 2, 6}, {1, 2, 3, 7}, {0, 3, 4, 5}, {4, 5}], {0, 1, 2, 3, 4, 5}, 8)
    concepts = np.array([[0, 1, PADDING]], np.int32)
    operators = np.array([[PADDING, AND, PADDING]], np.int32)
    view = view_of(case, OPERATORS, 3, aggregated=True)
    with jax.enable_x64(True):
        label = label_bounds(view, as_chains(concepts, operators))
    assert (int(label.ic.low[0, 0]), int(label.ic.high[0, 0])) == (0, 3)
    paths, steps = useless(view, concepts, operators)
    assert not paths[0, OR]
    assert not steps[0, 2]


# In the search.


@examples(25, in_thorough=2000)
@given(seed=seeds)
def test_they_save_work_and_change_nothing(seed: int):
    case = USUAL.case(seed)
    on, off = (
        ox.explain(case.table, case.neuron, replace(USUAL.method(discards=discards), batch_size=1))
        for discards in (True, False)
    )
    assert (on.formula, on.score, on.upper_bound) == (off.formula, off.score, off.upper_bound)
    assert on.stats.expanded <= off.stats.expanded
    assert on.stats.estimated <= off.stats.estimated


def test_the_checker_finds_a_rule_that_leaves_out_too_much(monkeypatch: pytest.MonkeyPatch):
    # The released code reads the lower limit where it has to read the upper one.
    def hasty(label, operators):
        nothing_sure = ((label.iu == 0) & (label.ic.low == 0)).all(-1)
        return jax.numpy.stack([nothing_sure & (op == ox.OR) for op in operators], axis=-1)

    monkeypatch.setattr(admissible, "SHAPES", {3: ((6, 3),)})
    monkeypatch.setattr("optexp_jax.bounds.paper.chains.useless_paths", hasty)
    jax.clear_caches()
    try:
        report = check_admissible(ox.PaperBounds(), cases=300, lengths=(3,))
    finally:
        monkeypatch.undo()
        jax.clear_caches()
    assert not report.admissible
