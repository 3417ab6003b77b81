"""A search space that checks everything another one claims."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Generic

import equinox as eqx
import numpy as np
from jaxtyping import Bool, Int64

from optexp_jax.formula import Formula
from optexp_jax.formula_batch import FormulaBatch
from optexp_jax.scores import Score
from optexp_jax.search.driver import AbstractSpace, Turn
from optexp_jax.search.frontier import Nodes, Queued, take
from optexp_jax.search.incumbent import Incumbent
from optexp_jax.testing.truth import Truth


@dataclass(frozen=True)
class Claim:
    """Something a family says, and a formula with its true score that contradicts it."""

    what: str
    claimed: float
    formula: Formula | None
    score: Score
    node: str | None = None

    def __str__(self) -> str:
        formula = "no formula" if self.formula is None else f"{self.formula}"
        truth = f"{formula} has IoU {self.score.intersection}/{self.score.union}"
        text = f"{self.what}: {self.claimed!r}\nbut {truth} = {self.score.iou!r}"
        return text if self.node is None else f"{text}\nnode: {self.node}"


class FalseClaimError(Exception):
    """A claim turned out false."""

    def __init__(self, claim: Claim):
        super().__init__(str(claim))
        self.claim = claim


class CheckedSpace(AbstractSpace[Nodes], Generic[Nodes]):
    """Passes everything on to another space, and holds what comes back against the truth."""

    def __init__(self, space: AbstractSpace[Nodes], truth: Truth, blind: bool):
        super().__init__(space.batch_size)
        self.counters, self.clock = space.counters, space.clock
        self.nodes_checked = 0
        self.bounds_checked = 0
        self._space = space
        self._truth = truth
        self._blind = blind

    def root(self, incumbent: Incumbent) -> Turn[Nodes]:
        shown = self._shown(incumbent)
        begun = self._space.root(shown)
        assert begun is not None, "searches are checked without a time limit"
        turn = self._with_offered(begun, shown)
        self._check(turn)
        self._check_complete(turn)
        return turn

    def expand(self, batch: Queued[Nodes], incumbent: Incumbent) -> Turn[Nodes]:
        shown = self._shown(incumbent)
        turn = self._with_offered(self._space.expand(batch, shown), shown)
        self._check(turn)
        return turn

    def recover(self) -> bool:
        return self._space.recover()

    def shortest(self, nodes: Nodes) -> Int64[np.ndarray, " nodes"]:
        return self._space.shortest(nodes)

    def stands_for(
        self, nodes: Nodes, formulas: FormulaBatch
    ) -> Bool[np.ndarray, "nodes formulas"]:
        return self._space.stands_for(nodes, formulas)

    def _shown(self, incumbent: Incumbent) -> Incumbent:
        return Incumbent() if self._blind else incumbent

    def _with_offered(self, turn: Turn[Nodes], shown: Incumbent) -> Turn[Nodes]:
        """The turn with what the space put into the incumbent by itself among the candidates."""
        if shown.best is None:
            return turn
        return replace(turn, candidates=[*turn.candidates, shown.best])

    def _check(self, turn: Turn[Nodes]) -> None:
        if turn.children is not None and len(turn.children):
            self._check_children(turn.children)
        best = self._truth.best_score
        if Fraction(turn.lower) > best.ratio:
            raise FalseClaimError(
                Claim("a lower bound on the optimum", turn.lower, self._truth.best.formula, best)
            )
        for candidate in turn.candidates:
            true = self._true_score(candidate.formula)
            if (candidate.score.intersection, candidate.score.union) != true:
                raise FalseClaimError(
                    Claim(
                        "the exact score of a candidate",
                        candidate.score.iou,
                        candidate.formula,
                        Score(*true),
                    )
                )

    def _check_children(self, queued: Queued[Nodes]) -> None:
        truth = self._truth
        stands = self._space.stands_for(queued.nodes, truth.formulas)
        self.nodes_checked += len(queued)
        self.bounds_checked += int(stands.sum())
        # Rounding cannot hide a violation: it never puts a higher ratio below a lower one.
        suspect = stands & ~truth.outdone & (truth.iou >= queued.upper[:, None])
        for node, row in np.argwhere(suspect).tolist():
            upper = float(queued.upper[node])
            if Fraction(upper) < truth.score(row).ratio:
                raise self._false(queued, node, row, "the upper bound of a node", upper)
        shortest = self._space.shortest(queued.nodes)
        for node, row in np.argwhere(stands & (truth.lengths < shortest[:, None])).tolist():
            what = "the length of a node's shortest formula"
            raise self._false(queued, node, row, what, float(shortest[node]))

    def _check_complete(self, turn: Turn[Nodes]) -> None:
        """The first nodes must stand for the optimum, or a candidate be it."""
        truth = self._truth
        if truth.best.formula is None or any(
            candidate.formula == truth.best.formula for candidate in turn.candidates
        ):
            return
        if turn.children is not None:
            stands = self._space.stands_for(turn.children.nodes, truth.formulas)
            if stands[:, truth.is_optimum].any():
                return
        raise FalseClaimError(
            Claim("no first node stands for the optimum", 0.0, truth.best.formula, truth.best_score)
        )

    def _false(
        self, queued: Queued[Nodes], node: int, row: int, what: str, claimed: float
    ) -> FalseClaimError:
        shown = eqx.tree_pformat(take(queued.nodes, slice(node, node + 1)), short_arrays=False)
        formula, score = self._truth.formula(row), self._truth.score(row)
        return FalseClaimError(Claim(what, claimed, formula, score, shown))

    def _true_score(self, formula: Formula) -> tuple[int, int]:
        truth = self._truth
        held = formula.evaluate(dict(zip(truth.names, truth.columns, strict=True)))
        extras = int(held @ truth.outside)
        return int(held @ truth.inside), truth.neuron_size + extras
