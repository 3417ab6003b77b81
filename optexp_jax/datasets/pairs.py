"""Any sequence of images with their masks: datasets of torchvision, of HuggingFace, lists."""

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Int32, UInt8
from PIL import Image

from optexp_jax.concepts.inputs import check_names, to_numpy
from optexp_jax.concepts.labels import LabelLayer, LayerCoder, Vocabulary, check_label_map
from optexp_jax.datasets.arrays import check_sample_names, to_rgb
from optexp_jax.datasets.images import check_aspect, labels_of, rgb_of
from optexp_jax.datasets.orientation import Exif
from optexp_jax.datasets.protocol import BadSampleError, ConceptInfo, Sample
from optexp_jax.datasets.soft_masks import SoftConcepts, soft_concepts
from optexp_jax.datasets.values import maps_of_masks
from optexp_jax.internal.own_code import place_of

Names = Mapping[int, str] | Sequence[str] | Sequence[LabelLayer]
_IMAGE_KEYS = ("image", "img", "pixel_values", "jpg", "png")
_MASK_KEYS = (
    *("annotation", "mask", "masks", "label", "labels", "segmentation", "label_map", "seg"),
    *("segmentation_map", "segmentation_mask"),
)


@dataclass(frozen=True, eq=False)
class Pair:
    """What one item of the sequence holds."""

    image: Any
    masks: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class PairDataset:
    """A sequence of pairs (image, masks), read one at a time. `from_pairs` makes one."""

    pairs: Any
    """With `len` and `[index]`."""
    infos: tuple[ConceptInfo, ...]
    coders: tuple[LayerCoder, ...]
    """Of label maps, one for each map of an item."""
    soft: SoftConcepts | None
    names: tuple[str, ...]
    keys: tuple[str | None, str | None]
    """Of image and masks in items that are dictionaries; None to look for the usual ones."""
    exif: Exif

    def concepts(self) -> tuple[ConceptInfo, ...]:
        return self.infos

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> Sample:
        name, pair = self.names[index], self._pair(index)
        image = self._rgb(pair, name)
        try:
            maps = self._maps(pair.masks)
        except (ValueError, TypeError) as error:
            raise BadSampleError(name, f"its mask: {error}") from error
        for ids in maps:
            check_aspect(image.shape[:2], ids.shape, "its mask", name)
        return Sample(name, image, maps)

    def sample_names(self) -> tuple[str, ...]:
        return self.names

    def image(self, index: int) -> UInt8[np.ndarray, "height width 3"]:
        return self._rgb(self._pair(index), self.names[index])

    def describe(self) -> str:
        kind = type(self.pairs).__name__
        return f"pairs of {kind}: {len(self)} images, {len(self.infos)} concepts"

    def _pair(self, index: int) -> Pair:
        try:
            item = self.pairs[index]
        except Exception as error:  # It is not our code.
            raise BadSampleError(
                self.names[index],
                f"item {index} of {type(self.pairs).__name__} raised {type(error).__name__}: "
                f"{error} ({place_of(error)}).",
            ) from error
        try:
            return _split(item, self.keys)
        except ValueError as error:
            raise BadSampleError(self.names[index], str(error)) from error

    def _rgb(self, pair: Pair, name: str) -> UInt8[np.ndarray, "height width 3"]:
        try:
            if isinstance(pair.image, Image.Image):
                return rgb_of(pair.image, self.exif)
            return to_rgb(pair.image, "the image")
        except Exception as error:  # Files are decoded only now, and can make a decoder raise.
            raise BadSampleError(name, str(error) or type(error).__name__) from error

    def _maps(self, masks: tuple[Any, ...]) -> tuple[Int32[np.ndarray, "_ _"], ...]:
        arrays = [_to_array(mask, self.exif) for mask in masks]
        if self.soft is not None:
            return self.soft.maps(_stacked(arrays))
        if all(array.dtype == np.bool_ for array in arrays):
            return self._of_booleans(_stacked(arrays))
        if len(arrays) != len(self.coders):
            raise ValueError(
                f"there are {len(arrays)} label maps and names for {len(self.coders)}; pass as "
                "names a LabelLayer for each of them."
            )
        return tuple(
            coder.encode(plane.reshape(-1)).reshape(plane.shape)
            for coder, plane in zip(self.coders, map(_plane, arrays), strict=True)
        )

    def _of_booleans(
        self, masks: Bool[np.ndarray, "concepts height width"]
    ) -> tuple[Int32[np.ndarray, "height width"], ...]:
        if len(masks) != len(self.infos):
            raise ValueError(
                f"there are {len(masks)} boolean masks and {len(self.infos)} names; they go "
                "together one to one."
            )
        return maps_of_masks({k: mask for k, mask in enumerate(masks) if mask.any()})


def from_pairs(
    pairs: Any,
    names: Names,
    *,
    ignore: int | Collection[int] = 255,
    thresholds: float | Sequence[float] | None = None,
    category: str | None = None,
    image: str | None = None,
    mask: str | None = None,
    sample_names: Sequence[str] | None = None,
    exif: str | None = None,
) -> PairDataset:
    """A dataset of any sequence of images with masks: of torchvision, HuggingFace, or a list.

    An item is `(image, mask)`, `(image, [mask, ...])`, or a dictionary; `image` and `mask` name the
    keys of its two parts, where they are not the usual ones. A mask is a PIL image or an array of
    numpy, JAX or torch:

    - integers `[height, width]` are a label map: `names` says what the values mean, as a dictionary
      or as a sequence from 0 on, and `ignore` which values mean nothing. For several label maps,
      `names` is a sequence of `LabelLayer`;
    - booleans `[concept, height, width]` are masks, which may overlap: `names` names them in order;
    - with `thresholds`, floats `[concept, height, width]` are soft masks: a concept holds above
      its threshold. Several thresholds make nested concepts, such as `dog>0.3` and `dog>0.5`.

    `exif` is "apply" or "ignore", if PIL images are to be shown turned.
    """
    _check_sequence(pairs)
    vocabulary = Vocabulary()
    soft, coders = None, ()
    if thresholds is not None:
        soft = soft_concepts(_plain_names(names), thresholds)
        for name in soft.names:
            vocabulary.add(name, category)
    else:
        coders = tuple(LayerCoder(layer, vocabulary) for layer in _layers(names, category, ignore))
    return PairDataset(
        pairs,
        tuple(map(ConceptInfo, vocabulary.ids, vocabulary.categories)),
        coders,
        soft,
        check_sample_names(sample_names, len(pairs)),
        (image, mask),
        Exif.parse(exif),
    )


def _check_sequence(pairs: Any) -> None:
    kind = type(pairs).__name__
    if isinstance(pairs, Mapping):
        raise TypeError(
            f"from_pairs takes one sequence of (image, mask); got {kind} with "
            f"{', '.join(map(repr, list(pairs)[:8]))}. Pass one of its splits."
        )
    if hasattr(pairs, "__len__") and hasattr(pairs, "__getitem__"):
        if not len(pairs):
            raise ValueError("There is no image: pass at least one (image, mask).")
        return
    hint = " Pass its .dataset." if hasattr(pairs, "dataset") else ""
    raise TypeError(
        f"from_pairs takes a sequence, with len(...) and [index], because samples are read again "
        f"and in any order; got {kind}.{hint} Pass list(...) of it if that fits memory, or an "
        "object with __len__ and __getitem__."
    )


def _plain_names(names: Names) -> tuple[str, ...]:
    listed = None if isinstance(names, str | Mapping) else list(names)
    if listed is None or any(isinstance(name, LabelLayer) for name in listed):
        raise TypeError(f"names must be a sequence of strings, one a mask; got {names!r}.")
    return check_names([str(name) for name in listed], len(listed))


def _layers(
    names: Names, category: str | None, ignore: int | Collection[int]
) -> tuple[LabelLayer, ...]:
    if not isinstance(names, str | Mapping):
        layers = tuple(layer for layer in names if isinstance(layer, LabelLayer))
        if layers and len(layers) == len(names):
            return layers
    ignored = {ignore} if isinstance(ignore, int) else set(ignore)
    plain = LabelLayer(names, category)  # pyright: ignore[reportArgumentType] said by items()
    named = {value for value, _ in plain.items()}
    return (LabelLayer(plain.names, category, tuple(sorted(ignored - named))),)


def _split(item: Any, keys: tuple[str | None, str | None]) -> Pair:
    if isinstance(item, Mapping):
        image = item[_key(item, keys[0], _IMAGE_KEYS, "image")]
        masks = item[_key(item, keys[1], _MASK_KEYS, "mask")]
    elif isinstance(item, tuple | list) and len(item) == 2:
        image, masks = item
    else:
        size = f" of {len(item)}" if isinstance(item, tuple | list) else ""
        raise ValueError(
            f"it must be (image, mask) or a dictionary; got {type(item).__name__}{size}."
        )
    if isinstance(masks, Mapping):
        raise ValueError(
            f"its second part is a dictionary with {', '.join(map(repr, list(masks)[:8]))}; pass "
            "the masks themselves."
        )
    if isinstance(masks, list) and masks and all(isinstance(row, list) for row in masks):
        masks = to_numpy(masks, "the mask")  # One array, as HuggingFace gives those it stores.
    return Pair(image, tuple(masks) if isinstance(masks, tuple | list) else (masks,))


def _key(item: Mapping[Any, Any], given: str | None, usual: Sequence[str], what: str) -> str:
    if given is not None and given in item:
        return given
    found = [key for key in usual if key in item] if given is None else []
    if len(found) == 1:
        return found[0]
    has = ", ".join(map(repr, list(item)[:12]))
    near = difflib.get_close_matches(given or "", list(map(str, item)), n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    said = f"no key {given!r}" if given is not None else f"no key that is surely the {what}"
    raise ValueError(f"it has {said}.{hint} Say {what}=KEY of from_pairs; its keys: {has}.")


def _to_array(mask: Any, exif: Exif) -> np.ndarray:
    if isinstance(mask, Image.Image):
        labels = labels_of(mask, exif)
        return labels.astype(np.bool_) if mask.mode == "1" else labels
    if mask is None:
        raise ValueError("it is None.")
    return to_numpy(mask, "the mask")


def _plane(array: np.ndarray) -> np.ndarray:
    """A label map, without an axis of size one in front."""
    if array.ndim == 3 and 1 in (array.shape[0], array.shape[2]):
        array = array.reshape([size for size in array.shape if size != 1] or [1, 1])
    if np.issubdtype(array.dtype, np.floating):
        raise TypeError(
            "it holds floats. Label maps are integers: do not scale them to 0 to 1 (torchvision's "
            "PILToTensor does not). For soft masks pass thresholds=."
        )
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"a label map is [height, width]; got {list(array.shape)}.")
    return check_label_map(array, "it")


def _stacked(arrays: list[np.ndarray]) -> np.ndarray:
    """Masks [concept, height, width], given as one array or one by one."""
    planes = [plane for array in arrays for plane in (array if array.ndim == 3 else [array])]
    shapes = {plane.shape for plane in planes}
    if len(shapes) != 1 or len(planes[0].shape) != 2 or 0 in planes[0].shape:
        raise ValueError(
            f"masks are [concept, height, width]; got {[list(array.shape) for array in arrays]}."
        )
    return np.stack(planes)
