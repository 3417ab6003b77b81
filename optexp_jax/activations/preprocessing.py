"""From an image to what a model takes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, UInt8
from PIL import Image

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Preprocessing:
    """RGB, resized straight to (size, size) with PIL's bilinear filter, over 255, normalised."""

    size: int = 224
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD

    def __post_init__(self) -> None:
        if self.size < 1 or min(self.std) <= 0:
            raise ValueError(
                f"Images need a positive size and standard deviation; got {self.size}, {self.std}."
            )

    def __call__(
        self, image: UInt8[np.ndarray, "height width 3"]
    ) -> Float32[np.ndarray, "3 {self.size} {self.size}"]:
        """One image as the model's input."""
        resized = Image.fromarray(image).resize((self.size, self.size), Image.Resampling.BILINEAR)
        pixels = np.asarray(resized, np.float32) / np.float32(255)
        mean, std = np.array(self.mean, np.float32), np.array(self.std, np.float32)
        return np.ascontiguousarray(((pixels - mean) / std).transpose(2, 0, 1))

    def to_text(self) -> str:
        """What the activations' key keeps of it."""
        return json.dumps({"size": self.size, "mean": self.mean, "std": self.std})

    def changed(
        self,
        size: int | None = None,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
    ) -> "Preprocessing":
        """A copy with what is given replaced."""
        return Preprocessing(
            self.size if size is None else size,
            self.mean if mean is None else _triple(mean, "mean"),
            self.std if std is None else _triple(std, "std"),
        )


def _triple(values: Sequence[float], name: str) -> tuple[float, float, float]:
    if len(values) != 3:
        raise ValueError(f"{name} needs a value for red, green and blue; got {list(values)}.")
    red, green, blue = values
    return red, green, blue
