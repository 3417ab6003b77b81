"""From a model and images to units: activations, their ranges, and counts by signature.

Only the parts that run a model need torch; they are imported when they are first asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

from optexp_jax.activations.layer_units import LayerUnits, check_same_samples
from optexp_jax.activations.preprocessing import Preprocessing
from optexp_jax.activations.ranges import (
    AbstractRangeRule,
    ActivationRange,
    Clusters,
    ExplicitRange,
    TopQuantile,
    parse_rule,
)
from optexp_jax.activations.store import (
    ActivationFileError,
    ActivationKey,
    ActivationMetadata,
    ActivationStore,
)
from optexp_jax.activations.torch_import import MissingTorchError, require_torch
from optexp_jax.activations.writer import ActivationWriter

if TYPE_CHECKING:
    from optexp_jax.activations.layers import LayerInfo, LayerProbe, list_layers
    from optexp_jax.activations.loaded_model import LoadedModel
    from optexp_jax.activations.models import load_model
    from optexp_jax.activations.record import Images, find_images, record_activations
    from optexp_jax.activations.sparse_autoencoder import SparseAutoencoder

_NEEDING_TORCH = {
    "Images": "record",
    "LayerInfo": "layers",
    "LayerProbe": "layers",
    "LoadedModel": "loaded_model",
    "SparseAutoencoder": "sparse_autoencoder",
    "find_images": "record",
    "list_layers": "layers",
    "load_model": "models",
    "record_activations": "record",
}

__all__ = [
    "AbstractRangeRule",
    "ActivationFileError",
    "ActivationKey",
    "ActivationMetadata",
    "ActivationRange",
    "ActivationStore",
    "ActivationWriter",
    "Clusters",
    "ExplicitRange",
    "Images",
    "LayerInfo",
    "LayerProbe",
    "LayerUnits",
    "LoadedModel",
    "MissingTorchError",
    "Preprocessing",
    "SparseAutoencoder",
    "TopQuantile",
    "check_same_samples",
    "find_images",
    "list_layers",
    "load_model",
    "parse_rule",
    "record_activations",
]


def __getattr__(name: str) -> Any:
    if name not in _NEEDING_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_torch()
    module = importlib.import_module(f"{__name__}.{_NEEDING_TORCH[name]}")
    return getattr(module, name)
