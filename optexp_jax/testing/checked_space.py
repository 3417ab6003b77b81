"""A search space that checks everything another one claims."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Generic, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Int64

from optexp_jax.bounds.tight.search.nodes import TightNodes
from optexp_jax.bounds.tight.search.space import TightSpace
from optexp_jax.counts.scores import Score
from optexp_jax.formulas.batch import FormulaBatch
from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.text import format_chain
from optexp_jax.search.driver import AbstractSpace, Expansion
from optexp_jax.search.frontier import Nodes, Queued
from optexp_jax.search.incumbent import Incumbent
from optexp_jax.testing.tight_claims import searched_there
from optexp_jax.testing.truth import Truth

UPPER, SHORTEST = "bound", "shortest formula of length"
"""What is said of a node."""


@dataclass(frozen=True)
class Claim:
    """Something a family says, and a formula with its true score that contradicts it."""

    what: str
    claimed: float
    formula: Formula | None
    score: Score
    node: str | None = None
    """The node that it is said of, as its family describes it."""

    def __str__(self) -> str:
        """In one line: what is said, and what is true."""
        said, true = _distinct(self.claimed, self.score.iou)
        subject = f"{self.what}:" if self.node is None else f"{self.node}: {self.what}"
        score = f"{true} ({self.score.intersection}/{self.score.union})"
        return f"{subject} {said}, but {self.written} has {score}"

    @property
    def written(self) -> str:
        """The formula as the chain it is, not in canonical order: it begins as a node's label."""
        if self.formula is None:
            return "no formula"
        return format_chain(self.formula.concepts, self.formula.operators)


@dataclass(frozen=True)
class LengthClaim(Claim):
    """A node is said to stand only for formulas that are longer than one of its own."""

    def __str__(self) -> str:
        length = 0 if self.formula is None else len(self.formula)
        return f"{self.node}: {self.what} {self.claimed:.0f}, but {self.written} has {length}"


def _distinct(first: float, second: float) -> tuple[str, str]:
    """Two numbers with as few digits as show that they differ, and two at least."""
    for digits in range(2, 17):
        texts = f"{first:.{digits}f}", f"{second:.{digits}f}"
        if texts[0] != texts[1]:
            return texts
    return repr(first), repr(second)


class FalseClaimError(Exception):
    """A claim turned out false."""

    def __init__(self, claim: Claim):
        super().__init__(str(claim))
        self.claim = claim


@runtime_checkable
class StandsFor(Protocol):
    """A search space that says what its nodes stand for. Only the checker asks for it."""

    def stands_for(self, nodes: Any, formulas: FormulaBatch) -> Bool[np.ndarray, "nodes formulas"]:
        """Which chains, exactly as they are written, each node's upper bound must hold for."""
        ...


def stands_for(
    space: AbstractSpace[Nodes], nodes: Nodes, formulas: FormulaBatch
) -> Bool[np.ndarray, "nodes formulas"]:
    """Which chains each node of a space stands for."""
    if isinstance(space, TightSpace) and isinstance(nodes, TightNodes):
        return searched_there(space, nodes, formulas)
    if isinstance(space, StandsFor):
        return space.stands_for(nodes, formulas)
    raise TypeError(
        f"{type(space).__name__} does not say which formulas its nodes stand for, so their bounds "
        "cannot be checked. Give it a method stands_for(nodes, formulas)."
    )


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

    def root(self, incumbent: Incumbent) -> Expansion[Nodes]:
        shown = self._shown(incumbent)
        begun = self._space.root(shown)
        assert begun is not None, "searches are checked without a time limit"
        turn = self._with_offered(begun, shown)
        self._check(turn)
        self._check_complete(turn)
        return turn

    def expand(self, batch: Queued[Nodes], incumbent: Incumbent) -> Expansion[Nodes]:
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
        return stands_for(self._space, nodes, formulas)

    def describe(self, nodes: Nodes, row: int) -> str:
        return self._space.describe(nodes, row)

    def _shown(self, incumbent: Incumbent) -> Incumbent:
        return Incumbent() if self._blind else incumbent

    def _with_offered(self, turn: Expansion[Nodes], shown: Incumbent) -> Expansion[Nodes]:
        """The turn with what the space put into the incumbent by itself among the candidates."""
        if shown.best is None:
            return turn
        return replace(turn, candidates=[*turn.candidates, shown.best])

    def _check(self, turn: Expansion[Nodes]) -> None:
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
        stands = self.stands_for(queued.nodes, truth.formulas)
        self.nodes_checked += len(queued)
        self.bounds_checked += int(stands.sum())
        # Rounding cannot hide a violation: it never puts a higher ratio below a lower one.
        suspect = stands & ~truth.outdone & (truth.iou >= queued.upper[:, None])
        for node, row in np.argwhere(suspect).tolist():
            upper = float(queued.upper[node])
            if Fraction(upper) < truth.score(row).ratio:
                raise FalseClaimError(Claim(UPPER, upper, *self._contradiction(queued, node, row)))
        shortest = self._space.shortest(queued.nodes)
        for node, row in np.argwhere(stands & (truth.lengths < shortest[:, None])).tolist():
            given = self._contradiction(queued, node, row)
            raise FalseClaimError(LengthClaim(SHORTEST, float(shortest[node]), *given))

    def _check_complete(self, turn: Expansion[Nodes]) -> None:
        """The first nodes must stand for the optimum, or a candidate be it."""
        truth = self._truth
        if truth.best.formula is None or any(
            candidate.formula == truth.best.formula for candidate in turn.candidates
        ):
            return
        if turn.children is not None:
            stands = self.stands_for(turn.children.nodes, truth.formulas)
            if stands[:, truth.is_optimum].any():
                return
        raise FalseClaimError(
            Claim("no first node stands for the optimum", 0.0, truth.best.formula, truth.best_score)
        )

    def _contradiction(
        self, queued: Queued[Nodes], node: int, row: int
    ) -> tuple[Formula, Score, str]:
        """The formula, its score, and the node that says otherwise."""
        truth = self._truth
        return truth.formula(row), truth.score(row), self.describe(queued.nodes, node)

    def _true_score(self, formula: Formula) -> tuple[int, int]:
        truth = self._truth
        held = formula.evaluate(dict(zip(truth.names, truth.columns, strict=True)))
        extras = int(held @ truth.outside)
        return int(held @ truth.inside), truth.neuron_size + extras
