"""A folder of images and soft masks, as a segmentation model has written them."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from optexp_jax.datasets.folder_tables import find_tables, read_names
from optexp_jax.datasets.images import IMAGE_SUFFIXES, check_aspect, read_image
from optexp_jax.datasets.label_arrays import read_score_array
from optexp_jax.datasets.layout import check_root, files_below, listing
from optexp_jax.datasets.orientation import Exif
from optexp_jax.datasets.protocol import BadSampleError, ConceptInfo, LayoutError, Sample
from optexp_jax.datasets.soft_masks import SoftConcepts, soft_concepts


@dataclass(frozen=True, eq=False)
class SoftFolder:
    """Images, each with an array `[concept, height, width]` of scores."""

    root: Path
    images: Path
    scores: Path
    table: Path
    soft: SoftConcepts
    names: tuple[str, ...]
    """Images, relative to their folder, sorted."""
    exif: Exif = Exif.REFUSE

    def concepts(self) -> tuple[ConceptInfo, ...]:
        return tuple(map(ConceptInfo, self.soft.names))

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> Sample:
        name, image, path = self.names[index], self.image(index), self._score_path(index)
        scores = read_score_array(path, name)
        check_aspect(image.shape[:2], scores.shape[1:], path, name)
        try:
            return Sample(name, image, self.soft.maps(scores))
        except ValueError as error:
            raise BadSampleError(name, f"{path}: {error}") from error

    def sample_names(self) -> tuple[str, ...]:
        return self.names

    def image(self, index: int) -> UInt8[np.ndarray, "height width 3"]:
        return read_image(self.images / self.names[index], self.names[index], self.exif)

    def files(self) -> tuple[Path, ...]:
        every = range(len(self))
        images = (self.images / name for name in self.names)
        return (self.table, *images, *map(self._score_path, every))

    def describe(self) -> str:
        above = ", ".join(f"{threshold:g}" for threshold in self.soft.thresholds)
        return (
            f"{self.root.resolve().name}: {len(self)} images, {len(self.soft.names)} concepts "
            f"(soft masks above {above})"
        )

    def _score_path(self, index: int) -> Path:
        return (self.scores / self.names[index]).with_suffix(".npy")


def open_soft(
    root: Path,
    *,
    images: str = "images",
    scores: str = "scores",
    names: str | None = None,
    thresholds: str | float = 0.5,
    exif: str | None = None,
) -> SoftFolder:
    """Images of the folder `images` and arrays `scores/NAME.npy`, `[concept, height, width]`.

    `names` is a list of the concepts in their order, one a line, or a table (value, name). A
    concept holds where its score is above the threshold; `thresholds=0.3+0.5` makes two nested
    concepts of each. `exif` is "apply" or "ignore", if images are to be shown turned.
    """
    turned = Exif.parse(exif)
    check_root(
        root,
        "Soft masks",
        f"{images}/ and {scores}/",
        lambda folder: (folder / images).is_dir() and (folder / scores).is_dir(),
    )
    table = find_tables(root, names, None, has_maps=True).names
    assert table is not None  # or it would have said what is missing
    rows = sorted(read_names(table), key=lambda row: -1 if row.value is None else row.value)
    if [row.value for row in rows] != list(range(len(rows))):
        raise LayoutError(
            f"Soft masks: {table} must name the concepts 0, 1, 2, ... in the order of the arrays."
        )
    found = files_below(root / images, IMAGE_SUFFIXES)
    if not found:
        raise LayoutError(f"Soft masks: there are no images in {root / images}.")
    stems = Counter(path.relative_to(root / images).with_suffix("").as_posix() for path in found)
    twice = sorted(stem for stem, count in stems.items() if count > 1)
    if twice:
        raise LayoutError(f"Soft masks: several images are called {listing(twice)}.")
    return SoftFolder(
        root,
        root / images,
        root / scores,
        table,
        soft_concepts([row.name for row in rows], _thresholds(thresholds)),
        tuple(path.relative_to(root / images).as_posix() for path in found),
        turned,
    )


def _thresholds(text: str | float) -> list[float]:
    try:
        return [float(part) for part in str(text).split("+")]
    except ValueError:
        raise ValueError(
            f"The option thresholds is a number, or several joined by +; got {text!r}."
        ) from None
