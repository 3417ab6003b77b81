"""Writers of small datasets in the formats in which the real ones are distributed.

Everything that a test expects is computed from the arrays that it gives to a writer, and not with
the code under test.
"""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import optexp_jax as ox
from optexp_jax.datasets import Dataset, Sample, check_sample
from optexp_jax.datasets.build import build_table

BRODEN_CATEGORIES = ("color", "object", "part", "material", "scene", "texture")


def blocks(seed: int, shape: tuple[int, int], values: Sequence[int], n: int = 9) -> np.ndarray:
    """A map of overlapping rectangles, each of one of the values."""
    rng = np.random.default_rng(seed)
    drawn = np.full(shape, values[0], np.int64)
    for _ in range(n):
        top, left = (int(rng.integers(0, size)) for size in shape)
        bottom, right = (int(rng.integers(2, size)) for size in shape)
        drawn[top : top + bottom, left : left + right] = values[int(rng.integers(len(values)))]
    return drawn


def picture(seed: int, shape: tuple[int, int]) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (*shape, 3), dtype=np.uint8)


def save(path: Path, values: np.ndarray, mode: str | None = None) -> Path:
    """An image file of an array; `mode` is what Pillow calls the kind of pixel."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(values)
    (image if mode is None else image.convert(mode)).save(path)
    return path


def save_palette(path: Path, indices: np.ndarray) -> Path:
    """A palette PNG whose colours say nothing about the indices."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(indices.astype(np.uint8))
    image.putpalette([(7 * place + 3) % 256 for place in range(768)])
    image.save(path)
    return path


def write_table(
    path: Path, columns: Sequence[str], rows: Sequence[Sequence[Any]], **how: Any
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, **how)
        writer.writerow(columns)
        writer.writerows(rows)
    return path


def stretched(values: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Nearest resize, with source index floor(i * in / out)."""
    rows = [i * values.shape[0] // shape[0] for i in range(shape[0])]
    columns = [j * values.shape[1] // shape[1] for j in range(shape[1])]
    return values[np.ix_(rows, columns)]


def masks_of(sample: Sample, n_concepts: int, shape: tuple[int, int]) -> np.ndarray:
    """Masks `[concept, *shape]` of a sample, by definition."""
    masks = np.zeros((n_concepts, *shape), np.bool_)
    for values in check_sample(sample, n_concepts).maps:
        at_shape = stretched(values, shape)
        for concept in np.unique(at_shape[at_shape >= 0]):
            masks[concept] |= at_shape == concept
    for concept in sample.everywhere:
        masks[concept] = True
    return masks


def table_of(dataset: Dataset, shape: tuple[int, int]) -> ox.ConceptTable:
    concepts = dataset.concepts()
    builder = ox.TableBuilder([c.name for c in concepts], [c.category for c in concepts])
    for index in range(len(dataset)):
        builder.add_masks(masks_of(dataset[index], len(concepts), shape))
    return builder.build()


def assert_explained(dataset: Dataset, bitmap: np.ndarray, formula: str, folder: Path) -> None:
    """The bitmap, made of the fixture's own arrays by the formula, is explained by it."""
    shape = (bitmap.shape[1], bitmap.shape[2])
    table = build_table(dataset, folder / "table.zarr", mask_shape=shape)
    assert table.fingerprint == table_of(dataset, shape).fingerprint
    found = ox.explain(table, bitmap, ox.Optimal(length=3))
    assert found.formula == ox.Formula.parse(formula, table)
    assert found.score.intersection == found.score.union == int(bitmap.sum())


# Broden


@dataclass
class BrodenImage:
    """A row of Broden: cells are label maps (global numbers) and numbers of the whole image."""

    image: str
    split: str = "train"
    cells: Mapping[str, Sequence[np.ndarray | int]] = field(default_factory=dict)
    size: tuple[int, int] = (32, 32)
    mode: str = "RGB"


def broden_png(values: np.ndarray) -> np.ndarray:
    """Red and green hold the low and high byte; blue is not used, so it holds anything."""
    return np.stack([values % 256, values // 256, np.full_like(values, 99)], axis=2).astype(
        np.uint8
    )


def write_broden(
    root: Path,
    labels: Sequence[tuple[str, str]],
    images: Sequence[BrodenImage],
    columns: Sequence[str] = BRODEN_CATEGORIES,
) -> Path:
    """`labels` are names and cells such as `object(12);part(3)`, numbered from 1 on."""
    rows: list[list[Any]] = []
    for place, entry in enumerate(images):
        stem = Path(entry.image).with_suffix("")
        save(root / "images" / entry.image, picture(place, entry.size), entry.mode)
        cells: list[str] = []
        for category in columns:
            items: list[str] = []
            for k, item in enumerate(entry.cells.get(category, ()), start=1):
                if isinstance(item, int):
                    items.append(str(item))
                    continue
                tail = f"{category}_{k}" if category == "part" else category
                items.append(f"{stem}_{tail}.png")
                save(root / "images" / items[-1], broden_png(item))
            cells.append(";".join(items))
        half = [side // 2 for side in entry.size]
        rows.append([entry.image, entry.split, *entry.size, *half, *cells])
    write_table(root / "index.csv", ["image", "split", "ih", "iw", "sh", "sw", *columns], rows)
    write_table(
        root / "label.csv",
        ["number", "name", "category", "frequency", "coverage", "syns"],
        [[k, name, cell, 10, 0.5, ""] for k, (name, cell) in enumerate(labels, start=1)],
    )
    return root


# ADE20K


def ade_png(ids: np.ndarray) -> np.ndarray:
    """Red is ten times the high byte, green the low byte; blue tells instances apart."""
    return np.stack([ids // 256 * 10, ids % 256, ids * 7 % 256], axis=2).astype(np.uint8)


def write_ade(root: Path, maps: Mapping[str, np.ndarray], split: str = "validation") -> Path:
    """The files as distributed; keys are such as `street/x/ADE_val_00000001`."""
    for place, (name, ids) in enumerate(maps.items()):
        folder = root / "images" / "ADE" / split
        save(folder / f"{name}.jpg", picture(place, (ids.shape[0], ids.shape[1])))
        save(folder / f"{name}_seg.png", ade_png(ids))
        save(folder / f"{name}_parts_1.png", ade_png(np.zeros_like(ids)))
    return root


def write_prepared_ade(root: Path, maps: Mapping[str, np.ndarray]) -> Path:
    """The prepared form: 16-bit TIFF of train ids."""
    for place, (name, train_ids) in enumerate(maps.items()):
        shape = (train_ids.shape[0], train_ids.shape[1])
        save(root / "images_detectron2" / "validation" / f"{name}.jpg", picture(place, shape))
        labels = root / "annotations_detectron2" / "validation" / f"{name}.tif"
        save(labels, train_ids.astype(np.uint16))
    return root


# Cityscapes


def write_cityscapes(
    root: Path,
    ids: Mapping[str, np.ndarray],
    train_ids: Mapping[str, np.ndarray],
    split: str = "val",
) -> Path:
    """Keys are such as `lindau/lindau_000000_000019`; every one has an image."""
    for place, name in enumerate({**ids, **train_ids}):
        values = ids[name] if name in ids else train_ids[name]
        shape = (values.shape[0], values.shape[1])
        save(root / "leftImg8bit" / split / f"{name}_leftImg8bit.png", picture(place, shape))
        labels = root / "gtFine" / split
        polygons = labels / f"{name}_gtFine_polygons.json"
        polygons.parent.mkdir(parents=True, exist_ok=True)
        polygons.write_text(json.dumps({"imgHeight": shape[0], "imgWidth": shape[1]}))
        save(labels / f"{name}_gtFine_color.png", picture(place, shape))
        if name in ids:
            save(labels / f"{name}_gtFine_labelIds.png", ids[name].astype(np.uint8))
        if name in train_ids:
            made = train_ids[name].astype(np.uint8)
            save(labels / f"{name}_gtFine_labelTrainIds.png", made)
    return root
