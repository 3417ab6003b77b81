"""Metrics, oracles and hulls for the tests of trade-offs, by enumeration and plain formulas."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

import optexp_jax as ox
from helpers.tight_cases import any_case, flat, tiny_unit
from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import DEFAULT_OPERATORS, Operator
from optexp_jax.methods.oracle import OracleResult, best_by, count_unverified, enumerate_formulas
from optexp_jax.testing import Case, random_case


@dataclass(frozen=True)
class Table:
    """The four cells of formula against neuron."""

    both: int
    formula_only: int
    neuron_only: int
    neither: int


def plain_key(objective: str, cells: Table) -> Fraction:
    """A number that sorts as the metric does, from the four cells; the sign of phi is kept."""
    tp, fp, fn, tn = cells.both, cells.formula_only, cells.neuron_only, cells.neither
    if objective == "iou":
        return Fraction(tp, tp + fp + fn)
    if objective == "f1":
        return Fraction(2 * tp, 2 * tp + fp + fn)
    if objective == "cosine":
        return Fraction(tp * tp, (tp + fp) * (tp + fn)) if tp + fp else Fraction(0)
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    determinant = tp * tn - fp * fn
    return Fraction(determinant * abs(determinant), product) if product else Fraction(0)


def key_of(objective: str, neuron: ox.NeuronCounts) -> Callable[[int, int], Fraction]:
    """The same by intersection and extras."""
    size, extras_in_all = neuron.size, int(neuron.outside.sum())

    def key(intersection: int, extras: int) -> Fraction:
        cells = Table(intersection, extras, size - intersection, extras_in_all - extras)
        return plain_key(objective, cells)

    return key


def best_of_all(
    case: Case,
    objective: str,
    length: int,
    operators: tuple[Operator, ...] = DEFAULT_OPERATORS,
) -> OracleResult | None:
    """The best formula by enumeration; None where no metric is above 0."""
    counts = case.inside.reshape(-1), case.outside.reshape(-1)
    key = key_of(objective, case.neuron)
    found = best_by(case.columns, *counts, case.names, length, operators, key)
    if found.formula is None or key(found.intersection, found.extras) <= 0:
        return None
    return found


@dataclass(frozen=True)
class Place:
    """Extras and intersection."""

    e: int
    i: int


def places(case: Case, length: int) -> dict[Place, list[Formula]]:
    """All formulas that overlap the neuron, by where they are."""
    counts = case.inside.reshape(-1), case.outside.reshape(-1)
    found: dict[Place, list[Formula]] = {}
    for scored in enumerate_formulas(case.columns, *counts, length, DEFAULT_OPERATORS):
        for row, i in enumerate(scored.intersections.tolist()):
            if i:
                place = Place(int(scored.extras[row]), i)
                formula = scored.formula(row, case.names, DEFAULT_OPERATORS)
                found.setdefault(place, []).append(formula)
    return found


def first_in_order(case: Case, formulas: list[Formula]) -> Formula:
    """Shorter, then fewer unverified pairs, then the canonical form."""
    there = (case.inside + case.outside).reshape(-1) > 0
    held = {str(n): mask & there for n, mask in zip(case.names, case.columns, strict=True)}
    shortest = min(map(len, formulas))
    short = [each for each in formulas if len(each) == shortest]
    return min(short, key=lambda each: (count_unverified(each, held), each))


def plain_hull(points: set[Place]) -> list[Place]:
    """Those that alone have the highest I − λ·E for some λ > 0 at which that is positive.

    Tried one by one: a point is there if some λ is between what points to its right ask for at
    least and points to its left, (0, 0) among them, at most.
    """
    found: list[Place] = []
    for here in points:
        if any(p.e <= here.e and p.i >= here.i and p != here for p in points):
            continue
        origin = {*points, Place(0, 0)}
        right = [Fraction(p.i - here.i, p.e - here.e) for p in points if p.e > here.e]
        left = [Fraction(here.i - p.i, here.e - p.e) for p in origin if p.e < here.e]
        if not left or max([*right, Fraction(0)]) < min(left):
            found.append(here)
    return sorted(found, key=lambda p: p.e)


def some_unit(rng: np.random.Generator, n_concepts: int) -> Case:
    """Random, tiny, huge, or made of a few counts, so that many formulas are level."""
    kind = rng.integers(5)
    if kind == 0:
        return tiny_unit(rng, n_concepts)
    if kind == 1:
        return random_case(rng, n_concepts, int(rng.integers(1, 4)))
    if kind == 2:
        columns = int(rng.integers(2, 13))
        masks = rng.random((n_concepts, columns)) < 0.5
        inside, outside = rng.integers(0, 3, (2, columns))
        inside[0] += not inside.any()
        factor = int(rng.choice([1, 1, 3, 2**36]))
        return flat(masks, inside * factor, outside * factor)
    if kind == 3:  # An active unit: hardly a location is left outside.
        columns = int(rng.integers(2, 13))
        masks = rng.random((n_concepts, columns)) < 0.4
        inside = rng.integers(0, 60, columns)
        inside[0] += not inside.any()
        return flat(masks, inside, rng.integers(0, 4, columns))
    return any_case(rng, n_concepts)
