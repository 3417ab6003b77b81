"""Network Dissection: the single concept that overlaps the neuron best."""

import time
from typing import ClassVar

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.neuron_summary import best_concept
from optexp_jax.explanation import Explanation, SearchStats, Seconds, Status
from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import DEFAULT_OPERATORS
from optexp_jax.methods.base import AbstractMethod
from optexp_jax.methods.claim import FormulaSpace, Proof


class NetDissect(AbstractMethod):
    """The best single concept, proved best among single concepts, which is all it looks at."""

    proof: ClassVar[Proof] = Proof.ALWAYS

    @property
    def formula_space(self) -> FormulaSpace:
        return FormulaSpace(1, DEFAULT_OPERATORS)

    def run(self, table: ConceptTable, neuron: NeuronCounts) -> Explanation:
        start = time.perf_counter()
        best = best_concept(table, neuron)
        seconds = time.perf_counter() - start
        return Explanation(
            formula=None if best.concept is None else Formula.concept(best.concept),
            intersection=best.intersection,
            union=best.union,
            upper_bound=best.iou,
            status=Status.OPTIMAL,
            stats=SearchStats(
                visited=table.n_concepts, seconds=Seconds(total=seconds, exact=seconds)
            ),
        )
