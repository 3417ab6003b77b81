"""Torchvision's networks, made for the weights that they are to hold.

Torchvision's constructors change more than the classifier when they are asked for pretrained
weights. The same is done here for weights from anywhere, so that a file acts as a download does.
"""

import math
import pickle
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from optexp_jax.activations.checkpoints import (
    State,
    load_into,
    unwrapped,
    with_current_names,
)
from optexp_jax.activations.preprocessing import Filter, Preprocessing, Protocol
from optexp_jax.activations.torch_import import import_torchvision

INCEPTIONS = ("googlenet", "inception_v3")
"""Networks with heads for training, whose pretrained weights want colours from -1 to 1."""


def pretrained_state(name: str) -> State:
    """Torchvision's best weights of a network, downloaded once; reading them runs no code."""
    weights = _default_weights(name)
    try:
        state = weights.get_state_dict(progress=True, check_hash=True, weights_only=True)
    except OSError as error:
        raise OSError(
            f"The pretrained weights of {name} could not be downloaded ({error}). Pass a "
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
    module = models.get_model(name, weights=None, **options)
    n_classes = _other_classes(module, state)
    if n_classes is not None:
        module = models.get_model(name, weights=None, **options, num_classes=n_classes)
    load_into(module, state, source)
    return module


def vision_preprocessing(
    name: str, module: torch.nn.Module, protocol: Protocol = "whole"
) -> Preprocessing:
    """What torchvision's weights of the network state, or the paper's with a size that it takes."""
    transforms = _default_weights(name).transforms()
    # Vision transformers take images of one size only, and say which.
    takes: int | None = getattr(module, "image_size", None)
    if protocol == "paper":
        return Preprocessing(takes or (299 if name == "inception_v3" else 224))
    (stated,), (shorter,) = transforms.crop_size, transforms.resize_size
    stated_filter: Filter = transforms.interpolation.value
    size = takes or stated
    found = Preprocessing(size, filter=stated_filter).changed(
        mean=transforms.mean, std=transforms.std
    )
    if protocol == "whole":
        return found
    return replace(found, shorter=shorter if size == stated else size)


def _default_weights(name: str) -> Any:
    return import_torchvision().models.get_model_weights(name).DEFAULT


def _image_size(name: str, state: State) -> Mapping[str, int]:
    """The size of images that a vision transformer's positions are made for."""
    positions = state.get("encoder.pos_embedding")
    if not name.startswith("vit_") or positions is None or positions.ndim != 3:
        return {}
    side = math.isqrt(max(positions.shape[1] - 1, 1))  # one is the class token's
    return {"image_size": side * int(name.rpartition("_")[2])}  # vit_b_16 has patches of 16 x 16


def _other_classes(module: torch.nn.Module, state: State) -> int | None:
    """How many classes the weights are for, if that is all in which they differ from a network.

    The classifier's tensors are found by their shapes: files keep tensors in any order, and not
    every classifier has a bias.
    """
    own = module.state_dict()
    shapes = [
        (own[key].shape, state[key].shape)
        for key in own.keys() & state.keys()
        if own[key].shape != state[key].shape
    ]
    if any(len(old) != len(new) or old[1:] != new[1:] for old, new in shapes):
        return None
    found = {new[0] for _, new in shapes}
    return found.pop() if len(found) == 1 else None
