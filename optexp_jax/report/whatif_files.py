"""The files of the what-if editor in a layer's folder."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.explanation import Explanation
from optexp_jax.formulas.operators import DEFAULT_OPERATORS
from optexp_jax.methods.claim import FormulaSpace
from optexp_jax.report.whatif_data import (
    layer_data,
    sample_data,
    unit_data,
    write_layer,
    write_sample,
    write_unit,
)
from optexp_jax.runs.run import Run

FOLDER = "whatif"


class WhatIfFiles:
    """Writes a script for the layer, one for each unit, and one for each sample that is shown."""

    def __init__(self, run: Run, table: ConceptTable, folder: Path):
        self._table = table
        self._folder = folder / FOLDER
        self._units: set[int] = set()
        (self._folder / "samples").mkdir(parents=True)
        space = _space(run)
        self._length = None if space is None else space.length
        operators = DEFAULT_OPERATORS if space is None else space.operators
        write_layer(self._folder / "layer.js", layer_data(table, operators or DEFAULT_OPERATORS))

    def write_unit(self, unit: int, counts: NeuronCounts, found: Explanation) -> None:
        """The counts of a unit, and what it is compared with."""
        data = unit_data(self._table, counts, unit, found, length=self._length)
        write_unit(self._folder / f"{unit}.js", data)
        self._units.add(unit)

    def write_samples(
        self, galleries: Iterable[Sequence[int]], tell: Callable[[int, int], None]
    ) -> None:
        """Maps of the samples that editors draw on."""
        every = sorted({sample for samples in galleries for sample in samples})
        for place, sample in enumerate(every):
            path = self._folder / "samples" / f"{sample}.js"
            write_sample(path, sample, sample_data(self._table, sample))
            tell(place + 1, len(every))

    def links(self, unit: int) -> Mapping[str, Any] | None:
        """Where the editor of a unit finds its data, seen from the layer's folder."""
        if unit not in self._units:
            return None
        return {
            "layer": f"{FOLDER}/layer.js",
            "unit": f"{FOLDER}/{unit}.js",
            "samples": f"{FOLDER}/samples/",
        }


def _space(run: Run) -> FormulaSpace | None:
    """The formulas that were searched, if the method can be made again and tells."""
    try:
        return run.method.formula_space
    except ValueError:
        return None
