"""Concepts that any dataset can add, because the image alone tells them: colours and positions."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int32, UInt8

from optexp_jax.datasets.colours import default_namer, default_prototypes
from optexp_jax.datasets.protocol import (
    ConceptInfo,
    Dataset,
    NamesSamples,
    Sample,
    describe,
    files_of,
    image_of,
)

NONE = -1


@runtime_checkable
class Derivation(Protocol):
    """A rule that finds concepts in an image."""

    def concepts(self) -> tuple[ConceptInfo, ...]:
        """What it finds."""
        ...

    def maps(self, image: UInt8[np.ndarray, "h w 3"]) -> tuple[Int32[np.ndarray, "_ _"], ...]:
        """Where: places in its `concepts()`, -1 for none."""
        ...


@dataclass(frozen=True)
class Colour:
    """The name of each pixel's colour, `red-c` and so on: one of eleven for every pixel."""

    def concepts(self) -> tuple[ConceptInfo, ...]:
        """The eleven basic colour terms."""
        return tuple(ConceptInfo(f"{name}-c", "colour") for name in default_prototypes().names)

    def maps(self, image: UInt8[np.ndarray, "h w 3"]) -> tuple[Int32[np.ndarray, "_ _"], ...]:
        """One map of the image's resolution."""
        return (default_namer()(image),)


@dataclass(frozen=True)
class Position:
    """Thirds of the image, downwards and across."""

    def concepts(self) -> tuple[ConceptInfo, ...]:
        """Three from top to bottom, three from left to right."""
        names = ("top-p", "middle-p", "bottom-p", "left-p", "centre-p", "right-p")
        return tuple(ConceptInfo(name, "position") for name in names)

    def maps(self, image: UInt8[np.ndarray, "h w 3"]) -> tuple[Int32[np.ndarray, "_ _"], ...]:
        """Maps of three cells: a map is stretched over the image, so these are exact thirds."""
        thirds = np.arange(3, dtype=np.int32)
        return thirds[:, None], thirds[None, :] + 3


DERIVATIONS: dict[str, Derivation] = {"colour": Colour(), "position": Position()}


@dataclass(frozen=True)
class WithDerived:
    """A dataset with derived concepts behind its own."""

    base: Dataset
    names: tuple[str, ...]
    """What is derived, as `DERIVATIONS` has it."""

    @cached_property
    def _concepts(self) -> tuple[ConceptInfo, ...]:
        derived = (concept for name in self.names for concept in DERIVATIONS[name].concepts())
        return (*self.base.concepts(), *derived)

    def concepts(self) -> Sequence[ConceptInfo]:
        """The dataset's own concepts, then the derived ones."""
        return self._concepts

    def __len__(self) -> int:
        return len(self.base)

    def __getitem__(self, index: int) -> Sample:
        """The sample with the derived maps behind its own."""
        sample = self.base[index]
        maps = list(sample.maps)
        first = len(self.base.concepts())
        for name in self.names:
            derivation = DERIVATIONS[name]
            maps += [
                np.where(found == NONE, NONE, found + first).astype(np.int32)
                for found in derivation.maps(sample.image)
            ]
            first += len(derivation.concepts())
        return Sample(sample.name, sample.image, tuple(maps), sample.everywhere)

    def image(self, index: int) -> UInt8[np.ndarray, "height width 3"]:
        """The image alone."""
        return image_of(self.base, index)

    def sample_names(self) -> Sequence[str]:
        """The dataset's own."""
        base = self.base
        if isinstance(base, NamesSamples):
            return base.sample_names()
        return [base[index].name for index in range(len(base))]

    def files(self) -> Sequence[Path]:
        """The dataset's files."""
        return files_of(self.base)

    def describe(self) -> str:
        """The dataset's line, and what is added."""
        n_derived = len(self._concepts) - len(self.base.concepts())
        return f"{describe(self.base)}; {n_derived} derived ({', '.join(self.names)})"


def with_derived(dataset: Dataset, names: Sequence[str]) -> Dataset:
    """The dataset with concepts derived from its images: "colour", "position", or both.

    A dataset that has a concept of such a name keeps it, so the derivation is refused: two
    meanings under one name would be one concept.
    """
    if isinstance(names, str):
        raise TypeError(f"Pass a list of derivations, ({names!r},), not a string.")
    for name in names:
        if name not in DERIVATIONS:
            near = difflib.get_close_matches(name, DERIVATIONS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"There are no derived concepts {name!r}.{hint} There are: "
                f"{', '.join(DERIVATIONS)}."
            )
    distinct = tuple(dict.fromkeys(names))
    own = {concept.name for concept in dataset.concepts()}
    for name in distinct:
        both = [c.name for c in DERIVATIONS[name].concepts() if c.name in own]
        if both:
            raise ValueError(
                f"The dataset has concepts of its own called {', '.join(both)}, so {name!r} cannot "
                f"be added. Leave {name!r} out: the dataset's own annotations are used."
            )
    return WithDerived(dataset, distinct) if distinct else dataset
