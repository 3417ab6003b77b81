"""Torch and torchvision, imported when a model is to be run, or an error that says what to do."""

import importlib
from types import ModuleType


class MissingTorchError(ImportError, ValueError):
    """Torch is not installed; a ValueError too, because it is the caller's to mend."""


def require_torch() -> None:
    """Fail with advice if torch is not installed."""
    _import("torch")


def import_torchvision() -> ModuleType:
    """Torchvision, also where its compiled operators do not load.

    Its models are plain torch, yet importing it fails if two of those operators are not defined.
    """
    torch = _import("torch")
    try:
        return _import("torchvision")
    except RuntimeError:
        missing = [name for name in ("nms", "qnms") if not hasattr(torch.ops.torchvision, name)]
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in missing:
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _KEPT.append(library)  # Definitions end with the object that made them.
        return _import("torchvision")


def import_extra(name: str, what: str) -> ModuleType:
    """A module of timm or transformers, both of which import torchvision, or advice."""
    import_torchvision()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MissingTorchError(
            f'{what} needs {name.partition(".")[0]}: pip install "optexp-jax[models]"'
        ) from error


_KEPT: list[object] = []


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:  # one that is there and does not load tells why itself
        raise MissingTorchError(
            f'Running a model needs {name}: pip install "optexp-jax[torch]"'
        ) from error
