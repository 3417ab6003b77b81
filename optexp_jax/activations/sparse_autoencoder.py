"""Features of a sparse autoencoder in place of a layer's units, from a safetensors file."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import safetensors
import torch

FeatureActivation = Literal["relu", "topk", "jumprelu"]
FEATURE_ACTIVATIONS: tuple[FeatureActivation, ...] = get_args(FeatureActivation)
_IGNORED = ("W_dec", "b_dec", "scaling_factor")
"""Tensors that files also hold and that no feature depends on; of `b_dec` it has to be said."""


@dataclass(frozen=True, eq=False)
class SparseAutoencoder:
    """The encoder of a sparse autoencoder: features of what a layer gives at a location.

    f(x) = activation((x - b_pre) W_enc + b_enc), where the activation is ReLU; ReLU of the k
    greatest of a location, the others being 0; or what lies above a threshold of its own.
    """

    name: str
    encoder: torch.Tensor
    """W_enc [unit, feature]."""
    bias: torch.Tensor
    """b_enc [feature]."""
    pre_bias: torch.Tensor
    """b_pre [unit]."""
    activation: FeatureActivation
    k: int | None = None
    threshold: torch.Tensor | None = None
    """Of each feature."""

    def __post_init__(self) -> None:
        if self.encoder.ndim != 2:
            raise ValueError(
                f"{self.name}: W_enc must be [unit, feature]; its shape is "
                f"{list(self.encoder.shape)}."
            )
        wanted = [("b_enc", self.bias, self.n_features), ("b_pre", self.pre_bias, self.n_units)]
        if self.threshold is not None:
            wanted.append(("threshold", self.threshold, self.n_features))
        for tensor, values, size in wanted:
            if tuple(values.shape) != (size,):
                raise ValueError(
                    f"{self.name}: W_enc is {list(self.encoder.shape)}, [unit, feature], so "
                    f"{tensor} must have {size} values; its shape is {list(values.shape)}. If "
                    "W_enc was stored as [feature, unit], store its transpose."
                )
        if self.activation == "topk" and not (self.k and 1 <= self.k <= self.n_features):
            raise ValueError(
                f"{self.name}: topk needs k from 1 to {self.n_features} in the file's metadata; "
                f"got {self.k}."
            )
        if self.activation == "jumprelu" and self.threshold is None:
            raise ValueError(f"{self.name}: jumprelu needs a tensor `threshold`.")

    @classmethod
    def open(cls, path: str | Path) -> "SparseAutoencoder":
        """Read `W_enc`, `b_enc`, and if there, `b_pre` and `threshold`; metadata say the rest."""
        source = Path(path)
        if not source.is_file():
            raise FileNotFoundError(f"There is no sparse autoencoder at {source}.")
        try:
            with safetensors.safe_open(source, "pt") as file:
                tensors = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
                metadata = dict(file.metadata() or {})
        except (safetensors.SafetensorError, OSError) as error:
            raise ValueError(f"{source} is not a safetensors file ({error}).") from error
        return cls._of(source.name, tensors, metadata)

    @classmethod
    def _of(
        cls, name: str, tensors: dict[str, torch.Tensor], metadata: dict[str, str]
    ) -> "SparseAutoencoder":
        encoder = tensors.get("W_enc")
        unknown = tensors.keys() - {"W_enc", "b_enc", "b_pre", "threshold", *_IGNORED}
        if encoder is None or unknown:
            raise ValueError(
                f"{name} must hold W_enc [unit, feature] and may hold b_enc, b_pre and threshold; "
                f"it holds {', '.join(sorted(tensors)) or 'nothing'}. Store it with these names."
            )
        if encoder.ndim != 2:  # told with the shape
            return cls(name, encoder, encoder, encoder, "relu")
        stated = metadata.get("activation", "jumprelu" if "threshold" in tensors else "relu")
        found: FeatureActivation | None = next(
            (each for each in FEATURE_ACTIVATIONS if each == stated), None
        )
        if found is None:
            raise ValueError(
                f"{name}: activations are {', '.join(FEATURE_ACTIVATIONS)}; its metadata say "
                f"{stated!r}."
            )
        k = metadata.get("k", "")
        return cls(
            name,
            encoder,
            tensors.get("b_enc", torch.zeros(encoder.shape[1])),
            _pre_bias(name, tensors, metadata),
            found,
            int(k) if k.isdecimal() else None,
            tensors.get("threshold") if found == "jumprelu" else None,
        )

    @property
    def n_units(self) -> int:
        """Values at a location that it takes."""
        return self.encoder.shape[0]

    @property
    def n_features(self) -> int:
        """Values at a location that it gives."""
        return self.encoder.shape[1]

    @property
    def checksum(self) -> str:
        """Of all that features depend on."""
        digest = hashlib.blake2b(json.dumps([self.activation, self.k]).encode(), digest_size=16)
        for tensor in (self.encoder, self.bias, self.pre_bias, self.threshold):
            if tensor is not None:
                digest.update(f"{tuple(tensor.shape)}".encode())
                digest.update(tensor.contiguous().numpy().tobytes())
        return digest.hexdigest()

    def check_fits(self, n_units: int, layer: str) -> None:
        """Refuse a layer of another width."""
        if n_units != self.n_units:
            raise ValueError(
                f"{self.name} takes {self.n_units} values a location, and {layer!r} gives "
                f"{n_units}. Name the layer that it was trained on; `optexp layers` with --sae "
                "shows features where it fits."
            )

    def __call__(self, maps: torch.Tensor) -> torch.Tensor:
        """`[sample, unit, row, column]` to `[sample, feature, row, column]`."""
        encoder, bias, pre_bias = (
            each.to(maps.device) for each in (self.encoder, self.bias, self.pre_bias)
        )
        before = (maps.permute(0, 2, 3, 1) - pre_bias) @ encoder + bias
        if self.threshold is not None:
            features = torch.where(before > self.threshold.to(maps.device), before.relu(), 0.0)
        elif self.activation == "topk":
            assert self.k is not None
            top = before.topk(self.k, dim=-1)
            features = torch.zeros_like(before).scatter(-1, top.indices, top.values.relu())
        else:
            features = before.relu()
        return features.permute(0, 3, 1, 2)


def _pre_bias(
    name: str, tensors: dict[str, torch.Tensor], metadata: dict[str, str]
) -> torch.Tensor:
    n_units = tensors["W_enc"].shape[0]
    said = metadata.get("subtract_b_dec")
    if "b_pre" in tensors or "b_dec" not in tensors:
        return tensors.get("b_pre", torch.zeros(n_units))
    if said not in ("true", "false"):
        raise ValueError(
            f"{name} holds b_dec, which some autoencoders subtract from their input. Say so in the "
            'file\'s metadata: subtract_b_dec "true" or "false"; or store b_pre.'
        )
    return tensors["b_dec"] if said == "true" else torch.zeros(n_units)
