"""How high the IoU of any Boolean function of n concepts can be, whatever its shape.

U bounds every function of a set (Proposition 18), so no search over functions is needed: raise v to
the IoU of the function that reaches the highest U, until none does better (Dinkelbach).
"""

import numpy as np

from optexp_jax.bounds.tight.rounding import iou_at_most, raised
from optexp_jax.bounds.tight.sets.every_set import every_set
from optexp_jax.bounds.tight.sets.screening import Intersections, allowance, screen
from optexp_jax.internal.transfers import fetch_all
from optexp_jax.search.clock import Clock
from optexp_jax.search.incumbent import just_below
from optexp_jax.search.problem import Problem


def highest_of_any_shape(
    problem: Problem, shared: Intersections, known: float, clock: Clock | None = None
) -> float:
    """An IoU that no Boolean function of `problem.length` concepts exceeds, rounded up.

    `known` is the IoU of some formula. Once the time is over, a higher bound is told that holds.
    """
    sets, n, size = every_set(problem.table, problem.depth), problem.depth, problem.neuron.size
    v, bound = just_below(known), 1.0
    while True:
        (upper,) = screen(problem.table, n, shared, np.array([v]), n, n)
        best = int(upper[:, 0].argmax())
        w = raised(upper[best, 0] + allowance(n, shared.mass(sets, v)))
        # Functions below v do not matter: there is a formula that has it.
        bound = min(bound, max(float(iou_at_most(np.array([w]), size)[0]), known))
        cells = sets.cells(
            sets.levels[n - 1].concepts[best : best + 1], shared.inside[:, 0], shared.outside[:, 0]
        )
        inside, outside = (part[:, 0] for part in fetch_all(cells.inside, cells.outside))
        chosen = inside - v * outside > 0
        reached = int(inside[chosen].sum()) / max(size + int(outside[chosen].sum()), 1)
        if just_below(reached) <= v or (clock is not None and clock.expired):
            return bound
        v = just_below(reached)
