"""What a layer gave."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, eq=False)
class LayerOutput:
    """A layer's output and how often a forward pass calls it; the last call counts."""

    tensor: torch.Tensor
    calls: int


def first_tensor(output: Any) -> torch.Tensor | None:
    """The first tensor of an output that may hold units; outputs may be tuples and dictionaries."""
    if isinstance(output, torch.Tensor):
        return output if output.ndim >= 2 else None
    values: Sequence[Any] = ()
    if isinstance(output, Mapping):
        values = list(output.values())
    elif isinstance(output, (tuple, list)):
        values = output
    return next((found for value in values if (found := first_tensor(value)) is not None), None)
