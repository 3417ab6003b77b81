"""Datasets that are in memory already: images with label maps or boolean masks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Int32, Integer, UInt8

from optexp_jax.concepts.inputs import check_categories, check_names, to_bool, to_numpy
from optexp_jax.concepts.labels import LabelLayer, LayerCoder, Vocabulary, check_label_map
from optexp_jax.datasets.protocol import BadSampleError, ConceptInfo, Sample
from optexp_jax.datasets.values import maps_of_masks


@dataclass(frozen=True, eq=False)
class LabelMaps:
    """Integer maps, one sequence a layer, and the concept ids of their values."""

    layers: tuple[tuple[Integer[np.ndarray, "_ _"], ...], ...]
    coders: tuple[LayerCoder, ...]

    def of(self, index: int) -> tuple[Int32[np.ndarray, "_ _"], ...]:
        return tuple(
            coder.encode(layer[index].reshape(-1)).reshape(layer[index].shape)
            for coder, layer in zip(self.coders, self.layers, strict=True)
        )


@dataclass(frozen=True, eq=False)
class ConceptMasks:
    """Boolean masks, for each sample one a concept."""

    masks: tuple[Bool[np.ndarray, "concepts _ _"], ...]

    def of(self, index: int) -> tuple[Int32[np.ndarray, "_ _"], ...]:
        return maps_of_masks({k: mask for k, mask in enumerate(self.masks[index]) if mask.any()})


@dataclass(frozen=True, eq=False)
class ArrayDataset:
    """Images and annotations given as numpy, JAX or torch arrays. Use `from_...` to make one."""

    images: tuple[UInt8[np.ndarray, "_ _ 3"], ...]
    infos: tuple[ConceptInfo, ...]
    annotations: LabelMaps | ConceptMasks
    everywhere: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]

    @classmethod
    def from_label_maps(
        cls,
        images: Any,
        maps: Sequence[Any],
        layers: Sequence[LabelLayer],
        sample_labels: Sequence[str | Iterable[str] | None] | None = None,
        sample_category: str | None = "scene",
        sample_names: Sequence[str] | None = None,
    ) -> "ArrayDataset":
        """From integer maps `[sample, height, width]`, one a layer.

        `layers[k]` says what the values of `maps[k]` mean; `sample_labels[x]` names the concepts
        that hold on all of image x. Images and maps may be lists, of different sizes then.
        """
        pictures = _images(images)
        if len(maps) != len(layers):
            raise ValueError(f"There are {len(layers)} layers but {len(maps)} stacks of maps.")
        vocabulary = Vocabulary()
        coders = tuple(LayerCoder(layer, vocabulary) for layer in layers)
        stacks = tuple(_label_maps(stack, k, len(pictures)) for k, stack in enumerate(maps))
        everywhere = _sample_labels(sample_labels, sample_category, vocabulary, len(pictures))
        return cls(
            pictures,
            tuple(map(ConceptInfo, vocabulary.ids, vocabulary.categories)),
            LabelMaps(stacks, coders),
            everywhere,
            check_sample_names(sample_names, len(pictures)),
        )

    @classmethod
    def from_masks(
        cls,
        images: Any,
        masks: Any,
        names: Sequence[str] | None = None,
        categories: Sequence[str | None] | None = None,
        sample_names: Sequence[str] | None = None,
    ) -> "ArrayDataset":
        """From booleans `[concept, sample, height, width]`, which may overlap.

        For images of different sizes pass a list of `[concept, height, width]`, one a sample.
        """
        pictures = _images(images)
        if isinstance(masks, list | tuple):
            stack = [to_bool(mask, f"masks of sample {x}") for x, mask in enumerate(masks)]
        else:
            whole = to_bool(masks, "masks")
            if whole.ndim != 4:
                raise ValueError(
                    f"masks must be [concept, sample, height, width]; got {list(whole.shape)}."
                )
            stack = list(whole.swapaxes(0, 1))
        _check_count(len(stack), len(pictures), "masks")
        n_concepts = len(stack[0])
        for x, mask in enumerate(stack):
            if mask.ndim != 3 or len(mask) != n_concepts or 0 in mask.shape:
                raise ValueError(
                    f"Masks of sample {x} must be [concept, height, width] with {n_concepts} "
                    f"concepts; got {list(mask.shape)}."
                )
        checked = check_names(names, n_concepts)
        infos = map(ConceptInfo, checked, check_categories(categories, n_concepts))
        return cls(
            pictures,
            tuple(infos),
            ConceptMasks(tuple(stack)),
            ((),) * len(pictures),
            check_sample_names(sample_names, len(pictures)),
        )

    def concepts(self) -> tuple[ConceptInfo, ...]:
        return self.infos

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Sample:
        name = self.names[index]
        try:
            maps = self.annotations.of(index)
        except ValueError as error:  # A value that has no name.
            raise BadSampleError(name, str(error)) from error
        return Sample(name, self.images[index], maps, self.everywhere[index])

    def sample_names(self) -> tuple[str, ...]:
        return self.names

    def image(self, index: int) -> UInt8[np.ndarray, "height width 3"]:
        return self.images[index]

    def describe(self) -> str:
        return f"arrays: {len(self)} images, {len(self.infos)} concepts"


def to_rgb(image: Any, what: str) -> UInt8[np.ndarray, "height width 3"]:
    """One image as RGB: uint8 or floats from 0 to 1, channels last or first, grey or with alpha."""
    values = to_numpy(image, what)
    if values.ndim == 2:
        values = values[:, :, None]
    elif values.ndim == 3 and values.shape[2] not in (1, 3, 4) and values.shape[0] in (1, 3, 4):
        values = np.moveaxis(values, 0, 2)
    if values.ndim != 3 or values.shape[2] not in (1, 3, 4) or 0 in values.shape:
        raise ValueError(
            f"{what} must be [height, width, 3], [3, height, width] or [height, width]; got "
            f"{list(values.shape)}."
        )
    if np.issubdtype(values.dtype, np.floating):
        if not (values.min() >= 0 and values.max() <= 1):  # Not so with NaN either.
            raise ValueError(
                f"{what} holds floats outside 0 to 1 (or NaN); undo its normalisation, or pass "
                "uint8."
            )
        values = np.rint(values * 255).astype(np.uint8)
    elif np.issubdtype(values.dtype, np.signedinteger) and 0 <= values.min() <= values.max() <= 255:
        values = values.astype(np.uint8)  # Lists of numbers come so, and arrays of HuggingFace.
    if values.dtype != np.uint8:
        raise TypeError(
            f"{what} must be uint8, or floats from 0 to 1; got {values.dtype}"
            + (
                f" from {values.min()} to {values.max()}."
                if np.issubdtype(values.dtype, np.number)
                else "."
            )
        )
    values = values[:, :, :3]
    return np.ascontiguousarray(np.repeat(values, 3, axis=2) if values.shape[2] == 1 else values)


def check_sample_names(names: Sequence[str] | None, n_samples: int) -> tuple[str, ...]:
    """Names as given, distinct, or `sample0, sample1, ...`."""
    if names is None:
        width = len(str(n_samples - 1))
        return tuple(f"sample{x:0{width}d}" for x in range(n_samples))
    _check_count(len(names), n_samples, "sample_names")
    if len(set(names)) != n_samples:
        raise ValueError("sample_names must be distinct.")
    return tuple(names)


def _images(images: Any) -> tuple[UInt8[np.ndarray, "_ _ 3"], ...]:
    pictures = tuple(to_rgb(image, f"image {x}") for x, image in enumerate(images))
    if not pictures:
        raise ValueError("There is no image: pass at least one.")
    return pictures


def _label_maps(stack: Any, layer: int, n_samples: int) -> tuple[Integer[np.ndarray, "_ _"], ...]:
    maps = tuple(
        check_label_map(values, f"map {layer} of sample {x}") for x, values in enumerate(stack)
    )
    _check_count(len(maps), n_samples, f"maps of layer {layer}")
    for x, values in enumerate(maps):
        if values.ndim != 2 or 0 in values.shape:
            raise ValueError(
                f"Map {layer} of sample {x} must be [height, width]; got {list(values.shape)}."
            )
    return maps


def _sample_labels(
    labels: Sequence[str | Iterable[str] | None] | None,
    category: str | None,
    vocabulary: Vocabulary,
    n_samples: int,
) -> tuple[tuple[int, ...], ...]:
    if labels is None:
        return ((),) * n_samples
    _check_count(len(labels), n_samples, "sample_labels")
    listed = [[] if one is None else [one] if isinstance(one, str) else list(one) for one in labels]
    return tuple(
        tuple(dict.fromkeys(vocabulary.add(name, category) for name in names)) for names in listed
    )


def _check_count(count: int, n_samples: int, what: str) -> None:
    if count != n_samples:
        raise ValueError(f"There are {n_samples} images but {count} {what}.")
