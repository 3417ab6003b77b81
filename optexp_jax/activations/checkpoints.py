"""Weights from files: state dicts, safetensors, and checkpoints in the forms they are spread in.

Files are read with `weights_only=True`, which cannot run code. A pickled module can, so it is
refused unless the caller trusts it.
"""

import hashlib
import os
import pickle
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch.serialization import SourceChangeWarning

from optexp_jax.activations.torch_import import import_torchvision

State = Mapping[str, torch.Tensor]

# Old torchvision called the parts of a dense layer norm.1, relu.1, conv.1; now norm1 and so on.
_OLD_DENSE_NAME = re.compile(r"(denselayer\d+\.(?:norm|relu|conv))\.(\d)(?=\.)")
# Models that were trained on several devices are, or contain, a part called "module".
_PARALLEL = re.compile(r"(^|\.)module\.")


class UntrustedPickleError(ValueError):
    """A checkpoint that can only be read by running code it brings along."""


def read_state(path: str | Path, *, trust_pickle: bool = False) -> dict[str, torch.Tensor]:
    """The tensors of a checkpoint by name, with the names that torchvision uses.

    Known forms: safetensors; a state dict; a dict with one under `state_dict` or `model`; a pickled
    module, which needs `trust_pickle`.
    """
    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"There is no checkpoint at {source}.")
    try:
        content = _read(source, trust_pickle)
    except UntrustedPickleError:
        raise
    except Exception as error:  # readers raise many kinds for damaged files and files of others
        said = str(error).partition("\n")[0] or type(error).__name__
        raise ValueError(f"{source} is not a checkpoint, or it is damaged ({said}).") from error
    if isinstance(content, torch.nn.Module):
        content = content.state_dict()
    if isinstance(content, Mapping):
        for name in ("state_dict", "model"):
            if isinstance(content.get(name), Mapping):
                content = content[name]
                break
    return _renamed(content, source)


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
    module.load_state_dict({**{name: own[name] for name in known}, **state})


def hash_weights(module: torch.nn.Module) -> str:
    """A checksum of all parameters and buffers."""
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(module.state_dict().items()):
        values = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {values.dtype} {tuple(values.shape)}\n".encode())
        digest.update(values.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _read(source: Path, trust_pickle: bool) -> Any:
    if source.suffix == ".safetensors":
        return safetensors.torch.load_file(source)
    try:
        return _load(source, weights_only=True)
    except pickle.UnpicklingError as error:
        if trust_pickle:
            return _unpickle(source)
        raise UntrustedPickleError(
            f"{source} holds a pickled Python object, not only tensors; reading it can run any "
            "code that is in it. If you trust where it comes from, convert it once: optexp "
            f"models convert {source.name} OUT.safetensors --trust-pickle"
        ) from error


def _unpickle(source: Path) -> Any:
    import_torchvision()  # Pickles name the classes they need.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SourceChangeWarning)  # The classes are of an older version.
        return _load(source, weights_only=False)


def _load(source: Path, weights_only: bool) -> Any:
    try:
        return torch.load(source, map_location="cpu", weights_only=weights_only)
    except UnicodeDecodeError:  # bytes where Python 2 had strings
        return torch.load(source, map_location="cpu", weights_only=weights_only, encoding="latin1")


def _renamed(content: object, source: Path) -> dict[str, torch.Tensor]:
    if not isinstance(content, Mapping) or not all(
        isinstance(name, str) and isinstance(value, torch.Tensor) for name, value in content.items()
    ):
        raise ValueError(
            f"{source} holds no state dict, but {type(content).__name__}. Save one with "
            "torch.save(model.state_dict(), path)."
        )
    return {
        _OLD_DENSE_NAME.sub(r"\1\2", _PARALLEL.sub(r"\1", str(name))): value
        for name, value in content.items()
    }
