"""The same formulas as in `two_steps`, once the pair's overlaps with every concept are exact.

For a label P with `I(P ∩ z)` and `E(P ∩ z)` known, what is left unknown of `(P∘x)∘y` is how x and y
overlap within P or outside of it. First every x is bounded with the best y of all (vectors), then
the few x that survive with each y (rows of the Gram matrices). This is work on a few thousand
numbers, so it stays on the host.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float64, Int32, Int64

from optexp_jax.tight.grams import LabelOverlaps
from optexp_jax.tight.pairs import DIFFERENCE, INTERSECTION, UNION, Forms


@dataclass(frozen=True, eq=False)
class HostRegion:
    """A region's counts and rows on the host, at one v."""

    inside: Int64[np.ndarray, "concepts concepts"]
    outside: Int64[np.ndarray, "concepts concepts"]
    allowed: Bool[np.ndarray, " concepts"]
    light: Bool[np.ndarray, " concepts"]
    overlap: Float64[np.ndarray, " concepts"]
    filtered: Float64[np.ndarray, " concepts"]
    """`Rows` of the region."""
    v: float
    forms: Forms

    @cached_property
    def own(self) -> Float64[np.ndarray, " concepts"]:
        """W of each concept."""
        return self.inside.diagonal() - self.v * self.outside.diagonal()


@dataclass(frozen=True, eq=False)
class Longer:
    """Labels one concept longer, with bounds on W of all that one more step makes of them."""

    form: Int32[np.ndarray, " labels"]
    concept: Int32[np.ndarray, " labels"]
    upper: Float64[np.ndarray, " labels"]


class LastSteps:
    """Bounds for one label P: a pair of concepts inside a region."""

    def __init__(
        self,
        region: HostRegion,
        inner: list[int],
        form: int,
        label_inside: int,
        label_outside: int,
        shared: LabelOverlaps,
    ):
        self._region = region
        self._form = form
        v = region.v
        self._free = region.allowed.copy()
        self._free[inner] = False
        self._light = self._free & region.light
        self._light_union = self._light & (
            form != UNION or bool(region.light[inner].all())
        )  # In a run of ORs nothing is heavy.
        self._w = label_inside - v * label_outside
        self._i, self._e = shared.inside, shared.outside
        self._paid = v * self._e
        self._gain = self._paid - self._i  # −W(P ∩ z)
        self._outside = region.own + self._gain  # W(z \ P)

    def longer(self, need: float) -> Longer:
        """Labels `P∘x` that one more OR or AND NOT may take to `need`."""
        found: list[Longer] = []
        for form, first, exact in (
            (UNION, self._any_after_or(), self._after_or),
            (INTERSECTION, self._any_after_and(), self._after_and),
            (DIFFERENCE, self._any_after_not(), self._after_not),
        ):
            x = np.flatnonzero(first >= need).astype(np.int32)
            upper = np.minimum(first[x], exact(x)) if len(x) else first[x]
            kept = upper >= need
            found.append(Longer(np.full(kept.sum(), form, np.int32), x[kept], upper[kept]))
        return Longer(
            *(
                np.concatenate([getattr(part, name) for part in found])
                for name in ("form", "concept", "upper")
            )
        )

    # Every x, with the best y of all.

    def _any_after_not(self) -> Float64[np.ndarray, " concepts"]:
        region, best = self._region, self._never()
        if region.forms.difference:
            # What y removes of x's share is not counted twice: at most I(P ∩ x) is.
            most = np.minimum(self._gain, _most(self._gain, self._free)) + self._i
            last = np.minimum(_most(self._paid, self._free), most)
            if region.forms.union:
                added = _most(self._outside, self._light) + self._i
                unpaid = _most(region.own + self._paid, self._light)
                last = np.maximum(last, np.minimum(unpaid, added))
            best = self._w + self._gain + last
        return np.where(self._free, best, -np.inf)

    def _any_after_or(self) -> Float64[np.ndarray, " concepts"]:
        region, best = self._region, self._never()
        if region.forms.union:
            last = _most(self._outside, self._light_union)
            unions = self._w + self._outside + region.overlap + last
            best = np.where(self._light_union, unions, -np.inf)
            if region.forms.difference:
                apart = np.minimum(self._outside + region.overlap, region.filtered + self._paid)
                best = np.maximum(best, self._w + _most(self._gain, self._free) + apart)
        return np.where(self._free, best, -np.inf)

    def _any_after_and(self) -> Float64[np.ndarray, " concepts"]:
        region = self._region
        if not (region.forms.intersection and region.forms.union) or self._form == DIFFERENCE:
            return self._never()
        last = _most(region.own + self._paid, self._light)
        best = np.minimum(last - self._gain, _most(region.own, self._light) + self._i)
        return np.where(self._free, best, -np.inf)

    # Some x, with each y: [x, y].

    def _after_not(self, x: Int32[np.ndarray, " rows"]) -> Float64[np.ndarray, " rows"]:
        """`(P AND NOT x) AND NOT y`, where y does not remove more than x, and `… OR y`."""
        region = self._region
        common = np.minimum(np.minimum(self._i[x][:, None], self._i), region.inside[x])
        y = self._others(x)
        last = np.where(y & (self._gain <= self._gain[x][:, None]), self._gain + common, -np.inf)
        if region.forms.union:
            last = np.maximum(last, np.where(y & self._light, self._outside + common, -np.inf))
        return self._w + self._gain[x] + last.max(1)

    def _after_or(self, x: Int32[np.ndarray, " rows"]) -> Float64[np.ndarray, " rows"]:
        """`(P OR x) OR y`, where y does not add more than x, and `… AND NOT y`."""
        region, v = self._region, self._region.v
        shared = v * region.outside[x]
        y = self._others(x)
        in_run = y & self._light_union & self._light_union[x][:, None]
        in_run &= self._outside <= self._outside[x][:, None]
        best = np.where(in_run, self._outside[x][:, None] + self._outside + shared, -np.inf)
        if region.forms.difference:
            without = region.own[x][:, None] - (region.inside[x] - shared)
            apart = np.minimum(self._outside[x][:, None] + shared, without + self._paid[x][:, None])
            best = np.maximum(best, np.where(y, self._gain + apart, -np.inf))
        return self._w + best.max(1)

    def _after_and(self, x: Int32[np.ndarray, " rows"]) -> Float64[np.ndarray, " rows"]:
        """`(P AND x) OR y`."""
        region = self._region
        common = np.minimum(np.minimum(self._e[x][:, None], self._e), region.outside[x])
        last = np.where(self._others(x) & self._light, region.own + region.v * common, -np.inf).max(
            1
        )
        return last - self._gain[x]

    def _others(self, x: Int32[np.ndarray, " rows"]) -> Bool[np.ndarray, "rows concepts"]:
        return self._free & (np.arange(len(self._free)) != x[:, None])

    def _never(self) -> Float64[np.ndarray, " concepts"]:
        return np.full(len(self._free), -np.inf)


def _most(values: Float64[np.ndarray, " n"], among: Bool[np.ndarray, " n"]) -> float:
    return float(np.where(among, values, -np.inf).max())
