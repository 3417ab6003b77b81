"""What a run is asked to do, down to checksums of what it reads, and where it was done."""

import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, cast

from optexp_jax.methods.base import AbstractMethod
from optexp_jax.runs.null import NullModel
from optexp_jax.runs.other_images import OtherImages
from optexp_jax.runs.settings import describe, rebuild
from optexp_jax.runs.typed import make

PACKAGES = ("optexp-jax", "jax", "jaxlib", "numpy", "scipy", "zarr", "equinox", "torch")


@dataclass(frozen=True)
class Configuration:
    """Everything that decides the results. A run goes on only with the one it began with."""

    method: AbstractMethod
    units: tuple[int, ...]
    table: str
    """The table's fingerprint."""
    source: str
    """The fingerprint of the activations and of how they become bitmaps."""
    null: NullModel | None = None
    other_images: OtherImages | None = None
    groups: tuple[str, ...] | None = None
    """Which samples belong together, one label a sample; None if each stands alone."""

    def to_json(self) -> dict[str, Any]:
        """The configuration as it is stored and compared."""
        return {
            "method": describe(self.method),
            "units": list(self.units),
            "table": self.table,
            "source": self.source,
            "null": describe(self.null),
            "other_images": describe(self.other_images),
            "groups": None if self.groups is None else list(self.groups),
        }

    @classmethod
    def from_json(cls, data: Any, allow: Iterable[type[Any]] = ()) -> "Configuration":
        """Inverse of `to_json`, for our classes and those in `allow`; else ValueError."""
        if not isinstance(data, dict):
            raise ValueError(f"This is no configuration of a run: {data!r}.")
        fields = cast(dict[str, Any], data)
        made = {key: rebuild(value, allow) for key, value in fields.items()}
        return make(cls, made)


def check_units(units: Sequence[int], n_units: int) -> tuple[int, ...]:
    """Units in ascending order, each once; refuses ones that the layer does not have."""
    chosen = sorted(set(units))
    if not chosen:
        raise ValueError("No units are chosen; name some, such as 0-49, or leave the choice out.")
    for unit in (chosen[0], chosen[-1]):
        if not 0 <= unit < n_units:
            raise ValueError(f"There is no unit {unit}: the layer has units 0 to {n_units - 1}.")
    return tuple(chosen)


def versions() -> dict[str, str]:
    """Versions of what results may depend on, in this process."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for package in PACKAGES:
        if package == "torch" and "torch" not in sys.modules:
            continue
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
