"""COCO annotation files, made by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np

SHAPE = (16, 22)


def polygon(top: int, left: int, bottom: int, right: int) -> list[float]:
    return [left, top, right, top, right, bottom, left, bottom]


def runs(mask: np.ndarray) -> dict[str, Any]:
    """Run lengths down the columns, beginning with zeros, counted one pixel at a time."""
    counts, inside = [0], False
    for value in mask.T.reshape(-1).tolist():
        if value != inside:
            counts.append(0)
            inside = value
        counts[-1] += 1
    return {"size": list(mask.shape), "counts": counts}


def content(categories: list, regions: list, shape: tuple[int, int] = SHAPE) -> dict[str, Any]:
    size = {"height": shape[0], "width": shape[1]}
    return {
        "images": [{"id": 7, "file_name": "b.png", **size}, {"id": 3, "file_name": "a.png", **size},
                   {"id": 4, "file_name": "c.png", **size}],
        "categories": categories,
        "annotations": [
            {"id": 100 + k, "image_id": region[0], "category_id": region[1],
             "segmentation": region[2], "iscrowd": int(isinstance(region[2], dict))}
            for k, region in enumerate(regions)
        ],
    }  # fmt: skip


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path
