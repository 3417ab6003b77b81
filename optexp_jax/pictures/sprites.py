"""Sprites: several pictures in one image file."""

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8
from PIL import Image

BACKGROUND = (128, 128, 128)
"""Of what no picture covers."""
LOSSY = ("JPEG", "WEBP")
FORMATS = (*LOSSY, "PNG")


@dataclass(frozen=True)
class Tile:
    """Where a picture lies in its sprite, in pixels."""

    left: int
    top: int
    width: int
    height: int


@dataclass(frozen=True, eq=False)
class Sprite:
    """Pictures side by side, and where each of them is."""

    pixels: UInt8[np.ndarray, "height width 3"]
    tiles: tuple[Tile, ...]
    """In the order of the pictures."""


def pack_sprite(pictures: Sequence[UInt8[np.ndarray, "_ _ 3"]], columns: int = 8) -> Sprite:
    """Pictures in rows of `columns`, each in the upper left of a cell that the largest fits."""
    if not pictures:
        raise ValueError("A sprite has at least one picture; got none.")
    if columns < 1:
        raise ValueError(f"A sprite has at least one column; got {columns}.")
    high = max(picture.shape[0] for picture in pictures)
    wide = max(picture.shape[1] for picture in pictures)
    across = min(columns, len(pictures))
    pixels = np.empty((-(-len(pictures) // across) * high, across * wide, 3), np.uint8)
    pixels[:] = BACKGROUND
    tiles: list[Tile] = []
    for place, picture in enumerate(pictures):
        height, width = picture.shape[:2]
        tile = Tile(place % across * wide, place // across * high, width, height)
        pixels[tile.top : tile.top + height, tile.left : tile.left + width] = picture
        tiles.append(tile)
    return Sprite(pixels, tuple(tiles))


def encode_image(
    pixels: UInt8[np.ndarray, "height width channels"], format: str = "JPEG", quality: int = 80
) -> bytes:
    """The bytes of an image file: JPEG, WEBP or PNG; with four channels not JPEG."""
    name = format.upper()
    if name not in FORMATS:
        raise ValueError(f"Images are written as {', '.join(FORMATS)}; got {format!r}.")
    if name == "JPEG" and pixels.shape[2] != 3:
        raise ValueError("JPEG has no transparency: write a layer as WEBP or PNG.")
    file = io.BytesIO()
    options = {"quality": quality} if name in LOSSY else {"optimize": True}
    Image.fromarray(pixels).save(file, name, **options)
    return file.getvalue()
