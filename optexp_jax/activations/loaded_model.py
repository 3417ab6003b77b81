"""A model with what has to be known to use it."""

import hashlib
from dataclasses import dataclass, replace

import torch

from optexp_jax.activations.checkpoints import hash_weights
from optexp_jax.activations.preprocessing import Preprocessing
from optexp_jax.activations.sparse_autoencoder import SparseAutoencoder
from optexp_jax.activations.stated_input import StatedInput


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model ready to look at images, in evaluation mode."""

    name: str
    module: torch.nn.Module
    preprocessing: Preprocessing
    weights: str
    """Checksum of its parameters and buffers, and of its autoencoder's."""
    stated: StatedInput | None = None
    """How its weights want images; None if nothing says so."""
    autoencoder: SparseAutoencoder | None = None
    """Features of this take the place of a layer's units."""

    @property
    def title(self) -> str:
        """The name, and that of the autoencoder."""
        return self.name if self.autoencoder is None else f"{self.name}+{self.autoencoder.name}"

    def with_autoencoder(self, autoencoder: SparseAutoencoder) -> "LoadedModel":
        """A copy that gives features; its checksum covers both."""
        both = hashlib.blake2b(f"{self.weights}{autoencoder.checksum}".encode(), digest_size=16)
        return replace(self, autoencoder=autoencoder, weights=both.hexdigest())

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
