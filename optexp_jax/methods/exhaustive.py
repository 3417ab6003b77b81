"""The oracle as a method: tries every formula. For small inputs, and for checking the others."""

import time
from typing import ClassVar

import equinox as eqx
import numpy as np

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.scores import Score
from optexp_jax.explanation import Explanation, SearchStats, Seconds, Status
from optexp_jax.formulas.operators import DEFAULT_OPERATORS, Operator, check_operators
from optexp_jax.methods.base import MOST_CONCEPTS, AbstractMethod, check_count
from optexp_jax.methods.claim import FormulaSpace, Proof
from optexp_jax.methods.oracle import best_formula, count_formulas

OVERHEAD = 100


class Exhaustive(AbstractMethod):
    """Every formula of at most `length` concepts, one by one.

    `max_work` limits formulas times signatures; an input past it is refused before any work.
    However few the signatures, a formula costs as much as `OVERHEAD` of them.
    """

    proof: ClassVar[Proof] = Proof.ALWAYS

    length: int = 3
    """Most concepts in a formula."""
    operators: tuple[Operator, ...] = eqx.field(
        default=DEFAULT_OPERATORS, converter=check_operators, kw_only=True
    )
    """Operators that formulas may use."""
    max_work: int = eqx.field(default=10**10, kw_only=True)
    """Most formulas times signatures; an input past it is refused."""

    def __check_init__(self) -> None:
        check_count(self.length, "length", MOST_CONCEPTS)
        check_count(self.max_work, "max_work")

    @property
    def formula_space(self) -> FormulaSpace:
        return FormulaSpace(self.length, self.operators)

    def run(self, table: ConceptTable, neuron: NeuronCounts) -> Explanation:
        n_formulas = count_formulas(table.n_concepts, self.length, len(self.operators))
        if n_formulas * max(len(table.signatures), OVERHEAD) > self.max_work:
            raise ValueError(
                f"Trying every formula of at most {self.length} of {table.n_concepts} concepts "
                f"means {n_formulas} formulas over {len(table.signatures)} signatures; that is "
                f"past max_work={self.max_work}. Use Optimal, shorter formulas or fewer concepts."
            )
        start = time.perf_counter()
        found = best_formula(
            np.stack([table.signatures.membership(k) for k in range(table.n_concepts)]),
            neuron.inside,
            neuron.outside,
            table.names,
            self.length,
            self.operators,
        )
        score = Score(found.intersection, neuron.size + found.extras)
        seconds = time.perf_counter() - start
        return Explanation(
            formula=found.formula,
            intersection=score.intersection,
            union=score.union,
            upper_bound=score.iou,
            status=Status.OPTIMAL,
            stats=SearchStats(visited=found.tried, seconds=Seconds(total=seconds, exact=seconds)),
        )
