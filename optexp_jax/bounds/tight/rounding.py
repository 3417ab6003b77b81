"""Floating point rounded up, by a share of what is added up.

Counts are integers below 2**53, so they, their sums and differences are exact in float64; what
rounds is v times a count, and every sum that has such a term. Let u = 2**-53. A sum of n terms that
are each right to a factor of 1 ± u is off by at most n·u times the sum of their magnitudes.

The bounds add up W of concepts, of pairs and of labels, and overlaps. With m(S) = I(S) + v·E(S):

- A W that is added, W(S), is written as `weight(I, v·E)`, which is higher by SHARE·m(S).
- A W that is taken away, and an overlap that is added next to W(S), is of a part of S, so it is at
  most m(S). At most 4 such terms stand next to each W, in a sum of at most 12. That makes an error
  of 48·u·m(S) < 2**-47·m(S), which the SHARE of m(S) covers 16 times: room for devices that emulate
  float64 with a few bits less.
- An overlap of something larger than S may be added too. If it is below 2**8·m(S), the same SHARE
  covers its error. If not, the bound is above every W that it has to hold for by far.
- With more than three concepts, counts inside the neuron and limits of shorter formulas are added
  to such sums. That is off by a few u of the result, for which `outward` makes room.

So every bound holds as it stands, however large the table is: what is not summed plays no part.
"""

from typing import TypeVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float64

SHARE = 2.0**-43
UP, DOWN = 1 + SHARE, 1 - SHARE

Values = TypeVar("Values", float, np.ndarray, Array)


def weight(inside: Values, paid: Values) -> Values:
    """W of what has so many locations inside the neuron, and extras that cost so much, or more."""
    return inside * UP - paid * DOWN


def outward(bounds: Float64[Array, "*shape"]) -> Float64[Array, "*shape"]:
    """Bounds that are higher than they are computed, by more than the last sums are off."""
    return bounds * jnp.where(bounds < 0, DOWN, UP)
