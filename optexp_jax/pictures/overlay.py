"""Drawing a unit and a formula on a photograph.

Activation that the formula captures is blue, activation that it misses yellow, and what the formula
covers beyond the activation is outlined. All arithmetic is in integers, so that a picture is the
same on every machine up to how the photograph was scaled.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, UInt8
from PIL import Image

from optexp_jax.datasets.parts import resize_nearest

Colour = tuple[int, int, int]


@dataclass(frozen=True)
class OverlayStyle:
    """Colours and strengths of an overlay."""

    captured: Colour = (31, 99, 255)
    missed: Colour = (255, 208, 0)
    extras: Colour = (255, 64, 129)
    strength: int = 140
    """Of the colours over the photograph, from 0 to 255."""
    outline: int = 2
    """Width of the line around extras, in pixels."""


def fit_image(
    image: UInt8[np.ndarray, "h w 3"], side: int | None
) -> UInt8[np.ndarray, "height width 3"]:
    """The image in its own shape, its longer side `side` pixels; None leaves it as it is."""
    if side is None:
        return image
    if side < 1:
        raise ValueError(f"A picture has at least one pixel a side; got {side}.")
    height, width = image.shape[:2]
    scale = side / max(height, width)
    if scale == 1:
        return image
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    # Enlarged pixels are shown as they are; a smooth guess between them would mislead.
    method = Image.Resampling.NEAREST if scale > 1 else Image.Resampling.LANCZOS
    return np.asarray(Image.fromarray(image).resize(size, method))


def stretch_mask(
    mask: Bool[np.ndarray, "rows columns"], shape: tuple[int, int]
) -> Bool[np.ndarray, "height width"]:
    """A mask stretched over a picture of so many rows and columns: each pixel has its cell's."""
    return resize_nearest(mask.astype(np.int32), shape).astype(np.bool_)


def draw_overlay(
    image: UInt8[np.ndarray, "height width 3"],
    active: Bool[np.ndarray, "rows columns"],
    held: Bool[np.ndarray, "rows columns"] | None,
    style: OverlayStyle = OverlayStyle(),
) -> UInt8[np.ndarray, "height width 3"]:
    """The image with a unit's activation and what a formula covers; masks of any resolution.

    Without a formula, `held` is None, and all activation is missed.
    """
    if not 0 <= style.strength <= 255:
        raise ValueError(f"The strength of an overlay is 0 to 255; got {style.strength}.")
    shape = image.shape[0], image.shape[1]
    lit = stretch_mask(active, shape)
    covered = np.zeros(shape, np.bool_) if held is None else stretch_mask(held, shape)
    drawn = image.copy()
    for where, colour in ((lit & covered, style.captured), (lit & ~covered, style.missed)):
        drawn[where] = _blend(image[where], colour, style.strength)
    drawn[outline_of(covered & ~lit, style.outline)] = style.extras
    return drawn


def outline_of(
    mask: Bool[np.ndarray, "height width"], width: int
) -> Bool[np.ndarray, "height width"]:
    """The pixels of a mask nearer than `width` to one outside, straight on; the picture's edge is
    no outside."""
    core = mask
    for _ in range(width):
        padded = np.pad(core, 1, mode="edge")
        core = core & padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    return mask & ~core


def mask_layer(
    mask: Bool[np.ndarray, "rows columns"], colour: Colour, strength: int = 140
) -> UInt8[np.ndarray, "rows columns 4"]:
    """A mask as a transparent layer (RGBA) to be laid over a photograph."""
    layer = np.zeros((*mask.shape, 4), np.uint8)
    layer[mask] = (*colour, strength)
    return layer


def _blend(
    pixels: UInt8[np.ndarray, "n 3"], colour: Colour, strength: int
) -> UInt8[np.ndarray, "n 3"]:
    mixed = pixels.astype(np.int32) * (255 - strength) + np.array(colour, np.int32) * strength
    return ((mixed + 127) // 255).astype(np.uint8)
