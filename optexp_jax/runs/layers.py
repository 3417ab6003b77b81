"""Layers on disk: a table and an activation store, opened by their paths."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optexp_jax.activations import ActivationStore, LayerUnits, check_same_samples, parse_rule
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.runs.shared import open_shared_table, share_table
from optexp_jax.runs.sources import AbstractOpener, UnitSource


@dataclass(frozen=True)
class StoredLayer(AbstractOpener):
    """Opens the units of a layer from a table, its activations and a rule on what is active."""

    table: str
    activations: str
    range: str = "quantile"
    """Which activations count as active, as `parse_rule` reads it."""
    shared: str | None = None
    """A folder with the table's arrays, to map them instead of reading them."""

    def __post_init__(self) -> None:
        # Whole paths: workers and later commands may run in other folders.
        for name in ("table", "activations"):
            object.__setattr__(self, name, str(Path(getattr(self, name)).resolve()))

    def open(self) -> UnitSource:
        store = ActivationStore.open(self.activations)
        check_same_samples(self.table, store)
        if self.shared is None:
            table = ConceptTable.load(self.table)
        else:
            table = open_shared_table(Path(self.shared))
        return LayerUnits(table, store, parse_rule(self.range))

    def share(self, folder: Path) -> "StoredLayer":
        """The same for several processes: they map one copy of the table's arrays."""
        shared = share_table(ConceptTable.load(self.table), folder, Path(self.table))
        return dataclasses.replace(self, shared=str(shared.resolve()))

    def origin(self) -> dict[str, Any]:
        """Model, checksum of its weights, layer, dataset and preprocessing."""
        return ActivationStore.open(self.activations).metadata.to_json()
