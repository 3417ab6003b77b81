"""From an image to what a model takes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float32, UInt8
from PIL import Image

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


Filter = Literal["nearest", "bilinear", "bicubic", "lanczos", "box", "hamming"]
"""How PIL resizes."""
FILTERS: tuple[Filter, ...] = get_args(Filter)
Protocol = Literal["whole", "weights", "paper"]
"""What is done to images: as the weights state it but with the whole image; exactly as the weights
state it, cropped; or as in the paper, whatever the weights state."""
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)


@dataclass(frozen=True)
class Preprocessing:
    """RGB, resized to (size, size) with a filter of PIL, over 255, normalised.

    The whole image is stretched to that square, so that maps of units lie over the masks of
    concepts. With `shorter`, its shorter side is resized to that instead and the middle cropped.
    """

    size: int = 224
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD
    filter: Filter = "bilinear"
    shorter: int | None = None

    def __post_init__(self) -> None:
        if self.filter not in FILTERS:
            raise ValueError(f"Filters are {', '.join(FILTERS)}; got {self.filter!r}.")
        if self.shorter is not None and self.shorter < self.size:
            raise ValueError(
                f"Images of which the shorter side is {self.shorter} cannot be cropped to "
                f"{self.size}."
            )
        if self.size < 1 or min(self.std) <= 0:
            raise ValueError(
                f"Images need a positive size and standard deviation; got {self.size}, {self.std}."
            )

    def __call__(
        self, image: UInt8[np.ndarray, "height width 3"]
    ) -> Float32[np.ndarray, "3 {self.size} {self.size}"]:
        """One image as the model's input."""
        resized = self._resized(Image.fromarray(image))
        pixels = np.asarray(resized, np.float32) / np.float32(255)
        mean, std = np.array(self.mean, np.float32), np.array(self.std, np.float32)
        return np.ascontiguousarray(((pixels - mean) / std).transpose(2, 0, 1))

    def _resized(self, image: Image.Image) -> Image.Image:
        how = Image.Resampling[self.filter.upper()]
        if self.shorter is None:
            return image.resize((self.size, self.size), how)
        # As torchvision does: the longer side is rounded down, the margins to the nearest even.
        width, height = image.size
        least = min(width, height)
        sides = (self.shorter * width // least, self.shorter * height // least)
        left, top = (round((side - self.size) / 2) for side in sides)
        return image.resize(sides, how).crop((left, top, left + self.size, top + self.size))

    def cropped_from(self, shorter: int) -> "Preprocessing":
        """A copy that resizes the shorter side to this and crops the middle."""
        return replace(self, shorter=shorter)

    def to_text(self) -> str:
        """What the activations' key keeps of it."""
        return json.dumps(
            {
                "size": self.size,
                "mean": self.mean,
                "std": self.std,
                "filter": self.filter,
                "shorter": self.shorter,
            }
        )

    def changed(
        self,
        size: int | None = None,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
    ) -> "Preprocessing":
        """A copy with what is given replaced."""
        return replace(
            self,
            size=self.size if size is None else size,
            mean=self.mean if mean is None else _triple(mean, "mean"),
            std=self.std if std is None else _triple(std, "std"),
        )


def _triple(values: Sequence[float], name: str) -> tuple[float, float, float]:
    if len(values) != 3:
        raise ValueError(f"{name} needs a value for red, green and blue; got {list(values)}.")
    red, green, blue = values
    return red, green, blue
