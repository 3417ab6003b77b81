"""The layers of a model: their names, their outputs, and outputs read as maps of units."""

import difflib
import inspect
import math
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from optexp_jax.activations.layouts import LAYOUTS, Layout
from optexp_jax.activations.loaded_model import LoadedModel
from optexp_jax.activations.outputs import LayerOutput, first_tensor
from optexp_jax.activations.script_layers import (
    UnreachedLayerError,
    run_script_layer,
    run_script_layers,
)
from optexp_jax.internal.own_code import place_of

_LISTED = 2
"""Images that a model is shown to list its layers."""
MOST_EXTRA_TOKENS = 5
"""A class token and four registers."""


@dataclass(frozen=True)
class LayerInfo:
    """A layer and what it gives for one image."""

    name: str
    kind: str
    output: tuple[int, ...]
    """The shape of its output, without the batch."""
    units: int | None
    """None if the output cannot be read as maps of units."""
    map_shape: tuple[int, int] | None
    calls: int
    """How often one forward pass calls it; the last call counts."""
    why: str | None = None
    """Why it has no units."""


def list_layers(model: LoadedModel, layout: Layout = "auto") -> list[LayerInfo]:
    """All layers that give a tensor, in the order in which they are last called."""
    size = model.preprocessing.size
    with _explained(model, size):
        # Two images, so that a first axis that is not the samples' shows.
        images = torch.zeros(_LISTED, 3, size, size)
        outputs = _run_all(model.module, _fitting(images, model.module))
    if not outputs:
        script = isinstance(model.module, torch.jit.ScriptModule)
        why = (
            "its TorchScript code calls its parts only inside loops or conditions, where they "
            "cannot be followed. Save a traced program (torch.jit.trace), or give the network "
            "itself as module:function."
            if script
            else "its forward pass calls no part of it that gives a tensor."
        )
        raise ValueError(f"No layer of {model.name} can be reached: {why}")
    parts = dict(model.module.named_modules())
    found: list[LayerInfo] = []
    for name, given in outputs.items():
        output = given.tensor
        units = map_shape = why = None
        try:
            n_units, rows, columns = _as_units(output, _LISTED, name, layout, model)
            units, map_shape = n_units, (rows, columns)
        except ValueError as error:
            why = str(error)
        shape = tuple(output.shape[1:])
        kind = _kind_of(parts[name])
        found.append(LayerInfo(name, kind, shape, units, map_shape, given.calls, why))
    return found


def _as_units(
    output: torch.Tensor, n_samples: int, layer: str, layout: Layout, model: LoadedModel
) -> tuple[int, int, int]:
    """How many units, rows and columns an output is read as."""
    _check_samples(output, n_samples, layer, layout)
    _, n_units, rows, columns = read_as_maps(output, layout).shape
    if model.autoencoder is not None:
        model.autoencoder.check_fits(n_units, layer)
        n_units = model.autoencoder.n_features
    return n_units, rows, columns


def check_layer(model: LoadedModel, layer: str) -> None:
    """Refuse a name that the model does not have, listing the near ones."""
    names = [name for name, _ in model.module.named_modules() if name]
    if layer in names:
        return
    near = difflib.get_close_matches(layer, names, n=5, cutoff=0.4)
    near += [name for name in names if layer and layer in name and name not in near][:3]
    hint = f" Near ones: {', '.join(near)}." if near else ""
    raise ValueError(
        f"{model.name} has no layer {layer!r}.{hint} `optexp layers {model.name}` lists all."
    )


class LayerProbe:
    """Runs a model on batches and gives the output of one layer as maps of units."""

    def __init__(
        self,
        model: LoadedModel,
        layer: str,
        *,
        layout: Layout = "auto",
        device: str | torch.device = "cpu",
    ):
        check_layer(model, layer)
        self._model, self._layer = model, layer
        self._layout: Layout = layout
        try:
            self._device = torch.device(device)
            self._module = model.module.to(self._device).eval()
        except (RuntimeError, AssertionError) as error:  # a device that there is not
            raise ValueError(f"The model cannot run on {device!r} ({error}).") from error

    @torch.no_grad()
    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        """Float32 maps `[sample, unit, row, column]` on the CPU."""
        with _explained(self._model, batch.shape[-1]):
            output = self._output(_fitting(batch.to(self._device), self._module))
        _check_samples(output, len(batch), self._layer, self._layout)
        maps = read_as_maps(output, self._layout).float()
        autoencoder = self._model.autoencoder
        if autoencoder is not None:
            autoencoder.check_fits(maps.shape[1], self._layer)
            maps = autoencoder(maps)
        return maps.cpu()

    def _output(self, batch: torch.Tensor) -> torch.Tensor:
        if isinstance(self._module, torch.jit.ScriptModule):
            return run_script_layer(self._module, self._layer, batch)
        hooked = {self._layer: self._module.get_submodule(self._layer)}
        found = _run_hooked(self._module, hooked, batch)
        if self._layer not in found:
            raise UnreachedLayerError(
                f"The forward pass of {self._model.name} does not call {self._layer!r}, or it "
                f"gives no tensor. `optexp layers {self._model.name}` lists those that do."
            )
        return found[self._layer].tensor


def _check_samples(output: torch.Tensor, n_samples: int, layer: str, layout: Layout) -> None:
    """Refuse an output that is not laid out by samples, or as the layout says."""
    shape = list(output.shape)
    if layout == "tokens_first":
        if output.ndim == 3 and output.shape[1] == n_samples:
            return
        raise ValueError(
            f"The output of {layer!r} is not [token, sample, unit]: for {n_samples} images it is "
            f"{shape}. Leave the layout tokens_first out."
        )
    if output.shape[0] == n_samples:
        return
    if output.ndim == 3 and output.shape[1] == n_samples:
        why = (
            "its second axis is the samples', as in transformers that put the tokens first, for "
            "which there is the layout tokens_first (--layout tokens_first)"
        )
    elif output.shape[0] == 1:
        why = "it does not depend on the images"
    else:
        why = "it may cut images into windows, as windowed attention does"
    raise ValueError(
        f"The first axis of the output of {layer!r} is not the samples': for {n_samples} images it "
        f"is {shape}; {why}. Take the layer around it, or wrap the model so that one of its "
        "layers gives [sample, ...]."
    )


def read_as_maps(output: torch.Tensor, layout: Layout = "auto") -> torch.Tensor:
    """An output as `[sample, unit, row, column]`.

    Convolutions give that already (`nchw`). Some networks put the channels last (`nhwc`): images
    are square, so where the first two sizes agree and the third does not, `auto` takes it for that.
    Tokens `[sample, token, unit]` of a vision transformer go to their patch grid, without the class
    token; with `tokens_first` they come as `[token, sample, unit]`. A fully connected layer has
    one location.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"Layouts are {', '.join(LAYOUTS)}; got {layout!r}.")
    if output.ndim == 3 and layout == "tokens_first":
        return _tokens_to_grid(output.transpose(0, 1))
    if output.ndim == 4 and layout in ("auto", "nchw", "nhwc"):
        _, first, second, third = output.shape
        last = layout == "nhwc" or (layout == "auto" and first == second != third)
        return output.permute(0, 3, 1, 2) if last else output
    if output.ndim == 3 and layout in ("auto", "tokens"):
        return _tokens_to_grid(output)
    if output.ndim == 2 and layout != "tokens_first":
        return output[:, :, None, None]
    raise ValueError(
        f"An output of shape {list(output.shape)} cannot be read as maps of units with layout "
        f"{layout!r}."
    )


def _tokens_to_grid(tokens: torch.Tensor) -> torch.Tensor:
    n_tokens = tokens.shape[1]
    side = math.isqrt(n_tokens)
    extra = n_tokens - side * side  # class and register tokens come first
    if side == 0 or extra > MOST_EXTRA_TOKENS:
        raise ValueError(
            f"{n_tokens} tokens are no square grid of patches with up to {MOST_EXTRA_TOKENS} class "
            "or register tokens in front."
        )
    patches = tokens[:, extra:].transpose(1, 2)
    return patches.reshape(len(tokens), tokens.shape[2], side, side)


def _fitting(batch: torch.Tensor, module: torch.nn.Module) -> torch.Tensor:
    """The batch in the precision of the module's parameters."""
    kinds = (weights.dtype for weights in module.parameters() if weights.is_floating_point())
    return batch.to(next(kinds, batch.dtype))


@contextmanager
def _explained(model: LoadedModel, size: int) -> Generator[None]:
    """Say of what a model's code raises that it was shown images of this size."""
    others = _other_inputs(model.module)
    wrap = ValueError(
        f"{model.name} takes more than a batch of images: also {', '.join(others)}. Wrap it in a "
        "module that gives it the other inputs, and name that as module:function."
    )
    if others and isinstance(model.module, torch.jit.ScriptModule):
        raise wrap  # Its parts would be called with what is missing.
    try:
        yield
    except UnreachedLayerError:
        raise
    except torch.OutOfMemoryError as error:
        raise ValueError(
            f"{model.name}: memory ran out. Take a smaller batch (--batch-size)."
        ) from error
    except Exception as error:  # It is not our code.
        if others:
            raise wrap from error
        said = str(error).strip().rpartition("\n")[2]
        kind = "" if isinstance(error, RuntimeError) else f"{type(error).__name__}: "
        raise ValueError(
            f"The forward pass of {model.name} fails on images of {size} x {size}: {kind}{said} "
            f"({place_of(error)}). Other sizes: --size."
        ) from error


def _other_inputs(module: torch.nn.Module) -> list[str]:
    """What a model has to be called with beside its first input."""
    forward: Any = module.forward
    if isinstance(module, torch.jit.ScriptModule):
        taken = forward.schema.arguments[2:]  # behind itself and the images
        return [each.name for each in taken if not each.has_default_value()]
    try:
        taken = list(inspect.signature(forward).parameters.values())
    except ValueError:  # of a function that does not tell
        return []
    starred = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [each for each in taken if each.default is each.empty and each.kind not in starred]
    return [each.name for each in needed if each is not taken[0]]


def _run_all(module: torch.nn.Module, batch: torch.Tensor) -> dict[str, LayerOutput]:
    with torch.no_grad():
        if isinstance(module, torch.jit.ScriptModule):
            return run_script_layers(module, batch)
        hooked = {name: part for name, part in module.named_modules() if name}
        return _run_hooked(module, hooked, batch)


def _run_hooked(
    module: torch.nn.Module, hooked: Mapping[str, torch.nn.Module], batch: torch.Tensor
) -> dict[str, LayerOutput]:
    """Outputs of the last call of each module, in that order, and the number of calls."""
    found: dict[str, LayerOutput] = {}

    def keeper(name: str) -> Callable[..., None]:
        def keep(_module: torch.nn.Module, _inputs: Any, output: Any) -> None:
            tensor = first_tensor(output)
            if tensor is not None:
                before = found.pop(name, None)
                calls = 1 if before is None else before.calls + 1
                # A copy: what follows may change the tensor in place, as ReLUs often do.
                found[name] = LayerOutput(tensor.detach().clone(), calls)

        return keep

    with ExitStack() as stack:
        for name, part in hooked.items():
            stack.callback(part.register_forward_hook(keeper(name)).remove)
        module(batch)
    return found


def _kind_of(module: torch.nn.Module) -> str:
    if isinstance(module, torch.jit.ScriptModule):
        return str(getattr(module, "original_name", "ScriptModule"))
    return type(module).__name__
