"""Paint: colours with names, laid on in textures."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Bool, Float32, Int32

from optexp_jax.datasets.colours import Prototypes
from optexp_jax.datasets.shapes.vocabulary import CONCEPT_IDS, TEXTURES

JITTER = 0.03
"""How far a paint may lie from its prototype, in each channel (of 0 to 1)."""
WIDE, NARROW = 0.13, 0.075
"""Periods of textures, in shorter sides of the image: still visible at 64 pixels."""


@dataclass(frozen=True, eq=False)
class Shade:
    """A shade of a named colour."""

    name: str
    rgb: Float32[np.ndarray, "3"]

    @property
    def concept(self) -> int:
        return CONCEPT_IDS[f"{self.name}-c"]


@dataclass(frozen=True, eq=False)
class Paint:
    """One colour, or two in a pattern."""

    texture: str
    first: Shade
    second: Shade
    period: float
    """Of the pattern, in shorter sides of the image."""
    grain: Bool[np.ndarray, "16 16"]
    """What "speckled-t" repeats."""

    def pattern(
        self, x: Float32[np.ndarray, "h w"], y: Float32[np.ndarray, "h w"]
    ) -> Bool[np.ndarray, "h w"]:
        """Where the second colour is; x and y are in shorter sides of the image."""
        across, down = x / self.period, y / self.period
        match self.texture:
            case "striped-t":
                return across % 1 < 0.5
            case "dotted-t":
                return np.hypot(across % 1 - 0.5, down % 1 - 0.5) < 0.34
            case "checked-t":
                return (across % 1 < 0.5) != (down % 1 < 0.5)
            case "grid-t":
                return (across % 1 < 0.28) | (down % 1 < 0.28)
            case "wavy-t":
                return (down + 0.22 * np.sin(2 * np.pi * across)) % 1 < 0.5
            case "zigzag-t":
                return (down + np.abs(across % 1 - 0.5)) % 1 < 0.5
            case "speckled-t":
                row, column = (np.floor(4 * axis).astype(np.int32) % 16 for axis in (down, across))
                return self.grain[row, column]
            case _:
                return np.zeros(x.shape, bool)

    def lay(
        self, x: Float32[np.ndarray, "h w"], y: Float32[np.ndarray, "h w"]
    ) -> tuple[Float32[np.ndarray, "h w 3"], Int32[np.ndarray, "h w"]]:
        """Its colours, as RGB and as concepts."""
        if self.texture == "plain-t":
            shape = x.shape
            return (
                np.broadcast_to(self.first.rgb, (*shape, 3)),
                np.full(shape, self.first.concept, np.int32),
            )
        second = self.pattern(x, y)
        rgb = np.where(second[..., None], self.second.rgb, self.first.rgb)
        concepts = np.where(second, self.second.concept, self.first.concept)
        return rgb, concepts.astype(np.int32)


class Painter:
    """Mixes paints at random."""

    def __init__(self, rng: np.random.Generator):
        self._rng = rng

    def colour(self, names: Sequence[str]) -> Shade:
        """A shade of one of these colours."""
        name = names[int(self._rng.integers(len(names)))]
        shades = _paints().of(name)
        rgb = shades[self._rng.integers(len(shades))] / 255
        return Shade(
            name, np.clip(rgb + self._rng.uniform(-JITTER, JITTER, 3), 0, 1).astype(np.float32)
        )

    def plain(self, *names: str) -> Paint:
        """A paint without a pattern."""
        colour = self.colour(names)
        return Paint("plain-t", colour, colour, WIDE, _NO_GRAIN)

    def mixed(
        self,
        names: Sequence[str],
        others: Sequence[str] | None = None,
        textures: Sequence[str] = TEXTURES[1:],
        plain: float = 0.45,
        speckles: float = 0.3,
    ) -> Paint:
        """A paint that has a pattern, except with the probability `plain`.

        The second colour is one of `others`, or a different one of the same names. `speckles` is
        its share where the texture is speckled.
        """
        if self._rng.random() < plain:
            return self.plain(*names)
        first = self.colour(names)
        rest = others or [name for name in names if name != first.name]
        return Paint(
            textures[int(self._rng.integers(len(textures)))],
            first,
            self.colour(rest),
            self._rng.uniform(NARROW, WIDE),
            self._rng.random((16, 16)) < speckles,
        )


@cache
def _paints() -> Prototypes:
    """Full shades of the colours, fewer and stronger than those that pixels are named by."""
    return Prototypes.read("paints.csv")


_NO_GRAIN = np.zeros((16, 16), bool)
