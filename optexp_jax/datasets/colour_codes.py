"""From the colours of label maps to concept ids."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int32, UInt8

from optexp_jax.datasets.name_lists import Colour
from optexp_jax.datasets.values import UnknownValuesError


@dataclass(frozen=True, eq=False)
class ColourCodes:
    """The concept id of each colour; colours that are not listed are an error."""

    colours: Int32[np.ndarray, " colours"]
    """Ascending, each as red * 65536 + green * 256 + blue."""
    ids: Int32[np.ndarray, " colours"]
    meaning: str
    """Where the colours are listed, for the error."""

    @classmethod
    def of(cls, ids: Mapping[Colour, int], meaning: str) -> "ColourCodes":
        """From pairs colour, id; an id of -1 stands for no concept."""
        packed = {(r << 16) | (g << 8) | b: concept for (r, g, b), concept in ids.items()}
        ordered = sorted(packed)
        return cls(
            np.array(ordered, np.int32), np.array([packed[c] for c in ordered], np.int32), meaning
        )

    def decode(
        self, channels: UInt8[np.ndarray, "height width 3"], path: Path, sample: str
    ) -> Int32[np.ndarray, "height width"]:
        """Concept ids of a label map; the file is named if a colour is unknown."""
        red, green, blue = (channels[:, :, k].astype(np.int32) for k in range(3))
        packed = (red << 16) | (green << 8) | blue
        place = np.minimum(np.searchsorted(self.colours, packed), len(self.colours) - 1)
        unknown = np.unique(packed[self.colours[place] != packed]).tolist()
        if unknown:
            shown = [f"{c >> 16} {c >> 8 & 255} {c & 255}" for c in unknown]
            raise UnknownValuesError(sample, path, self.meaning, tuple(shown), "colours")
        return self.ids[place]
