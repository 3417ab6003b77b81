"""Arrays in an `.npz` file, so that they can be opened by name as other datasets are."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from optexp_jax.concepts.labels import LabelLayer
from optexp_jax.datasets.arrays import ArrayDataset
from optexp_jax.datasets.folder_tables import NOT_CONCEPTS
from optexp_jax.datasets.protocol import LayoutError

_EXPECTED = (
    "images [sample, height, width, 3], and either masks [concept, sample, height, width] with "
    "names [concept], or labels [sample, height, width] with names [value]; further layers are "
    "labels_X and names_X"
)


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
        stored = np.load(path, allow_pickle=False)
        if isinstance(stored, np.ndarray):
            raise LayoutError(f"{path} holds one array; write several with numpy.savez.")
        with stored:
            return {name: stored[name] for name in stored.files}
    except LayoutError:
        raise
    except FileNotFoundError:
        raise LayoutError(f"There is no file {path}.") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise LayoutError(f"{path} cannot be read as an .npz file: {error}") from error


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
