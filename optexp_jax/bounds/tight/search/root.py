"""Where a search begins: the exact scores of all formulas with one or two concepts.

On tables with few concepts a call costs more than what it does. There all that is asked first is
one program, `fused_root`: the best pair's IoU is the v of the bounds that follow, so that scores
and bounds need not wait for the host in between. Several neurons go into one call.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
from jaxtyping import Array, Float64, Num

from optexp_jax.bounds.base import Prepared
from optexp_jax.bounds.tight.counts.gram import (
    Counted,
    Overlaps,
    count_several,
    one_of_several,
)
from optexp_jax.bounds.tight.operator_set import OperatorSet
from optexp_jax.bounds.tight.search.batch import OfRows, SurvivingPairs
from optexp_jax.bounds.tight.search.subproblem import Subproblem
from optexp_jax.bounds.tight.theory.bound_inputs import BoundInputs
from optexp_jax.bounds.tight.theory.exact_scores import (
    highest_of_rows,
    score_pairs,
    scores_of_rows,
    single_scores,
)
from optexp_jax.bounds.tight.theory.fused_root import FusedRoot, fused_root, only
from optexp_jax.bounds.tight.tuning import FUSED_NEURONS, Tuning
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.internal.padding import fill_up, round_up_to_power_of_two
from optexp_jax.internal.transfers import fetch, fetch_all, put, run
from optexp_jax.search.clock import Clock
from optexp_jax.search.problem import Problem


@dataclass(frozen=True, eq=False)
class CountedRoot:
    """What was computed for one neuron together with others."""

    several: FusedRoot | Num[Array | np.ndarray, "neurons n n"]
    """Their fused roots, or active locations that pairs share (`count_several`)."""
    k: int
    """Which of them it is."""

    @property
    def fused(self) -> FusedRoot | None:
        if not isinstance(self.several, FusedRoot):
            return None
        with jax.enable_x64(True):
            return run(only, self.several, np.int32(self.k))

    @property
    def counted(self) -> Counted:
        """What is known of the neuron's overlaps."""
        if isinstance(self.several, FusedRoot):
            return Counted()
        return Counted(active=one_of_several(self.several, self.k))


@dataclass(frozen=True, eq=False)
class PreparedRoots(Prepared):
    """What the searches for several neurons of one table begin with."""

    neurons: tuple[NeuronCounts, ...]
    ops: OperatorSet
    several: FusedRoot | Num[Array | np.ndarray, "neurons n n"]

    @classmethod
    def of(
        cls, problems: Sequence[Problem], tuning: Tuning, on_host: bool | None = None
    ) -> "PreparedRoots":
        table, ops = problems[0].table, OperatorSet.of_problem(problems[0])
        neurons = tuple(problem.neuron for problem in problems)
        if not tuning.fused_root:
            return cls(neurons, ops, count_several(table, neurons, on_host))
        n = max(FUSED_NEURONS, round_up_to_power_of_two(len(neurons)))
        inside = count_several(table, neurons, on_host, filled=n)
        bases = np.ones(n)
        bases[: len(neurons)] = [problem.rounded_base for problem in problems]
        total = Overlaps(table, neurons[0], on_host).total
        with jax.enable_x64(True):
            return cls(neurons, ops, run(fused_root, total, inside, bases, ops=ops))

    def counted(self, problem: Problem) -> CountedRoot | None:
        """What there is for a problem: nothing, if the neuron, operators or the base are others."""
        another_base = problem.base is not None and isinstance(self.several, FusedRoot)
        if OperatorSet.of_problem(problem) != self.ops or another_base:
            return None
        subs = (k for k, neuron in enumerate(self.neurons) if neuron is problem.neuron)
        k = next(subs, None)
        return None if k is None else CountedRoot(self.several, k)


def fused_root_of(
    problem: Problem, ops: OperatorSet, tuning: Tuning, counted: CountedRoot | None
) -> FusedRoot | None:
    """All that is asked first, where concepts are few; as it was prepared, if it was."""
    if not tuning.fused_root:
        return None
    prepared = None if counted is None else counted.fused
    return fused_alone(problem, ops) if prepared is None else prepared


def fused_alone(problem: Problem, ops: OperatorSet) -> FusedRoot:
    """The fused root of one neuron."""
    overlaps, bases = Overlaps(problem.table, problem.neuron), np.array([problem.rounded_base])
    with jax.enable_x64(True):
        return run(fused_root, overlaps.total, overlaps.active, bases, ops=ops)


@dataclass(frozen=True, eq=False)
class RootScores:
    """IoUs in floating point, to be compared exactly. Pairs are fetched as they are asked for."""

    single: Float64[np.ndarray, " concepts"]
    highest: Float64[np.ndarray, "concepts ops"]
    """Of all proper pairs with the same first concept."""
    _of_rows: OfRows
    _on_host: bool

    @classmethod
    def of(
        cls, sub: Subproblem, ops: OperatorSet, clock: Clock, tuning: Tuning
    ) -> "RootScores | None":
        """The scores at the subproblem without outer steps; None if the time is over before."""
        large, on_host = sub.table.n_concepts > tuning.rows_at_once, sub.overlaps.on_host
        if large:  # What takes long is done a part at a time, with a look at the clock between.
            jax.block_until_ready(sub.overlaps.total)
            if clock.expired:
                return None
            jax.block_until_ready(sub.gram)
        with jax.enable_x64(True):
            # Scores do not depend on v, nor on what is light.
            moved = put(sub.allowed[None], np.zeros(1), np.array([sub.problem.rounded_base]))
            known = BoundInputs(sub.gram, moved[0], moved[0], moved[1]), moved[2]
            of_rows = partial(scores_of_rows, *known, ops=ops)
            if large:
                highest = _highest_in_turn(
                    of_rows, sub.table.n_concepts, clock, tuning.rows_in_turn
                )
                if highest is None:
                    return None
                return cls(fetch(single_scores(*known))[0], highest, of_rows, on_host)
            found = score_pairs(*known, ops=ops)
            single, highest = fetch_all(found.single, found.highest)
            return cls(single[0], highest[0], of_rows, on_host)

    @classmethod
    def of_fused(cls, fused: FusedRoot) -> "RootScores":
        """The scores that a fused root has."""
        singles, all_pairs = fetch_all(fused.scores.single, fused.scores.pairs)
        pairs = all_pairs[0]
        return cls(singles[0], pairs.max(2), lambda _, rows: pairs[rows], True)

    @property
    def best(self) -> float:
        return float(max(self.single.max(), self.highest.max()))

    def pairs_from(self, reached: float) -> SurvivingPairs:
        """The proper pairs whose IoU is not below `reached`."""
        kept = self.highest.max(1)[None] >= reached
        with jax.enable_x64(True):
            return SurvivingPairs.at_least(kept, self._of_rows, np.array([reached]), self._on_host)

    def highest_pairs(self, k: int) -> SurvivingPairs:
        """The k pairs of the highest IoU, as far as it is positive; of equals any."""
        rows, positive = self.highest.max(1), float(np.finfo(float).tiny)
        # The k-th highest row maximum is reached by k pairs at least.
        reached = float(np.partition(rows, -k)[-k]) if k <= len(rows) else positive
        pairs = self.pairs_from(max(reached, positive))
        return pairs.take(np.argsort(-pairs.value, kind="stable")[:k])


def _highest_in_turn(
    of_rows: OfRows, n_concepts: int, clock: Clock, at_once: int
) -> Float64[np.ndarray, "concepts ops"] | None:
    """The highest scores of each row, some rows at a time, unless the time is over before."""
    parts: list[Float64[np.ndarray, "rows ops"]] = []
    every = np.arange(n_concepts, dtype=np.int32)
    for start in range(0, n_concepts, at_once):
        if clock.expired:
            return None
        rows = every[start : start + at_once]
        padded = fill_up(rows, at_once)
        found = fetch(highest_of_rows(run(of_rows, np.zeros_like(padded), padded)))
        parts.append(found[: len(rows)])
    return np.concatenate(parts)
