"""Broden, as distributed: `broden1_224` and `broden1_227`."""

import logging
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int32, UInt8

from optexp_jax.datasets.images import check_aspect, read_channels, read_image
from optexp_jax.datasets.layout import (
    check_names_inside,
    check_root,
    inside,
    listing,
    read_rows,
    short,
    to_integer,
)
from optexp_jax.datasets.orientation import Exif
from optexp_jax.datasets.protocol import BadSampleError, ConceptInfo, LayoutError, Sample
from optexp_jax.datasets.values import NONE, ValueCodes, distinct

CATEGORIES = ("color", "object", "part", "material", "scene", "texture")
_NOT_CATEGORIES = frozenset({"image", "split", "ih", "iw", "sh", "sw"})
_CATEGORY_COUNT = re.compile(r"(.+)\(([0-9]{1,15})\)")
_NUMBER = re.compile(r"[0-9]{1,9}")
_MOST_LABELS = 2**16  # in the red and green of a pixel
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class BrodenRow:
    """One image of the index: its label maps, and the numbers that hold on all of it."""

    image: str
    maps: tuple[str, ...]
    numbers: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Broden:
    """Broden or a part of it. Concept ids are the label numbers; 0 is the empty concept.

    The empty concept has no name and no location. It stands there so that ids agree with the files
    and so that there are as many concepts as in published results: 1197 labels and this one.
    """

    root: Path
    part: str
    infos: tuple[ConceptInfo, ...]
    codes: ValueCodes
    rows: tuple[BrodenRow, ...]
    exif: Exif = Exif.REFUSE

    def concepts(self) -> tuple[ConceptInfo, ...]:
        return self.infos

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Sample:
        row = self.rows[index]
        image = self.image(index)
        maps = tuple(self._read_map(row, name) for name in row.maps)
        for name, values in zip(row.maps, maps, strict=True):
            check_aspect(image.shape[:2], values.shape, name, row.image)
        for number in row.numbers:
            if number >= len(self.infos):
                raise BadSampleError(row.image, f"index.csv gives it label {number}, unknown.")
        everywhere = tuple(dict.fromkeys(number for number in row.numbers if number != 0))
        return Sample(row.image, image, maps, everywhere)

    def sample_names(self) -> tuple[str, ...]:
        return tuple(row.image for row in self.rows)

    def image(self, index: int) -> UInt8[np.ndarray, "height width 3"]:
        name = self.rows[index].image
        return read_image(self._path(name, name), name, self.exif)

    def files(self) -> tuple[Path, ...]:
        images = self.root / "images"
        listed = [images / name for row in self.rows for name in (row.image, *row.maps)]
        return (self.root / "index.csv", self.root / "label.csv", *listed)

    def describe(self) -> str:
        labels = len(self.infos) - 1
        return (
            f"{self.root.resolve().name}, {self.part}: {len(self)} images, {labels + 1} concepts "
            f"({labels} labels and the empty one)"
        )

    def _path(self, name: str, sample: str) -> Path:
        return inside(self.root / "images", name, self.root, sample)

    def _read_map(self, row: BrodenRow, name: str) -> Int32[np.ndarray, "height width"]:
        path = self._path(name, row.image)
        # int32 before anything else: 256 times an 8-bit number does not fit 8 bits.
        channels = read_channels(path, row.image, self.exif).astype(np.int32)
        return self.codes.decode(channels[:, :, 0] + 256 * channels[:, :, 1], path, row.image)


def open_broden(
    root: Path, *, subset: str = "ade20k", split: str = "all", exif: str | None = None
) -> Broden:
    """Broden in `root`, the folder with `index.csv`.

    `subset` is one of its sources, of which published results use "ade20k", or "all". `split` is
    "train", "val" or "all"; `exif` is "apply" or "ignore", if images are to be shown turned.
    """
    turned = Exif.parse(exif)
    check_root(
        root,
        "Broden",
        "index.csv, label.csv and images/",
        lambda folder: (folder / "index.csv").is_file() and (folder / "label.csv").is_file(),
    )
    infos = _read_labels(root)
    every = read_rows(root / "index.csv", ["image"], "Broden", whole=True)
    sources = sorted({row["image"].partition("/")[0] for row in every})
    splits = sorted({row.get("split", "") for row in every})
    if subset != "all" and subset not in sources:
        raise LayoutError(f"Broden has no subset {subset!r}; it has all, {listing(sources)}.")
    if split != "all" and split not in splits:
        raise LayoutError(f"Broden has no split {split!r}; it has all, {listing(splits)}.")
    columns = [name for name in (every[0] if every else {}) if name not in _NOT_CATEGORIES]
    absent = [name for name in CATEGORIES if name not in columns]
    if absent:
        _LOG.warning("%s/index.csv has no column %s: none is read.", root, ", ".join(absent))
    rows = tuple(
        _row(row, columns)
        for row in every
        if subset in ("all", row["image"].partition("/")[0]) and split in ("all", row.get("split"))
    )
    names = (name for row in rows for name in (row.image, *row.maps))
    check_names_inside(names, root / "images", root, "Broden")
    codes = ValueCodes(np.arange(len(infos), dtype=np.int32), "label.csv")
    codes.ids[0] = NONE
    part = "all of it" if subset == "all" else f"its {subset} part"
    named = part if split == "all" else f"{part}, {split}"
    return Broden(root, named, infos, codes, rows, turned)


def _row(row: dict[str, str], columns: list[str]) -> BrodenRow:
    # A cell holds label maps, of which there may be several, or numbers of the whole image.
    items = [item for name in columns for item in row[name].split(";") if item]
    return BrodenRow(
        row["image"],
        tuple(item for item in items if not _NUMBER.fullmatch(item)),
        tuple(int(item) for item in items if _NUMBER.fullmatch(item)),
    )


def _read_labels(root: Path) -> tuple[ConceptInfo, ...]:
    path = root / "label.csv"
    rows = read_rows(path, ["number", "name"], "Broden")
    names = {to_integer(row["number"], path, "number"): row["name"] for row in rows}
    if len(names) != len(rows) or min(names, default=0) < 1:
        raise LayoutError(f"Broden: {path} must number its labels from 1 on, each once.")
    if max(names, default=_MOST_LABELS) >= _MOST_LABELS:
        raise LayoutError(f"Broden: {path} must number its labels below {_MOST_LABELS}.")
    numbers = range(1, max(names) + 1)
    main = _main_categories(root)
    stated = {int(row["number"]): _largest_count(row.get("category", "")) for row in rows}
    # Published lists are as long as the largest number says; a number left out is a concept too.
    plain = distinct([names.get(number, "unused label") for number in numbers], list(numbers))
    labels = (
        ConceptInfo(name, main.get(number, stated.get(number)))
        for number, name in zip(numbers, plain, strict=True)
    )
    return (ConceptInfo(""), *labels)


def _main_categories(root: Path) -> dict[int, str]:
    """The category in which a label covers most, from the tables of the categories."""
    most: dict[int, float] = {}
    main: dict[int, str] = {}
    for category in CATEGORIES:
        path = root / f"c_{category}.csv"
        if not path.is_file():
            continue
        for row in read_rows(path, ["number", "coverage"], "Broden"):
            number = to_integer(row["number"], path, "number")
            coverage = _to_number(row["coverage"], path)
            if coverage > most.get(number, -1.0):
                most[number], main[number] = coverage, category
    return main


def _to_number(cell: str, path: Path) -> float:
    try:
        return float(cell or 0)
    except ValueError:
        raise LayoutError(f"{path}: column 'coverage' holds {short(cell)}, not a number.") from None


def _largest_count(cell: str) -> str | None:
    """The category with most images, of a cell such as `material(36);object(3)`."""
    items = list(filter(None, map(_CATEGORY_COUNT.fullmatch, cell.split(";"))))
    return max(items, key=lambda item: int(item[2]))[1] if items else None
