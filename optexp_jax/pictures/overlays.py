"""Overlays of many units, with every photograph decoded once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8

from optexp_jax.formulas.formula import Formula
from optexp_jax.pictures.masks import UnitMask, unit_masks
from optexp_jax.pictures.overlay import OverlayStyle, draw_overlay, fit_image
from optexp_jax.pictures.sample_images import SampleImages
from optexp_jax.runs.sources import UnitSource


@dataclass(frozen=True, eq=False)
class UnitPicture:
    """A unit on a sample: the photograph, and the same with the overlay."""

    mask: UnitMask
    image: UInt8[np.ndarray, "height width 3"]
    overlay: UInt8[np.ndarray, "height width 3"]

    @property
    def unit(self) -> int:
        return self.mask.unit

    @property
    def sample(self) -> int:
        return self.mask.sample


def overlays(
    source: UnitSource,
    images: SampleImages,
    shown: Mapping[int, Sequence[int]],
    formulas: Mapping[int, Formula | None],
    *,
    side: int | None = 224,
    style: OverlayStyle = OverlayStyle(),
) -> Iterator[UnitPicture]:
    """Pictures of the samples that are shown of each unit, sample by sample in ascending order.

    `shown` names samples by unit, `formulas` what explains each unit. Pictures come as they are
    drawn: one photograph is held at a time, and whoever asks decides what to keep.
    """
    images.require(source.table.n_samples)
    last, image = -1, np.empty((0, 0, 3), np.uint8)
    for mask in unit_masks(source, shown, formulas):
        if mask.sample != last:
            last, image = mask.sample, fit_image(images.image(mask.sample), side)
        yield UnitPicture(mask, image, draw_overlay(image, mask.active, mask.held, style))
