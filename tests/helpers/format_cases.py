"""The rows of the table of formats: how to write each, and what is read of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from helpers import format_datasets as datasets
from helpers import format_writers as folders


@dataclass(frozen=True)
class FormatCase:
    """A row of the table: how to write it, and the names that the two concepts have there."""

    write: Callable[[Path], None]
    names: tuple[str, ...] = ("boat", "sea")
    refused: str = ""
    """What the error says, if it is not read."""


CASES: Mapping[str, FormatCase] = {
    "grey maps, with `value,name`": FormatCase(folders.own_grey),
    "palette masks, with `class_names.txt`": FormatCase(folders.own_palette),
    "maps in colours, with `name,r,g,b`": FormatCase(folders.own_colours),
    "maps as `.npy` files": FormatCase(folders.own_arrays),
    "images and maps with suffixes": FormatCase(folders.suffixes),
    "Pascal VOC": FormatCase(lambda root: folders.voc(root, palette=True), ("boat", "person")),
    "Pascal VOC in colours, without palette": FormatCase(
        lambda root: folders.voc(root, palette=False), ("boat", "person")
    ),
    "CamVid, 32 classes in colours": FormatCase(folders.camvid, ("Animal", "Archway")),
    "CamVid, with `class_dict.csv`": FormatCase(folders.camvid_of_kaggle, ("Animal", "Archway")),
    "CamVid, with `codes.txt`": FormatCase(folders.camvid_of_fastai, ("Animal", "Archway")),
    "CVAT, export as segmentation mask": FormatCase(folders.cvat),
    "COCO instances": FormatCase(
        lambda root: datasets.coco(
            root, "instances_val2017.json", {9: "boat", 1: "sea"}, packed=False
        )
    ),
    "COCO-Stuff, JSON": FormatCase(
        lambda root: datasets.coco(
            root, "stuff_val2017.json", {92: "boat", 155: "sea"}, packed=True
        )
    ),
    "COCO-Stuff, maps of stuff and things": FormatCase(datasets.coco_stuff),
    "COCO person keypoints": FormatCase(
        lambda root: datasets.coco(
            root, "person_keypoints_val2017.json", {1: "person"}, packed=False
        ),
        ("person",),
    ),
    "COCO panoptic": FormatCase(datasets.panoptic),
    "labelme": FormatCase(datasets.labelme),
    "VIA, project or JSON": FormatCase(datasets.via_project),
    "VIA, CSV": FormatCase(datasets.via_csv),
    "VIA, regions without attributes": FormatCase(datasets.via_balloons, ("balloon",)),
    "YOLO segmentation": FormatCase(datasets.yolo),
    "Cityscapes": FormatCase(lambda root: datasets.cityscapes(root, (7, 23)), ("road", "sky")),
    "Cityscapes, with `labelTrainIds`": FormatCase(
        lambda root: datasets.cityscapes(root, (7, 23), trained=True), ("road", "sky")
    ),
    "Cityscapes, 30 classes": FormatCase(
        lambda root: datasets.cityscapes(root, (18, 30)), ("polegroup", "trailer")
    ),
    "Cityscapes, 34 classes": FormatCase(
        lambda root: datasets.cityscapes(root, (1, 18)), ("ego vehicle", "polegroup")
    ),
    "ADE20K of 2021": FormatCase(datasets.ade_2021),
    "ADE20K of 2016": FormatCase(datasets.ade_2016),
    "ADE20K, 150 classes": FormatCase(datasets.ade_150, ("boat;ship", "sea")),
    "Broden": FormatCase(datasets.broden),
    "soft masks": FormatCase(folders.soft),
    "arrays in an `.npz` file": FormatCase(folders.npz),
    "JPEG label maps": FormatCase(folders.jpeg_maps, refused="are JPEG images"),
    "COCO captions": FormatCase(
        lambda root: datasets.coco(root, "instances_val2017.json", {9: "boat"}, packed=False),
        refused="holds captions",
    ),
    "YOLO boxes": FormatCase(
        lambda root: datasets.yolo(root, boxes=True), refused="is a box; only polygons"
    ),
    "VIA 3": FormatCase(datasets.via_3, refused="a project of VIA 3"),
}
