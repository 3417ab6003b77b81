"""A warm-up: a bit of search in arrays of the real sizes, so that all programs are compiled.

XLA compiles a program when it is first called, which takes longer than most searches, and which
programs a unit calls depends on the unit. So the first search of a kind begins with a made-up
table: as many concepts, of which a few are not empty. What its search meets is followed a little
way in every direction. Units that come later find their programs compiled.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from optexp_jax.bounds.tight.counts.device_lists import Sizes
from optexp_jax.bounds.tight.search.nodes import TightNodes
from optexp_jax.bounds.tight.tuning import Tuning
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.table_cache import per_process
from optexp_jax.formulas.operators import Operator
from optexp_jax.internal.kernel_choice import prefers_host_kernels
from optexp_jax.search.clock import Clock
from optexp_jax.search.driver import AbstractSpace
from optexp_jax.search.frontier import Queued, take
from optexp_jax.search.incumbent import Incumbent, PoolCriteria
from optexp_jax.search.problem import Problem

N_FILLED, N_SIGNATURES = Tuning.large().most_heavy + 4, 60
FEW, MANY = 4, 20
"""Labels of a kind that are expanded at once: programs differ for few and for many."""
MOST_CONCEPTS = 2048
"""With more, arrays of the real sizes take longer than compilation does."""
N_SUBPROBLEMS = 4
"""Subproblems of a kind that are expanded: programs do not differ for more."""


@dataclass(frozen=True)
class Kind:
    """What decides which programs a search needs."""

    n_concepts: int
    length: int
    operators: tuple[Operator, ...]
    disjoint: bool
    """Whether no two concepts meet, so that there is nothing but ORs to be searched."""
    sizes: Sizes | None
    """How long lists on the device are; None where the host counts, in arrays of any size."""

    @classmethod
    def of(cls, problem: Problem) -> "Kind":
        disjoint = bool(problem.table.signatures.lengths.max() <= 1)
        sizes = None if prefers_host_kernels() else Sizes.of(problem.table)
        return cls(problem.table.n_concepts, problem.depth, problem.operators, disjoint, sizes)


OpenSpace = Callable[[Problem, Tuning, Sizes | None], AbstractSpace[TightNodes]]


def warm_up(problem: Problem, tuning: Tuning, clock: Clock, open_space: OpenSpace) -> None:
    """Search a made-up unit a little, in all ways there are, unless that was done before."""
    kind = Kind.of(problem)
    if kind.n_concepts <= MOST_CONCEPTS:
        _warm_up(kind, tuning, clock, open_space)


@per_process
def _warm_up(kind: Kind, tuning: Tuning, clock: Clock, open_space: OpenSpace) -> bool:
    """Whether all was done: else the next search warms up what is left."""
    made_up, once = _made_up(kind), tuning.without_warm_up()
    for n_labels in (MANY, FEW):
        # Searches in which subproblems have all concepts, and those of use.
        for way in (replace(once, few_concepts=0.0), once):
            if clock.expired:
                return False
            _walk(open_space(made_up, way, kind.sizes), n_labels, clock)
    return not clock.expired


def _made_up(kind: Kind) -> Problem:
    """A problem with few concepts, that overlap in all ways or not at all."""
    rng = np.random.default_rng(0)
    n_filled = min(N_FILLED, kind.n_concepts)
    held = rng.random((N_SIGNATURES, n_filled)) < 0.4
    if kind.disjoint:
        held = np.eye(n_filled, dtype=bool)
    sizes = rng.integers(1, 1000, len(held))
    sets = [np.flatnonzero(row).tolist() for row in held]
    table = ConceptTable.from_signatures(sets, sizes, [str(k) for k in range(kind.n_concepts)])
    neuron = NeuronCounts.from_signatures(table, rng.binomial(sizes, rng.random(len(held))))
    return Problem(table, neuron, kind.length, kind.operators)


def _walk(space: AbstractSpace[TightNodes], n_labels: int, clock: Clock) -> None:
    """Expand some nodes of each kind, then some of their children, and so on."""
    space.clock.go_on(clock.left)
    # With many formulas wanted, bounds leave much to be followed.
    incumbent = Incumbent(PoolCriteria(within=0.1), lambda formula: str(formula).encode())
    begun = space.root(incumbent)
    nodes = None if begun is None else begun.children
    while nodes is not None and len(nodes) and not clock.expired:
        nodes = space.expand(_some(nodes, n_labels), incumbent).children


def _some(nodes: Queued[TightNodes], n_labels: int) -> Queued[TightNodes]:
    """The first nodes of each kind."""
    return take(
        nodes,
        np.concatenate(
            [
                rows[: n_labels if nodes.nodes.further[rows[0]] else N_SUBPROBLEMS]
                for rows in nodes.nodes.groups()
            ]
        ),
    )
