"""Labels that wait at some places, joined with every concept there, a chunk of them in one call."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import jax
import numpy as np
from jaxtyping import Array, Bool, Float64, Int32, Int64

from optexp_jax.bounds.tight.forms import Forms
from optexp_jax.bounds.tight.label_children import (
    LabelsThere,
    Surroundings,
    counts_of_children,
    highest_score,
    highest_w,
    joined_counts,
    score_children,
    surroundings_of,
)
from optexp_jax.bounds.tight.label_counts import LabelCounts
from optexp_jax.bounds.tight.labels import Labels, count_labels, count_labels_on_device
from optexp_jax.bounds.tight.labels_on_device import merge_counts
from optexp_jax.bounds.tight.place import Place
from optexp_jax.bounds.tight.survivors import Survivors, highest, survivors
from optexp_jax.bounds.tight.tuning import (
    COUNTS_AT_ONCE,
    FEW_LABELS,
    LABELS_AT_ONCE,
    PLACES_OF_LABELS,
)
from optexp_jax.counts.scores import Score
from optexp_jax.internal.padding import fill_up
from optexp_jax.internal.transfers import fetch, put, run
from optexp_jax.search.incumbent import Candidate


@dataclass(frozen=True, eq=False)
class LabelsAt:
    """Labels of one place."""

    place: Place
    labels: Labels


@dataclass(frozen=True, eq=False)
class Expanded:
    """Labels of some places joined with every concept there.

    Where the device counts, scores and counts stay there; what is asked of them comes back.
    """

    places: Sequence[Place]
    labels: Labels
    of_place: Int32[np.ndarray, " labels"]
    there: LabelsThere
    """The labels as compiled programs see them, filled up with empty ones to one of a few sizes."""
    around: Surroundings
    scores: Float64[Array, "filled forms concepts"]
    """IoUs in floating point, to be compared exactly; −1 where a child is not needed."""

    @property
    def iou(self) -> Float64[np.ndarray, "labels forms concepts"]:
        """The scores of the labels on the host."""
        return fetch(self.scores)[: len(self.labels)]

    @property
    def n_children(self) -> int:
        return len(self.labels) * math.prod(self.scores.shape[1:])

    @cached_property
    def best(self) -> float:
        """The highest score."""
        if self._on_host:
            return float(self.iou.max())
        with jax.enable_x64(True):
            return float(fetch(run(highest_score, self.scores, np.int32(len(self.labels)))))

    def highest(self, k: int) -> Survivors:
        """The k highest scores, as far as they are positive."""
        with jax.enable_x64(True):
            return highest(self.scores, len(self.labels), k, self._on_host)

    def candidates(self, reached: float) -> list[Candidate]:
        """The children whose score is not below `reached`, as formulas."""
        need = np.full(len(self.there.inner), np.inf)
        need[: len(self.labels)] = reached
        with jax.enable_x64(True):
            row, form, x = survivors(self.scores, need, self._on_host).at
            inside, outside = self._joined(row, form, x)
        columns = (part.tolist() for part in (row, form, x, inside, outside))
        return [self._candidate(*each) for each in zip(*columns, strict=True)]

    def score(self, row: int, form: int, x: int) -> Score:
        """The exact score of a label joined with a concept."""
        at = (np.array([part], np.int32) for part in (row, form, x))
        with jax.enable_x64(True):
            inside, outside = self._joined(*at)
        return self.places[int(self.of_place[row])].score(int(inside[0]), int(outside[0]))

    def highest_w(self, v: float, forms: Forms) -> Float64[np.ndarray, " labels"]:
        """The highest W of each label's children, over what is undecided; −∞ if there is none."""
        with jax.enable_x64(True):
            found = run(highest_w, self.around, self.there, np.float64(v), forms=forms)
            return fetch(found)[: len(self.labels)]

    @property
    def _on_host(self) -> bool:
        return self.places[0].overlaps.on_host

    def _candidate(self, row: int, form: int, x: int, inside: int, outside: int) -> Candidate:
        place, labels = self.places[int(self.of_place[row])], self.labels
        inner = [*labels.inner[row].tolist(), int(place.concepts.ids[x])]
        forms = [*labels.forms[row].tolist(), form]
        return place.candidate(inner, forms, place.score(inside, outside))

    def _joined(
        self,
        row: Int32[np.ndarray, " children"],
        form: Int32[np.ndarray, " children"],
        x: Int32[np.ndarray, " children"],
    ) -> Int64[np.ndarray, "two children"]:
        """How many undecided locations children have, inside the neuron and outside."""
        if self._on_host:
            return joined_counts(self.around, self.there, row, form, x, np)
        found = [np.empty((2, 0), np.int64)]
        for start in range(0, len(row), COUNTS_AT_ONCE):
            chunk = slice(start, start + COUNTS_AT_ONCE)
            some = (fill_up(part[chunk], COUNTS_AT_ONCE) for part in (row, form, x))
            found.append(fetch(run(counts_of_children, self.around, self.there, *some)))
        return np.concatenate(found, axis=1)[:, : len(row)]


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
            if room == 0 or len(chunk) == PLACES_OF_LABELS:
                yield chunk
                chunk, room = [], LABELS_AT_ONCE
    if chunk:
        yield chunk


def _expand(parts: Sequence[LabelsAt], forms: Forms) -> Expanded:
    places = [part.place for part in parts]
    labels = parts[0].labels if len(parts) == 1 else Labels.concatenate([p.labels for p in parts])
    of_place = np.repeat(np.arange(len(parts), dtype=np.int32), [len(p.labels) for p in parts])
    few = len(labels) <= FEW_LABELS and len(parts) == 1 and places[0].concepts.is_everything
    size, n_places = (FEW_LABELS, 1) if few else (LABELS_AT_ONCE, PLACES_OF_LABELS)
    inner = [part.place.concepts.number[part.labels.inner] for part in parts]
    numbers = fill_up(of_place, size), fill_up(np.concatenate(inner), size)
    with jax.enable_x64(True):
        if places[0].overlaps.on_host:
            counts = [count_labels(part.place, part.labels) for part in parts]
            filled = jax.tree.map(lambda *some: fill_up(np.concatenate(some), size), *counts)
            there = LabelsThere(*numbers, filled)
            around = _surroundings(places, n_places)
        else:
            of_labels, inner_numbers = put(*numbers)
            counts = _count_on_device(parts, of_place, size)
            there = LabelsThere(of_labels, inner_numbers, counts)
            filled = [*places, *[places[0]] * (n_places - len(places))]
            grams = tuple(place.gram for place in filled)
            around = run(surroundings_of, grams, *_decided(places, n_places))
        scores = run(score_children, around, there, forms=forms)
    return Expanded(places, labels, of_place, there, around, scores)


def _count_on_device(
    parts: Sequence[LabelsAt], of_place: Int32[np.ndarray, " labels"], size: int
) -> LabelCounts:
    """Place by place, as one of them may have thousands of concepts."""
    found: LabelCounts | None = None
    first = 0
    for k, part in enumerate(parts):
        counts = count_labels_on_device(part.place, part.labels, first, size)
        first += len(part.labels)
        taken = fill_up(of_place == k, size)
        found = counts if found is None else run(merge_counts, found, counts, taken)
    assert found is not None, "there are no labels without a place"
    return found


def _surroundings(places: Sequence[Place], size: int) -> Surroundings:
    return Surroundings(
        fill_up(np.stack([place.own.inside for place in places]), size),
        fill_up(np.stack([place.own.outside for place in places]), size),
        *_decided(places, size),
    )


def _decided(
    places: Sequence[Place], size: int
) -> tuple[
    Bool[np.ndarray, "size concepts"], Int64[np.ndarray, " size"], Int64[np.ndarray, " size"]
]:
    """What is allowed at places and what is decided there, as `Surroundings` has it."""
    inside = np.array([place.decided_inside for place in places], np.int64)
    union = np.array([place.decided_union for place in places], np.int64)
    allowed = np.stack([place.allowed for place in places])
    return fill_up(allowed, size), fill_up(inside, size), fill_up(union, size)
