"""Places as compiled programs see them: several of one size together, at one v."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from weakref import WeakKeyDictionary

import jax
import numpy as np
from jaxtyping import Array, Bool, Float64, Int32

from optexp_jax.bounds.tight.forms import Forms
from optexp_jax.bounds.tight.grams import stack_grams
from optexp_jax.bounds.tight.pair_bounds import pair_bounds
from optexp_jax.bounds.tight.place import Place
from optexp_jax.bounds.tight.ranking import Ranking
from optexp_jax.bounds.tight.region import BoundInputs
from optexp_jax.bounds.tight.root import FusedRoot
from optexp_jax.bounds.tight.rows import Rows, rows_of
from optexp_jax.bounds.tight.some_pairs import OfRows
from optexp_jax.bounds.tight.tuning import STACKED_CELLS, STACKED_PLACES
from optexp_jax.internal.padding import fill_up
from optexp_jax.internal.transfers import fetch, put


@dataclass(frozen=True, eq=False)
class Views:
    """Places of one size, filled up with the first of them to a stack of a fixed size."""

    places: Sequence[Place]
    v: float
    need: Float64[np.ndarray, " filled"]
    """The W that an inner part needs at each place; infinite for those that fill up."""
    light: Bool[np.ndarray, "filled concepts"]
    """Concepts that are not heavy, as `regions` has them."""
    rank: Int32[Array | np.ndarray, "filled concepts"]
    regions: BoundInputs
    rows: Rows
    pair_bounds: Float64[np.ndarray, "concepts forms concepts"] | None = None
    """Bounds of all pairs of a place by itself, where they are known."""

    @classmethod
    def of(cls, places: Sequence[Place], v: float, order: Ranking) -> "Views":
        need = np.array([place.needed(v) for place in places])
        n_places = _stack_size(places)
        filled = [*places, *[places[0]] * (n_places - len(places))]
        missing = np.full(n_places - len(places), np.inf)
        allowed = np.stack([place.allowed for place in filled])
        light = np.stack([place.concepts.pick(order.light(place.unused)) for place in filled])
        with jax.enable_x64(True):
            grams = [place.gram for place in filled]
            gram = grams[0] if n_places == 1 else stack_grams(grams)
            rank = np.stack([place.concepts.pick(order.rank) for place in filled])
            *moved, ranks = put(allowed, light, np.full(n_places, v), rank)
            regions, needed = BoundInputs(gram, *moved), np.concatenate([need, missing])
            return cls(places, v, needed, light, ranks, regions, rows_of(regions))

    @classmethod
    def of_fused(cls, place: Place, fused: FusedRoot, order: Ranking) -> "Views":
        """The place without outer steps, where what is light does not matter."""
        bounds, light = fetch(fused.bounds)[0], np.ones((1, len(order.rank)), bool)
        known = fused.regions, fused.rows, bounds
        need = np.array([place.needed(fused.v)])
        return cls([place], fused.v, need, light, order.rank[None], *known)

    def bounds_of_rows(self, forms: Forms) -> OfRows:
        """Bounds on what one further concept makes of pairs."""
        known = self.pair_bounds
        if known is not None:
            return lambda _, concepts: known[concepts]
        return partial(pair_bounds, self.regions, self.rows, forms=forms)

    def with_concepts_of(self, places: Sequence[Place]) -> bool:
        """Whether these are as many places, with the same concepts each."""
        return len(places) == len(self.places) and all(
            np.array_equal(mine.of_use, other.of_use)
            for mine, other in zip(self.places, places, strict=True)
        )

    @property
    def allowed(self) -> Bool[np.ndarray, "filled concepts"]:
        """Concepts of the places; none of those that fill up."""
        return fill_up(np.stack([place.allowed for place in self.places]), len(self.need))

    @property
    def on_host(self) -> bool:
        """Whether the host counts."""
        return self.places[0].overlaps.on_host

    def fill(self, values: Float64[np.ndarray, " places"]) -> Float64[np.ndarray, " filled"]:
        """A value for each place, and 0 for those that fill up."""
        return fill_up(values, len(self.need))


class ViewCache:
    """Makes views, and remembers the last one of each place that was looked at by itself."""

    def __init__(self, order: Ranking):
        self._order = order
        self._alone: WeakKeyDictionary[Place, Views] = WeakKeyDictionary()

    def at(self, places: Sequence[Place], v: float) -> Views:
        """Places at some v."""
        known = self._alone.get(places[0]) if len(places) == 1 else None
        if known is not None and known.v == v:
            return known
        views = Views.of(places, v, self._order)
        if len(places) == 1:
            self._alone[places[0]] = views
        return views


def _stack_size(places: Sequence[Place]) -> int:
    """Few concepts take one size of stack; only with all of them a place by itself is worth one."""
    alone = len(places) == 1 and places[0].concepts.is_everything
    return 1 if alone else places_at_once(places[0].concepts.size)


def places_at_once(size: int) -> int:
    """How many places of so many concepts are looked at together."""
    return max(1, min(STACKED_PLACES, STACKED_CELLS // size**2))


def together(places: Sequence[Place]) -> list[list[int]]:
    """Which of some places can be looked at together, by their position."""
    groups: list[list[int]] = []
    for size in sorted({place.concepts.size for place in places}):
        same = [k for k, place in enumerate(places) if place.concepts.size == size]
        step = places_at_once(size)
        groups += [same[start : start + step] for start in range(0, len(same), step)]
    return groups
