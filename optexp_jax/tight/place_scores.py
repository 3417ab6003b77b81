"""The exact scores of all formulas with one or two concepts at a place."""

from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
from jaxtyping import Float64

from optexp_jax.tight.forms import Forms
from optexp_jax.tight.pair_scores import score_pairs, scores_of_rows
from optexp_jax.tight.place import Place
from optexp_jax.tight.region import Region
from optexp_jax.tight.some_pairs import SomePairs


@dataclass(frozen=True, eq=False)
class PlaceScores:
    """IoUs in floating point, to be compared exactly. Pairs are fetched as they are asked for."""

    single: Float64[np.ndarray, " concepts"]
    highest: Float64[np.ndarray, "concepts forms"]
    """Of all proper pairs with the same first concept."""
    _place: Place
    _region: Region
    _forms: Forms

    @classmethod
    def at(cls, place: Place, forms: Forms) -> "PlaceScores":
        region = place.region(
            0.0, place.allowed
        )  # Scores do not depend on v, nor on what is light.
        with jax.enable_x64(True):
            found = score_pairs(region, place.decision, forms=forms)
            return cls(np.asarray(found.single), np.asarray(found.highest), place, region, forms)

    @property
    def best(self) -> float:
        return float(max(self.single.max(), self.highest.max()))

    def pairs_from(self, reached: float) -> SomePairs:
        """The proper pairs whose IoU is not below `reached`."""
        known = self._region, self._place.decision
        with jax.enable_x64(True):
            of_rows = partial(scores_of_rows, *known, forms=self._forms)
            rows = np.flatnonzero(self.highest.max(1) >= reached)
            return SomePairs.at_least(rows, of_rows, reached)

    def highest_pairs(self, k: int) -> SomePairs:
        """The k pairs of the highest IoU, as far as it is positive; of equals any."""
        rows, positive = self.highest.max(1), float(np.finfo(float).tiny)
        # The k-th highest row maximum is reached by k pairs at least.
        reached = float(np.partition(rows, -k)[-k]) if k <= len(rows) else positive
        pairs = self.pairs_from(max(reached, positive))
        return pairs.take(np.argsort(-pairs.value, kind="stable")[:k])
