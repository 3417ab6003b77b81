"""A good formula without any compiled program: for searches that had no time to compile theirs."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

from optexp_jax.counts.scores import Score
from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import Operator
from optexp_jax.search.incumbent import Candidate
from optexp_jax.search.problem import Problem

WIDTH = 4
"""Formulas of each length that are extended."""


@dataclass(frozen=True, eq=False)
class _Label:
    concepts: tuple[int, ...]
    operators: tuple[Operator, ...]
    held: Bool[np.ndarray, " signatures"]
    score: Score


def host_beam(problem: Problem) -> list[Candidate]:
    """The best formulas of a beam over exact scores, one of each length; none if none overlaps."""
    table, neuron = problem.table, problem.neuron
    by_concept = table.signatures.incidence.T
    own = _Counts(by_concept @ neuron.inside, by_concept @ neuron.outside, neuron.size)
    beam = [
        _Label((k,), (), table.signatures.membership(k), own.score(k))
        for k in own.highest(WIDTH, ())
    ]
    found = beam[:1]
    for _ in range(1, problem.depth):
        longer: list[_Label] = []
        for label in beam:
            shared = _Counts(
                by_concept @ (neuron.inside * label.held),
                by_concept @ (neuron.outside * label.held),
                neuron.size,
            )
            for operator in problem.operators:
                joined = shared.joined(own, label.score, operator)
                for k in joined.highest(WIDTH, label.concepts):
                    held = operator(label.held, table.signatures.membership(k))
                    concepts, operators = (*label.concepts, k), (*label.operators, operator)
                    longer.append(_Label(concepts, operators, held, joined.score(k)))
        beam = sorted(longer, key=lambda label: -label.score.ratio)[:WIDTH]
        found += beam[:1]
    return [
        Candidate(
            Formula(tuple(table.names[k] for k in best.concepts), best.operators),
            problem.score(best.score.intersection, best.score.union - neuron.size),
        )
        for best in found
    ]


@dataclass(frozen=True, eq=False)
class _Counts:
    """What something holds inside and outside of the neuron, by concept."""

    inside: Int64[np.ndarray, " concepts"]
    outside: Int64[np.ndarray, " concepts"]
    neuron: int

    def joined(self, own: "_Counts", label: Score, operator: Operator) -> "_Counts":
        """What a label joined with each concept holds, where `self` is what both share."""

        def count(
            left: int, right: Int64[np.ndarray, " concepts"], both: Int64[np.ndarray, " concepts"]
        ) -> Int64[np.ndarray, " concepts"]:
            p, q, r = int(operator.p), int(operator.q), int(operator.r)
            return p * (left - both) + q * (right - both) + r * both

        extras = label.union - self.neuron
        inside = count(label.intersection, own.inside, self.inside)
        return _Counts(inside, count(extras, own.outside, self.outside), self.neuron)

    def highest(self, n: int, used: tuple[int, ...]) -> list[int]:
        """The concepts of the highest IoU, as far as it is positive and they are not used."""
        iou: Float64[np.ndarray, " concepts"] = self.inside / (self.neuron + self.outside)
        iou[list(used)] = 0.0
        return [k for k in np.argsort(-iou, kind="stable")[:n].tolist() if iou[k] > 0]

    def score(self, concept: int) -> Score:
        return Score(int(self.inside[concept]), self.neuron + int(self.outside[concept]))
