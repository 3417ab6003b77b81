"""Network Dissection: the single concept that overlaps the neuron best."""

import time
from typing import ClassVar

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.scores import Score, highest_rows
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
        incidence = table.signatures.incidence
        inside, outside = incidence.T @ neuron.inside, incidence.T @ neuron.outside
        rows = highest_rows(inside, neuron.size + outside)
        best = min(rows, key=lambda k: table.names[k])
        score = Score(int(inside[best]), neuron.size + int(outside[best]))
        seconds = time.perf_counter() - start
        found = score.intersection > 0
        return Explanation(
            formula=Formula.concept(table.names[best]) if found else None,
            intersection=score.intersection,
            union=score.union if found else neuron.size,
            upper_bound=score.iou,
            status=Status.OPTIMAL,
            stats=SearchStats(
                visited=table.n_concepts, seconds=Seconds(total=seconds, exact=seconds)
            ),
        )
