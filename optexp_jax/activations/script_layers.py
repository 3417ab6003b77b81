"""Outputs inside a TorchScript model, on which Python cannot set hooks.

The graph of a module says how each of its parts is called. Cut off at that call, the graph computes
what the part is given; then the part is called itself.
"""

from typing import Any

import torch


def script_layer_names(module: torch.nn.Module) -> list[str]:
    """Names of all parts."""
    return [name for name, _ in module.named_modules() if name]


def run_script_layer(
    module: torch.jit.ScriptModule, layer: str, batch: torch.Tensor
) -> torch.Tensor:
    """The output of the last call of a part."""
    inputs: tuple[Any, ...] = (batch,)
    current: Any = module
    for name in layer.split("."):
        inputs = _inputs_of_part(current, name, inputs, layer)
        current = getattr(current, name)
    output: object = current(*inputs)
    if not isinstance(output, torch.Tensor):
        raise ValueError(f"The layer {layer!r} gives no tensor.")
    return output


def _inputs_of_part(module: Any, name: str, inputs: tuple[Any, ...], layer: str) -> tuple[Any, ...]:
    found = _follow(module, module.graph, name, inputs)
    if found is None:
        raise ValueError(
            f"The TorchScript code does not call the layer {layer!r}, or only inside a loop or "
            "condition, where it cannot be followed."
        )
    return found


def _follow(module: Any, graph: Any, name: str, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """What the last call of a part is given in a method's graph, or in those of methods it calls.

    Many networks are written with a `forward` that only calls another method of their own.
    """
    itself = next(iter(graph.inputs()))
    nodes = list(graph.nodes())
    for place in reversed(range(len(nodes))):
        node = nodes[place]
        if node.kind() != "prim::CallMethod":
            continue
        called = next(iter(node.inputs()))
        if node.s("name") == "forward" and _is_part(called, name, itself):
            return _given_to(module, graph, place, inputs)
        if called.debugName() == itself.debugName():
            method = module._c._get_method(node.s("name"))
            found = _follow(module, method.graph, name, _given_to(module, graph, place, inputs))
            if found is not None:
                return found
    return None


def _given_to(module: Any, graph: Any, place: int, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """What the call at a place of a graph is given, without the object that it is called on."""
    cut = graph.copy()
    wanted = list(list(cut.nodes())[place].inputs())[1:]
    if not wanted:
        return ()
    for _ in list(cut.outputs()):
        cut.eraseOutput(0)
    # A function has one output; several values are one tuple.
    both = cut.appendNode(cut.create("prim::TupleConstruct", wanted, 1)).output()
    both.setType(torch._C.TupleType([value.type() for value in wanted]))  # pyright: ignore[reportPrivateUsage]
    cut.registerOutput(both)
    torch._C._jit_pass_dce(cut)  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
    function: Any = torch._C._create_function_from_graph(  # pyright: ignore[reportPrivateUsage]
        "inputs", cut
    )
    return function(module._c, *inputs)


def _is_part(value: Any, name: str, itself: Any) -> bool:
    node = value.node()
    return (
        node.kind() == "prim::GetAttr"
        and node.s("name") == name
        and next(iter(node.inputs())).debugName() == itself.debugName()
    )
