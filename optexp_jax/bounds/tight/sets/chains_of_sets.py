"""All chains of some sets that reach a threshold, with their exact counts.

Equal IoUs are settled by the order of ties, so every chain that reaches the threshold is listed,
each once: of chains that are equal up to swaps of steps, the one whose commuting steps ascend.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int, Int64

from optexp_jax.bounds.tight.operator_set import (
    DIFFERENCE,
    INTERSECTION,
    OPERATORS,
    UNION,
    OperatorSet,
)
from optexp_jax.bounds.tight.rounding import near_tie, needed, weight
from optexp_jax.bounds.tight.sets.best_chain import SolvedSets
from optexp_jax.bounds.tight.sets.subcubes import Subcubes, subcubes
from optexp_jax.counts.scores import Score
from optexp_jax.formulas.formula import Formula
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.transfers import fetch, fetch_all
from optexp_jax.search.frontier import concatenate, take
from optexp_jax.search.incumbent import Candidate, Incumbent

_NONE = -1


@pytree
class SetChains:
    """Chains of sets, from the outermost step inward; the last one that is there is the leaf."""

    row: Int64[np.ndarray, " chains"]
    """The set of each."""
    places: Int64[np.ndarray, "chains steps"]
    """Which concepts of its set, by their place; -1 after the leaf."""
    ops: Int64[np.ndarray, "chains steps"]
    """Operators, -1 from the leaf on."""
    inside: Int64[np.ndarray, " chains"]
    outside: Int64[np.ndarray, " chains"]

    def __len__(self) -> int:
        return len(self.row)

    def formula(
        self, k: int, sets: Int[np.ndarray, "sets concepts"], names: Sequence[str]
    ) -> Formula:
        """A chain as a formula, from its leaf outward."""
        length = int((self.places[k] != _NONE).sum())
        concepts = sets[self.row[k], self.places[k, :length]][::-1]
        codes = self.ops[k, : length - 1][::-1]
        return Formula(
            tuple(names[int(c)] for c in concepts),
            tuple(OPERATORS[int(code)] for code in codes),
        )


@dataclass(frozen=True, eq=False)
class SetsReached:
    """What has to be reached: W at least `needed` at v."""

    v: float
    neuron_size: int

    @property
    def needed(self) -> float:
        return needed(self.v, self.neuron_size)

    def by(self, solved: SolvedSets) -> Bool[np.ndarray, " sets"]:
        """Which sets have a chain that may reach it."""
        highest = fetch(solved.best)[-1]
        return (highest >= self.needed) & np.isfinite(highest)


def chains_from(
    solved: SolvedSets, ops: OperatorSet, reached: SetsReached, shorter: bool = False
) -> SetChains:
    """Every chain of the sets whose W at v may reach what is needed, on the host.

    `solved` has to be of the same v, operators and `shorter`. Steps that change nothing are left
    out (Proposition 20), and no chain stands there in two orders.
    """
    inside, outside, best = fetch_all(solved.inside, solved.outside, solved.best)
    walk = _Walk(inside, outside, best, ops, reached, shorter)
    return walk.all_chains()


@pytree
class _Begun:
    """Decision lists whose first steps are fixed."""

    chains: SetChains
    subcube: Int64[np.ndarray, " chains"]
    """What is left."""

    def __len__(self) -> int:
        return len(self.subcube)


@dataclass(frozen=True, eq=False)
class _Walk:
    """Goes from the outermost step inward, all sets and all chains at once."""

    inside: Int64[np.ndarray, "subcubes sets"]
    outside: Int64[np.ndarray, "subcubes sets"]
    best: Float64[np.ndarray, "subcubes sets"]
    ops: OperatorSet
    reached: SetsReached
    shorter: bool

    @property
    def known(self) -> Subcubes:
        n_subcubes, n = len(self.inside), 0
        while 3**n < n_subcubes:
            n += 1
        return subcubes(n)

    def all_chains(self) -> SetChains:
        known = self.known
        n, n_sets = len(known.powers), self.inside.shape[1]
        zeros = np.zeros(n_sets, np.int64)
        none = np.full((n_sets, n), _NONE)
        start = SetChains(np.arange(n_sets), none, none, zeros, zeros)
        begun = _Begun(start, np.full(n_sets, known.whole))
        done = [take(start, slice(0, 0))]
        for step in range(n):
            longer: list[_Begun] = [take(begun, slice(0, 0))]
            for place in range(n):
                open_ = take(begun, known.free[begun.subcube, place])
                if self.shorter or step == n - 1:
                    done.append(self._ended(open_, step, place, known))
                for op in self._usable():
                    longer.append(self._joined(open_, step, op, place, known))
            begun = concatenate(longer)
        return concatenate(done)

    def _usable(self) -> list[int]:
        allowed = (self.ops.union, self.ops.intersection, self.ops.difference)
        return [op for op in (UNION, INTERSECTION, DIFFERENCE) if allowed[op]]

    def _ended(self, begun: _Begun, step: int, place: int, known: Subcubes) -> SetChains:
        """With a leaf."""
        chains = begun.chains
        holds = begun.subcube - known.powers[place]
        row = chains.row
        inside = chains.inside + self.inside[holds, row]
        outside = chains.outside + self.outside[holds, row]
        kept = self.inside[holds, row] + self.outside[holds, row] > 0
        kept &= self._w(inside, outside) >= self.reached.needed
        if step:
            # A leaf that OR or AND joins to the next concept outward may swap with it.
            swaps = chains.ops[:, step - 1] != DIFFERENCE
            kept &= ~swaps | (place < chains.places[:, step - 1])
        kept = np.flatnonzero(kept)
        places = chains.places[kept].copy()
        places[:, step] = place
        return SetChains(row[kept], places, chains.ops[kept], inside[kept], outside[kept])

    def _joined(self, begun: _Begun, step: int, op: int, place: int, known: Subcubes) -> _Begun:
        """With one more step, where something that reaches the threshold can follow."""
        chains, row = begun.chains, begun.chains.row
        holds = begun.subcube - known.powers[place]
        fails = holds - known.powers[place]
        left = holds if op == INTERSECTION else fails
        there = self.inside[holds, row] + self.outside[holds, row] > 0
        there &= self.inside[fails, row] + self.outside[fails, row] > 0
        inside, outside = chains.inside, chains.outside
        if op == UNION:
            inside = inside + self.inside[holds, row]
            outside = outside + self.outside[holds, row]
        kept = there & (self._w(inside, outside) + self.best[left, row] >= self.reached.needed)
        if step:
            last_op, last = chains.ops[:, step - 1], chains.places[:, step - 1]
            commute = (last_op == UNION) == (op == UNION)
            ascend = (last_op > op) | ((last_op == op) & (last > place))
            kept &= ~commute | ascend
        kept = np.flatnonzero(kept)
        places, ops = chains.places[kept].copy(), chains.ops[kept].copy()
        places[:, step], ops[:, step] = place, op
        longer = SetChains(row[kept], places, ops, inside[kept], outside[kept])
        return _Begun(longer, left[kept])

    def _w(
        self, inside: Int64[np.ndarray, " chains"], outside: Int64[np.ndarray, " chains"]
    ) -> Float64[np.ndarray, " chains"]:
        return weight(inside.astype(np.float64), self.reached.v * outside)


def candidates_of_chains(
    chains: SetChains,
    sets: Int[np.ndarray, "sets concepts"],
    names: Sequence[str],
    neuron_size: int,
    incumbent: Incumbent,
) -> list[Candidate]:
    """The chains that may be wanted, with exact scores; all of them that are level."""
    iou = chains.inside / np.maximum(neuron_size + chains.outside, 1)
    wanted = incumbent.threshold
    if incumbent.keep.only_best and len(iou):
        wanted = max(wanted, float(iou.max()))
    wanted = max(near_tie(wanted), float(np.finfo(float).tiny))
    return [
        Candidate(
            chains.formula(k, sets, names),
            Score(int(chains.inside[k]), neuron_size + int(chains.outside[k])),
        )
        for k in np.flatnonzero(iou >= wanted).tolist()
    ]
