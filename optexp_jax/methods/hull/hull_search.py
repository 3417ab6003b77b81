"""The hull by the dichotomic scheme: its two ends, then what is above each pair of neighbours."""

import itertools
from dataclasses import dataclass
from fractions import Fraction

from optexp_jax.counts.metrics import Overlap
from optexp_jax.counts.neuron_summary import NeuronSummary
from optexp_jax.explanation import Status, StoppedBy
from optexp_jax.methods.hull.curve import TradeOffCurve, TradeOffSegment, TradeOffVertex
from optexp_jax.methods.hull.plane import Point, base_of_chord
from optexp_jax.methods.hull.searches import PivotSearches
from optexp_jax.search.incumbent import Candidate
from optexp_jax.search.stopping import Progress, StoppingCriteria


@dataclass(frozen=True)
class LambdaRange:
    """For which λ formulas are wanted; None is no limit."""

    lowest: Fraction | None = None
    highest: Fraction | None = None


class HullSearch:
    """A search for the hull, that can be stopped and go on."""

    def __init__(self, searches: PivotSearches, neuron: NeuronSummary, wanted: LambdaRange):
        self._searches = searches
        self._neuron = neuron
        self._wanted = wanted

    def run(self, limits: StoppingCriteria) -> TradeOffCurve:
        """Begin, or go on, until all is proved or one of these limits is reached."""
        searches = self._searches
        searches.begin(limits)
        try:
            base = self._next_base()
            while base is not None and searches.run(base):
                base = self._next_base()
                if base is not None and self._should_stop(limits):
                    break
        finally:
            searches.clock.pause()
        return self._curve(base is None)

    def _should_stop(self, limits: StoppingCriteria) -> bool:
        searches = self._searches
        if limits.callback is not None:
            found = searches.known
            best = max(found.values(), key=lambda each: each.score.iou, default=None)
            waiting = sum(not segment.proved for segment in self._segments())
            limits.callback(Progress(best, 1.0, waiting, searches.clock.elapsed))
        if searches.clock.expired:
            searches.stopped_by = StoppedBy.TIME_LIMIT
        return searches.stopped_by is not None

    def _next_base(self) -> Fraction | None:
        """The base of the next search; None if all is proved."""
        searches = self._searches
        if not searches.n_searches:
            # The best IoU: mostly inside the range, and with it there is a formula to begin with.
            return Fraction(searches.facts.margins.active)
        if searches.stopped_at is not None:
            return searches.stopped_at
        if not searches.found:
            return None
        for end in (self._steep_end(), self._flat_end()):
            if end is not None:
                return end
        chain = self._chain()
        waiting = [
            (segment.upper - segment.weight, left, right)
            for segment, left, right in zip(self._segments(), chain, chain[1:], strict=False)
            if not segment.proved
        ]
        if not waiting:
            return None
        _, left, right = max(waiting, key=lambda each: each[0])
        return base_of_chord(left, right)

    def _steep_end(self) -> Fraction | None:
        """The base of a search that settles the end where extras cost most; None if it is."""
        highest = self._wanted.highest
        if highest is not None:
            most = self._most(highest)
            if most > 0:
                return self._settling(highest, most)
        return None if self._settled(Fraction(0)) else self._searches.most_precise

    def _flat_end(self) -> Fraction | None:
        lowest = self._wanted.lowest
        if lowest is not None:
            most = self._most(lowest)
            return self._settling(lowest, most) if most > 0 else None
        level = [line for line in self._searches.lines if not line.slope and line.touched]
        return None if level else self._searches.widest

    def _most(self, slope: Fraction) -> Fraction:
        """The highest W of all formulas that are known."""
        return max(each.intersection - slope * each.extras for each in self._searches.found)

    def _settling(self, slope: Fraction, most: Fraction) -> Fraction | None:
        """The base that shows whether any formula has a higher W for this λ than `most`.

        It is that of the line of this slope through the best one known, so the search ends at λ if
        there is none. None if that is proved.
        """
        proved = any(line.slope == slope and line.height == most for line in self._searches.lines)
        return None if proved else most / slope

    def _settled(self, height: Fraction) -> bool:
        """Whether the most precise formula is known."""
        without = any(not point.extras for point in self._axis())
        lines = self._searches.lines
        return without or any(line.height == height and line.touched for line in lines)

    def _axis(self) -> list[Point]:
        """Formulas without extras that nothing on the axis is above of."""
        first = self._searches.corners[0].at
        return [each for each in self._searches.found if each == first]

    def _inside(self, points: list[Point]) -> list[Point]:
        """The points between the two ends of the range."""
        low, high = self._wanted.lowest, self._wanted.highest
        if high is not None:
            # Of those level at this λ, the widest: the others are best for a higher λ only.
            best = max((each.intersection - high * each.extras, each.extras) for each in points)
            points = [each for each in points if each.extras >= best[1] or best[0] <= 0]
        if low is not None:
            best = max((each.intersection - low * each.extras, -each.extras) for each in points)
            points = [each for each in points if each.extras <= -best[1]]
            points = [each for each in points if each.intersection - low * each.extras > 0]
        return points

    def _chain(self) -> list[Point]:
        """The upper hull of what is known, from left to right, without points between others."""
        known = list(self._searches.known)
        if not known:
            return []
        chain: list[Point] = []
        inside = self._inside(known)
        for point in sorted(inside, key=lambda each: (each.extras, -each.intersection)):
            if chain and point.intersection <= chain[-1].intersection:
                continue
            while len(chain) > 1 and not _turns(chain[-2], chain[-1], point):
                chain.pop()
            # A point left of the tangent from (0, 0) is best for no λ at which W is positive.
            while len(chain) == 1 and not _turns(Point(0, 0), chain[0], point):
                chain.pop()
            chain.append(point)
        return chain

    def _segments(self) -> list[TradeOffSegment]:
        chain = self._chain()
        corners = [corner.at for corner in self._searches.corners]
        found: list[TradeOffSegment] = []
        for left, right in itertools.pairwise(chain):
            rise = Fraction(right.intersection - left.intersection)
            slope = rise / (right.extras - left.extras)
            weight = left.intersection - slope * left.extras
            # The fence is concave, so W is highest at one of its corners.
            upper = max(at.intersection - slope * at.extras for at in corners)
            found.append(TradeOffSegment(slope, weight, upper))
        return found

    def _curve(self, proved: bool) -> TradeOffCurve:
        searches, segments = self._searches, self._segments()
        known, chain = searches.known, self._chain()
        slopes = [segment.slope for segment in segments]
        vertices = tuple(
            self._vertex(point, known[point], before, after)
            for point, before, after in zip(chain, [None, *slopes], [*slopes, None], strict=False)
        )
        status = Status.OPTIMAL if proved else Status.FEASIBLE
        corners = tuple(corner.at for corner in searches.corners)
        return TradeOffCurve(
            vertices,
            tuple(segments),
            corners,
            status,
            self._neuron,
            searches.n_searches,
            searches.stats,
            None if proved else self,
        )

    def _vertex(
        self, point: Point, candidate: Candidate, before: Fraction | None, after: Fraction | None
    ) -> TradeOffVertex:
        """`before` and `after` are the slopes of the segments next to it."""
        wanted, margins = self._wanted, self._searches.facts.margins
        if before is None:
            before = Fraction(point.intersection) / point.extras if point.extras else None
            if wanted.highest is not None:
                before = wanted.highest if before is None else min(before, wanted.highest)
        if after is None:
            after = wanted.lowest or Fraction(0)
        overlap = Overlap(int(point.intersection), int(point.extras), margins)
        proved = point in self._searches.found
        return TradeOffVertex(candidate.formula, overlap, after, before, proved)


def _turns(a: Point, b: Point, c: Point) -> bool:
    """Whether b is above the line from a to c."""
    up = Fraction(b.intersection - a.intersection) * (c.extras - b.extras)
    return up > Fraction(c.intersection - b.intersection) * (b.extras - a.extras)
