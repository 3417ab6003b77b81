"""What is true of a small problem: the exact score of every formula, by enumeration."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float64, Int64

from optexp_jax.counts.scores import Score, highest_rows
from optexp_jax.formulas.batch import PADDING, FormulaBatch
from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import Operator
from optexp_jax.methods.oracle import OracleResult, best_formula, enumerate_formulas
from optexp_jax.search.problem import Problem
from optexp_jax.testing.cases import Case


@dataclass(frozen=True, eq=False)
class Trial:
    """A case, and what is asked of the search."""

    case: Case
    length: int
    operators: tuple[Operator, ...]
    batch_size: int
    blind: bool
    """Whether the search space is shown no incumbent, so that it returns nodes it would drop."""

    @property
    def problem(self) -> Problem:
        return Problem(self.case.table, self.case.neuron, self.length, self.operators)

    def shrunk(self) -> "list[Trial]":
        """The trial with smaller counts, or one concept or one cell less, for each there is."""
        case = self.case
        smaller = [case.lighter()] if max(case.inside.max(), case.outside.max()) > 8 else []
        smaller += [case.without_concept(int(k)) for k in np.flatnonzero(case.masks.any((1, 2)))]
        matters = case.masks.any(0) | (case.inside > 0)
        smaller += [case.without_cell(int(x), int(y)) for x, y in np.argwhere(matters)]
        return [replace(self, case=part) for part in smaller if part.inside.any()]

    def __str__(self) -> str:
        names = ", ".join(operator.name for operator in self.operators)
        return f"formulas of at most {self.length} concepts, joined by {names}:\n{self.case}"


class Truth:
    """Every chain of a trial's problem, as it can be written, with its exact score."""

    def __init__(self, trial: Trial):
        case = trial.case
        self.operators = trial.operators
        self.names = case.names
        self.neuron_size = int(case.inside.sum())
        self.columns = case.columns
        self.inside, self.outside = case.inside.reshape(-1), case.outside.reshape(-1)
        given = self.columns, self.inside, self.outside
        self.best: OracleResult = best_formula(*given, self.names, trial.length, trial.operators)
        width = trial.problem.depth
        parts = list(enumerate_formulas(*given, trial.length, trial.operators))
        self.formulas = FormulaBatch(
            np.concatenate([_widen(part.concepts, 0, width) for part in parts]),
            np.concatenate([_widen(part.operators, 1, width) for part in parts]),
            trial.operators,
        )
        self.intersections: Int64[np.ndarray, " formulas"] = np.concatenate(
            [part.intersections for part in parts]
        )
        self.extras: Int64[np.ndarray, " formulas"] = np.concatenate(
            [part.extras for part in parts]
        )

    @cached_property
    def iou(self) -> Float64[np.ndarray, " formulas"]:
        """IoUs, correctly rounded."""
        return self.intersections / (self.neuron_size + self.extras)

    @cached_property
    def lengths(self) -> Int64[np.ndarray, " formulas"]:
        return np.asarray(self.formulas.lengths)

    @cached_property
    def is_optimum(self) -> Bool[np.ndarray, " formulas"]:
        """Which chains are the best formula, in any way of writing it."""
        top = np.flatnonzero(self.iou == self.iou.max())
        found = np.zeros(len(self.iou), bool)
        found[top] = [self.formula(row) == self.best.formula for row in top.tolist()]
        return found

    @cached_property
    def outdone(self) -> Bool[np.ndarray, " formulas"]:
        """Chains for which a shorter formula is at least as good, so that they may be left out.

        One of equal length is no reason: the order among those is not the search's to decide.
        """
        found = np.zeros(len(self.lengths), bool)
        unions = self.neuron_size + self.extras
        for length in range(2, int(self.lengths.max()) + 1):
            shorter = np.flatnonzero(self.lengths < length)
            best = shorter[highest_rows(self.intersections[shorter], unions[shorter])[0]]
            rows = np.flatnonzero(self.lengths == length)
            # Exactly, whatever the size of counts: as Python integers.
            mine, theirs = self.intersections[rows].astype(object), int(self.intersections[best])
            found[rows] = mine * int(unions[best]) <= theirs * unions[rows].astype(object)
        return found

    @property
    def best_score(self) -> Score:
        return Score(self.best.intersection, self.neuron_size + self.best.extras)

    def score(self, row: int) -> Score:
        """The exact score of one chain."""
        return Score(int(self.intersections[row]), self.neuron_size + int(self.extras[row]))

    def formula(self, row: int) -> Formula:
        """One of the chains."""
        chain = FormulaBatch(
            self.formulas.concepts[row : row + 1],
            self.formulas.operators[row : row + 1],
            self.operators,
        )
        return chain.to_formulas(self.names)[0]


def _widen(part: np.ndarray, before: int, width: int) -> np.ndarray:
    after = width - before - part.shape[1]
    return np.pad(part, ((0, 0), (before, after)), constant_values=PADDING).astype(np.int32)
