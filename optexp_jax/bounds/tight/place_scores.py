"""The exact scores of all formulas with one or two concepts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
from jaxtyping import Float64

from optexp_jax.bounds.tight.first_look import FirstLook, look_at, prepare_looks
from optexp_jax.bounds.tight.forms import Forms
from optexp_jax.bounds.tight.grams import prepare_grams
from optexp_jax.bounds.tight.pair_scores import (
    highest_of_rows,
    score_pairs,
    scores_of_rows,
    single_scores,
)
from optexp_jax.bounds.tight.place import Place
from optexp_jax.bounds.tight.region import BoundInputs
from optexp_jax.bounds.tight.some_pairs import CELLS, OfRows, SomePairs
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.internal.padding import fill_up
from optexp_jax.internal.transfers import fetch, fetch_all, put, run
from optexp_jax.search.clock import Clock
from optexp_jax.search.problem import Problem

ROWS_AT_ONCE = 2048
"""Concepts up to which all pairs are scored in one program, which no clock can stop."""
ROWS_IN_TURN = 64


@dataclass(frozen=True, eq=False)
class PlaceScores:
    """IoUs in floating point, to be compared exactly. Pairs are fetched as they are asked for."""

    single: Float64[np.ndarray, " concepts"]
    highest: Float64[np.ndarray, "concepts forms"]
    """Of all proper pairs with the same first concept."""
    _of_rows: OfRows
    _on_host: bool
    look: FirstLook | None = None
    """What was computed with them, where concepts are few."""

    @classmethod
    def at(cls, place: Place, forms: Forms, clock: Clock) -> "PlaceScores | None":
        """The scores at the place without outer steps; None if the time is over before."""
        if _at_once(place.table):
            return cls._at_first_look(place, forms)
        large, on_host = place.table.n_concepts > ROWS_AT_ONCE, place.overlaps.on_host
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
                highest = _highest_in_turn(of_rows, place.table.n_concepts, clock)
                if highest is None:
                    return None
                return cls(fetch(single_scores(*known))[0], highest, of_rows, on_host)
            found = score_pairs(*known, forms=forms)
            single, highest = fetch_all(found.single, found.highest)
            return cls(single[0], highest[0], of_rows, on_host)

    @classmethod
    def _at_first_look(cls, place: Place, forms: Forms) -> "PlaceScores":
        look = look_at(place.overlaps, forms)
        place.overlaps.everywhere = look.regions.gram
        singles, all_pairs = fetch_all(look.scores.single, look.scores.pairs)
        pairs = all_pairs[0]
        return cls(singles[0], pairs.max(2), lambda _, rows: pairs[rows], True, look)

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
    of_rows: OfRows, n_concepts: int, clock: Clock
) -> Float64[np.ndarray, "concepts forms"] | None:
    """The highest scores of each row, some rows at a time, unless the time is over before."""
    parts: list[Float64[np.ndarray, "rows forms"]] = []
    every = np.arange(n_concepts, dtype=np.int32)
    for start in range(0, n_concepts, ROWS_IN_TURN):
        if clock.expired:
            return None
        rows = every[start : start + ROWS_IN_TURN]
        padded = fill_up(rows, ROWS_IN_TURN)
        found = fetch(highest_of_rows(run(of_rows, np.zeros_like(padded), padded)))
        parts.append(found[: len(rows)])
    return np.concatenate(parts)


def prepare(problems: Sequence[Problem]) -> None:
    """Do at once what searches for several neurons of one table begin with."""
    table, neurons = problems[0].table, [problem.neuron for problem in problems]
    if _at_once(table):
        prepare_looks(table, neurons, Forms.of_problem(problems[0]))
    else:
        prepare_grams(table, neurons)


def _at_once(table: ConceptTable) -> bool:
    """Whether all pairs are as soon scored as the highest of each row."""
    return table.n_concepts**2 <= CELLS
