"""Colour names of pixels: the nearest prototype in CIELAB, where distance follows the eye.

The names are the eleven basic colour terms. The prototypes are a choice, not a measurement: several
sRGB colours a name, in `data/colours.csv`, on a coarse grid of lightness, chroma and hue, so that
pale and dark shades have one near them too.
"""

import csv
import importlib.resources
from dataclasses import dataclass
from functools import cache
from typing import Self

import numpy as np
from jaxtyping import Float64, Int32, UInt8

BASIC_COLOURS = (
    "black",
    "white",
    "grey",
    "red",
    "orange",
    "yellow",
    "green",
    "blue",
    "purple",
    "pink",
    "brown",
)

# Linear sRGB to CIE XYZ, IEC 61966-2-1. White has Y = 1.
_TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
_WHITE = _TO_XYZ.sum(axis=1)  # D65, exactly as the matrix has it, so that white is a = b = 0.
_N_COLOURS = 2**24
_UNKNOWN = -1
_COLOURS_AT_ONCE = 2**13


def srgb_to_lab(colours: UInt8[np.ndarray, "*shape 3"]) -> Float64[np.ndarray, "*shape 3"]:
    """CIELAB (D65) of sRGB colours: L from 0 to 100, a and b around 0."""
    encoded = colours / 255
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    ratio = linear @ _TO_XYZ.T / _WHITE
    # The CIE's definition: a cube root, and a straight line near black.
    bent = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio * (29 / 6) ** 2 / 3 + 4 / 29)
    x, y, z = bent[..., 0], bent[..., 1], bent[..., 2]
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


@dataclass(frozen=True, eq=False)
class Prototypes:
    """Colours that stand for names, several a name."""

    names: tuple[str, ...]
    """The distinct names."""
    owners: Int32[np.ndarray, " prototypes"]
    """For each prototype, the place of its name."""
    colours: UInt8[np.ndarray, "prototypes 3"]
    """sRGB."""

    @classmethod
    def read(cls, name: str = "colours.csv") -> Self:
        """Prototypes from a file that comes with the package."""
        source = importlib.resources.files("optexp_jax.datasets") / "data" / name
        rows = list(csv.DictReader(source.read_text(encoding="utf-8").splitlines()))
        return cls(
            BASIC_COLOURS,
            np.array([BASIC_COLOURS.index(row["name"]) for row in rows], np.int32),
            np.array([[row["red"], row["green"], row["blue"]] for row in rows]).astype(np.uint8),
        )

    def of(self, name: str) -> UInt8[np.ndarray, "_ 3"]:
        """The colours that stand for a name."""
        return self.colours[self.owners == self.names.index(name)]

    def nearest(self, colours: UInt8[np.ndarray, "n 3"]) -> Int32[np.ndarray, " n"]:
        """The place of the nearest prototype's name; the first prototype wins a tie."""
        ours = srgb_to_lab(self.colours)
        chosen = np.empty(len(colours), np.int64)
        # A large photograph has a million colours; all distances at once would be gigabytes.
        for start in range(0, len(colours), _COLOURS_AT_ONCE):
            part = slice(start, start + _COLOURS_AT_ONCE)
            # |x - p|^2 without |x|^2, which is the same for all prototypes p.
            distance = (ours**2).sum(axis=1) - 2 * srgb_to_lab(colours[part]) @ ours.T
            chosen[part] = distance.argmin(axis=1)
        return self.owners[chosen]


class ColourNamer:
    """Names pixels; every colour that was met is remembered (16 MB), so images go quickly."""

    def __init__(self, prototypes: Prototypes):
        self.prototypes = prototypes
        self._known = np.full(_N_COLOURS, _UNKNOWN, np.int8)

    def __call__(self, image: UInt8[np.ndarray, "h w 3"]) -> Int32[np.ndarray, "h w"]:
        """For each pixel, the place of its colour's name."""
        wide = image.astype(np.int32)
        codes = wide[..., 0] << 16 | wide[..., 1] << 8 | wide[..., 2]
        found = self._known[codes]
        new = np.unique(codes[found == _UNKNOWN])
        if len(new):
            colours = np.stack([new >> 16, new >> 8 & 255, new & 255], axis=1).astype(np.uint8)
            self._known[new] = self.prototypes.nearest(colours)
            found = self._known[codes]
        return found.astype(np.int32)


@cache
def default_prototypes() -> Prototypes:
    """The package's prototypes, read once."""
    return Prototypes.read()


@cache
def default_namer() -> ColourNamer:
    """The namer of the package's prototypes, one a process."""
    return ColourNamer(default_prototypes())
