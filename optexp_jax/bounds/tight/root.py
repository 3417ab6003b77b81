"""Where a search begins: the exact scores of all formulas with one or two concepts.

On tables with few concepts a call costs more than what it does. There all that is asked first is
one program, `fused_root`: the best pair's IoU is the v of the bounds that follow, so that scores
and bounds need not wait for the host in between. Several neurons go into one call.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float64, Int32, Int64, Num

from optexp_jax.bounds.base import Prepared
from optexp_jax.bounds.tight.forms import Forms
from optexp_jax.bounds.tight.grams import (
    Counted,
    Overlaps,
    complement,
    count_several,
    one_of_several,
)
from optexp_jax.bounds.tight.pair_bounds import pair_bounds_of
from optexp_jax.bounds.tight.pair_scores import (
    AllScores,
    all_scores,
    highest_of_rows,
    score_pairs,
    scores_of_rows,
    single_scores,
)
from optexp_jax.bounds.tight.place import Place
from optexp_jax.bounds.tight.region import BoundInputs
from optexp_jax.bounds.tight.rounding import v_below_each
from optexp_jax.bounds.tight.rows import Rows, rows_of
from optexp_jax.bounds.tight.some_pairs import OfRows, SomePairs
from optexp_jax.bounds.tight.tuning import Tuning
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.internal.padding import fill_up, round_up_to_power_of_two
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.tracing import note_trace
from optexp_jax.internal.transfers import fetch, fetch_all, put, run
from optexp_jax.search.clock import Clock
from optexp_jax.search.problem import Problem


@pytree
class FusedRoot:
    """Scores of one and two concepts over the whole table, and bounds on three, by neuron."""

    scores: AllScores
    regions: BoundInputs
    """With v just below the highest score."""
    rows: Rows
    bounds: Float64[Array, "neurons concepts forms concepts"]
    """Upper bounds on W of each pair with one more concept."""

    @property
    def v(self) -> float:
        """Of the only neuron."""
        return float(fetch(self.regions.v)[0])


@partial(jax.jit, static_argnames=("forms",))
def fused_root(
    total: Int64[Array, "one n n"],
    inside: Num[Array | np.ndarray, "neurons n n"],
    neuron_sizes: Int64[Array | np.ndarray, " neurons"],
    *,
    forms: Forms,
) -> FusedRoot:
    """Of some neurons, from `Overlaps.total` and `Overlaps.active`."""
    note_trace("fused_root")
    gram = complement(total, inside)
    every, sizes = jnp.ones(inside.shape[:2], bool), jnp.asarray(neuron_sizes)
    scores = all_scores(BoundInputs(gram, every, every, jnp.zeros(len(sizes))), sizes, forms)
    best = jnp.maximum(scores.single.max(1), scores.pairs.max((1, 2, 3)))
    regions = BoundInputs(gram, every, every, v_below_each(best))
    rows = rows_of(regions)
    return FusedRoot(scores, regions, rows, pair_bounds_of(regions.all_rows(), rows, forms))


@jax.jit
def _only(several: FusedRoot, k: Int32[Array | np.ndarray, ""]) -> FusedRoot:
    """The root of one of several neurons."""
    note_trace("only")
    return jax.tree.map(lambda part: jax.lax.dynamic_slice_in_dim(part, k, 1), several)


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
            return run(_only, self.several, np.int32(self.k))

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
    forms: Forms
    several: FusedRoot | Num[Array | np.ndarray, "neurons n n"]

    @classmethod
    def of(
        cls, problems: Sequence[Problem], tuning: Tuning, on_host: bool | None = None
    ) -> "PreparedRoots":
        table, forms = problems[0].table, Forms.of_problem(problems[0])
        neurons = tuple(problem.neuron for problem in problems)
        if not tuning.fused_root:
            return cls(neurons, forms, count_several(table, neurons, on_host))
        n = round_up_to_power_of_two(len(neurons))
        inside = count_several(table, neurons, on_host, filled=n)
        sizes = np.ones(n, np.int64)
        sizes[: len(neurons)] = [neuron.size for neuron in neurons]
        total = Overlaps(table, neurons[0], on_host).total
        with jax.enable_x64(True):
            return cls(neurons, forms, run(fused_root, total, inside, sizes, forms=forms))

    def counted(self, problem: Problem) -> CountedRoot | None:
        """What there is for a problem: nothing, if it is another neuron or has other operators."""
        if Forms.of_problem(problem) != self.forms:
            return None
        places = (k for k, neuron in enumerate(self.neurons) if neuron is problem.neuron)
        k = next(places, None)
        return None if k is None else CountedRoot(self.several, k)


def fused_alone(problem: Problem, forms: Forms) -> FusedRoot:
    """The fused root of one neuron."""
    overlaps, sizes = Overlaps(problem.table, problem.neuron), np.array([problem.neuron.size])
    with jax.enable_x64(True):
        return run(fused_root, overlaps.total, overlaps.active, sizes, forms=forms)


@dataclass(frozen=True, eq=False)
class RootScores:
    """IoUs in floating point, to be compared exactly. Pairs are fetched as they are asked for."""

    single: Float64[np.ndarray, " concepts"]
    highest: Float64[np.ndarray, "concepts forms"]
    """Of all proper pairs with the same first concept."""
    _of_rows: OfRows
    _on_host: bool

    @classmethod
    def of(cls, place: Place, forms: Forms, clock: Clock, tuning: Tuning) -> "RootScores | None":
        """The scores at the place without outer steps; None if the time is over before."""
        large, on_host = place.table.n_concepts > tuning.rows_at_once, place.overlaps.on_host
        if large:  # What takes long is done a part at a time, with a look at the clock between.
            jax.block_until_ready(place.overlaps.total)
            if clock.expired:
                return None
            jax.block_until_ready(place.gram)
        with jax.enable_x64(True):
            # Scores do not depend on v, nor on what is light.
            moved = put(place.allowed[None], np.zeros(1), np.array([place.neuron.size]))
            known = BoundInputs(place.gram, moved[0], moved[0], moved[1]), moved[2]
            of_rows = partial(scores_of_rows, *known, forms=forms)
            if large:
                highest = _highest_in_turn(
                    of_rows, place.table.n_concepts, clock, tuning.rows_in_turn
                )
                if highest is None:
                    return None
                return cls(fetch(single_scores(*known))[0], highest, of_rows, on_host)
            found = score_pairs(*known, forms=forms)
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

    def pairs_from(self, reached: float) -> SomePairs:
        """The proper pairs whose IoU is not below `reached`."""
        kept = self.highest.max(1)[None] >= reached
        with jax.enable_x64(True):
            return SomePairs.at_least(kept, self._of_rows, np.array([reached]), self._on_host)

    def highest_pairs(self, k: int) -> SomePairs:
        """The k pairs of the highest IoU, as far as it is positive; of equals any."""
        rows, positive = self.highest.max(1), float(np.finfo(float).tiny)
        # The k-th highest row maximum is reached by k pairs at least.
        reached = float(np.partition(rows, -k)[-k]) if k <= len(rows) else positive
        pairs = self.pairs_from(max(reached, positive))
        return pairs.take(np.argsort(-pairs.value, kind="stable")[:k])


def _highest_in_turn(
    of_rows: OfRows, n_concepts: int, clock: Clock, at_once: int
) -> Float64[np.ndarray, "concepts forms"] | None:
    """The highest scores of each row, some rows at a time, unless the time is over before."""
    parts: list[Float64[np.ndarray, "rows forms"]] = []
    every = np.arange(n_concepts, dtype=np.int32)
    for start in range(0, n_concepts, at_once):
        if clock.expired:
            return None
        rows = every[start : start + at_once]
        padded = fill_up(rows, at_once)
        found = fetch(highest_of_rows(run(of_rows, np.zeros_like(padded), padded)))
        parts.append(found[: len(rows)])
    return np.concatenate(parts)
