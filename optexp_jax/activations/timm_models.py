"""Networks of timm, by their names there, with the preprocessing that timm states for them."""

import difflib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from optexp_jax.activations.checkpoints import fit_classes, load_into, read_state
from optexp_jax.activations.preprocessing import FILTERS, Preprocessing
from optexp_jax.activations.random_weights import made_randomly
from optexp_jax.activations.stated_input import PAPER_SIZE, StatedInput
from optexp_jax.activations.torch_import import import_extra


def make_timm_model(name: str, weights: str | Path | None, trust: bool) -> torch.nn.Module:
    """A network with timm's pretrained weights, those of a file, or random ones."""
    timm = import_extra("timm", f"timm:{name}")
    _check_name(timm, name)
    if weights is None:
        return _pretrained(timm, name)
    if weights == "random":
        return made_randomly(lambda: timm.create_model(name))
    state = read_state(weights, trust=trust)
    module = fit_classes(lambda **options: timm.create_model(name, **options), state)
    load_into(module, state, weights)
    return module


def timm_input(module: torch.nn.Module, name: str) -> StatedInput:
    """What timm's `data_config` says of the network."""
    timm_data = import_extra("timm.data", f"timm:{name}")
    stated = timm_data.resolve_model_data_config(module)
    fixed = bool(getattr(module, "pretrained_cfg", {}).get("fixed_input_size", False))
    return stated_by_timm(stated, fixed, f"timm:{name}")


def stated_by_timm(stated: Mapping[str, Any], fixed: bool, name: str) -> StatedInput:
    """A `data_config` of timm as what images are prepared with."""
    channels, height, width = stated["input_size"]
    if channels != 3 or height != width:
        raise ValueError(
            f"{name} takes images of {channels} x {height} x {width}; recording shows squares in "
            "three colours. Wrap it in a module that makes its input from such, and name that as "
            "module:function."
        )
    crop, mode = float(stated["crop_pct"]), str(stated["crop_mode"])
    scaled = math.floor(height / crop)
    # "random" is of training; timm then evaluates with the default.
    filter = stated["interpolation"] if stated["interpolation"] in FILTERS else "bilinear"
    whole = Preprocessing(height, filter=filter).changed(mean=stated["mean"], std=stated["std"])
    paper_size = height if fixed else PAPER_SIZE
    if mode == "squash" and scaled == height:
        return StatedInput(whole, paper_size)
    if mode in ("squash", "border"):
        return StatedInput(whole, paper_size, f"the crop mode {mode} and {crop:g} of the side")
    return StatedInput(whole.cropped_from(scaled), paper_size)


def _pretrained(timm: Any, name: str) -> torch.nn.Module:
    try:
        return timm.create_model(name, pretrained=True)
    except Exception as error:  # of the download, which raises many kinds
        said = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"timm's pretrained weights of {name} could not be had ({said}). Pass a checkpoint as "
            "weights (--weights FILE), or `random`."
        ) from error


def _check_name(timm: Any, name: str) -> None:
    """Refuse a name that timm does not have: `architecture`, or that with `.tag`."""
    architecture, _, tag = name.partition(".")
    known = timm.list_models()
    if architecture not in known:
        near = difflib.get_close_matches(architecture, known, n=3)
        hint = f" Did you mean {' or '.join(f'timm:{each}' for each in near)}?" if near else ""
        raise ValueError(
            f"timm has no model {name!r}.{hint} timm.list_models() in Python lists all."
        )
    tags = [each.partition(".")[2] for each in timm.list_pretrained(f"{architecture}.*")]
    if tag and tag not in tags:
        offered = ", ".join(tags) or "none"
        raise ValueError(f"timm has no weights {tag!r} of {architecture}; it has: {offered}.")
