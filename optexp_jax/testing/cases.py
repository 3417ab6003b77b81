"""Small problems for checking bounds: random ones, and ones in which bounds tend to break."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int64

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts

CONCEPT_STYLES = (
    "half",
    "sparse",
    "dense",
    "empty",
    "full",
    "duplicate",
    "nested",
    "disjoint",
    "complement",
    "scene",
    "uneven",
)
NEURON_STYLES = (
    "half",
    "sparse",
    "dense",
    "concept",
    "pair",
    "formula",
    "noisy",
    "union",
    "rest",
    "scene",
)
UNEVEN = (0.0, 0.15, 0.5, 0.85, 1.0)
DENSITY = {"half": 0.5, "sparse": 0.15, "dense": 0.85}
MOST_CELLS = 12
WEIGHT_BITS = (2, 20, 24, 33, 44)


@dataclass(frozen=True, eq=False)
class Case:
    """Concepts over cells, and how many active and inactive locations each cell has.

    Most cells are one location; cells of more are for counts that small integers cannot hold.
    """

    masks: Bool[np.ndarray, "concepts samples cells"]
    inside: Int64[np.ndarray, "samples cells"]
    outside: Int64[np.ndarray, "samples cells"]

    @property
    def names(self) -> tuple[str, ...]:
        # In another order than the indices, as ties are settled by names.
        return tuple(f"c{(7 * k + 3) % 11}" for k in range(len(self.masks)))

    @property
    def weighted(self) -> bool:
        return bool((self.inside + self.outside != 1).any())

    @cached_property
    def table(self) -> ConceptTable:
        if not self.weighted:
            return ConceptTable.from_masks(self.masks, self.names)
        sets = [np.flatnonzero(column).tolist() for column in self.columns.T]
        sizes = (self.inside + self.outside).reshape(-1)
        return ConceptTable.from_signatures(sets, sizes, self.names)

    @cached_property
    def neuron(self) -> NeuronCounts:
        if self.weighted:
            return NeuronCounts.from_signatures(self.table, self.inside.reshape(-1))
        return self.table.count(self.inside.astype(bool))

    @property
    def columns(self) -> Bool[np.ndarray, "concepts columns"]:
        """The masks without the sample axis."""
        return self.masks.reshape(len(self.masks), -1)

    def without_concept(self, concept: int) -> "Case":
        """The case with one concept's mask empty: shapes stay, so nothing is compiled again."""
        masks = self.masks.copy()
        masks[concept] = False
        return replace(self, masks=masks)

    def without_cell(self, sample: int, cell: int) -> "Case":
        """The case with one cell of no concern: no concept, not active."""
        masks, inside, outside = self.masks.copy(), self.inside.copy(), self.outside.copy()
        masks[:, sample, cell] = False
        inside[sample, cell], outside[sample, cell] = 0, 1
        return replace(self, masks=masks, inside=inside, outside=outside)

    def lighter(self) -> "Case":
        """The case with counts of one digit in about the same proportions."""
        largest = int(max(self.inside.max(), self.outside.max()))
        inside, outside = (8 * part // largest for part in (self.inside, self.outside))
        return replace(self, inside=inside, outside=outside)

    def __str__(self) -> str:
        """The concept sets of each sample, with their active and inactive locations."""
        lines: list[str] = []
        for sample in range(self.masks.shape[1]):
            counts: dict[tuple[str, ...], list[int]] = {}
            for cell in range(self.masks.shape[2]):
                held = np.flatnonzero(self.masks[:, sample, cell]).tolist()
                count = counts.setdefault(tuple(self.names[k] for k in held), [0, 0])
                count[0] += int(self.inside[sample, cell])
                count[1] += int(self.outside[sample, cell])
            for names, (active, inactive) in sorted(counts.items()):
                if names or active:
                    where = f"sample {sample}: {{{', '.join(names)}}}"
                    lines.append(f"{where} {active} active, {inactive} not")
        return "\n".join(lines)


def random_case(rng: np.random.Generator, n_concepts: int, n_samples: int) -> Case:
    """A case of any style. The neuron has an active location."""
    kind = rng.random()
    if n_samples > 1 and n_concepts > 2 and kind < 0.2:
        masks, bitmap = _lopsided(rng, n_concepts, n_samples)
    else:
        cells = int(rng.integers(1, MOST_CELLS + 1))
        masks = np.zeros((n_concepts, n_samples, cells), bool)
        if kind < 0.4:  # every location has one concept, or none
            labels = rng.integers(0, n_concepts + 1, masks.shape[1:])
            masks[:] = labels == np.arange(n_concepts)[:, None, None]
        else:
            for k in range(n_concepts):
                style = str(rng.choice(CONCEPT_STYLES))
                masks[k] = _concept(rng, style, masks[:k], masks.shape[1:])
        bitmap = _neuron(rng, str(rng.choice(NEURON_STYLES)), masks)
    if not bitmap.any():
        bitmap.flat[rng.integers(bitmap.size)] = True
    inside = bitmap.astype(np.int64)
    if n_samples > 1 or rng.random() < 0.5:
        return Case(masks, inside, 1 - inside)
    return _weighted(rng, bitmap, masks)


def _lopsided(
    rng: np.random.Generator, n_concepts: int, n_samples: int
) -> tuple[np.ndarray, np.ndarray]:
    """Concepts, and a neuron for which one sample decides.

    Elsewhere one concept is empty and all others are full. In the one sample the neuron is the
    union of up to three small concepts, and two concepts are all the rest. So the concept with the
    smallest total is the largest there: what is ranked by totals is wrong, and no slack in other
    samples hides it.
    """
    cells = int(rng.integers(6, MOST_CELLS + 1))
    here = int(rng.integers(n_samples))
    least, full, *small = rng.permutation(n_concepts).tolist()
    masks = np.ones((n_concepts, n_samples, cells), bool)
    masks[least] = False
    masks[:, here] = False
    bitmap = rng.random((n_samples, cells)) < 0.3
    bitmap[here] = False
    for cell, concept in enumerate(small[:3]):
        masks[concept, here, cell] = bitmap[here, cell] = True
    masks[[least, full], here] = ~bitmap[here]
    return masks, bitmap


def _weighted(rng: np.random.Generator, bitmap: np.ndarray, masks: np.ndarray) -> Case:
    """Counts in place of single locations: powers of two, off by one, so that ratios nearly tie.

    Half of the cases keep to the bitmap, so that it takes long formulas to explain them.
    """
    shape = masks.shape[1:]
    scale = int(rng.choice(WEIGHT_BITS))
    counts = rng.integers(0, 4, (2, *shape))
    if rng.random() < 0.5:
        counts *= np.stack([bitmap, ~bitmap])
    inside, outside = np.maximum((counts << scale) + rng.integers(-1, 2, (2, *shape)), 0)
    inside.flat[0] = max(inside.flat[0], 1)
    outside.flat[0] += 1  # never all ones, which would make it a table of masks
    return Case(masks, inside, outside)


def _concept(
    rng: np.random.Generator, style: str, before: np.ndarray, shape: tuple[int, ...]
) -> np.ndarray:
    earlier = before[rng.integers(len(before))] if len(before) else rng.random(shape) < 0.5
    match style:
        case "half" | "sparse" | "dense":
            return rng.random(shape) < DENSITY[style]
        case "empty":
            return np.zeros(shape, bool)
        case "full":
            return np.ones(shape, bool)
        case "duplicate":
            return earlier.copy()
        case "nested":
            return earlier & (rng.random(shape) < 0.5)
        case "disjoint":
            return (rng.random(shape) < 0.5) & ~before.any(axis=0)
        case "complement":
            return ~earlier
        case "scene":
            return np.repeat(rng.random((shape[0], 1)) < 0.5, shape[1], axis=1)
        case "uneven":
            return rng.random(shape) < rng.choice(UNEVEN, (shape[0], 1))
        case _:
            raise AssertionError(style)


def _neuron(rng: np.random.Generator, style: str, masks: np.ndarray) -> np.ndarray:
    shape = masks.shape[1:]
    match style:
        case "half" | "sparse" | "dense":
            return rng.random(shape) < DENSITY[style]
        case "concept":
            return masks[rng.integers(len(masks))].copy()
        case "pair" | "formula" | "noisy":
            held = masks[rng.integers(len(masks))]
            for k in rng.permutation(len(masks))[: 1 if style == "pair" else 3]:
                held = (held | masks[k], held & masks[k], held & ~masks[k])[rng.integers(3)]
            return held ^ (rng.random(shape) < 0.1) if style == "noisy" else held.copy()
        case "union":
            return np.logical_or.reduce(masks[rng.permutation(len(masks))[:3]], axis=0)
        case "rest":
            return np.logical_not(masks.any(axis=0))
        case "scene":
            return np.repeat(rng.random((shape[0], 1)) < 0.5, shape[1], axis=1)
        case _:
            raise AssertionError(style)
