"""A folder of images and label maps, with a table of names: one's own dataset without a loader."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int32, UInt8

from optexp_jax.datasets.folder_entries import (
    ConceptList,
    FolderEntry,
    LabelFile,
    attach_labels,
    attach_maps,
    entry_keys,
)
from optexp_jax.datasets.folder_tables import (
    MAX_VALUE,
    NOT_CONCEPTS,
    NamedValue,
    find_tables,
    read_image_labels,
    read_names,
)
from optexp_jax.datasets.images import (
    IMAGE_SUFFIXES,
    LABEL_SUFFIXES,
    check_aspect,
    read_image,
    read_labels,
)
from optexp_jax.datasets.layout import check_root, files_below, listing
from optexp_jax.datasets.orientation import Exif
from optexp_jax.datasets.protocol import BadSampleError, ConceptInfo, LayoutError, Sample
from optexp_jax.datasets.values import NONE, ValueCodes

_IMAGE_FOLDERS = ("images", "image", "imgs", "img", "JPEGImages", "photos")
_LABEL_FOLDERS = ("labels", "label", "annotations", "masks", "segmentation", "SegmentationClass")
_UNNAMED = (0, 255, 65535)
"""Values that mean "no label" in most datasets; here they do unless they have a name."""


@dataclass(frozen=True, eq=False)
class FolderLayer:
    """A folder of label maps and what their values mean."""

    folder: Path
    codes: ValueCodes


@dataclass(frozen=True, eq=False)
class Folder:
    """Images of a folder, with the label maps of one or more others."""

    root: Path
    images: Path
    layers: tuple[FolderLayer, ...]
    tables: tuple[Path, ...]
    infos: tuple[ConceptInfo, ...]
    entries: tuple[FolderEntry, ...]
    exif: Exif = Exif.REFUSE

    def concepts(self) -> tuple[ConceptInfo, ...]:
        return self.infos

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: int) -> Sample:
        entry = self.entries[index]
        if not entry.maps and not entry.everywhere:
            looked = ", ".join(str(layer.folder) for layer in self.layers)
            raise BadSampleError(entry.image, f"it has no label map; looked in {looked}.")
        image = self.image(index)
        maps = tuple(self._read_map(file, entry.image, image.shape[:2]) for file in entry.maps)
        return Sample(entry.image, image, maps, tuple(dict.fromkeys(entry.everywhere)))

    def sample_names(self) -> tuple[str, ...]:
        return tuple(entry.image for entry in self.entries)

    def image(self, index: int) -> UInt8[np.ndarray, "height width 3"]:
        name = self.entries[index].image
        return read_image(self.images / name, name, self.exif)

    def files(self) -> tuple[Path, ...]:
        images = [self.images / entry.image for entry in self.entries]
        maps = [file.path for entry in self.entries for file in entry.maps]
        return (*self.tables, *images, *maps)

    def describe(self) -> str:
        layers = ", ".join(layer.folder.name for layer in self.layers)
        return (
            f"{self.root.resolve().name}: {len(self)} images, {len(self.infos)} concepts "
            f"(label maps: {layers or 'none'})"
        )

    def _read_map(
        self, file: LabelFile, name: str, image_shape: tuple[int, int]
    ) -> Int32[np.ndarray, "height width"]:
        values = read_labels(file.path, name, self.exif)
        check_aspect(image_shape, values.shape, file.path, name)
        return self.layers[file.layer].codes.decode(values, file.path, name)


def open_folder(
    root: Path,
    *,
    images: str | None = None,
    labels: str | None = None,
    names: str | None = None,
    image_labels: str | None = None,
    ignore: str | int = "",
    suffix: str | None = None,
    scene_prefix: int = 0,
    exif: str | None = None,
) -> Folder:
    """Open a folder of images, label maps and tables; what is not given is looked for.

    `images` is the folder of images; `labels` the folders of label maps (`objects+parts`); `names`
    and `image_labels` are CSV files; `ignore` lists names or values that are no concept, joined by
    `+`. A label map belongs to the image of the same name, or of the name it begins with; `suffix`
    tells what it adds to that name. The first `scene_prefix` characters of an image's name, if
    above 0, are a concept of the whole image. `exif` says in which frame the label maps of images
    are whose EXIF data tells to show them turned: "apply" or "ignore" it.
    """
    turned = Exif.parse(exif)
    wanted = f"{images}/" if images is not None else f"{_IMAGE_FOLDERS[0]}/ (or images=FOLDER)"
    check_root(root, "Folder", wanted, lambda folder: _images(folder, images) is not None)
    image_folder = _images(root, images)
    assert image_folder is not None
    others = _label_folders(root, labels, image_folder)
    tables = find_tables(root, names, image_labels, has_maps=len(others) > 0)
    rows = () if tables.names is None else read_names(tables.names)
    label_folders = others if labels is not None else _likely(others, rows)
    if not label_folders and tables.image_labels is None:
        raise LayoutError(
            f"Folder: nothing in {root} says what is in the images: there is neither a folder of "
            "label maps (labels=FOLDER) nor a table of labels of images (image_labels=FILE)."
        )
    vocabulary = ConceptList()
    ignored = frozenset(str(ignore).split("+")) - {""}
    layers = _layers(label_folders, rows, tables.names, vocabulary, ignored)
    found = files_below(image_folder, IMAGE_SUFFIXES)
    if not found:
        raise LayoutError(f"Folder: there are no images in {image_folder}.")
    entries = [FolderEntry(path.relative_to(image_folder).as_posix()) for path in found]
    keys = entry_keys(entries, image_folder)
    for place, layer in enumerate(layers):
        attach_maps(layer.folder, place, keys, suffix)
    if tables.image_labels is not None:
        given = read_image_labels(tables.image_labels)
        attach_labels(given, keys, vocabulary, ignored, tables.image_labels)
    if scene_prefix > 0:
        for entry in entries:
            prefix = Path(entry.image).name[:scene_prefix]
            entry.everywhere.append(vocabulary.add(prefix, "scene"))
    listed = tuple(path for path in (tables.names, tables.image_labels) if path is not None)
    return Folder(root, image_folder, layers, listed, vocabulary.infos(), tuple(entries), turned)


def _images(root: Path, given: str | None) -> Path | None:
    names = _IMAGE_FOLDERS if given is None else (given,)
    return next((root / name for name in names if (root / name).is_dir()), None)


def _label_folders(root: Path, given: str | None, images: Path) -> list[Path]:
    if given is not None:
        folders = [root / name for name in given.split("+") if name]
        missing = [folder for folder in folders if not folder.is_dir()]
        if missing:
            raise LayoutError(f"Folder: there is no folder of label maps {missing[0]}.")
        return folders
    others = sorted(path for path in root.iterdir() if path.is_dir() and path != images)
    return [
        path
        for path in others
        if not path.name.startswith(".") and files_below(path, LABEL_SUFFIXES)
    ]


def _is_value(text: str) -> bool:
    return text.isdecimal() and len(text) < 9 and int(text) <= MAX_VALUE


def _likely(folders: Sequence[Path], rows: Sequence[NamedValue]) -> Sequence[Path]:
    """Those that the table of names speaks of, or those with a usual name, or all of them."""
    named = {row.layer for row in rows}
    if rows and None not in named:
        return [folder for folder in folders if folder.name in named] or folders
    return [folder for folder in folders if folder.name in _LABEL_FOLDERS] or folders


def _layers(
    folders: Sequence[Path],
    rows: Sequence[NamedValue],
    table: Path | None,
    vocabulary: ConceptList,
    ignored: frozenset[str],
) -> tuple[FolderLayer, ...]:
    if table is None:
        return ()
    named = {row.layer for row in rows if row.layer is not None}
    unknown = sorted(named.difference(folder.name for folder in folders))
    if unknown:
        has = listing([folder.name for folder in folders]) or "none"
        raise LayoutError(
            f"Folder: {table} names the layer {unknown[0]!r}; the folders of label maps: {has}."
        )
    codes: list[dict[int, int]] = [{} for _ in folders]
    for row in rows:  # In their order, which the concepts keep.
        none = row.name.lower() in NOT_CONCEPTS or not ignored.isdisjoint(
            (row.name, str(row.value))
        )
        concept = NONE if none else vocabulary.add(row.name, row.category or row.layer)
        for folder, known in zip(folders, codes, strict=True):
            if row.layer not in (None, folder.name):
                continue
            if known.get(row.value, concept) != concept:
                raise LayoutError(f"Folder: {table} gives two names to the value {row.value}.")
            known[row.value] = concept
    without = {*_UNNAMED, *(int(text) for text in ignored if _is_value(text))}
    return tuple(
        FolderLayer(folder, ValueCodes.of({**dict.fromkeys(without, NONE), **known}, table.name))
        for folder, known in zip(folders, codes, strict=True)
    )
