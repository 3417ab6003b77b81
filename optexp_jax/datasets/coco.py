"""Datasets annotated in the COCO format: instances and stuff, as polygons or run lengths."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, UInt8

from optexp_jax.datasets.coco_files import CocoAnnotations, find_files, read_annotations
from optexp_jax.datasets.coco_masks import decode_mask, is_polygons, polygon_api
from optexp_jax.datasets.images import read_image
from optexp_jax.datasets.protocol import BadSampleError, ConceptInfo, Sample
from optexp_jax.datasets.values import maps_of_masks


@dataclass(frozen=True, eq=False)
class Coco:
    """Images with regions of categories, which may overlap: then a sample has several maps."""

    json_files: tuple[Path, ...]
    folder: Path
    annotations: CocoAnnotations

    def concepts(self) -> tuple[ConceptInfo, ...]:
        return self.annotations.concepts

    def __len__(self) -> int:
        return len(self.annotations.images)

    def __getitem__(self, index: int) -> Sample:
        image = self.annotations.images[index]
        masks: dict[int, Bool[np.ndarray, "height width"]] = {}
        for region in image.regions:
            try:
                mask = decode_mask(region.segmentation, image.height, image.width)
            except ValueError as error:
                raise BadSampleError(image.name, f"annotation {region.id} {error}") from error
            except TypeError as error:  # Not numbers where there should be some.
                reason = f"annotation {region.id} cannot be decoded: {error}"
                raise BadSampleError(image.name, reason) from error
            masks[region.concept] = masks.get(region.concept, np.bool_(False)) | mask
        return Sample(image.name, self.image(index), maps_of_masks(dict(sorted(masks.items()))))

    def image(self, index: int) -> UInt8[np.ndarray, "height width 3"]:
        name = self.annotations.images[index].name
        return read_image(self.folder / name, name)

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
) -> Coco:
    """COCO-style annotations in `root`, a folder or a JSON file.

    `annotations` names JSON files, joined by `+` (`instances_val2017.json+stuff_val2017.json`);
    `split` chooses the files that end in it; `images` is the folder of the images. Categories of
    the same name are one concept.
    """
    found = find_files(root, annotations, split)
    read = read_annotations(found.json_files)
    if any(is_polygons(region.segmentation) for image in read.images for region in image.regions):
        polygon_api()  # What is missing should be told now, and not by a worker later.
    return Coco(found.json_files, found.image_folder(read.images[0].name, images), read)
