"""The formula with the highest cosine or phi, proved, by as few searches as it takes.

Both metrics are quasi-convex in (E, I) where they are positive: the points where a metric is at
most c are a convex set (`docs/explanation/trade_off.md`). So inside the fence the metric is highest
at a corner. While some corner is as good as the best formula, a search cuts it off, or finds the
formula that is there.
"""

from fractions import Fraction
from typing import Any

from optexp_jax.counts.metrics import Margins, Objective
from optexp_jax.explanation import Explanation, Status, StoppedBy
from optexp_jax.methods.hull.plane import Corner, Point, base_of_chord, simplest_between
from optexp_jax.methods.hull.searches import PivotSearches
from optexp_jax.search.incumbent import Candidate, Order
from optexp_jax.search.stopping import Progress, StoppingCriteria


class ObjectiveSearch:
    """A search for the highest metric, that can be stopped and go on."""

    def __init__(self, objective: Objective, searches: PivotSearches, order: Order):
        """`order` sorts formulas that are level."""
        self._objective = objective
        self._searches = searches
        self._order = order
        self._begun = False

    def run(self, limits: StoppingCriteria) -> Explanation:
        """Begin, or go on, until the proof is complete or one of these limits is reached."""
        searches = self._searches
        searches.begin(limits)
        try:
            proved = self._loop(limits)
        finally:
            searches.clock.pause()
        return self._explanation(proved)

    def _loop(self, limits: StoppingCriteria) -> bool:
        searches = self._searches
        if not self._margins.phi_is_defined and self._objective is Objective.PHI:
            return True
        # The best IoU comes first: its formula is near the best by any of these metrics.
        base = Fraction(self._margins.active) if not self._begun else self._next_base()
        while base is not None:
            self._begun = True
            if not searches.run(base):
                return False
            base = self._next_base()
            if base is not None and self._should_stop(limits):
                return False
        return True

    @property
    def _margins(self) -> Margins:
        return self._searches.facts.margins

    def _key(self, point: Point) -> Fraction:
        return self._margins.key(self._objective, point.extras, point.intersection)

    @property
    def _best_key(self) -> Fraction:
        """That of the best formula; 0 if none is positive, which is no explanation."""
        return max((self._key(point) for point in self._searches.known), default=Fraction(0))

    def _open_corners(self) -> list[Corner]:
        """Corners where a formula may be that is as good as the best one, and not known."""
        best = max(self._best_key, Fraction(0))
        found: list[Corner] = []
        for corner in self._searches.corners:
            key, point = self._key(corner.at), corner.at
            level = key == best and key > 0 and point.whole and point not in self._searches.found
            if key > best or level:
                found.append(corner)
        return found

    def _next_base(self) -> Fraction | None:
        """The base of the search that settles the highest corner; None if there is none left."""
        waiting = self._open_corners()
        if not waiting:
            return None
        corner = max(waiting, key=lambda each: self._key(each.at))
        low = Fraction(0) if corner.left is None else corner.left.base
        high = corner.right.base if corner.right.slope else None
        best = max(self._best_key, Fraction(0))
        if self._key(corner.at) > best:
            base = base_of_chord(self._left_of(corner, best), self._right_of(corner, best))
            if base is not None and low < base and (high is None or base < high):
                return base
            # Else one end of the plane is asked for, which settles all on that side.
            if corner.left is None and (high is None or self._searches.most_precise < high):
                return self._searches.most_precise
            if corner.right.slope == 0 and self._searches.widest > low:
                return self._searches.widest
        return simplest_between(low, high)

    def _left_of(self, corner: Corner, best: Fraction) -> Point:
        """A formula on the line to the left; or where the axis is as good as the best one."""
        if corner.left is not None and corner.left.touched:
            return corner.left.touched[-1]
        T, n = self._margins.n_locations, self._margins.active
        if self._objective is Objective.COSINE:
            return Point(Fraction(0), best)  # I² / I
        return Point(Fraction(0), best * T / ((T - n) ** 2 + best))  # (T − |N|)²·I / (T − I)

    def _right_of(self, corner: Corner, best: Fraction) -> Point:
        """A formula on the line to the right; or where all that can be covered is as good."""
        if corner.right.touched:
            return corner.right.touched[0]
        covered, most = Fraction(self._searches.facts.covered), self._searches.facts.most_extras
        low, high = Fraction(0), Fraction(most)
        if self._key(Point(high, covered)) >= best:
            return Point(high, covered)
        for _ in range(MOST_HALVINGS):  # The metric falls as extras rise.
            middle = Fraction(round((low + high) / 2 * FINE), FINE)
            if self._key(Point(middle, covered)) > best:
                low = middle
            else:
                high = middle
        return Point(high, covered)

    def _upper(self) -> Fraction:
        """No formula has a higher key."""
        highest = max(self._key(corner.at) for corner in self._searches.corners)
        return max(highest, self._best_key, Fraction(0))

    def _should_stop(self, limits: StoppingCriteria) -> bool:
        searches, best = self._searches, self._best
        value = 0.0 if best is None else self._value(self._best_key)
        upper = self._margins.at_most(self._objective, self._upper())
        progress = Progress(best, upper, len(self._open_corners()), searches.clock.elapsed, value)
        if limits.callback is not None:
            limits.callback(progress)
        if searches.clock.expired:
            searches.stopped_by = StoppedBy.TIME_LIMIT
        elif limits.gap > 0 and progress.gap <= limits.gap:
            searches.stopped_by = StoppedBy.GAP
        return searches.stopped_by is not None

    def _value(self, key: Fraction) -> float:
        return self._margins.value(self._objective, key)

    @property
    def _best(self) -> Candidate | None:
        """Of the formulas with the highest metric the first in order; None if none is positive."""
        key = self._best_key
        if key <= 0:
            return None
        known = self._searches.known.items()
        level = [candidate for point, candidate in known if self._key(point) == key]
        return min(level, key=lambda candidate: self._order(candidate.formula))

    def _explanation(self, proved: bool) -> Explanation:
        best, margins = self._best, self._margins
        value = 0.0 if best is None else self._value(self._best_key)
        upper = value if proved else margins.at_most(self._objective, self._upper())
        state: Any = None if proved else self
        return Explanation(
            formula=None if best is None else best.formula,
            intersection=0 if best is None else best.score.intersection,
            union=margins.active if best is None else best.score.union,
            upper_bound=max(upper, value),
            status=Status.OPTIMAL if proved else Status.FEASIBLE,
            objective=self._objective,
            stats=self._searches.stats,
            state=state,
        )


FINE = 2**20
"""Parts of a location in which a point is looked for that only decides what is searched next."""
MOST_HALVINGS = 64
