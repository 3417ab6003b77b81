"""The small dataset of `format_writers` in the formats of programs and of known datasets."""

import csv
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

from helpers.coco_cases import runs, write
from helpers.dataset_fixtures import (
    BrodenImage,
    ade_png,
    picture,
    save,
    write_ade,
    write_broden,
    write_cityscapes,
    write_table,
)
from helpers.format_writers import BOXES, MASKS, SHAPE, corners, grey, images, labels_of


def coco_images(root: Path) -> list[dict[str, Any]]:
    images(root / "val2017", "00000000013{x}.jpg")
    return [
        {"id": 130 + x, "file_name": f"00000000013{x}.jpg", "height": SHAPE[0], "width": SHAPE[1],
         "license": 4, "coco_url": "", "date_captured": "2013-11-14 17:02:52"}
        for x in range(2)
    ]  # fmt: skip


def coco(root: Path, file: str, kinds: dict[int, str], *, packed: bool) -> None:
    def segmentation(x: int, k: int) -> Any:
        if packed:
            return runs(MASKS[x][k])
        top, left, bottom, right = BOXES[x][k]  # Its right and lower edge are outside.
        return [[left, top, right + 1, top, right + 1, bottom + 1, left, bottom + 1]]

    keypoints = {"keypoints": [0] * 51, "num_keypoints": 0} if "keypoints" in file else {}
    content = {
        "info": {"year": 2017},
        "licenses": [],
        "images": coco_images(root),
        "categories": [
            {"id": number, "name": name, "supercategory": "any"} for number, name in kinds.items()
        ],
        "annotations": [
            {"id": 10 * x + k, "image_id": 130 + x, "category_id": number, "iscrowd": int(packed),
             "area": 1.5, "bbox": [1, 2, 3, 4], "segmentation": segmentation(x, k), **keypoints}
            for x in range(2) for k, number in enumerate(kinds)
        ],
    }  # fmt: skip
    write(root / "annotations" / file, content)
    captions = [{"id": 1, "image_id": 130, "caption": "A street."}]
    described = {**content, "annotations": captions}
    write(root / "annotations" / "captions_val2017.json", described)


def panoptic(root: Path) -> None:
    segments = (3226956, 6979964)
    for x in range(2):
        ids = labels_of(x, segments)
        channels = [ids >> shift & 255 for shift in (0, 8, 16)]
        path = root / "annotations" / "panoptic_val2017" / f"00000000013{x}.png"
        save(path, np.stack(channels, axis=2).astype(np.uint8))
    listed = [{"id": s, "category_id": 9 + k, "iscrowd": 0} for k, s in enumerate(segments)]
    content = {
        "images": coco_images(root),
        "categories": [
            {"id": 9, "name": "boat", "supercategory": "vehicle", "isthing": 1, "color": [0, 0, 1]},
            {"id": 10, "name": "sea", "supercategory": "water", "isthing": 0, "color": [0, 0, 2]},
        ],
        "annotations": [
            {"image_id": 130 + x, "file_name": f"00000000013{x}.png", "segments_info": listed}
            for x in range(2)
        ],
    }
    write(root / "annotations" / "panoptic_val2017.json", content)


def coco_stuff(root: Path) -> None:
    coco_images(root)
    for x in range(2):
        path = root / "stuffthingmaps_trainval2017" / "val2017" / f"00000000013{x}.png"
        save(path, labels_of(x, (8, 154), 255).astype(np.uint8))
    names = {0: "unlabeled", 9: "boat", 155: "sea"}
    lines = [f"{k}: {names.get(k, f'other{k}')}\n" for k in range(183)]
    (root / "labels.txt").write_text("".join(lines))


def labelme(root: Path) -> None:
    images(root)
    for x, boxes in enumerate(BOXES):
        shapes = [
            {"label": name, "points": corners(box), "group_id": None, "shape_type": "polygon",
             "flags": {}}
            for name, box in zip(("boat", "sea"), boxes, strict=True)
        ]  # fmt: skip
        content = {"version": "5.4.1", "flags": {}, "shapes": shapes, "imagePath": f"i{x}.png",
                   "imageData": None, "imageHeight": SHAPE[0], "imageWidth": SHAPE[1]}  # fmt: skip
        write(root / f"i{x}.json", content)


def via_entries(root: Path, *, named: bool = True) -> dict[str, Any]:
    images(root)
    entries: dict[str, Any] = {}
    for x, boxes in enumerate(BOXES):
        size = (root / f"i{x}.png").stat().st_size
        regions = [
            {"shape_attributes": {"name": "polygon", "all_points_x": [x for x, _ in corners(box)],
                                  "all_points_y": [y for _, y in corners(box)]},
             "region_attributes": {"type": name} if named else {}}
            for name, box in zip(("boat", "sea"), boxes, strict=True)
        ]  # fmt: skip
        entries[f"i{x}.png{size}"] = {
            "filename": f"i{x}.png", "size": size, "regions": regions, "file_attributes": {}
        }  # fmt: skip
    return entries


def via_project(root: Path) -> None:
    entries = via_entries(root)
    settings = {"core": {"default_filepath": ""}, "project": {"name": "harbour"}}
    content = {"_via_settings": settings, "_via_img_metadata": entries, "_via_attributes": {},
               "_via_data_format_version": "2.0.10", "_via_image_id_list": []}  # fmt: skip
    write(root / "via_project.json", content)


def via_csv(root: Path) -> None:
    rows = [
        [entry["filename"], entry["size"], "{}", 2, number, json.dumps(one["shape_attributes"]),
         json.dumps(one["region_attributes"])]
        for entry in via_entries(root).values()
        for number, one in enumerate(entry["regions"])
    ]  # fmt: skip
    columns = ("filename", "file_size", "file_attributes", "region_count", "region_id",
               "region_shape_attributes", "region_attributes")  # fmt: skip
    with (root / "via_export_csv.csv").open("w", newline="") as file:
        csv.writer(file).writerows([columns, *rows])


def via_balloons(root: Path) -> None:
    entries = via_entries(root, named=False)
    for entry in entries.values():
        first = entry["regions"][0]
        entry |= {"fileref": "", "base64_img_data": "", "regions": {"0": first}}
    write(root / "via_region_data.json", entries)


def yolo(root: Path, *, boxes: bool = False) -> None:
    images(root / "images" / "val")
    folder = root / "labels" / "val"
    folder.mkdir(parents=True)
    for x in range(2):
        lines = [
            f"{k} " + " ".join(f"{left / 32} {top / 16}" for left, top in corners(box))
            for k, box in enumerate(BOXES[x])
        ]
        (folder / f"i{x}.txt").write_text("0 0.5 0.5 0.2 0.2\n" if boxes else "\n".join(lines))
    (root / "data.yaml").write_text("path: .\nval: images/val\nnames:\n  0: boat\n  1: sea\n")


def cityscapes(root: Path, values: tuple[int, int], *, trained: bool = False) -> None:
    maps = {f"lindau/lindau_00000{x}_000019": labels_of(x, values) for x in range(2)}
    train_ids = {name: labels_of(x, (0, 10), 255) for x, name in enumerate(maps)}
    write_cityscapes(root, maps, train_ids if trained else {})


ADE_NAMES = ["door", "boat", "sea"]


def ade_index() -> dict[str, Any]:
    presence = np.array([[0, 0], [1, 1], [2, 1]])
    return {
        "filename": np.array(["ADE_train_00000001.jpg", "ADE_val_00000001.jpg"], object),
        "objectnames": np.array(ADE_NAMES, object),
        "objectPresence": presence,
        "objectIsPart": np.zeros_like(presence),
    }


def ade_2021(root: Path) -> None:
    write_ade(root, {f"water/port/ADE_val_0000000{x}": labels_of(x, (2, 3)) for x in range(2)})
    index = {**ade_index(), "objectnames": ADE_NAMES,
             "filename": ["ADE_train_00000001.jpg", "ADE_val_00000001.jpg"]}  # fmt: skip
    (root / "index_ade20k.pkl").write_bytes(pickle.dumps(index, protocol=4))


def ade_2016(root: Path) -> None:
    for x in range(2):
        folder = root / "images" / "validation" / "p" / "port"
        save(folder / f"ADE_val_0000000{x}.jpg", picture(x, SHAPE))
        save(folder / f"ADE_val_0000000{x}_seg.png", ade_png(labels_of(x, (2, 3))))
    scipy.io.savemat(root / "index_ade20k.mat", {"index": ade_index()})


def ade_150(root: Path) -> None:
    images(root / "images" / "validation", "ADE_val_0000000{x}.jpg")
    grey(root / "annotations" / "validation", (77, 27), "ADE_val_0000000{x}.png")
    rows = [[k, 0.1, 9, 9, "FALSE", {77: "boat;ship", 27: "sea"}.get(k, f"c{k}")] for k in
            range(1, 151)]  # fmt: skip
    columns = ["Idx", "Ratio", "Train", "Val", "Stuff", "Name"]
    write_table(root / "object150_info.csv", columns, rows)


def broden(root: Path) -> None:
    listed = [
        BrodenImage(f"ade20k/ADE_val_{x}.jpg", "val", {"object": [labels_of(x, (300, 2))]}, SHAPE)
        for x in range(2)
    ]
    names = [(f"label{k}", "object(9)") for k in range(1, 301)]
    names[299], names[1] = ("boat", "object(9)"), ("sea", "object(9)")
    write_broden(root, names, listed)


def via_3(root: Path) -> None:
    images(root)
    content = {"project": {"pname": "x", "data_format_version": "3.1.1"}, "config": {},
               "attribute": {}, "file": {}, "metadata": {}, "view": {}}  # fmt: skip
    write(root / "via3.json", content)
