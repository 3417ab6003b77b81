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
    graph = module.graph.copy()
    itself = next(iter(graph.inputs()))
    calls = [
        node
        for node in graph.nodes()
        if node.kind() == "prim::CallMethod"
        and node.s("name") == "forward"
        and _is_part(next(iter(node.inputs())), name, itself)
    ]
    if not calls:
        raise ValueError(
            f"The TorchScript code does not call the layer {layer!r}, or only inside a loop or "
            "condition, where it cannot be followed."
        )
    wanted = list(calls[-1].inputs())[1:]
    for _ in list(graph.outputs()):
        graph.eraseOutput(0)
    for value in wanted:
        graph.registerOutput(value)
    torch._C._jit_pass_dce(graph)  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
    function: Any = torch._C._create_function_from_graph(  # pyright: ignore[reportPrivateUsage]
        "inputs", graph
    )
    given = function(module._c, *inputs)
    return given if len(wanted) != 1 else (given,)


def _is_part(value: Any, name: str, itself: Any) -> bool:
    node = value.node()
    return (
        node.kind() == "prim::GetAttr"
        and node.s("name") == name
        and next(iter(node.inputs())).debugName() == itself.debugName()
    )
