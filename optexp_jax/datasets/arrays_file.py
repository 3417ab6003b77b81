"""Arrays in an `.npz` file, so that they can be opened by name as other datasets are."""

import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from optexp_jax.concepts.labels import LabelLayer
from optexp_jax.datasets.arrays import ArrayDataset
from optexp_jax.datasets.folder_tables import NOT_CONCEPTS
from optexp_jax.datasets.protocol import LayoutError
from optexp_jax.internal.memory import require_memory

_EXPECTED = (
    "images [sample, height, width, 3], and either masks [concept, sample, height, width] with "
    "names [concept], or labels [sample, height, width] with names [value]; further layers are "
    "labels_X and names_X"
)
UNREADABLE = (
    *(OSError, ValueError, KeyError, EOFError, MemoryError, RuntimeError, SyntaxError, TypeError),
    *(zipfile.BadZipFile, zlib.error, struct.error),
)
"""What numpy may raise for an `.npz` file that is cut off, overwritten or forged."""


def open_arrays(root: Path) -> ArrayDataset:
    """The dataset in an `.npz` file.

    It holds `images` and either `masks` with `names` and, if wanted, `categories`; or `labels`,
    whose values are places in `names`. Layers beside that are `labels_X` with `names_X`, of
    category X. `sample_names` names the images.
    """
    arrays = _load(root)
    sample_names = _texts(arrays["sample_names"]) if "sample_names" in arrays else None
    try:
        if "masks" in arrays:
            return ArrayDataset.from_masks(
                arrays["images"],
                arrays["masks"],
                _texts(arrays["names"]),
                _texts(arrays["categories"]) if "categories" in arrays else None,
                sample_names,
            )
        layers = [key for key in arrays if key.partition("_")[0] == "labels"]
        if not layers:
            raise LayoutError(f"{root} must hold {_EXPECTED}; it has {', '.join(arrays)}.")
        return ArrayDataset.from_label_maps(
            arrays["images"],
            [arrays[key] for key in layers],
            [_layer(arrays, key) for key in layers],
            sample_names=sample_names,
        )
    except KeyError as error:
        raise LayoutError(f"{root} lacks {error}; it must hold {_EXPECTED}.") from error


def _load(path: Path) -> Mapping[str, np.ndarray]:
    try:
        with path.open("rb") as file:  # Of a path, numpy leaves a damaged file open.
            stored = np.load(file, allow_pickle=False)
            if isinstance(stored, np.ndarray):
                raise LayoutError(f"{path} holds one array; write several with numpy.savez.")
            with stored:
                _check_size(path)
                return {name: stored[name] for name in stored.files}
    except LayoutError:
        raise
    except FileNotFoundError:
        raise LayoutError(f"There is no file {path}.") from None
    except UNREADABLE as error:
        raise LayoutError(f"{path} cannot be read as an .npz file: {error}") from error


def _check_size(path: Path) -> None:
    """Refuse a file that unpacks to more than there is room for, before it is unpacked."""
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
    require_memory(unpacked, f"The arrays in {path}", "Store fewer or smaller images in it.")


def _layer(arrays: Mapping[str, np.ndarray], key: str) -> LabelLayer:
    tail = key.removeprefix("labels")
    named = dict(enumerate(_texts(arrays[f"names{tail}"])))
    none = [value for value, name in named.items() if name.lower() in NOT_CONCEPTS]
    return LabelLayer(
        {value: name for value, name in named.items() if value not in none},
        category=tail.removeprefix("_") or None,
        ignore=none,
    )


def _texts(array: np.ndarray) -> list[str]:
    return [str(text) for text in array.tolist()]
