"""Datasets that the tests of builds use, and what their tables must be."""

import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from optexp_jax import ConceptTable, TableBuilder
from optexp_jax.datasets import BadSampleError, ConceptInfo, Sample
from optexp_jax.datasets.build import build_table
from optexp_jax.datasets.parts import PART_SAMPLES

CONCEPTS = [ConceptInfo("a", "letter"), ConceptInfo("b", "letter"), ConceptInfo("7", "digit")]


@dataclass(frozen=True)
class Small:
    """Random samples with maps of all kinds of resolutions."""

    n: int = 5
    seed: int = 0
    bad: tuple[int, ...] = ()

    def concepts(self) -> Sequence[ConceptInfo]:
        return CONCEPTS

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> Sample:
        if index in self.bad:
            raise BadSampleError(f"{index}.png", "the file is cut off.")
        rng = np.random.default_rng([self.seed, index])
        maps = tuple(
            rng.integers(-1, 3, rng.integers(1, 9, 2)).astype(np.int32)
            for _ in range(rng.integers(0, 4))
        )
        everywhere = tuple(np.flatnonzero(rng.random(3) < 0.2).tolist())
        return Sample(f"{index}.png", np.zeros((4, 4, 3), np.uint8), maps, everywhere)


@dataclass(frozen=True)
class Dying(Small):
    """Takes its process with it, or only the reading of one sample."""

    error: bool = False

    def __getitem__(self, index: int) -> Sample:
        if index == 40:
            if self.error:
                raise RuntimeError("a fault of the dataset")
            os._exit(3)
        return super().__getitem__(index)


def plain_masks(dataset: Small, shape: tuple[int, int], kept: Sequence[int]) -> np.ndarray:
    """The masks of a dataset, written down pixel by pixel."""
    masks = np.zeros((3, len(kept), *shape), bool)
    for place, index in enumerate(kept):
        sample = dataset[index]
        for concept in sample.everywhere:
            masks[concept, place] = True
        for values in sample.maps:
            for i, j in np.ndindex(shape):
                source = i * values.shape[0] // shape[0], j * values.shape[1] // shape[1]
                if values[source] >= 0:
                    masks[values[source], place, i, j] = True
    return masks


def table_of_masks(masks: np.ndarray) -> ConceptTable:
    names, categories = zip(*[(c.name, c.category) for c in CONCEPTS], strict=True)
    return ConceptTable.from_masks(masks, names, categories)


CHEAP = Small(2 * PART_SAMPLES + 5)


@functools.cache
def cheap_fingerprint() -> str:
    return table_of_masks(plain_masks(CHEAP, (4, 4), range(len(CHEAP)))).fingerprint


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def make_parts_only(
    dataset: Small, out: Path, monkeypatch: pytest.MonkeyPatch, skip_bad: bool = False
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(TableBuilder, "build", interrupted)
        with pytest.raises(KeyboardInterrupt):
            build_table(dataset, out, mask_shape=(4, 4), skip_bad=skip_bad)
