"""How float64 is kept from making a bound too low: all of it, in one file.

Counts are integers below 2**53, so they, their sums and their differences are exact in float64.
What rounds is v times a count, and every sum that has such a term. Let u = 2**-53. A product is
right to a factor of 1 ± u, and a sum of n terms that are each right to such a factor is off by at
most n·u times the sum of their magnitudes. Nothing below asks for v <= 1: IoUs are, but the values
`I / (M + E)` of a trade-off are not. M is the base, |N| for the IoU (`Problem.base`). It asks for
v >= 0, and for v times the number of locations to be far from the largest float64 and the smallest:
with M from 1/(|N| + 1) to |N|·T + 1, v is 0 or between 1/(2·|N|·T) and |N|·(|N| + 1), that is, for
up to 2**53 locations between 2**-107 and 2**107.

**v.** An IoU is a quotient of two integers below 2**53, rounded to nearest, so it is off by at most
half a step. One step down is below the exact quotient (`Incumbent.v`, and `v_below` in programs),
and W at that v is at least W at the exact one. So formulas level with the incumbent stay in. With
another base the incumbent divides the same way, integers by integers of any length. In programs M
is rounded, and M + E is: the quotient is off by 3·u of itself. It only says which candidates are
compared as integers. Bounds that were made with the v of a program are used if that is the
incumbent's v, bit by bit.

**W.** With m(S) = I(S) + v·E(S):

- A W that is added, W(S), is written as `weight(I, v·E)`. That is I·(1 + SHARE) − v·E·(1 − SHARE),
  higher than W(S) by SHARE·m(S), and off from that by 4·u·m(S) at most.
- A W that is taken away, and an overlap that is added next to W(S), is of a part of S, so it is at
  most m(S). At most 4 such terms stand next to each W, in a sum of at most 12. That makes an error
  of 48·u·m(S) < 2**-47·m(S), which the SHARE of m(S) covers 16 times: room for devices that emulate
  float64 with a few bits less (`internal.float64` measures whether a device is that good).
- Overlaps of something larger than S may be added too. If they are below 8·m(S) together, the sum
  is off by 96·u·m(S) < 2**-46·m(S) more, which the same SHARE covers. If not, the bound is above
  3·m(S); and what it has to hold for has no more W than S has active locations, if S is all whose
  W is added.
- Where there is no W to lean on, `slack(I, v·E)` is that share alone.
- With more than three concepts, counts inside the neuron and limits of shorter formulas are added
  to such sums. That is off by a few u of the result, for which `outward` makes room.

**Thresholds.** The W that a formula needs, v·M, is rounded down by a SHARE (`needed`), which covers
the rounding of M and of the product. A bound on W becomes one on the value rounded up by a SHARE
(`iou_at_most`).

**Near ties.** Values are quotients, each off by at most 2**-49 of itself as computed. They may be
level although they differ in float64, so all within `NEAR_TIE` of the highest are compared in
integers.

So every bound holds as it stands, however large the table is: what is not summed plays no part.
"""

from typing import TypeVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float64

ROUNDOFF = 2.0**-53
"""u: how far one operation is off, as a share of its result."""
SHARE = 2.0**-43
CELL_SHARE = 2.0**-40
"""What sums over cells and concepts are off by, of all that is in them, at most
(`bounds.tight.shares.space`)."""
_UP, _DOWN = 1 + SHARE, 1 - SHARE
NEAR_TIE = 1 - 2.0**-48

Values = TypeVar("Values", float, np.ndarray, Array)


def v_below(iou: Float64[Array, "*shape"]) -> Float64[Array, "*shape"]:
    """`Incumbent.v` within a program: below the exact quotients, by next to nothing; 0 stays 0."""
    return jnp.nextafter(iou, jnp.zeros_like(iou))


def weight(inside: Values, paid: Values) -> Values:
    """W of what has so many locations inside the neuron, and extras that cost so much, or more."""
    return inside * _UP - paid * _DOWN


def slack(inside: Values, paid: Values) -> Values:
    """How much `weight` is higher than W."""
    return SHARE * (inside + paid)


def raised(value: Values) -> Values:
    """A sum of positive terms, rounded up."""
    return value * _UP


def outward(bounds: Float64[Array, "*shape"]) -> Float64[Array, "*shape"]:
    """Bounds that are higher than they are computed, by more than the last sums are off."""
    return bounds * jnp.where(bounds < 0, _DOWN, _UP)


def needed(v: float, base: float | int) -> float:
    """The W that a formula needs for a value of v, rounded down."""
    return v * base * _DOWN


def left_for(w: float, inside: int, paid: float) -> float:
    """What is left of w at most for the rest, once a part has W = inside − paid; rounded up."""
    return w * _UP - inside * _DOWN + paid * _UP


def iou_at_most(
    w: Float64[np.ndarray, "*shape"], base: float | int
) -> Float64[np.ndarray, "*shape"]:
    """The value of formulas with W of at most w, if it is v or more; rounded up.

    I − v·E <= w means IoU <= w / |N|, or IoU < v: extras pull the ratio towards v (Proposition 1).
    """
    return w / base * _UP


def near_tie(iou: float) -> float:
    """The lowest IoU that may be level with this one, both as computed."""
    return iou * NEAR_TIE
