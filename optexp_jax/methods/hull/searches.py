"""Searches of one neuron with several bases, and all that they have proved together."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optexp_jax.counts.metrics import Margins
from optexp_jax.explanation import Explanation, SearchStats, Seconds, Speculative, StoppedBy
from optexp_jax.methods.hull.plane import Corner, Line, Point, corners
from optexp_jax.search.clock import Clock
from optexp_jax.search.driver import Search
from optexp_jax.search.incumbent import Candidate
from optexp_jax.search.stopping import StoppingCriteria

OpenSearch = Callable[[Fraction, Sequence[Candidate]], Search[Any]]
"""Opens the search with a base; some formulas are known already."""


@dataclass(frozen=True)
class Facts:
    """What bounds all formulas of a neuron before any search."""

    margins: Margins
    covered: int
    """Active locations that have a concept at all."""
    most_extras: int
    """Inactive ones."""


@dataclass(frozen=True, eq=False)
class Pending:
    """A search that was stopped."""

    base: Fraction
    search: Search[Any]


class PivotSearches:
    """Runs searches with one base after another, and keeps what they find and prove.

    A search whose end is not reached leaves a line that holds all the same, and goes on when its
    base, or any other, is asked for.
    """

    def __init__(self, facts: Facts, open_search: OpenSearch, limits: StoppingCriteria):
        self.facts = facts
        self._open = open_search
        self.limits = limits
        self.found: dict[Point, Candidate] = {}
        """Formulas by where they are, each the first in order of all that are there."""
        self.tried: dict[Point, Candidate] = {}
        """The best of searches that were stopped; others that are level may come first in order."""
        self.lines: list[Line] = [Line(Fraction(0), Fraction(facts.covered))]
        self.clock = Clock()
        self.clock.pause()
        self.stopped_by: StoppedBy | None = None
        self.n_searches = 0
        self._pending: Pending | None = None
        self._stats: list[SearchStats] = []
        """Of the searches that came to their end."""
        self._last: SearchStats | None = None
        """Of the one that was stopped."""

    def begin(self, limits: StoppingCriteria) -> None:
        """Let time run, under these limits."""
        self.limits, self.stopped_by = limits, None
        self.clock.go_on(limits.time_limit)

    @property
    def stopped_at(self) -> Fraction | None:
        """The base of the search that did not come to its end; None if all did."""
        return None if self._pending is None else self._pending.base

    @property
    def known(self) -> dict[Point, Candidate]:
        """All formulas that were found."""
        return {**self.tried, **self.found}

    @property
    def corners(self) -> list[Corner]:
        """The fence around all formulas."""
        return corners(self.lines, self.facts.most_extras)

    def run(self, base: Fraction) -> bool:
        """Search with a base, or go on where a search was stopped; whether it came to its end."""
        pending = self._pending
        if pending is None:
            search = self._open(base, list(self.known.values()))
            pending = self._pending = Pending(base, search)
            self.n_searches += 1
        left = self.clock.left
        limits = dataclasses.replace(
            self.limits,
            time_limit=None if left is None else max(left, 1e-9),
            callback=None,
            gap=0.0,
        )
        result = pending.search.run(limits)
        proved = result.status == "optimal"
        self._take(result, pending.base, proved)
        self.stopped_by = result.stats.stopped_by
        self._last = result.stats
        if proved:
            self._pending = self._last = None
            self._stats.append(result.stats)
        return proved

    def _take(self, result: Explanation, base: Fraction, proved: bool) -> None:
        point = self._place(result)
        if point is None:
            # Nothing overlaps the neuron, if that is proved.
            self.lines.append(Line.through(base, Fraction(0 if proved else result.upper_bound)))
            return
        assert result.formula is not None
        candidate = Candidate(result.formula, result.score)
        if not proved:
            self.tried[point] = candidate
            self.lines.append(Line.through(base, Fraction(result.upper_bound)))
            return
        self.found[point] = candidate
        value = Fraction(point.intersection) / (base + point.extras)
        line = Line.through(base, value)
        touched = [each for each in self.found if line.at(each.extras) == each.intersection]
        self.lines.append(Line.through(base, value, touched))
        if base <= self.most_precise and point.extras:
            # No precision is higher: the line through (0, 0) holds as well.
            slope = Fraction(point.intersection) / point.extras
            self.lines.append(Line(slope, Fraction(0), (point,)))
        if base >= self.widest:
            self.lines.append(Line(Fraction(0), Fraction(point.intersection), (point,)))

    def _place(self, result: Explanation) -> Point | None:
        if result.formula is None:
            return None
        return Point(result.union - self.facts.margins.active, result.intersection)

    @property
    def most_precise(self) -> Fraction:
        """A base with which the most precise formula has the highest value.

        Let `I1/E1 > I2/E2`. Then `I1·E2 − I2·E1 >= 1`, and `I1/(M + E1) > I2/(M + E2)` if that is
        more than `M·(I2 − I1)`, for which M below 1/|N| is enough. Of equals the largest is first.
        """
        return Fraction(1, self.facts.margins.active + 1)

    @property
    def widest(self) -> Fraction:
        """A base with which the formula with the most active locations has the highest value.

        Let `I1 > I2`. Then `I1/(M + E1) > I2/(M + E2)` if `M·(I1 − I2) > I2·E1 − I1·E2`, for which
        M above |N|·T is enough. Of equals the one with fewest extras comes first.
        """
        return Fraction(self.facts.margins.active * self.facts.margins.n_locations + 1)

    @property
    def stats(self) -> SearchStats:
        """What all searches took together."""
        parts = [*self._stats, *([] if self._last is None else [self._last])]
        if not parts:
            return SearchStats(stopped_by=self.stopped_by)
        summed = {name: sum(getattr(part, name) for part in parts) for name in _COUNTERS}
        wasted = {
            name: sum(getattr(part.speculative, name) for part in parts)
            for name in ("visited", "expanded", "estimated")
        }
        seconds = {
            name: sum(getattr(part.seconds, name) for part in parts)
            for name in ("device", "heap", "exact")
        }
        return dataclasses.replace(
            parts[-1],
            **summed,
            speculative=Speculative(**wasted),
            stopped_by=self.stopped_by,
            seconds=Seconds(total=self.clock.elapsed, **seconds),
        )


_COUNTERS = ("visited", "expanded", "estimated", "updated", "compilations")
