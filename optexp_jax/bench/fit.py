"""How time grows with size: the exponent of a power law, fitted on logarithms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from optexp_jax.bench.turns import Spread


@dataclass(frozen=True)
class Growth:
    """Seconds of one kind of work at several sizes, turn by turn."""

    axis: str
    """What grows."""
    method: str
    seconds: Mapping[int, tuple[float, ...]]
    """By size; sizes that did not end within the budget are missing."""
    over_budget: tuple[int, ...] = ()

    @property
    def exponent(self) -> Spread | None:
        """Of the size, over the turns that all sizes took part in; None for a single size."""
        if len(self.seconds) < 2:
            return None
        turns = min(len(each) for each in self.seconds.values())
        sizes = sorted(self.seconds)
        return Spread.of(
            [
                fitted_exponent(sizes, [self.seconds[size][turn] for size in sizes])
                for turn in range(turns)
            ]
        )

    def relative(self) -> dict[int, float]:
        """Times over that of the smallest size, as medians over the turns."""
        sizes = sorted(self.seconds)
        first = self.seconds[sizes[0]]
        return {
            size: Spread.of(
                [mine / least for mine, least in zip(self.seconds[size], first, strict=False)]
            ).median
            for size in sizes
        }


def fitted_exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The slope of the line through log(size) and log(seconds) with the least squares."""
    if len(sizes) < 2:
        raise ValueError(f"An exponent needs at least two sizes; got {len(sizes)}.")
    slope, _ = np.polyfit(np.log(sizes), np.log(seconds), 1)
    return float(slope)
