"""Floating point in the tight search: bounds hold as they stand, and are raised by next to nothing.

Units of a few locations on tables of up to 10**15: what rounding takes from large counts must
neither hide all that such a unit has, nor make every bound as good as any.
"""

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.search_cases import DEFAULT, SUBSETS, seeds
from helpers.support import as_users_run_it, examples, thorough
from helpers.tight_cases import N, by_sets, tiny_setting, tiny_unit
from helpers.tight_checks import check_gains, check_outer, check_pairs, check_two_steps
from helpers.tight_helpers import solve
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.bounds.tight import rounding
from optexp_jax.bounds.tight.operator_set import DIFFERENCE, INTERSECTION, UNION
from optexp_jax.bounds.tight.rounding import (
    iou_at_most,
    near_tie,
    needed,
    outward,
    slack,
    v_below,
    weight,
)
from optexp_jax.bounds.tight.search.subproblem import Prefix, Step, Subproblem, SubproblemCache
from optexp_jax.counts.scores import Score
from optexp_jax.formulas.operators import Operator
from optexp_jax.methods import FormulaSpace
from optexp_jax.runs.reproof import Prover, StoredClaim
from optexp_jax.runs.reproof.pair_counts import PairCounts
from optexp_jax.search.incumbent import just_below
from optexp_jax.search.problem import Problem

LITTLE = Fraction(1, 2**42)

some_subsets = pytest.mark.parametrize("operators", SUBSETS if thorough() else [DEFAULT], ids=str)


# Every bound, in exact numbers.


@some_subsets
@examples(10)
@given(seed=seeds)
def test_tiny_units(operators: tuple[Operator, ...], seed: int):
    rng = np.random.default_rng(seed)
    setting = tiny_setting(rng, operators)
    check_pairs(setting)
    check_gains(setting)
    check_two_steps(setting, rng.random(N) < rng.choice([0.2, 1.0]))
    check_outer(setting, rng.permutation(N), 3)


# Adversarial: powers of two and their neighbours, in which products need all bits; multipliers
# above 1, which other objectives have; and counts with which both terms of W nearly cancel.
some_counts = st.one_of(
    st.integers(0, 2**52),
    st.builds(lambda bits, off: max(2**bits + off, 0), st.integers(0, 52), st.integers(-3, 3)),
)
some_vs = st.one_of(
    st.floats(0, 1, allow_subnormal=False),
    st.floats(1, 2.0**60),
    st.builds(
        lambda bits, off: float(2.0**bits * (1 + off * 2.0**-52)),
        st.integers(-60, 60),
        st.integers(0, 3),
    ),
    st.builds(lambda i, e: i / (i + e + 1), some_counts, some_counts),
)


@given(inside=some_counts, outside=some_counts, v=some_vs, cancels=st.booleans())
@examples(300)
def test_a_weight_is_rounded_up_by_a_share_of_its_terms(
    inside: int, outside: int, v: float, cancels: bool
):
    if cancels:
        inside = min(int(Fraction(v) * outside), 2**52)
    terms = inside + Fraction(v) * outside
    exact = inside - Fraction(v) * outside
    by = Fraction(weight(float(inside), v * outside)) - exact
    assert 0 <= by <= LITTLE * terms
    assert Fraction(slack(float(inside), v * outside)) <= LITTLE * terms


@given(
    parts=st.lists(st.tuples(some_counts, some_counts), min_size=1, max_size=3),
    v=some_vs,
    seed=seeds,
)
@examples(300)
def test_sums_of_weights_and_overlaps_hold(parts: list[tuple[int, int]], v: float, seed: int):
    # Next to each W up to four overlaps of parts of it, added or taken away, in any order.
    rng = np.random.default_rng(seed)
    terms: list[float] = []
    exact = Fraction(0)
    for i, e in parts:
        terms.append(weight(float(i), v * e))
        exact += i - Fraction(v) * e
        for _ in range(int(rng.integers(5)) if len(parts) < 3 else 3):
            shared_i, shared_e = int(i * rng.random()), int(e * rng.random())
            terms += [v * shared_e, -float(shared_i)]
            exact += Fraction(v) * shared_e - shared_i
    total = 0.0
    for k in rng.permutation(len(terms)).tolist():
        total += terms[k]
    assert Fraction(total) >= exact


@given(intersection=some_counts, extras=some_counts, size=st.integers(1, 2**52))
@examples(200)
def test_v_is_below_the_quotient_it_comes_from(intersection: int, extras: int, size: int):
    exact = Fraction(intersection, size + extras)
    v = just_below(intersection / (size + extras))
    assert v >= 0
    assert Fraction(v) < exact or not intersection
    with jax.enable_x64(True):
        assert float(v_below(jnp.array([intersection / (size + extras)]))[0]) == v
    # What is level with the incumbent needs no more than it has.
    w = intersection - Fraction(v) * extras
    if exact <= 1:
        assert Fraction(needed(v, float(size))) <= w


@given(inside=some_counts, outside=some_counts, v=some_vs, size=st.integers(1, 2**52))
@examples(200)
def test_a_bound_on_w_is_one_on_the_iou(inside: int, outside: int, v: float, size: int):
    iou = Fraction(inside, size + outside)
    bound = float(iou_at_most(np.array([weight(float(inside), v * outside)]), float(size))[0])
    assert Fraction(bound) >= iou or iou < Fraction(v)


@given(first=st.tuples(st.integers(1, 2**52), st.integers(1, 2**52)), factor=st.integers(1, 2**10))
def test_level_ious_are_near_ties(first: tuple[int, int], factor: int):
    inside, union = first
    other = (inside * factor) / (union * factor)
    assert other >= near_tie(inside / union)
    assert near_tie(inside / union) > (1 - 2.0**-40) * inside / union


def test_margins_stand_in_one_file():
    folder = Path(rounding.__file__).parent
    for path in folder.rglob("*.py"):
        if path.name != "rounding.py":
            assert not re.search(r"2(\.0)?\*\*-|nextafter\([a-z_.]+, 0", path.read_text()), path


def test_outward_is_upward():
    with jax.enable_x64(True):
        found = np.asarray(outward(jnp.array([-np.inf, -3.0, 0.0, 5.0, np.inf])))
    assert found[[0, 2, 4]].tolist() == [-np.inf, 0.0, np.inf]
    assert -3 < found[1] < -3 + 1e-12
    assert 5 < found[3] < 5 + 1e-12


def sub_with(steps: tuple[Step, ...], extras: int) -> Subproblem:
    case = by_sets(N, {"a": (3, extras), "b": (2, 7), "abc": (1, extras // 3), "": (4, extras)})
    return SubproblemCache(Problem(case.table, case.neuron, 5, DEFAULT)).at(Prefix(steps))


@given(
    ops=st.lists(st.sampled_from([UNION, INTERSECTION, DIFFERENCE]), max_size=3),
    bits=st.integers(0, 50),
    v=st.floats(0, 1, allow_subnormal=False),
    w=st.floats(0, 10),
)
@examples(20)
def test_what_is_captured(ops: list[int], bits: int, v: float, w: float):
    sub = sub_with(tuple(Step(op, k) for k, op in enumerate(ops)), 2**bits - 1)
    paid = Fraction(v) * sub.captured_outside
    exact, goal = sub.captured_inside - paid, Fraction(v) * sub.neuron.size
    terms = sub.captured_inside + paid
    assert 0 <= Fraction(sub.captured(v)) - exact <= LITTLE * terms
    assert 0 <= goal - exact - Fraction(sub.needed(v)) <= LITTLE * (goal + terms)
    left = Fraction(sub.left_of(w, v)) - (Fraction(w) - exact)
    assert 0 <= left <= LITTLE * (Fraction(w) + terms)


# They still rule out.


def huge_table(scale: int) -> tuple[ox.ConceptTable, ox.NeuronCounts]:
    """A unit of six locations, in sets of two each; all other sets have sizes of this scale."""
    rng = np.random.default_rng(0)
    held = {tuple(np.flatnonzero(row).tolist()): 0 for row in rng.random((200, 24)) < 0.15}
    sizes = {row: int(rng.integers(1, 100)) * scale for row in held}
    touched = [tuple(sorted(rng.permutation(24)[:2].tolist())) for _ in range(6)]
    sizes |= dict.fromkeys(touched, 2)
    table = ox.ConceptTable.from_signatures([list(row) for row in sizes], list(sizes.values()))
    return table, ox.NeuronCounts.from_signatures(table, [int(row in touched) for row in sizes])


@pytest.mark.parametrize("length", [3, 4])
def test_a_tiny_unit_on_a_huge_table_is_searched_as_on_a_large_one(length: int):
    # At length 3 v is as small as the table is large, at length 4 it is 1/7.
    expanded = []
    for scale in (2**16, 2**36):
        table, neuron = huge_table(scale)
        assert neuron.size == 6
        found = solve(table, neuron, ox.Optimal(length))
        assert found.status == "optimal"
        expanded.append(found.stats.expanded)
    assert table.n_locations > 10**14
    large, huge = expanded
    assert huge <= 1.5 * large


def test_a_second_proof_rules_out_as_much(monkeypatch: pytest.MonkeyPatch):
    counted: list[int] = []
    exactly = PairCounts._count_exactly

    def note(*args: Any) -> Score | None:
        counted[-1] += 1
        return exactly(*args)

    monkeypatch.setattr(PairCounts, "_count_exactly", note)
    for scale in (2**16, 2**36):
        table, neuron = huge_table(scale)
        best = solve(table, neuron, ox.Optimal(3)).score
        counted.append(0)
        with as_users_run_it():
            prover = Prover(table, FormulaSpace(3, DEFAULT), 60.0)
            assert prover.prove_best(StoredClaim(neuron, best)).proved
    large, huge = counted
    assert huge <= 1.5 * large, counted


@examples(15)
@given(seed=seeds)
def test_a_second_proof_of_tiny_units(seed: int):
    case = tiny_unit(np.random.default_rng(seed))
    with as_users_run_it():
        best = ox.Exhaustive(3).run(case.table, case.neuron).score
        prover = Prover(case.table, FormulaSpace(3, DEFAULT), 60.0)
        assert prover.prove_best(StoredClaim(case.neuron, best)).proved
        if best.intersection:
            below = Score(best.intersection * 10**9 - 1, best.union * 10**9)
            doubted = prover.prove_best(StoredClaim(case.neuron, below))
            assert doubted.better is not None
            assert doubted.better.ratio > below.ratio
