"""A model with what has to be known to use it."""

from dataclasses import dataclass

import torch

from optexp_jax.activations.checkpoints import hash_weights
from optexp_jax.activations.preprocessing import Preprocessing


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model ready to look at images, in evaluation mode."""

    name: str
    module: torch.nn.Module
    preprocessing: Preprocessing
    weights: str
    """Checksum of its parameters and buffers."""
    kind: str = ""
    """Which library states how its weights want images, such as "torchvision"; "" for none."""

    @classmethod
    def of(
        cls, module: torch.nn.Module, name: str, preprocessing: Preprocessing | None = None
    ) -> "LoadedModel":
        """A module of one's own; it is put in evaluation mode."""
        module.eval()
        return cls(name, module, preprocessing or Preprocessing(), hash_weights(module))
