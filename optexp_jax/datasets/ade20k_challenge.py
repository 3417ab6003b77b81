"""ADE20K with 150 classes, as `ADEChallengeData2016` is distributed."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int32

from optexp_jax.datasets.images import read_labels
from optexp_jax.datasets.labelled_images import AbstractLabelledImages
from optexp_jax.datasets.layout import files_below, listing, read_rows, to_integer
from optexp_jax.datasets.orientation import Exif
from optexp_jax.datasets.protocol import ConceptInfo, LayoutError
from optexp_jax.datasets.values import NONE, ValueCodes, distinct

CLASS_FILES = ("objectInfo150.txt", "object150_info.csv")
"""The list of classes: the one that comes with the images, or that of the authors' code."""
_MAX_INDEX = 255
"""Label maps have 8 bits."""


@dataclass(frozen=True, eq=False)
class ADE20KChallenge(AbstractLabelledImages):
    """One split of the scene parsing benchmark: 150 classes, one label map an image."""

    root: Path
    split: str
    infos: tuple[ConceptInfo, ...]
    codes: ValueCodes
    source: Path
    names: tuple[str, ...]
    exif: Exif = Exif.REFUSE

    def concepts(self) -> tuple[ConceptInfo, ...]:
        return self.infos

    def describe(self) -> str:
        return (
            f"ADE20K, scene parsing, {self.split}: {len(self)} images, {len(self.infos)} concepts "
            f"({self.source.name})"
        )

    def _image_path(self, index: int) -> Path:
        return self.root / "images" / self.split / self.names[index]

    def _label_path(self, index: int) -> Path:
        path = self.root / "annotations" / self.split / self.names[index]
        return path.with_suffix(".png")

    def _labels(self, index: int) -> Int32[np.ndarray, "height width"]:
        path, name = self._label_path(index), self.names[index]
        return self.codes.decode(read_labels(path, name, self.exif), path, name)


def is_challenge(folder: Path) -> bool:
    """Whether a folder is laid out as the benchmark is."""
    parts = [folder / part for part in ("images", "annotations")]
    return all(part.is_dir() for part in parts) and not (folder / "images" / "ADE").exists()


def open_challenge(root: Path, classes: Path | None, split: str, exif: Exif) -> ADE20KChallenge:
    """The benchmark in `root`; `classes` is its list, if it lies elsewhere."""
    folder = root / "images" / split
    if not folder.is_dir():
        found = sorted(path.name for path in folder.parent.iterdir())
        raise LayoutError(
            f"ADE20K: there is no split {split!r} in {folder.parent}, which has {listing(found)}."
        )
    images = files_below(folder, [".jpg"])
    if not images:
        raise LayoutError(f"ADE20K: there are no images *.jpg in {folder}.")
    source = classes or next((root / f for f in CLASS_FILES if (root / f).is_file()), None)
    if source is None:
        raise LayoutError(
            f"ADE20K: no class list. {root} has neither {' nor '.join(CLASS_FILES)}; give one with "
            "the option classes=FILE."
        )
    names = _read_classes(source)
    infos = tuple(
        ConceptInfo(name, "object") for name in distinct(list(names.values()), list(names))
    )
    places = {index: place for place, index in enumerate(names)}
    return ADE20KChallenge(
        root,
        split,
        infos,
        ValueCodes.of({0: NONE, _MAX_INDEX: NONE, **places}, source.name),
        source,
        tuple(path.relative_to(folder).as_posix() for path in images),
        exif,
    )


def _read_classes(path: Path) -> dict[int, str]:
    """Names by index, ascending: a table with the columns Idx and Name and any others."""
    names: dict[int, str] = {}
    for row in read_rows(path, ["idx", "name"], "ADE20K"):
        index = to_integer(row["idx"], path, "Idx")
        if not 1 <= index < _MAX_INDEX or index in names:
            raise LayoutError(
                f"ADE20K: {path} lists the index {index} twice, or it is not from 1 to "
                f"{_MAX_INDEX - 1}."
            )
        names[index] = row["name"]
    if not names:
        raise LayoutError(f"ADE20K: {path} lists no classes.")
    return dict(sorted(names.items()))
