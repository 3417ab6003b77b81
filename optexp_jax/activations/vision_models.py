"""Torchvision's networks, made for the weights that they are to hold.

Torchvision's constructors change more than the classifier when they are asked for pretrained
weights. The same is done here for weights from anywhere, so that a file acts as a download does.
"""

import math
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from optexp_jax.activations.checkpoints import (
    State,
    fit_classes,
    load_into,
    unwrapped,
    with_current_names,
)
from optexp_jax.activations.preprocessing import Filter, Preprocessing
from optexp_jax.activations.stated_input import PAPER_SIZE, StatedInput
from optexp_jax.activations.torch_import import import_torchvision

INCEPTIONS = ("googlenet", "inception_v3")
"""Networks with heads for training, whose pretrained weights want colours from -1 to 1."""


@dataclass(frozen=True)
class VisionName:
    """A network of torchvision, and which of its weights are meant."""

    network: str
    weights: Any
    """A member of torchvision's enumeration of its weights; the best unless another was named."""

    @classmethod
    def find(cls, name: str) -> "VisionName | None":
        """From `resnet18` or `ResNet18_Weights.IMAGENET1K_V1`; None if torchvision has neither."""
        models = import_torchvision().models
        known = models.list_models(module=models)
        if name in known:
            return cls(name, models.get_model_weights(name).DEFAULT)
        kind, _, member = name.partition(".")
        for network in known if kind.endswith("_Weights") else ():
            offered = models.get_model_weights(network)
            if offered.__name__ == kind:
                return cls(network, _member(offered, member))
        return None


def _member(offered: Any, member: str) -> Any:
    if member not in offered.__members__:
        names = ", ".join(f"{offered.__name__}.{each}" for each in offered.__members__)
        raise ValueError(f"There are no weights {offered.__name__}.{member}; there are {names}.")
    return offered[member]


def pretrained_state(name: VisionName) -> State:
    """Torchvision's weights of a network, downloaded once; reading them runs no code."""
    weights = name.weights
    try:
        state = weights.get_state_dict(progress=True, check_hash=True, weights_only=True)
    except OSError as error:
        raise OSError(
            f"The pretrained weights of {name.network} could not be downloaded ({error}). Pass a "
            "checkpoint as weights (--weights FILE), or `random`."
        ) from error
    except pickle.UnpicklingError as error:
        raise ValueError(
            f"The download of {weights.url} holds more than tensors. Remove it from "
            f"{torch.hub.get_dir()}/checkpoints; it is not what torchvision offers."
        ) from error
    return with_current_names(state, weights.url)


def make_vision_model(name: str, state: State, source: str | Path) -> torch.nn.Module:
    """The network as torchvision's constructor would make it for these weights, and with them."""
    models = import_torchvision().models
    state = unwrapped(state)  # No part of these networks is called as training modules call them.
    options: dict[str, Any] = {**_image_size(name, state)}
    if name in INCEPTIONS:
        # Torchvision keeps the training head of the one, and drops those of the other.
        state = {k: tensor for k, tensor in state.items() if not k.startswith(("aux1.", "aux2."))}
        options["aux_logits"] = any(key.startswith("AuxLogits.") for key in state)
        options |= {"transform_input": True, "init_weights": False}
    module = fit_classes(
        lambda **classes: models.get_model(name, weights=None, **options, **classes), state
    )
    load_into(module, state, source)
    return module


def vision_input(name: VisionName, module: torch.nn.Module) -> StatedInput:
    """What torchvision's weights of the network state, with a size that it takes."""
    transforms = name.weights.transforms()
    # Vision transformers take images of one size only, and say which.
    takes: int | None = getattr(module, "image_size", None)
    (stated,), (shorter,) = transforms.crop_size, transforms.resize_size
    stated_filter: Filter = transforms.interpolation.value
    size = takes or stated
    whole = Preprocessing(size, filter=stated_filter).changed(
        mean=transforms.mean, std=transforms.std
    )
    paper_size = takes or (299 if name.network == "inception_v3" else PAPER_SIZE)
    return StatedInput(whole.cropped_from(shorter if size == stated else size), paper_size)


def _image_size(name: str, state: State) -> Mapping[str, int]:
    """The size of images that a vision transformer's positions are made for."""
    positions = state.get("encoder.pos_embedding")
    if not name.startswith("vit_") or positions is None or positions.ndim != 3:
        return {}
    side = math.isqrt(max(positions.shape[1] - 1, 1))  # one is the class token's
    return {"image_size": side * int(name.rpartition("_")[2])}  # vit_b_16 has patches of 16 x 16
