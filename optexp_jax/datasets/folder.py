"""A folder of images and label maps, with a table of names: one's own dataset without a loader."""

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
    only_listed,
)
from optexp_jax.datasets.folder_layers import (
    FolderLayer,
    find_label_folders,
    likely_folders,
    make_layers,
)
from optexp_jax.datasets.folder_tables import find_tables, read_image_labels, read_names
from optexp_jax.datasets.images import IMAGE_SUFFIXES, check_aspect, read_image
from optexp_jax.datasets.layout import check_root, files_below, listing
from optexp_jax.datasets.orientation import Exif
from optexp_jax.datasets.protocol import BadSampleError, ConceptInfo, LayoutError, Sample
from optexp_jax.datasets.values import UnknownValuesError

MOST_SEARCHED = 5000
"""Label maps that are searched for all values without a name, once one was found."""
_IMAGE_FOLDERS = ("images", "image", "imgs", "img", "JPEGImages", "photos")


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
        ids = self.layers[file.layer].read(file.path, name, self.exif)
        check_aspect(image_shape, ids.shape, file.path, name)
        return ids

    def missing_names(self, sample: str) -> str | None:
        """What the table of names lacks, over all label maps, if this sample lacks some of it."""
        if not self.tables:  # The names are not the user's to mend.
            return None
        index = self.sample_names().index(sample)
        missing: dict[str, int] = {}
        try:
            _ = self[index]
            return None
        except UnknownValuesError as error:
            told = error
        except BadSampleError:
            return None
        maps = [(file, entry.image) for entry in self.entries for file in entry.maps]
        for file, name in maps[:MOST_SEARCHED]:
            try:
                self.layers[file.layer].read(file.path, name, self.exif)
            except UnknownValuesError as error:
                for value in error.values:
                    missing[value] = missing.get(value, 0) + 1
            except BadSampleError:
                continue
        listed = [f"{value} ({count})" for value, count in missing.items()]
        first = "" if len(maps) <= MOST_SEARCHED else f"the first {MOST_SEARCHED} of "
        kind = told.kind
        hint = f", or pass --option ignore={'+'.join(missing)}" if kind == "values" else ""
        return (
            f"{told.meaning} lacks {kind} of {first}{len(maps)} label maps; with the number of "
            f"maps that have them: {listing(listed)}. Add a row for each{hint}."
        )


def open_folder(
    root: Path,
    *,
    images: str | None = None,
    labels: str | None = None,
    names: str | None = None,
    image_labels: str | None = None,
    ignore: str | int = "",
    suffix: str | None = None,
    image_suffix: str = "",
    offset: int = 0,
    scene_prefix: int = 0,
    only: str | None = None,
    exif: str | None = None,
) -> Folder:
    """Open a folder of images, label maps and tables; what is not given is looked for.

    `images` is the folder of images; `labels` the folders of label maps (`objects+parts`); `names`
    and `image_labels` are CSV files, or `names` a list in a text file; `ignore` lists names or
    values that are no concept, joined by `+`. A label map belongs to the image of the same name, or
    of the name it begins with; `suffix` tells what it adds to that name, and `image_suffix` what
    images add to it. A value `v` of a label map is the one that the table calls `v + offset`. The
    first `scene_prefix` characters of an image's name, if above 0, are a concept of the whole
    image. `only` is a text file of the images to read, one a line. `exif` says in which frame the
    label maps of images are whose EXIF data tells to show them turned: "apply" or "ignore" it.
    """
    turned = Exif.parse(exif)
    wanted = f"{images}/" if images is not None else f"{_IMAGE_FOLDERS[0]}/ (or images=FOLDER)"
    check_root(root, "Folder", wanted, lambda folder: _images(folder, images) is not None)
    image_folder = _images(root, images)
    assert image_folder is not None
    others = find_label_folders(root, labels, image_folder)
    tables = find_tables(root, names, image_labels, has_maps=len(others) > 0)
    rows = () if tables.names is None else read_names(tables.names)
    label_folders = others if labels is not None else likely_folders(others, rows)
    if not label_folders and tables.image_labels is None:
        raise LayoutError(
            f"Folder: nothing in {root} says what is in the images: there is neither a folder of "
            "label maps (labels=FOLDER) nor a table of labels of images (image_labels=FILE)."
        )
    vocabulary = ConceptList()
    ignored = frozenset(str(ignore).split("+")) - {""}
    layers = make_layers(label_folders, rows, tables.names, vocabulary, ignored, offset)
    found = files_below(image_folder, IMAGE_SUFFIXES)
    found = [path for path in found if path.stem.endswith(image_suffix)]
    if not found:
        ending = f" whose names end in {image_suffix!r}" if image_suffix else ""
        raise LayoutError(f"Folder: there are no images{ending} in {image_folder}.")
    entries = [FolderEntry(path.relative_to(image_folder).as_posix()) for path in found]
    keys = entry_keys(entries, image_folder, image_suffix)
    for place, layer in enumerate(layers):
        attach_maps(layer.folder, place, keys, suffix)
    if tables.image_labels is not None:
        given = read_image_labels(tables.image_labels)
        attach_labels(given, keys, vocabulary, ignored, tables.image_labels)
    if only is not None:  # Last, so that no map of another image is taken for one of these.
        entries = only_listed(entries, root / only, image_suffix)
    if scene_prefix > 0:
        for entry in entries:
            prefix = Path(entry.image).name[:scene_prefix]
            entry.everywhere.append(vocabulary.add(prefix, "scene"))
    listed = tuple(path for path in (tables.names, tables.image_labels) if path is not None)
    return Folder(root, image_folder, layers, listed, vocabulary.infos(), tuple(entries), turned)


def _images(root: Path, given: str | None) -> Path | None:
    names = _IMAGE_FOLDERS if given is None else (given,)
    return next((root / name for name in names if (root / name).is_dir()), None)
