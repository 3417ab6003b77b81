"""Images whose EXIF data says that they are to be shown turned."""

from pathlib import Path

import numpy as np
from PIL import Image

from helpers.dataset_fixtures import save, write_table

SHAPE = (16, 22)
STORED = np.arange(SHAPE[0] * SHAPE[1] * 3, dtype=np.int64).reshape(*SHAPE, 3).astype(np.uint8)


def save_turned(path: Path, pixels: np.ndarray, orientation: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(pixels).save(path, exif=exif)
    return path


def folder(root: Path, labels: np.ndarray) -> str:
    save_turned(root / "images" / "a.png", STORED, 6)
    save(root / "labels" / "a.png", labels.astype(np.uint8))
    write_table(root / "labels.csv", ["value", "name"], [[1, "one"]])
    return f"folder:{root}"
