"""Datasets of images with one label map each, in files of their own."""

import abc
from pathlib import Path

import numpy as np
from jaxtyping import Int32, UInt8

from optexp_jax.datasets.images import check_aspect, read_image
from optexp_jax.datasets.orientation import Exif
from optexp_jax.datasets.protocol import Sample


class AbstractLabelledImages(abc.ABC):
    """What such datasets have in common; a subclass says where files are and how to read labels."""

    names: tuple[str, ...]
    """Images, relative to their split's folder, sorted."""
    exif: Exif

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> Sample:
        name, image, labels = self.names[index], self.image(index), self._labels(index)
        check_aspect(image.shape[:2], labels.shape, self._label_path(index), name)
        return Sample(name, image, (labels,))

    def sample_names(self) -> tuple[str, ...]:
        """Names of all samples, without reading them."""
        return self.names

    def image(self, index: int) -> UInt8[np.ndarray, "height width 3"]:
        """An image without its labels."""
        return read_image(self._image_path(index), self.names[index], self.exif)

    def files(self) -> tuple[Path, ...]:
        """All files, for the fingerprint."""
        every = range(len(self))
        return (*map(self._image_path, every), *map(self._label_path, every))

    @abc.abstractmethod
    def _image_path(self, index: int) -> Path: ...

    @abc.abstractmethod
    def _label_path(self, index: int) -> Path: ...

    @abc.abstractmethod
    def _labels(self, index: int) -> Int32[np.ndarray, "height width"]: ...
