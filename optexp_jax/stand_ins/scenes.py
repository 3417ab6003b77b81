"""Label maps of generated scenes: cells with uneven borders at several scales, as in photos."""

from dataclasses import dataclass

import numpy as np
import scipy.ndimage
from jaxtyping import Bool, Float32, Int, UInt

from optexp_jax.concepts import LabelLayer


@dataclass(frozen=True, eq=False)
class Annotations:
    """Label maps `[sample, height, width]`, one a layer, and the scene of samples that have one."""

    maps: list[UInt[np.ndarray, "samples height width"]]
    layers: list[LabelLayer]
    scenes: list[str | None]


def make_annotations(
    n_samples: int,
    size: int,
    seed: int,
    *,
    objects: int = 40,
    parts: int = 30,
    materials: int = 12,
    colours: int = 11,
    scenes: int = 7,
) -> Annotations:
    """Objects as warped cells, parts as smaller cells inside objects, materials by object, colours
    by shading, one scene a sample. As in collections of several sources, some samples have no
    colours and some no scene: a location carries zero to five concepts.
    """
    rng = np.random.default_rng(seed)
    kinds = {"object": objects, "part": parts, "material": materials, "colour": colours}
    maps = [
        np.zeros((n_samples, size, size), np.min_scalar_type(count)) for count in kinds.values()
    ]
    scene_ids = rng.integers(scenes, size=n_samples)
    # A scene favours some objects, so that concepts occur together as they do in photos.
    favours = rng.dirichlet(np.full(objects, 0.3), size=scenes)
    # An object owns a few parts and is mostly made of one material.
    part_of = rng.integers(1, parts + 1, size=(objects + 1, 4))
    material_of = rng.integers(1, materials + 1, size=objects + 1)
    for x, scene in enumerate(scene_ids):
        n_cells = int(rng.integers(6, 18))
        labels = rng.choice(objects, size=n_cells, p=favours[scene]) + 1
        labels[rng.random(n_cells) < 0.15] = 0  # unlabelled ground
        cells = _cells(rng, size, n_cells)
        object_map = labels[cells]
        pieces = _cells(rng, size, 4 * n_cells)
        piece_kind = rng.integers(4, size=4 * n_cells)[pieces]
        has_part = (rng.random(4 * n_cells) < 0.4)[pieces] & (object_map > 0)
        shade = _smooth(rng, size, 6.0) + rng.normal(size=n_cells)[cells]
        maps[0][x] = object_map
        maps[1][x] = np.where(has_part, part_of[object_map, piece_kind], 0)
        maps[2][x] = np.where(object_map > 0, material_of[object_map], 0)
        if rng.random() < 2 / 3:
            maps[3][x] = 1 + np.clip((shade + 2.5) / 5 * colours, 0, colours - 1).astype(np.int64)
    layers = [
        LabelLayer({k: f"{kind}{k:02d}" for k in range(1, count + 1)}, category=kind)
        for kind, count in kinds.items()
    ]
    has_scene = rng.random(n_samples) < 2 / 3
    names = [
        f"scene{scene}-s" if given else None
        for scene, given in zip(scene_ids, has_scene, strict=True)
    ]
    return Annotations(maps, layers, names)


def make_bitmaps(
    n_units: int, n_samples: int, size: int, active: float, seed: int, grid: int = 7
) -> Bool[np.ndarray, "units samples height width"]:
    """Units' active locations: coarse activations, enlarged, over a quantile of each unit.

    Activations are heavy-tailed by sample, so that a unit fires in compact blobs of few samples.
    """
    rng = np.random.default_rng(seed)
    enlarge = _enlarging(grid, size)
    bitmaps = np.empty((n_units, n_samples, size, size), np.bool_)
    for unit in range(n_units):
        strength = np.exp(rng.normal(size=(n_samples, 1, 1)))
        coarse = (rng.normal(size=(n_samples, grid, grid)) * strength).astype(np.float32)
        fine = enlarge @ coarse @ enlarge.T
        bitmaps[unit] = fine > np.quantile(fine.reshape(-1)[::7], 1 - active)
    return bitmaps


def _cells(rng: np.random.Generator, size: int, n_cells: int) -> Int[np.ndarray, "size size"]:
    """Nearest of some random points, seen through a smooth warp: cells with uneven borders."""
    rows, columns = np.mgrid[:size, :size]
    warped = [axis + 0.06 * size * _smooth(rng, size, 0.05 * size) for axis in (rows, columns)]
    points = rng.random((n_cells, 2)) * size
    distance = sum((warped[k][None] - points[:, k, None, None]) ** 2 for k in range(2))
    return np.asarray(distance).argmin(0)


def _smooth(rng: np.random.Generator, size: int, scale: float) -> np.ndarray:
    """A smooth random field of unit variance."""
    field = scipy.ndimage.gaussian_filter(rng.normal(size=(size, size)), scale, mode="wrap")
    return field / field.std()


def _enlarging(grid: int, size: int) -> Float32[np.ndarray, "size grid"]:
    """The matrix of linear interpolation from cell centres of a grid to locations."""
    place = np.clip((np.arange(size) + 0.5) * grid / size - 0.5, 0, grid - 1)
    return np.maximum(0, 1 - np.abs(place[:, None] - np.arange(grid))).astype(np.float32)
