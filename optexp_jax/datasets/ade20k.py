"""ADE20K-Full, as distributed (`*_seg.png`) or prepared as 16-bit TIFF."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int32

from optexp_jax.datasets.ade20k_challenge import ADE20KChallenge, is_challenge, open_challenge
from optexp_jax.datasets.ade20k_classes import (
    INDEX_FILE,
    MATLAB_INDEX_FILE,
    AdeClasses,
    classes_from_file,
    classes_from_index,
    read_matlab_index,
)
from optexp_jax.datasets.images import read_channels, read_labels
from optexp_jax.datasets.labelled_images import AbstractLabelledImages
from optexp_jax.datasets.layout import check_root, files_below, listing
from optexp_jax.datasets.orientation import Exif
from optexp_jax.datasets.protocol import ConceptInfo, LayoutError
from optexp_jax.datasets.safe_pickle import read_pickle
from optexp_jax.datasets.values import NONE, ValueCodes

_LOG = logging.getLogger(__name__)
_RAW_IMAGES = (Path("images", "ADE"), Path("images"))
"""Of the releases of 2021 and 2016."""
_PREPARED_IMAGES = Path("images_detectron2")
_PREPARED_LABELS = Path("annotations_detectron2")
_PREPARED_IGNORED = 65535
_N_IDS = 26 * 256
"""Ids that a pixel can hold: red is ten times the number that green, below 256, is added to."""


@dataclass(frozen=True, eq=False)
class ADE20K(AbstractLabelledImages):
    """One split of ADE20K-Full. Only objects are concepts; their parts are left out."""

    root: Path
    split: str
    prepared: bool
    classes: AdeClasses
    """With `classes.source`, where the list comes from."""
    codes: ValueCodes
    names: tuple[str, ...]
    """Images, relative to their split's folder, sorted by file name."""
    exif: Exif = Exif.REFUSE

    def concepts(self) -> tuple[ConceptInfo, ...]:
        return tuple(ConceptInfo(kind.name, "object") for kind in self.classes.classes)

    def describe(self) -> str:
        form = "prepared" if self.prepared else "as distributed"
        return (
            f"ADE20K-Full, {form}, {self.split}: {len(self)} images, "
            f"{len(self.classes.classes)} concepts ({self.classes.source})"
        )

    def _image_path(self, index: int) -> Path:
        return _images(self.root, self.prepared, self.split) / self.split / self.names[index]

    def _label_path(self, index: int) -> Path:
        path = self._image_path(index)
        if not self.prepared:
            return path.with_name(f"{path.stem}_seg.png")
        return (self.root / _PREPARED_LABELS / self.split / self.names[index]).with_suffix(".tif")

    def _labels(self, index: int) -> Int32[np.ndarray, "height width"]:
        path, name = self._label_path(index), self.names[index]
        if self.prepared:  # Train ids, of which most are above 255.
            return self.codes.decode(read_labels(path, name, self.exif), path, name)
        channels = read_channels(path, name, self.exif).astype(np.int32)
        return self.codes.decode(channels[:, :, 0] // 10 * 256 + channels[:, :, 1], path, name)


def open_ade20k(
    root: Path,
    *,
    classes: str | None = None,
    split: str = "validation",
    exif: str | None = None,
) -> ADE20K | ADE20KChallenge:
    """ADE20K in `root`, the folder with `images/ADE` (2021), `images` (2016), `images_detectron2`,
    or, with 150 classes, `images` and `annotations` (`ADEChallengeData2016`).

    `classes` is a CSV, TSV or JSON file with id, name and train id. Without it the classes are
    those that the dataset's `index_ade20k.pkl` knows as objects in training and validation images.
    `exif` is "apply" or "ignore", if images are to be shown turned.
    """
    turned = Exif.parse(exif)
    check_root(
        root,
        "ADE20K",
        f"{_RAW_IMAGES[0]}/ (as distributed), {_PREPARED_IMAGES}/ and {_PREPARED_LABELS}/, or "
        "images/ and annotations/ (150 classes)",
        lambda folder: _is_raw(folder) or _is_prepared(folder) or is_challenge(folder),
    )
    if is_challenge(root) and not _is_prepared(root):
        return open_challenge(
            root, None if classes is None else _file(root, classes), split, turned
        )
    prepared = _is_prepared(root)  # It is made beside the files as distributed.
    if prepared and not (root / _PREPARED_IMAGES / split).is_dir() and _is_raw(root):
        prepared = False  # Only the validation images are prepared as a rule.
    folder = _images(root, prepared, split) / split
    if not folder.is_dir():
        found = sorted(path.name for path in folder.parent.iterdir())
        raise LayoutError(
            f"ADE20K: there is no split {split!r} in {folder.parent}, which has {listing(found)}."
        )
    images = files_below(folder, [".jpg"])
    if not images:
        raise LayoutError(f"ADE20K: there are no images *.jpg in {folder}.")
    known = _classes(root, classes, prepared)
    _LOG.info("ADE20K: %d classes; %s.", len(known.classes), known.source)
    return ADE20K(
        root,
        split,
        prepared,
        known,
        ValueCodes.of(_codes(known, prepared), "the class list"),
        tuple(
            path.relative_to(folder).as_posix()
            for path in sorted(images, key=lambda path: (path.name, path))
        ),
        turned,
    )


def _classes(root: Path, given: str | None, prepared: bool) -> AdeClasses:
    if given is not None:
        return classes_from_file(_file(root, given))
    if prepared:
        raise LayoutError(
            "ADE20K, prepared: its pixels are train ids, so the list that it was prepared with is "
            "needed. Give it with the option classes=FILE (CSV, TSV or JSON: id, name, trainId)."
        )
    for name, read in ((INDEX_FILE, read_pickle), (MATLAB_INDEX_FILE, read_matlab_index)):
        index = root / name
        if index.is_file():
            return classes_from_index(index, read(index))
    raise LayoutError(
        f"ADE20K: no class list. There is no {root / INDEX_FILE}; give one with the option "
        "classes=FILE (CSV, TSV or JSON: id, name, trainId)."
    )


def _file(root: Path, given: str) -> Path:
    path = Path(given).expanduser()
    return path if path.is_absolute() or path.is_file() else root / path


def _codes(known: AdeClasses, prepared: bool) -> Mapping[int, int]:
    if prepared:
        return {_PREPARED_IGNORED: NONE, **{place: place for place in range(len(known.classes))}}
    # Every other id is a class that the list leaves out.
    listed = {kind.id: place for place, kind in enumerate(known.classes)}
    if max(listed) >= _N_IDS:
        raise LayoutError(
            f"ADE20K, {known.source}: id {max(listed)} is more than a pixel can hold, {_N_IDS - 1}."
        )
    return {**dict.fromkeys(range(_N_IDS), NONE), **listed}


def _images(root: Path, prepared: bool, split: str) -> Path:
    if prepared:
        return root / _PREPARED_IMAGES
    found = (root / folder for folder in _RAW_IMAGES if (root / folder / split).is_dir())
    return next(found, root / _RAW_IMAGES[_is_2016(root)])


def _is_raw(folder: Path) -> bool:
    return (folder / _RAW_IMAGES[0]).is_dir() or _is_2016(folder)


def _is_2016(folder: Path) -> bool:
    images = folder / _RAW_IMAGES[1]
    return any((images / split).is_dir() for split in ("training", "validation"))


def _is_prepared(folder: Path) -> bool:
    return (folder / _PREPARED_IMAGES).is_dir() and (folder / _PREPARED_LABELS).is_dir()
