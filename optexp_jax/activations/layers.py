"""The layers of a model: their names, their outputs, and outputs read as maps of units."""

import difflib
import math
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from optexp_jax.activations.layouts import LAYOUTS, Layout
from optexp_jax.activations.loaded_model import LoadedModel
from optexp_jax.activations.outputs import LayerOutput, first_tensor
from optexp_jax.activations.script_layers import run_script_layer, run_script_layers
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


def list_layers(model: LoadedModel, layout: Layout = "auto") -> list[LayerInfo]:
    """All layers that give a tensor, in the order in which they are last called."""
    size = model.preprocessing.size
    with _explained(model.name, size):
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
        try:
            _check_samples(output, _LISTED, name)
            maps = read_as_maps(output, layout)
            units, map_shape = maps.shape[1], (maps.shape[2], maps.shape[3])
        except ValueError:
            units = map_shape = None
        kind = _kind_of(parts[name])
        found.append(LayerInfo(name, kind, tuple(output.shape[1:]), units, map_shape, given.calls))
    return found


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
        with _explained(self._model.name, batch.shape[-1]):
            output = self._output(_fitting(batch.to(self._device), self._module))
        _check_samples(output, len(batch), self._layer)
        return read_as_maps(output, self._layout).float().cpu()

    def _output(self, batch: torch.Tensor) -> torch.Tensor:
        if isinstance(self._module, torch.jit.ScriptModule):
            return run_script_layer(self._module, self._layer, batch)
        hooked = {self._layer: self._module.get_submodule(self._layer)}
        found = _run_hooked(self._module, hooked, batch)
        if self._layer not in found:
            raise ValueError(
                f"The forward pass of {self._model.name} does not call {self._layer!r}, or it "
                f"gives no tensor. `optexp layers {self._model.name}` lists those that do."
            )
        return found[self._layer].tensor


def _check_samples(output: torch.Tensor, n_samples: int, layer: str) -> None:
    """Refuse an output that is not laid out by samples."""
    if output.shape[0] == n_samples:
        return
    shape = list(output.shape)
    if output.ndim > 1 and output.shape[1] == n_samples:
        why = "its second axis is the samples', as in transformers that put the tokens first"
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
    token. A fully connected layer has one location.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"Layouts are {', '.join(LAYOUTS)}; got {layout!r}.")
    if output.ndim == 4 and layout != "tokens":
        _, first, second, third = output.shape
        last = layout == "nhwc" or (layout == "auto" and first == second != third)
        return output.permute(0, 3, 1, 2) if last else output
    if output.ndim == 3 and layout in ("auto", "tokens"):
        return _tokens_to_grid(output)
    if output.ndim == 2:
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
def _explained(model: str, size: int) -> Generator[None]:
    """Say of what a model's code raises that it was shown images of this size."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise ValueError(
            f"{model}: memory ran out. Take a smaller batch (--batch-size)."
        ) from error
    except (RuntimeError, AssertionError, TypeError) as error:
        said = str(error).strip().rpartition("\n")[2]
        if isinstance(error, TypeError) and "required positional argument" in said:
            raise ValueError(
                f"{model} takes more than a batch of images ({said}). Wrap it in a module that "
                "gives it the other inputs, and name that as module:function."
            ) from error
        raise ValueError(
            f"The forward pass of {model} fails on images of {size} x {size}: {said} "
            f"({place_of(error)}). Other sizes: --size."
        ) from error


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
