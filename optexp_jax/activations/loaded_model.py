"""A model with what has to be known to use it."""

from dataclasses import dataclass, replace

import torch

from optexp_jax.activations.checkpoints import hash_weights
from optexp_jax.activations.preprocessing import Preprocessing
from optexp_jax.activations.stated_input import StatedInput


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model ready to look at images, in evaluation mode."""

    name: str
    module: torch.nn.Module
    preprocessing: Preprocessing
    weights: str
    """Checksum of its parameters and buffers."""
    stated: StatedInput | None = None
    """How its weights want images; None if nothing says so."""

    @classmethod
    def of(
        cls, module: torch.nn.Module, name: str, preprocessing: Preprocessing | None = None
    ) -> "LoadedModel":
        """A module of one's own; it is put in evaluation mode."""
        module.eval()
        return cls(name, module, preprocessing or Preprocessing(), hash_weights(module))

    @classmethod
    def stating(cls, module: torch.nn.Module, name: str, stated: StatedInput) -> "LoadedModel":
        """A module whose weights state how they want images; whole ones are shown."""
        made = cls.of(module, name, stated.prepared("whole", name))
        return replace(made, stated=stated)
