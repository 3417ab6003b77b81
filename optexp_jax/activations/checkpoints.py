"""Weights from files: state dicts, safetensors, and checkpoints in the forms they are spread in.

Files are read with `weights_only=True`, which cannot run code. A pickled module can, and so can a
TorchScript program; the first is refused unless the caller trusts it, and the second is no
checkpoint.
"""

import hashlib
import os
import pickle
import re
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch.serialization import SourceChangeWarning

from optexp_jax.activations.torch_import import import_torchvision

State = Mapping[str, torch.Tensor]

# Old torchvision called the parts of a dense layer norm.1, relu.1, conv.1; now norm1 and so on.
_OLD_DENSE_NAME = re.compile(r"(denselayer\d+\.(?:norm|relu|conv))\.(\d)(?=\.)")
# And those of a transformer's perceptron linear_1 and linear_2, as its own files still do.
_OLD_PERCEPTRON = re.compile(r"(encoder_layer_\d+\.mlp)\.linear_([12])(?=\.)")
_PERCEPTRON_PARTS = {"1": "0", "2": "3"}
# Models that were trained on several devices are, or contain, a part called "module".
_PARALLEL = re.compile(r"(^|\.)module\.")


# Compiled models are a part called "_orig_mod".
_COMPILED = re.compile(r"(^|\.)_orig_mod\.")
_STATES = ("state_dict", "model_state_dict", "model", "net")
"""Under which checkpoints keep the state dict, beside the state of the training."""
_WRAPPERS = ("model.", "net.")
"""Names that a training module gives to the network that it trains."""


class UntrustedCodeError(ValueError):
    """A file that can only be read by running code it brings along."""


class NamedTensors(dict[str, torch.Tensor]):
    """A state dict, with the versions of the modules that it was taken from, if they are known."""

    def __init__(self, tensors: State, versions: Any = None):
        super().__init__(tensors)
        self._metadata = versions  # where torch looks for them


def read_state(path: str | Path, *, trust: bool = False) -> NamedTensors:
    """The tensors of a checkpoint by name, with the names that torchvision uses.

    Known forms: safetensors; a state dict; a dict with one under `state_dict`, `model_state_dict`,
    `model` or `net`; a pickled module, which needs `trust`. What training tools put in front of all
    names is left out: `module.`, `_orig_mod.` and, of Lightning's files, `model.`.
    """
    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"There is no checkpoint at {source}.")
    if is_torchscript(source):
        raise ValueError(
            f"{source} is a TorchScript program, not a checkpoint. Pass it as the model: "
            f"torchscript:{source} with trust (--trust)."
        )
    try:
        content = _read(source, trust)
    except UntrustedCodeError:
        raise
    except Exception as error:  # readers raise many kinds for damaged files and files of others
        said = str(error).partition("\n")[0] or type(error).__name__
        raise ValueError(f"{source} is not a checkpoint, or it is damaged ({said}).") from error
    if isinstance(content, torch.nn.Module):
        content = content.state_dict()
    if isinstance(content, Mapping):
        for name in _STATES:
            if isinstance(content.get(name), Mapping):
                content = content[name]
                break
    return with_current_names(content, source)


def is_torchscript(path: Path) -> bool:
    """Whether a file is a TorchScript program, by the names in its archive; nothing is loaded."""
    try:
        with zipfile.ZipFile(path) as archive:
            inside = {name.partition("/")[2] for name in archive.namelist()}
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
        return False
    return "constants.pkl" in inside or any(name.startswith("code/") for name in inside)


def with_current_names(content: object, source: str | Path) -> NamedTensors:
    """A state dict with the names that torchvision uses now."""
    if not isinstance(content, Mapping) or not all(
        isinstance(name, str) and isinstance(value, torch.Tensor) for name, value in content.items()
    ):
        raise ValueError(
            f"{source} holds no state dict, but {type(content).__name__}. Save one with "
            "torch.save(model.state_dict(), path)."
        )
    versions = getattr(content, "_metadata", None)
    if isinstance(versions, Mapping):
        # Of modules, whose names lack the dot with which those of their tensors go on.
        versions = {
            _current(f"{name}.").removesuffix("."): version for name, version in versions.items()
        }
    return NamedTensors({_current(str(name)): value for name, value in content.items()}, versions)


def write_safetensors(state: State, path: str | Path) -> None:
    """Write tensors to a file that cannot run code."""
    target = Path(path)
    if target.exists():
        raise FileExistsError(f"{target} exists; remove it or choose another path.")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".partial")
    # Not with save_file, which makes files that only their owner may read.
    partial.write_bytes(
        safetensors.torch.save({name: value.contiguous().clone() for name, value in state.items()})
    )
    os.replace(partial, target)


def load_into(module: torch.nn.Module, state: State, source: str | Path) -> None:
    """Load all tensors, strictly; a mismatch is told in one line."""
    own = module.state_dict()
    state = unwrapped(state, own)
    # Files from before batch counters were kept lack them; they do not matter when evaluating.
    known = {name for name in own if name.endswith("num_batches_tracked")}
    missing = sorted(own.keys() - state.keys() - known)
    extra = sorted(state.keys() - own.keys())
    wrong = sorted(
        name for name in own.keys() & state.keys() if own[name].shape != state[name].shape
    )
    for names, what in (
        (missing, "are missing"),
        (extra, "are unknown"),
        (wrong, "differ in shape"),
    ):
        if names:
            shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
            raise ValueError(
                f"{source} does not fit this model: {len(names)} tensors {what} ({shown})."
            )
    # Some modules refuse, or convert, tensors of an unknown version. Where a file tells none, names
    # and shapes are those of this one.
    versions = getattr(state, "_metadata", None) or getattr(own, "_metadata", None)
    counters = {name: own[name] for name in known}
    module.load_state_dict(NamedTensors({**counters, **state}, versions))


def fit_classes(make: Callable[..., torch.nn.Module], state: State) -> torch.nn.Module:
    """The network that `make(num_classes=...)` makes for the number of classes of the weights."""
    module = make()
    n_classes = _other_classes(module, unwrapped(state, module.state_dict()))
    return module if n_classes is None else make(num_classes=n_classes)


def unwrapped(state: State, own: State | None = None) -> State:
    """The tensors of the network that a training module holds, without the name it has there.

    That module may hold more than the network, such as a loss: it is left out. Nothing is changed
    if the names fit the network's `own` as they are.
    """
    for prefix in _WRAPPERS:
        inner = {name[len(prefix) :]: t for name, t in state.items() if name.startswith(prefix)}
        fits = own is None or (not own.keys() & state.keys() and bool(own.keys() & inner.keys()))
        if inner and fits:
            versions = getattr(state, "_metadata", None)
            if isinstance(versions, Mapping):
                versions = {str(name).removeprefix(prefix): v for name, v in versions.items()}
            return NamedTensors(inner, versions)
    return state


def hash_weights(module: torch.nn.Module) -> str:
    """A checksum of all parameters and buffers."""
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(module.state_dict().items()):
        values = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {values.dtype} {tuple(values.shape)}\n".encode())
        digest.update(values.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _read(source: Path, trust: bool) -> Any:
    if source.suffix == ".safetensors":
        return safetensors.torch.load_file(source)
    try:
        return _load(source, weights_only=True)
    except pickle.UnpicklingError as error:
        if trust:
            return _unpickle(source)
        raise UntrustedCodeError(
            f"{source} holds a pickled Python object, not only tensors; reading it can run any "
            "code that is in it. If you trust where it comes from, convert it once: optexp "
            f"models convert {source} OUT.safetensors --trust"
        ) from error


def _unpickle(source: Path) -> Any:
    import_torchvision()  # Pickles name the classes they need.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SourceChangeWarning)  # The classes are of an older version.
        return _load(source, weights_only=False)


def _current(name: str) -> str:
    name = _COMPILED.sub(r"\1", _PARALLEL.sub(r"\1", name))
    name = _OLD_DENSE_NAME.sub(r"\1\2", name)
    return _OLD_PERCEPTRON.sub(lambda old: f"{old[1]}.{_PERCEPTRON_PARTS[old[2]]}", name)


def _load(source: Path, weights_only: bool) -> Any:
    try:
        return torch.load(source, map_location="cpu", weights_only=weights_only)
    except UnicodeDecodeError:  # bytes where Python 2 had strings
        return torch.load(source, map_location="cpu", weights_only=weights_only, encoding="latin1")


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
