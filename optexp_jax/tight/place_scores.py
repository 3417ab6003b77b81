"""The exact scores of all formulas with one or two concepts at a place."""

from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
from jaxtyping import Float64

from optexp_jax.tight.forms import Forms
from optexp_jax.tight.pair_scores import score_all, score_pairs, scores_of_rows
from optexp_jax.tight.place import Place
from optexp_jax.tight.some_pairs import FEW_CONCEPTS, OfRows, SomePairs


@dataclass(frozen=True, eq=False)
class PlaceScores:
    """IoUs in floating point, to be compared exactly. Pairs are fetched as they are asked for."""

    single: Float64[np.ndarray, " concepts"]
    highest: Float64[np.ndarray, "concepts forms"]
    """Of all proper pairs with the same first concept."""
    _of_rows: OfRows

    @classmethod
    def at(cls, place: Place, forms: Forms) -> "PlaceScores":
        # Scores do not depend on v, nor on what is light.
        known = place.region(0.0, place.allowed), place.decision
        with jax.enable_x64(True):
            if len(place.allowed) <= FEW_CONCEPTS:
                everything = score_all(*known, forms=forms)
                pairs = np.asarray(everything.pairs)
                return cls(np.asarray(everything.single), pairs.max(2), lambda rows: pairs[rows])
            found = score_pairs(*known, forms=forms)
            of_rows = partial(scores_of_rows, *known, forms=forms)
            return cls(np.asarray(found.single), np.asarray(found.highest), of_rows)

    @property
    def best(self) -> float:
        return float(max(self.single.max(), self.highest.max()))

    def pairs_from(self, reached: float) -> SomePairs:
        """The proper pairs whose IoU is not below `reached`."""
        rows = np.flatnonzero(self.highest.max(1) >= reached)
        with jax.enable_x64(True):
            return SomePairs.at_least(rows, self._of_rows, reached)

    def highest_pairs(self, k: int) -> SomePairs:
        """The k pairs of the highest IoU, as far as it is positive; of equals any."""
        rows, positive = self.highest.max(1), float(np.finfo(float).tiny)
        # The k-th highest row maximum is reached by k pairs at least.
        reached = float(np.partition(rows, -k)[-k]) if k <= len(rows) else positive
        pairs = self.pairs_from(max(reached, positive))
        return pairs.take(np.argsort(-pairs.value, kind="stable")[:k])
