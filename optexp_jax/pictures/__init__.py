"""Pictures of units: which samples to show, and overlays of activation and formula on them.

The way through: `SampleImages.of_run(run)` gives the photographs, `SampleAreas.of(...)` counts what
a formula captures in each sample, `choose_samples` picks some, `overlays` draws them for many units
with each photograph decoded once, and `pack_sprite` puts several into one file. Masks alone come
from `formula_mask` and `unit_masks`. Whatever is missing for a picture is a `NoPicturesError` that
says what.
"""

from optexp_jax.pictures.areas import SampleAreas
from optexp_jax.pictures.choosing import SampleOrder, choose_samples
from optexp_jax.pictures.masks import UnitMask, formula_mask, signature_grid, unit_masks
from optexp_jax.pictures.missing import NoPicturesError
from optexp_jax.pictures.overlay import (
    OverlayStyle,
    draw_overlay,
    fit_image,
    mask_layer,
    stretch_mask,
)
from optexp_jax.pictures.overlays import UnitPicture, overlays
from optexp_jax.pictures.sample_images import SampleImages
from optexp_jax.pictures.sprites import Sprite, Tile, encode_image, pack_sprite

__all__ = [
    "NoPicturesError",
    "OverlayStyle",
    "SampleAreas",
    "SampleImages",
    "SampleOrder",
    "Sprite",
    "Tile",
    "UnitMask",
    "UnitPicture",
    "choose_samples",
    "draw_overlay",
    "encode_image",
    "fit_image",
    "formula_mask",
    "mask_layer",
    "overlays",
    "pack_sprite",
    "signature_grid",
    "stretch_mask",
    "unit_masks",
]
