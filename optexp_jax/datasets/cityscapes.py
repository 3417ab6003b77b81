"""Cityscapes with fine annotations, as distributed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int32

from optexp_jax.datasets.images import read_labels
from optexp_jax.datasets.labelled_images import AbstractLabelledImages
from optexp_jax.datasets.layout import check_root, files_below, listing
from optexp_jax.datasets.orientation import Exif
from optexp_jax.datasets.protocol import BadSampleError, ConceptInfo, LayoutError
from optexp_jax.datasets.values import NONE, ValueCodes


@dataclass(frozen=True)
class CityscapesClass:
    """A class that benchmarks use; its train id is its place in the list."""

    name: str
    id: int
    category: str


CLASSES = (
    CityscapesClass("road", 7, "flat"),
    CityscapesClass("sidewalk", 8, "flat"),
    CityscapesClass("building", 11, "construction"),
    CityscapesClass("wall", 12, "construction"),
    CityscapesClass("fence", 13, "construction"),
    CityscapesClass("pole", 17, "object"),
    CityscapesClass("traffic light", 19, "object"),
    CityscapesClass("traffic sign", 20, "object"),
    CityscapesClass("vegetation", 21, "nature"),
    CityscapesClass("terrain", 22, "nature"),
    CityscapesClass("sky", 23, "sky"),
    CityscapesClass("person", 24, "human"),
    CityscapesClass("rider", 25, "human"),
    CityscapesClass("car", 26, "vehicle"),
    CityscapesClass("truck", 27, "vehicle"),
    CityscapesClass("bus", 28, "vehicle"),
    CityscapesClass("train", 31, "vehicle"),
    CityscapesClass("motorcycle", 32, "vehicle"),
    CityscapesClass("bicycle", 33, "vehicle"),
)
_OTHERS = (
    CityscapesClass("unlabeled", 0, "void"),
    CityscapesClass("ego vehicle", 1, "void"),
    CityscapesClass("rectification border", 2, "void"),
    CityscapesClass("out of roi", 3, "void"),
    CityscapesClass("static", 4, "void"),
    CityscapesClass("dynamic", 5, "void"),
    CityscapesClass("ground", 6, "void"),
    CityscapesClass("parking", 9, "flat"),
    CityscapesClass("rail track", 10, "flat"),
    CityscapesClass("guard rail", 14, "construction"),
    CityscapesClass("bridge", 15, "construction"),
    CityscapesClass("tunnel", 16, "construction"),
    CityscapesClass("polegroup", 18, "object"),
    CityscapesClass("caravan", 29, "vehicle"),
    CityscapesClass("trailer", 30, "vehicle"),
)
"""Classes that are left out of evaluations."""
_BY_ID = tuple(sorted((*CLASSES, *_OTHERS), key=lambda kind: kind.id))
_LISTS = {19: CLASSES, 30: _BY_ID[4:], 34: _BY_ID}
"""By how many classes they have: those of evaluations; all that say what is seen; all."""
_IGNORED = 255
_TRAIN_IDS = ValueCodes.of(
    {**{place: place for place in range(len(CLASSES))}, _IGNORED: NONE}, "the list of train ids"
)


def _ids_of(classes: Sequence[CityscapesClass]) -> ValueCodes:
    return ValueCodes.of(
        {
            **dict.fromkeys((*range(len(_BY_ID)), _IGNORED), NONE),
            **{kind.id: place for place, kind in enumerate(classes)},
        },
        "the list of label ids",
    )


_IMAGE_END = "_leftImg8bit.png"


@dataclass(frozen=True, eq=False)
class Cityscapes(AbstractLabelledImages):
    """One split of Cityscapes, one label map an image."""

    root: Path
    split: str
    names: tuple[str, ...]
    """Images, relative to their split's folder, sorted."""
    exif: Exif = Exif.REFUSE
    n_classes: int = 19

    def concepts(self) -> tuple[ConceptInfo, ...]:
        return tuple(ConceptInfo(kind.name, kind.category) for kind in _LISTS[self.n_classes])

    def describe(self) -> str:
        return f"Cityscapes, {self.split}: {len(self)} images, {self.n_classes} concepts"

    def _image_path(self, index: int) -> Path:
        return self.root / "leftImg8bit" / self.split / self.names[index]

    def _label_path(self, index: int) -> Path:
        """The map of train ids, which has to be made with a script, or else that of ids."""
        stem = self.names[index].removesuffix(_IMAGE_END)
        folder = self.root / "gtFine" / self.split
        made = folder / f"{stem}_gtFine_labelTrainIds.png"
        return (
            made
            if made.is_file() and self.n_classes == 19
            else folder / f"{stem}_gtFine_labelIds.png"
        )

    def _labels(self, index: int) -> Int32[np.ndarray, "height width"]:
        path, name = self._label_path(index), self.names[index]
        if not path.is_file():
            other = " nor its _labelTrainIds.png exists beside it." if self.n_classes == 19 else ""
            said = f"neither {path}{other}" if other else f"{path} does not exist."
            raise BadSampleError(name, said)
        trained = path.name.endswith("TrainIds.png")
        codes = _TRAIN_IDS if trained else _ids_of(_LISTS[self.n_classes])
        return codes.decode(read_labels(path, name, self.exif), path, name)


def open_cityscapes(
    root: Path, *, split: str = "val", classes: int = 19, exif: str | None = None
) -> Cityscapes:
    """Cityscapes in `root`, the folder with `leftImg8bit` and `gtFine`.

    `classes` is 19, those of evaluations; 30, with those that evaluations leave out; or 34, with
    the four that say why nothing is annotated. All but the first need `*_labelIds.png`. `exif` is
    "apply" or "ignore", if images are to be shown turned.
    """
    turned = Exif.parse(exif)
    if classes not in _LISTS:
        raise ValueError(f"Cityscapes has 19, 30 or 34 classes; got {classes}.")
    check_root(
        root,
        "Cityscapes",
        "leftImg8bit/ and gtFine/ (from leftImg8bit_trainvaltest.zip and gtFine_trainvaltest.zip)",
        lambda folder: (folder / "leftImg8bit").is_dir() and (folder / "gtFine").is_dir(),
    )
    folder = root / "leftImg8bit" / split
    if not folder.is_dir():
        found = sorted(path.name for path in (root / "leftImg8bit").iterdir())
        raise LayoutError(
            f"Cityscapes: there is no split {split!r} in {folder.parent}, which has "
            f"{listing(found) or 'nothing in it'}."
        )
    names = tuple(
        path.relative_to(folder).as_posix() for path in files_below(folder, [_IMAGE_END.lower()])
    )
    if not names:
        raise LayoutError(f"Cityscapes: there are no images CITY/*{_IMAGE_END} in {folder}.")
    return Cityscapes(root, split, names, turned, classes)
