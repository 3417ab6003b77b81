"""Labels that wait at some places, joined with every concept there, a chunk of them in one call."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64

from optexp_jax.scores import Score
from optexp_jax.search.incumbent import Candidate
from optexp_jax.shapes import fill_up
from optexp_jax.tight.forms import Forms
from optexp_jax.tight.label_children import (
    LabelsThere,
    Surroundings,
    highest_w,
    score_children,
)
from optexp_jax.tight.labels import Labels, count_labels
from optexp_jax.tight.place import Place, joined

LABELS_AT_ONCE, FEW_LABELS = 128, 8
"""Labels whose children are looked at in one call. With more the arrays no longer fit a cache."""
PLACES_AT_ONCE = 16
"""Places that the labels of one call can be of."""


@dataclass(frozen=True, eq=False)
class LabelsAt:
    """Labels of one place."""

    place: Place
    labels: Labels


@dataclass(frozen=True, eq=False)
class Expanded:
    """Labels of some places joined with every concept there."""

    places: Sequence[Place]
    labels: Labels
    there: LabelsThere
    """The labels as compiled programs see them, filled up with empty ones to one of a few sizes."""
    around: Surroundings
    iou: Float64[np.ndarray, "labels forms concepts"]
    """In floating point, to be compared exactly; −1 where a child is not needed."""

    def place_of(self, row: int) -> Place:
        return self.places[int(np.asarray(self.there.place)[row])]

    def score(self, row: int, form: int, x: int) -> Score:
        """The exact score of a label joined with a concept."""
        counts, place = self.there.counts, self.place_of(row)
        inside, outside, shared_inside, shared_outside = (
            int(part)
            for part in (
                counts.inside[row],
                counts.outside[row],
                counts.shared_inside[row, x],
                counts.shared_outside[row, x],
            )
        )
        return place.score(
            joined(form, inside, int(place.counts.inside[x, x]), shared_inside),
            joined(form, outside, int(place.counts.outside[x, x]), shared_outside),
        )

    def candidate(self, row: int, form: int, x: int) -> Candidate:
        """A label joined with a concept, as a formula."""
        place, labels = self.place_of(row), self.labels
        inner = [*labels.inner[row].tolist(), int(place.concepts.ids[x])]
        return place.candidate(inner, [*labels.forms[row].tolist(), form], self.score(row, form, x))

    def highest_w(self, v: float, forms: Forms) -> Float64[np.ndarray, " labels"]:
        """The highest W of each label's children, over what is undecided; −∞ if there is none."""
        with jax.enable_x64(True):
            found = highest_w(self.around, self.there, jnp.float64(v), forms=forms)
            return np.asarray(found)[: len(self.labels)]


def expand(parts: Sequence[LabelsAt], forms: Forms) -> Iterator[Expanded]:
    """Exact scores of labels of one length joined with every other concept, a chunk at a time."""
    for size in sorted({part.place.concepts.size for part in parts}):
        same = [part for part in parts if part.place.concepts.size == size]
        for chunk in _chunks(same):
            yield _expand(chunk, forms)


def _chunks(parts: Sequence[LabelsAt]) -> Iterator[list[LabelsAt]]:
    """The same labels in lists of at most so many labels and places."""
    chunk: list[LabelsAt] = []
    room = LABELS_AT_ONCE
    for part in parts:
        start = 0
        while start < len(part.labels):
            taken = part.labels.take(slice(start, start + room))
            chunk.append(LabelsAt(part.place, taken))
            start += len(taken)
            room -= len(taken)
            if room == 0 or len(chunk) == PLACES_AT_ONCE:
                yield chunk
                chunk, room = [], LABELS_AT_ONCE
    if chunk:
        yield chunk


def _expand(parts: Sequence[LabelsAt], forms: Forms) -> Expanded:
    places = [part.place for part in parts]
    counts = [count_labels(part.place, part.labels) for part in parts]
    inner = [part.place.concepts.number[part.labels.inner] for part in parts]
    labels = parts[0].labels if len(parts) == 1 else Labels.concatenate([p.labels for p in parts])
    of_place = np.repeat(np.arange(len(parts), dtype=np.int32), [len(p.labels) for p in parts])
    few = len(labels) <= FEW_LABELS and len(parts) == 1 and places[0].concepts.is_everything
    size = FEW_LABELS if few else LABELS_AT_ONCE
    there = LabelsThere(
        fill_up(of_place, size),
        fill_up(np.concatenate(inner), size),
        jax.tree.map(lambda *several: fill_up(np.concatenate(several), size), *counts),
    )
    around = _surroundings(places, 1 if few else PLACES_AT_ONCE)
    with jax.enable_x64(True):
        iou = np.asarray(score_children(around, there, forms=forms))
    return Expanded(places, labels, there, around, iou[: len(labels)])


def _surroundings(places: Sequence[Place], size: int) -> Surroundings:
    def decided(counts: Sequence[int]) -> np.ndarray:
        return fill_up(np.array(counts, np.int64), size)

    return Surroundings(
        fill_up(np.stack([place.counts.inside.diagonal() for place in places]), size),
        fill_up(np.stack([place.counts.outside.diagonal() for place in places]), size),
        fill_up(np.stack([place.allowed for place in places]), size),
        decided([place.decided_inside for place in places]),
        decided([place.decided_union for place in places]),
    )
