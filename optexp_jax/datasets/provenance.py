"""Provenance: which dataset a table was built from, kept as JSON inside the table's store."""

import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
from jaxtyping import Int64

from optexp_jax.concepts.storage import TABLE_STORE
from optexp_jax.datasets.protocol import Dataset, describe
from optexp_jax.datasets.spec import DatasetSpec
from optexp_jax.stores.digests import add_file

SIDECAR = "dataset.json"
FORMAT = "optexp_jax.Provenance"
VERSION = 2


@dataclass(frozen=True)
class SkippedSample:
    """A sample of the dataset that could not be read and is not in the table."""

    index: int
    name: str
    reason: str


@dataclass(frozen=True)
class Provenance:
    """What a table was built from."""

    spec: DatasetSpec | None
    """How to open the dataset again; None if it was an object in somebody's program."""
    fingerprint: str | None
    """The spec's, when the table was built."""
    description: str
    sample_names: tuple[str, ...]
    """In the order of the table."""
    samples: str
    """Their identity, as `identify_samples` tells it."""
    mask_shape: tuple[int, int]
    skipped: tuple[SkippedSample, ...]
    version: str
    """Of this package."""

    @cached_property
    def indices(self) -> Int64[np.ndarray, " samples"]:
        """The place in the dataset of each sample of the table."""
        total = len(self.sample_names) + len(self.skipped)
        return np.setdiff1d(np.arange(total), [sample.index for sample in self.skipped])

    def open(self, root: str | None = None) -> Dataset:
        """The dataset, in `root` if it was moved; an error if it is no longer the same."""
        if self.spec is None:
            raise ValueError(
                "This table was built from a dataset object, without a spec to open it again. "
                "Pass the dataset itself."
            )
        spec = self.spec if root is None else replace(self.spec, root=root)
        dataset = spec.open()
        if spec.fingerprint != self.fingerprint:
            raise ValueError(
                f"The dataset {spec} has changed since the table was built: {describe(dataset)} "
                f"now, {self.description} then. Build the table again."
            )
        return dataset

    def to_json(self) -> str:
        """As JSON text."""
        fields = asdict(self)
        fields["spec"] = None if self.spec is None else json.loads(self.spec.to_json())
        return json.dumps({"format": FORMAT, "format_version": VERSION, **fields})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """From what `to_json` wrote."""
        fields: dict[str, Any] = json.loads(text)
        if fields.pop("format", None) != FORMAT:
            raise ValueError("This is not the provenance of a table.")
        if (version := fields.pop("format_version")) != VERSION:
            raise ValueError(
                f"Provenance of format version {version}; this release reads {VERSION}."
            )
        spec = fields.pop("spec")
        return cls(
            spec=None if spec is None else DatasetSpec.from_json(spec),
            fingerprint=fields["fingerprint"],
            description=fields["description"],
            sample_names=tuple(fields["sample_names"]),
            samples=fields["samples"],
            mask_shape=(fields["mask_shape"][0], fields["mask_shape"][1]),
            skipped=tuple(SkippedSample(**sample) for sample in fields["skipped"]),
            version=fields["version"],
        )


def write_provenance(provenance: Provenance, table: Path) -> None:
    """Put it into a table's store."""
    add_file(table, SIDECAR, provenance.to_json().encode())


def read_provenance(path: str | Path) -> Provenance:
    """The provenance of a stored table."""
    found = find_provenance(path)
    if found is None:
        raise ValueError(
            f"{path} does not say which dataset it was built from: it was not made with "
            "build_table or `optexp data build`."
        )
    return found


def find_provenance(path: str | Path) -> Provenance | None:
    """The provenance of a stored table, or None if it has none."""
    table = Path(path)
    if not table.exists():
        raise FileNotFoundError(f"There is no concept table at {path}.")
    stored = TABLE_STORE.read_file(table, SIDECAR)
    if stored is None:
        return None
    try:
        return Provenance.from_json(stored.decode())
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise ValueError(
            f"{table / SIDECAR} cannot be read ({error}). Build the table again."
        ) from error


def package_version() -> str:
    """The version that tables are stamped with."""
    return version("optexp-jax")
