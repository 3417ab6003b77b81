"""What an annotated dataset is: three methods, and the samples that they give."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int32, UInt8


@dataclass(frozen=True)
class ConceptInfo:
    """A concept that a dataset annotates. Names are distinct within a dataset."""

    name: str
    category: str | None = None


@dataclass(frozen=True, eq=False)
class Sample:
    """An image and the concepts annotated in it."""

    name: str
    """Unique and stable: the file name relative to the dataset, or similar."""
    image: UInt8[np.ndarray, "height width 3"]
    """RGB."""
    maps: tuple[Int32[np.ndarray, "_ _"], ...]
    """Concept ids, that is places in `concepts()`, with -1 for none. Any number of maps; each may
    have a resolution of its own and is stretched over the whole image."""
    everywhere: tuple[int, ...] = ()
    """Ids of the concepts that hold on the whole image."""


@runtime_checkable
class Dataset(Protocol):
    """Annotated images, read one at a time.

    A dataset may also have `image(index)`, which reads the image alone, `sample_names()`, the names
    of all samples, `files()`, the files that it reads, and `describe()`, a line about itself.
    Without them, whatever needs one makes do with the three methods.
    """

    def concepts(self) -> Sequence[ConceptInfo]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Sample:
        """Sample number `index`; BadSampleError, naming the file, if it cannot be read."""
        ...


@runtime_checkable
class ReadsImages(Protocol):
    """A dataset that can read an image without its annotations."""

    def image(self, index: int) -> UInt8[np.ndarray, "height width 3"]: ...


@runtime_checkable
class NamesSamples(Protocol):
    """A dataset that knows the names of its samples without reading them."""

    def sample_names(self) -> Sequence[str]: ...


@runtime_checkable
class ListsFiles(Protocol):
    """A dataset that knows which files it reads."""

    def files(self) -> Sequence[Path]: ...


@runtime_checkable
class DescribesItself(Protocol):
    """A dataset that can say what it is in a line."""

    def describe(self) -> str: ...


@runtime_checkable
class FindsMissingNames(Protocol):
    """A dataset that can say what its table of names lacks, over all samples."""

    def missing_names(self, sample: str) -> str | None:
        """That, if it is why this sample cannot be read."""
        ...


class BadSampleError(ValueError):
    """A sample that cannot be read: a file is missing, corrupt, or says what it must not."""

    def __init__(self, name: str, reason: str):
        super().__init__(name, reason)  # Both as arguments, so that it can be pickled.
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"Sample {self.name!r} cannot be read: {self.reason}"


class LayoutError(ValueError):
    """A folder or file that is not laid out as the dataset of that kind is."""


def image_of(dataset: Dataset, index: int) -> UInt8[np.ndarray, "height width 3"]:
    """The image of a sample, without reading its annotations where the dataset can do that."""
    if isinstance(dataset, ReadsImages):
        return dataset.image(index)
    return dataset[index].image


def files_of(dataset: Dataset) -> tuple[Path, ...]:
    """The files that a dataset reads, as far as it tells."""
    return tuple(dataset.files()) if isinstance(dataset, ListsFiles) else ()


def describe(dataset: Dataset) -> str:
    """One line about a dataset."""
    if isinstance(dataset, DescribesItself):
        return dataset.describe()
    return f"{type(dataset).__name__}: {len(dataset)} samples, {len(dataset.concepts())} concepts"


def check_sample(sample: Sample, n_concepts: int) -> Sample:
    """The sample, if it is one: what a dataset of one's own may get wrong is a BadSampleError."""

    def refuse(reason: str) -> BadSampleError:
        return BadSampleError(sample.name, reason)

    image = sample.image
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape:
        raise refuse(
            f"its image must be uint8 [height, width, 3]; got {image.dtype} {list(image.shape)}."
        )
    for place, values in enumerate(sample.maps):
        if values.dtype != np.int32 or values.ndim != 2 or 0 in values.shape:
            raise refuse(
                f"map {place} must be int32 [height, width]; got {values.dtype} "
                f"{list(values.shape)}."
            )
        low, high = int(values.min()), int(values.max())
        if low < -1 or high >= n_concepts:
            wrong = low if low < -1 else high
            raise refuse(
                f"map {place} holds {wrong}; concept ids are 0 to {n_concepts - 1}, and -1 is none."
            )
    for concept in sample.everywhere:
        if not 0 <= concept < n_concepts:
            raise refuse(f"`everywhere` holds {concept}; concept ids are 0 to {n_concepts - 1}.")
    return sample
