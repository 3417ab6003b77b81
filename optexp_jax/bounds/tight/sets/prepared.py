"""What searches over sets begin with, for several neurons of one table at once."""

from collections.abc import Sequence
from dataclasses import dataclass

from optexp_jax.bounds.base import Prepared
from optexp_jax.bounds.tight.sets.every_set import every_set
from optexp_jax.bounds.tight.sets.screening import Intersections
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.search.problem import Problem


@dataclass(frozen=True, eq=False)
class PreparedSets(Prepared):
    """The counts of every set for several neurons, from one product."""

    neurons: tuple[NeuronCounts, ...]
    depth: int
    together: Intersections

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> "PreparedSets":
        neurons, depth = tuple(problem.neuron for problem in problems), problems[0].depth
        sets = every_set(problems[0].table, depth)
        return cls(neurons, depth, Intersections.of(sets, neurons))

    def shared(self, problem: Problem) -> Intersections | None:
        """What there is for a problem: nothing, if it is another neuron or has another length."""
        if problem.depth != self.depth:
            return None
        of_it = (k for k, neuron in enumerate(self.neurons) if neuron is problem.neuron)
        k = next(of_it, None)
        return None if k is None else self.together.one(k)
