"""Photographs and masks for the pages: each photograph once, and what units add to it as bits.

A page draws activation and formula itself, from the masks of the unit and of each concept. So a
concept can be shown alone, and a photograph serves all units that it is shown for.
"""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float32, Int32, UInt8

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.formulas.formula import Formula
from optexp_jax.pictures import (
    SampleAreas,
    SampleImages,
    SampleOrder,
    choose_samples,
    draw_overlay,
    encode_image,
    fit_image,
    pack_sprite,
    unit_masks,
)
from optexp_jax.runs.sources import HasPeaks, UnitSource

SHOWN = {
    SampleOrder.PEAK: 12,
    SampleOrder.RANDOM: 8,
    SampleOrder.EXTRAS: 8,
    SampleOrder.MISSED: 8,
}
"""Samples of a unit in each gallery."""
SIDES = (240, 200, 168, 136, 112, 96)
"""Longer sides of photographs, in pixels, from which the largest is taken that keeps the size."""
MOST_BYTES = 50e6
"""Of all photographs together, about."""
BYTES_PER_PIXEL = 0.26
"""Of a JPEG file of a photograph, at the most."""
THUMB = 64
THUMB_COLUMNS = 16


@dataclass(frozen=True)
class ShownSamples:
    """The samples that are shown of a unit, by gallery, and what the formula does in each."""

    galleries: Mapping[SampleOrder, tuple[int, ...]]
    areas: Mapping[int, tuple[int, int, int]]
    """Captured, missed and extra locations of each sample that is shown."""

    @property
    def samples(self) -> tuple[int, ...]:
        return tuple(self.areas)


def choose_shown(
    source: UnitSource, unit: int, counts: NeuronCounts, formula: Formula | None
) -> ShownSamples:
    """The samples to show of a unit. Without raw activations, the top ones are the most active."""
    areas = SampleAreas.of(source.table, counts, formula)
    peaks: Float32[np.ndarray, " samples"] | None = None
    if isinstance(source, HasPeaks):
        peaks = source.peaks(unit)
    galleries: dict[SampleOrder, tuple[int, ...]] = {}
    for order, count in SHOWN.items():
        by_peak = order is SampleOrder.PEAK
        asked = SampleOrder.ACTIVE if by_peak and peaks is None else order
        galleries[order] = choose_samples(areas, asked, count, seed=unit, peaks=peaks)
    shown = dict.fromkeys(sample for chosen in galleries.values() for sample in chosen)
    return ShownSamples(
        galleries,
        {
            x: (int(areas.captured[x]), int(areas.missed[x]), int(areas.extras[x]))
            for x in sorted(shown)
        },
    )


@dataclass(frozen=True)
class Photo:
    """A photograph in the report's folder."""

    file: str
    width: int
    height: int


@dataclass(frozen=True, eq=False)
class Pictures:
    """What the pages of a layer need to draw: photographs, masks and thumbnails."""

    photos: Mapping[int, Photo]
    """By sample."""
    masks: Mapping[int, Mapping[int, tuple[str, ...]]]
    """By unit and sample: where the unit is active, and each concept of its formula, as text."""
    thumbs: Mapping[int, int]
    """The place of each unit in the sprite of thumbnails."""


def write_pictures(
    source: UnitSource,
    images: SampleImages,
    shown: Mapping[int, ShownSamples],
    formulas: Mapping[int, Formula | None],
    folder: Path,
    tell: Callable[[int, int], None],
) -> Pictures:
    """Write photographs and thumbnails; every photograph is decoded once, for all units."""
    table = source.table
    images.require(table.n_samples)
    (folder / "photos").mkdir(exist_ok=True)
    wanted = {unit: each.samples for unit, each in shown.items()}
    every = sorted({sample for samples in wanted.values() for sample in samples})
    side = _side(len(every))
    top = {unit: next(iter(each.galleries[SampleOrder.PEAK]), None) for unit, each in shown.items()}
    photos: dict[int, Photo] = {}
    masks: dict[int, dict[int, tuple[str, ...]]] = {unit: {} for unit in shown}
    small: dict[int, UInt8[np.ndarray, "_ _ 3"]] = {}
    members = {
        concept: table.signatures.membership(table.concept_id(concept))
        for concept in {
            name for formula in formulas.values() if formula for name in formula.concepts
        }
    }
    reading = _sample_grids(table, every)
    image, grid = np.empty((0, 0, 3), np.uint8), np.empty((0, 0), np.int32)
    for mask in unit_masks(source, wanted, formulas):
        if mask.sample not in photos:
            image = fit_image(images.image(mask.sample), side)
            name = f"photos/{mask.sample}.jpg"
            (folder / name).write_bytes(encode_image(image, "JPEG", 78))
            photos[mask.sample] = Photo(name, image.shape[1], image.shape[0])
            grid = next(reading)
            tell(len(photos), len(every))
        formula = formulas[mask.unit]
        concepts = () if formula is None else formula.canonical.concepts
        masks[mask.unit][mask.sample] = (
            pack_mask(mask.active),
            *(pack_mask(members[concept][grid]) for concept in concepts),
        )
        if top[mask.unit] == mask.sample:
            small[mask.unit] = _square(draw_overlay(image, mask.active, mask.held))
    units = sorted(small)
    if units:
        sprite = pack_sprite([small[unit] for unit in units], THUMB_COLUMNS)
        (folder / "thumbs.jpg").write_bytes(encode_image(sprite.pixels, "JPEG", 72))
    return Pictures(photos, masks, {unit: place for place, unit in enumerate(units)})


def pack_mask(mask: Bool[np.ndarray, "rows columns"]) -> str:
    """A mask as text, the shorter of two: `r` and lengths of runs, the first of them outside the
    mask; or `b` and its bits as base64, row by row."""
    flat = mask.reshape(-1)
    edges = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    runs = np.diff(edges, prepend=0, append=len(flat)).tolist()
    lengths = runs if not flat[0] else [0, *runs]
    as_runs = "r" + ",".join(map(str, lengths))
    if len(as_runs) <= len(flat) // 6:
        return as_runs
    return "b" + base64.b64encode(np.packbits(flat).tobytes()).decode()


def _sample_grids(
    table: ConceptTable, samples: Sequence[int]
) -> Iterator[Int32[np.ndarray, "rows columns"]]:
    """Signature maps of ascending samples; a chunk on disk is read once."""
    located = table.require_map("The report")
    shape = located.location_shape or (1, 1)
    for sample, ranks in zip(samples, located.rows(np.array(samples, np.int64)), strict=True):
        yield table.patches.signature[table.patches.indptr[sample] + ranks].reshape(shape)


def _side(n: int) -> int:
    """The largest side with which so many photographs, three by four, stay small enough."""
    fitting = [side for side in SIDES if n * side * side * 0.75 * BYTES_PER_PIXEL <= MOST_BYTES]
    return fitting[0] if fitting else SIDES[-1]


def _square(image: UInt8[np.ndarray, "h w 3"]) -> UInt8[np.ndarray, "side side 3"]:
    """The middle of an image as a thumbnail."""
    side = min(image.shape[:2])
    top, left = (image.shape[0] - side) // 2, (image.shape[1] - side) // 2
    return fit_image(image[top : top + side, left : left + side], THUMB)
