"""Frequencies as in natural data: a few concepts are everywhere, most are rare."""

import numpy as np
from jaxtyping import Float64, Int64


def zipf(n: int, exponent: float) -> Float64[np.ndarray, " n"]:
    """Chances that fall with the rank."""
    weights = 1 / np.arange(1, n + 1) ** exponent
    return weights / weights.sum()


def draw_all(
    rng: np.random.Generator, n_values: int, n_draws: int, chances: Float64[np.ndarray, " values"]
) -> Int64[np.ndarray, " draws"]:
    """Draws by their chances among which every value occurs, if there are as many draws."""
    drawn = rng.choice(n_values, size=n_draws, p=chances)
    places = rng.permutation(n_draws)[:n_values]
    drawn[places] = rng.permutation(n_values)[: len(places)]
    return drawn
