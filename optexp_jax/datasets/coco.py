"""Datasets annotated in the COCO format: instances and stuff, as polygons or run lengths."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, UInt8

from optexp_jax.datasets.coco_files import CocoAnnotations, find_files, read_annotations
from optexp_jax.datasets.coco_masks import decode_mask, is_polygons, polygon_api
from optexp_jax.datasets.images import MOST_PIXELS, check_aspect, read_image
from optexp_jax.datasets.layout import check_names_inside, inside, short
from optexp_jax.datasets.orientation import Exif
from optexp_jax.datasets.protocol import BadSampleError, ConceptInfo, Sample
from optexp_jax.datasets.values import maps_of_masks


@dataclass(frozen=True, eq=False)
class Coco:
    """Images with regions of categories, which may overlap: then a sample has several maps."""

    root: Path
    json_files: tuple[Path, ...]
    folder: Path
    annotations: CocoAnnotations
    exif: Exif = Exif.REFUSE

    def concepts(self) -> tuple[ConceptInfo, ...]:
        return self.annotations.concepts

    def __len__(self) -> int:
        return len(self.annotations.images)

    def __getitem__(self, index: int) -> Sample:
        image = self.annotations.images[index]
        if min(image.height, image.width) < 1 or image.height * image.width > MOST_PIXELS:
            raise BadSampleError(
                image.name, f"its size is given as {image.height} x {image.width} pixels."
            )
        pixels = self.image(index)
        check_aspect(pixels.shape[:2], (image.height, image.width), "its annotation", image.name)
        masks: dict[int, Bool[np.ndarray, "height width"]] = {}
        for region in image.regions:
            try:
                mask = decode_mask(region.segmentation, image.height, image.width)
            except ValueError as error:
                raise BadSampleError(
                    image.name, f"annotation {short(region.id)} {error}"
                ) from error
            masks[region.concept] = masks.get(region.concept, np.bool_(False)) | mask
        return Sample(image.name, pixels, maps_of_masks(dict(sorted(masks.items()))))

    def image(self, index: int) -> UInt8[np.ndarray, "height width 3"]:
        name = self.annotations.images[index].name
        return read_image(inside(self.folder, name, self.root, name), name, self.exif)

    def sample_names(self) -> tuple[str, ...]:
        return tuple(image.name for image in self.annotations.images)

    def files(self) -> tuple[Path, ...]:
        return (*self.json_files, *(self.folder / image.name for image in self.annotations.images))

    def describe(self) -> str:
        names = ", ".join(path.name for path in self.json_files)
        return f"COCO, {names}: {len(self)} images, {len(self.concepts())} concepts"


def open_coco(
    root: Path,
    *,
    annotations: str | None = None,
    images: str | None = None,
    split: str | None = None,
    exif: str | None = None,
) -> Coco:
    """COCO-style annotations in `root`, a folder or a JSON file.

    `annotations` names JSON files, joined by `+` (`instances_val2017.json+stuff_val2017.json`);
    `split` chooses the files that end in it; `images` is the folder of the images. Categories of
    the same name are one concept. `exif` says in which frame the annotations of images are whose
    EXIF data tells to show them turned: "apply" or "ignore" it.
    """
    turned = Exif.parse(exif)
    found = find_files(root, annotations, split)
    read = read_annotations(found.json_files)
    if any(is_polygons(region.segmentation) for image in read.images for region in image.regions):
        polygon_api()  # What is missing should be told now, and not by a worker later.
    folder = found.image_folder(read.images[0].name, images)
    check_names_inside((image.name for image in read.images), folder, found.base, "COCO")
    return Coco(found.base, found.json_files, folder, read, turned)
