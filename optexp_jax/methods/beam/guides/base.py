"""What a guide is: it tells a beam search which candidates may be worth an exact score."""

import abc
from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Bool, Float64, Int32

from optexp_jax.formulas.batch import FormulaBatch
from optexp_jax.formulas.operators import Operator
from optexp_jax.search.problem import Problem


@dataclass(frozen=True, eq=False)
class Members:
    """Beam members of one length that are about to be extended, best first.

    All levels have the same number of rows, so that one compiled program serves them: rows past
    `count` repeat the last member.
    """

    concepts: Int32[np.ndarray, "rows length"]
    """Chains, filled up with `PADDING` on the right (see `FormulaBatch`)."""
    operators: Int32[np.ndarray, "rows length"]
    parents: Int32[np.ndarray, " rows"]
    """Which row of the level before each member extends; 0 for single concepts."""
    apart: Bool[np.ndarray, "rows concepts"]
    """Concepts that each member is known to be disjoint from."""
    count: int
    size: int
    """Concepts in each member."""

    def batch(self, n_rows: int, operator_set: tuple[Operator, ...]) -> FormulaBatch:
        """The first rows as formulas."""
        return FormulaBatch(self.concepts[:n_rows], self.operators[:n_rows], operator_set)

    @property
    def last_concepts(self) -> Int32[np.ndarray, " rows"]:
        return self.concepts[:, self.size - 1]

    @property
    def last_operators(self) -> Int32[np.ndarray, " rows"]:
        return self.operators[:, self.size - 1]


class AbstractEstimator(abc.ABC):
    """A guide at work on one problem. It is asked once a level, and may keep what it finds."""

    @abc.abstractmethod
    def estimate(self, members: Members) -> Float64[np.ndarray, "rows operators concepts"]:
        """Upper bounds on the IoU of every member extended by every operator and concept.

        They must not be below the exact IoU, whatever the rounding: what is below the current
        minimum is never looked at. Rows past `members.count`, and concepts that a member holds
        already, are ignored.
        """


class AbstractGuide(eqx.Module):
    """A way to estimate candidates for `Beam(guide=...)`.

    Guides change how many candidates are visited, never what is found.
    """

    knows_disjoint: ClassVar[bool] = False
    """Whether candidates with disjoint sides that are nothing new are estimated 0 where they are
    made, which is with published counters only."""

    @abc.abstractmethod
    def open(self, problem: Problem) -> AbstractEstimator:
        """Prepare for one problem; refuse tables that the guide cannot work on."""
