"""`Shapes`: the generated scenes as a dataset."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, UInt8

from optexp_jax.datasets.protocol import ConceptInfo, Sample
from optexp_jax.datasets.shapes.canvas import Canvas
from optexp_jax.datasets.shapes.noise import smooth_noise
from optexp_jax.datasets.shapes.scenes import SceneMaker
from optexp_jax.datasets.shapes.vocabulary import CONCEPT_IDS, CONCEPTS, SCENES

SMALLEST = 8
"""Pixels of a side below which a scene shows nothing."""


@dataclass(frozen=True)
class Shapes:
    """Scenes drawn from a seed. Sample k depends on the seed, k and the size alone.

    `size` is the side of the square images, or (height, width). The annotations have the
    resolution of the images.
    """

    n: int = 1000
    seed: int = 0
    size: int | tuple[int, int] = 112

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"There must be at least one scene; n is {self.n}.")
        if self.seed < 0:
            raise ValueError(f"The seed must not be negative; it is {self.seed}.")
        if min(self.shape) < SMALLEST:
            raise ValueError(
                f"Scenes need sides of {SMALLEST} pixels or more; size is {self.size}."
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the images."""
        return self.size if isinstance(self.size, tuple) else (self.size, self.size)

    def concepts(self) -> Sequence[ConceptInfo]:
        """Shapes, objects, parts, colours, textures, sizes, materials, states and scene types."""
        return CONCEPTS

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> Sample:
        """Scene number `index`."""
        place = operator.index(index)
        if not 0 <= place < self.n:
            raise IndexError(f"There are {self.n} scenes, numbered from 0; asked for {index}.")
        layout = np.random.default_rng([self.seed, place])
        scene = SCENES[layout.integers(len(SCENES))]
        canvas = Canvas(*self.shape)
        SceneMaker(layout, scene).draw(canvas)
        return Sample(
            name=_name(place),
            image=_photograph(np.random.default_rng([self.seed, place, 1]), canvas.image),
            maps=canvas.maps(),
            everywhere=(CONCEPT_IDS[scene],),
        )

    def sample_names(self) -> tuple[str, ...]:
        """Scenes are numbered."""
        return tuple(map(_name, range(self.n)))

    def describe(self) -> str:
        """One line about the dataset."""
        height, width = self.shape
        return (
            f"shapes: {self.n} generated scenes of {height}x{width} pixels, seed {self.seed}, "
            f"{len(CONCEPTS)} concepts"
        )


def open_shapes(n: int = 1000, seed: int = 0, size: int = 112, width: int | None = None) -> Shapes:
    """The generated dataset: `shapes:n=200,seed=1,size=64`; `width` if it is not square."""
    return Shapes(n, seed, size if width is None else (size, width))


def _name(place: int) -> str:
    return f"scene-{place:06d}"


def _photograph(
    rng: np.random.Generator, painted: Float32[np.ndarray, "h w 3"]
) -> UInt8[np.ndarray, "h w 3"]:
    """The scene as a camera sees it: uneven and tinted light, a lens that blurs, noise."""
    height, width = painted.shape[:2]
    light = rng.uniform(0.85, 1.12) + 0.05 * smooth_noise(rng, height, width, 4)
    tint = rng.uniform(0.95, 1.05, 3).astype(np.float32)
    seen = painted * light[..., None].astype(np.float32) * tint
    seen = _blurred(seen, rng.uniform(0.05, 0.2))
    seen += np.float32(rng.uniform(0.005, 0.025)) * rng.standard_normal(seen.shape, np.float32)
    return (np.clip(seen, 0, 1) * 255 + 0.5).astype(np.uint8)


def _blurred(image: Float32[np.ndarray, "h w 3"], share: float) -> Float32[np.ndarray, "h w 3"]:
    """Each pixel gives `share` of its light to either neighbour, along both axes."""
    for axis in (0, 1):
        before, after = (np.roll(image, step, axis) for step in (1, -1))
        # At the border the picture goes on as it is.
        edges = [np.take(image, [place], axis) for place in (0, -1)]
        lead, trail = [slice(None)] * 3, [slice(None)] * 3
        lead[axis], trail[axis] = slice(0, 1), slice(-1, None)
        before[tuple(lead)], after[tuple(trail)] = edges
        image = np.float32(1 - 2 * share) * image + np.float32(share) * (before + after)
    return image
