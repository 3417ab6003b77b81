"""Outputs inside a TorchScript model, on which Python cannot set hooks.

The graph of a module says how each of its parts is called. Cut off at a call, the graph computes
what the part is given; then the part is called itself.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from optexp_jax.activations.outputs import LayerOutput, first_tensor

# What is asked of TorchScript has no public names.
_C: Any = torch._C  # pyright: ignore[reportPrivateUsage]


class UnreachedLayerError(ValueError):
    """A layer whose output a program does not give away."""


@dataclass(frozen=True, eq=False)
class _Call:
    """A call in a method's graph, of a part or of another method of the same module."""

    place: int
    """Among the nodes of the graph."""
    path: str
    """The part's name, with dots if it lies in a list of modules; "" for the module itself."""
    method: str


@dataclass(frozen=True, eq=False)
class _Given:
    """What the last call of a part is given."""

    inputs: tuple[Any, ...]
    calls: int


def run_script_layer(
    module: torch.jit.ScriptModule, layer: str, batch: torch.Tensor
) -> torch.Tensor:
    """The output of the last call of a part."""
    inputs: tuple[Any, ...] = (batch,)
    current: Any = module
    rest = layer
    while rest:
        found = _follow(current, current.graph, rest, inputs)
        if found is None:
            raise UnreachedLayerError(
                f"The TorchScript code does not call the layer {layer!r}, or only inside a loop or "
                "condition, where it cannot be followed."
            )
        path, inputs = found
        current, rest = _part(current, path), rest[len(path) + 1 :]
    output = first_tensor(current(*inputs))
    if output is None:
        raise UnreachedLayerError(f"The layer {layer!r} gives no tensor.")
    return output


def run_script_layers(
    module: torch.jit.ScriptModule, batch: torch.Tensor
) -> dict[str, LayerOutput]:
    """The outputs of all parts that can be reached, in the order of their last calls."""
    found: dict[str, LayerOutput] = {}
    _gather(module, "", (batch,), found)
    return found


def _gather(
    module: Any, prefix: str, inputs: tuple[Any, ...], found: dict[str, LayerOutput]
) -> None:
    for path, given in _parts(module, module.graph, inputs).items():
        part = _part(module, path)
        # Parts may change what they are given in place.
        output = first_tensor(part(*_copied(given.inputs)))
        if hasattr(part, "graph"):
            _gather(part, f"{prefix}{path}.", given.inputs, found)
        if output is not None:
            found[prefix + path] = LayerOutput(output, given.calls)


def _parts(module: Any, graph: Any, inputs: tuple[Any, ...]) -> Mapping[str, _Given]:
    """What all parts are given that a method calls, itself or through other methods."""
    found: dict[str, _Given] = {}
    calls = _calls_in(graph)
    for call, given in zip(calls, _given_to(module, graph, calls, inputs), strict=True):
        if call.path:
            inner: Mapping[str, _Given] = {call.path: _Given(given, 1)}
        else:
            method = module._c._get_method(call.method)
            inner = _parts(module, method.graph, given)
        for path, last in inner.items():
            before = found.pop(path, None)
            n_before = 0 if before is None else before.calls
            found[path] = _Given(last.inputs, n_before + last.calls)
    return found


def _follow(
    module: Any, graph: Any, layer: str, inputs: tuple[Any, ...]
) -> tuple[str, tuple[Any, ...]] | None:
    """The part that is, or holds, a layer, and what its last call is given.

    Many networks are written with a `forward` that only calls another method of their own.
    """
    for call in reversed(_calls_in(graph)):
        if call.path and f"{layer}.".startswith(f"{call.path}."):
            return call.path, _given_to(module, graph, [call], inputs)[0]
        if not call.path:
            method = module._c._get_method(call.method)
            (given,) = _given_to(module, graph, [call], inputs)
            found = _follow(module, method.graph, layer, given)
            if found is not None:
                return found
    return None


def _calls_in(graph: Any) -> list[_Call]:
    itself = next(iter(graph.inputs())).debugName()
    found: list[_Call] = []
    for place, node in enumerate(graph.nodes()):
        if node.kind() != "prim::CallMethod":
            continue
        path, method = _path_of(next(iter(node.inputs())), itself), node.s("name")
        if path is not None and bool(path) == (method == "forward"):
            found.append(_Call(place, path, method))
    return found


def _path_of(value: Any, itself: str) -> str | None:
    """The name of a part, as the graph reads it from the module."""
    names: list[str] = []
    while value.debugName() != itself:
        node = value.node()
        if node.kind() != "prim::GetAttr":
            return None
        names.append(node.s("name"))
        value = next(iter(node.inputs()))
    return ".".join(reversed(names))


def _given_to(
    module: Any, graph: Any, calls: list[_Call], inputs: tuple[Any, ...]
) -> list[tuple[Any, ...]]:
    """What calls in a graph are given, without the object that they are called on.

    The graph runs once for all calls whose tensors can be copied when they are made: what follows
    may change them in place. It runs again for each call that is given more, such as a list.
    """
    together = [call for call in calls if _is_plain(graph, call)]
    found = dict(zip(together, _run_cut(module, graph, together, inputs), strict=True))
    for call in calls:
        if call not in found:
            (found[call],) = _run_cut(module, graph, [call], inputs)
    return [found[call] for call in calls]


def _is_plain(graph: Any, call: _Call) -> bool:
    kinds = [str(value.type()) for value in _arguments(graph, call)]
    return not any("Tensor" in kind and kind != "Tensor" for kind in kinds)


def _arguments(graph: Any, call: _Call) -> list[Any]:
    return list(list(graph.nodes())[call.place].inputs())[1:]


def _run_cut(
    module: Any, graph: Any, calls: list[_Call], inputs: tuple[Any, ...]
) -> list[tuple[Any, ...]]:
    if not calls:
        return []
    cut = graph.copy()
    nodes = list(cut.nodes())
    for _ in list(cut.outputs()):
        cut.eraseOutput(0)
    nothing = cut.create("prim::Constant", 1)
    nothing.output().setType(_C.NoneType.get())
    cut.prependNode(nothing)
    wanted: list[Any] = []
    sizes: list[int] = []
    for call in calls:
        node = nodes[call.place]
        arguments = list(node.inputs())[1:]
        sizes.append(len(arguments))
        for value in arguments:
            if str(value.type()) == "Tensor":
                copy = cut.create("aten::clone", [value, nothing.output()], 1)
                copy.insertBefore(node)
                value = copy.output()
            wanted.append(value)
    if not wanted:
        return [() for _ in calls]
    # A function has one output; several values are one tuple.
    both = cut.appendNode(cut.create("prim::TupleConstruct", wanted, 1)).output()
    both.setType(_C.TupleType([value.type() for value in wanted]))
    cut.registerOutput(both)
    _C._jit_pass_dce(cut)
    values = list(_C._create_function_from_graph("inputs", cut)(module._c, *_copied(inputs)))
    return [tuple(values.pop(0) for _ in range(size)) for size in sizes]


def _part(module: Any, path: str) -> Any:
    return functools.reduce(getattr, path.split("."), module)


def _copied(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(each.clone() if isinstance(each, torch.Tensor) else each for each in inputs)
