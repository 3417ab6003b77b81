"""Which samples these are, and in which order: what a table and activations must share."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from optexp_jax.datasets.protocol import Dataset, NamesSamples, files_of, image_of
from optexp_jax.datasets.spec import DatasetSpec

_ABOUT_IMAGES = ("exif", "images")
"""Options of datasets of files that change what a model is shown under the same names."""


def identify_samples(dataset: Dataset, spec: DatasetSpec | None, samples: Sequence[int]) -> str:
    """The identity of some samples of a dataset, in their order; it may read their images."""
    pixels = None
    if pixels_count(dataset, spec):
        pixels = [pixel_digest(image_of(dataset, index)) for index in samples]
    return hash_samples(_names(dataset, samples), pixels, spec)


def pixels_count(dataset: Dataset, spec: DatasetSpec | None) -> bool:
    """Whether the images themselves tell samples apart, and not their names and options alone.

    Arrays and datasets of one's own may be named by their place, which says nothing about their
    order. Names of files do, and files may be decoded otherwise by another image library.
    """
    generated = spec is not None and spec.root is None and ":" not in spec.kind
    return not files_of(dataset) and not generated


def pixel_digest(image: UInt8[np.ndarray, "height width 3"]) -> str:
    """A checksum of an image's pixels."""
    digest = hashlib.blake2b(repr(image.shape).encode(), digest_size=8)
    digest.update(np.ascontiguousarray(image).tobytes())
    return digest.hexdigest()


def hash_samples(
    names: Sequence[str], pixels: Sequence[str] | None, spec: DatasetSpec | None
) -> str:
    """A checksum of which samples these are; `pixels` are given where they count.

    Options of text that are not about images do not count: they are about annotations, or they are
    paths, and a dataset may be moved.
    """
    told: list[Any] = [list(names), pixels]
    if spec is not None:
        told += [spec.kind, list(_telling(spec.options))]
    return hashlib.blake2b(json.dumps(told).encode(), digest_size=16).hexdigest()


def _telling(options: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
    for name, value in options:
        if not isinstance(value, str):
            yield name, value
        elif name in _ABOUT_IMAGES:
            yield name, Path(value).name


def _names(dataset: Dataset, samples: Sequence[int]) -> list[str]:
    if isinstance(dataset, NamesSamples):
        names = dataset.sample_names()
        return [names[index] for index in samples]
    return [dataset[index].name for index in samples]
