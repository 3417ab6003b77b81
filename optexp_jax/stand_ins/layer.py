"""Planted layers: raw activation maps of units that respond, noisily, to concepts of a table.

The maps are as coarse as those of a network, 7 x 7 cells by default, and not negative, as after a
ReLU. They take the way of real activations: quantile, up-sampling, comparison, counting.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.ndimage
import scipy.sparse
from jaxtyping import Bool, Float32, Float64

from optexp_jax.activations import AbstractRangeRule, ActivationStore, TopQuantile
from optexp_jax.activations.counting import Thresholds, count_layer, mask_shape
from optexp_jax.activations.upsample import upsample
from optexp_jax.concepts import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.formulas.formula import Formula
from optexp_jax.stand_ins.drawing import draw_formula

DISTRACTORS = 12
"""Concepts that a unit responds to besides its formula, most of them less."""
SMOOTHING = 0.6
"""Deviation, in cells, of the blur that makes responses of cells near each other alike."""


@dataclass(frozen=True, eq=False)
class PlantedLayer:
    """Units over the samples of a table, and the formula that each was made from."""

    table: ConceptTable
    maps: Float32[np.ndarray, "samples units rows columns"]
    formulas: tuple[Formula, ...]

    @property
    def n_units(self) -> int:
        return len(self.formulas)

    def counts(self, rule: AbstractRangeRule = TopQuantile()) -> list[NeuronCounts]:
        """Active locations of all units, those in the range that the rule gives each."""
        ranges = [rule.range_of(k, self.maps[:, k].reshape(-1)) for k in range(self.n_units)]
        thresholds = Thresholds(
            np.array([each.low for each in ranges], np.float64),
            np.array([each.high for each in ranges], np.float64),
        )
        return [
            NeuronCounts.from_patches(self.table, each.patches, each.counts)
            for each in count_layer(self.table, self.maps, thresholds)
        ]

    def bitmap(
        self, unit: int, rule: AbstractRangeRule = TopQuantile()
    ) -> Bool[np.ndarray, "samples *location"]:
        """Where a unit is active."""
        maps = self.maps[:, unit]
        chosen = rule.range_of(unit, maps.reshape(-1))
        shape = self.table.require_map("bitmap").location_shape
        blocks = [
            upsample(maps[start:stop], mask_shape(shape, self.maps.shape[2:]))
            for start, stop in self.table.sample_blocks()
        ]
        inside = [(values > chosen.low) & (values < chosen.high) for values in blocks]
        return np.concatenate(inside).reshape(len(maps), *shape)

    def save(self, path: str | Path) -> ActivationStore:
        """Store the maps as activations of a layer."""
        return ActivationStore.from_array(path, self.maps, model="planted", layer="planted")


def plant_layer(
    table: ConceptTable,
    n_units: int,
    *,
    seed: int = 0,
    cells: int = 7,
    noise: float = 1.1,
    relu: bool = True,
) -> PlantedLayer:
    """Units that respond to a formula each and, less, to a few other concepts.

    Unit k does not depend on how many there are. `noise` is the deviation of what has nothing to do
    with any concept; a formula has strength 1. With `relu=False` values may be
    negative. A table of one location a sample gets one cell.
    """
    shape = table.require_map("plant_layer").location_shape
    cells = 1 if not shape else min(cells, shape[0])
    shares = _cell_shares(table, cells)
    occurring = np.flatnonzero(table.concept_sizes)
    # Half of the concepts that occur, the larger ones: units of networks respond to these.
    middle = np.median(table.concept_sizes[occurring])
    frequent = [table.names[k] for k in occurring.tolist() if table.concept_sizes[k] >= middle]
    maps = np.empty((table.n_samples, n_units, cells, cells), np.float32)
    formulas: list[Formula] = []
    for unit in range(n_units):
        rng = np.random.default_rng([seed, unit])
        formula = draw_formula(rng, table, frequent)
        weights = table.holds(formula).astype(np.float64)
        others = rng.choice(len(frequent), size=min(DISTRACTORS, len(frequent)), replace=False)
        strengths = rng.normal(0.2, 0.4, len(others))
        for other, strength in zip(others.tolist(), strengths.tolist(), strict=True):
            weights += strength * table.signatures.membership(table.ids[frequent[other]])
        response = (shares @ weights).reshape(table.n_samples, cells, cells)
        # Samples differ in how strongly they excite a unit.
        response *= np.exp(rng.normal(0, 0.4, (table.n_samples, 1, 1)))
        response += rng.normal(0, noise, response.shape)
        response = scipy.ndimage.gaussian_filter(response, (0, SMOOTHING, SMOOTHING))
        maps[:, unit] = np.maximum(0, response) if relu else response
        formulas.append(formula)
    return PlantedLayer(table, maps, tuple(formulas))


def _cell_shares(table: ConceptTable, cells: int) -> scipy.sparse.csr_array:
    """`[sample and cell, signature]`: which share of a cell's locations has which signature."""
    located = table.require_map("plant_layer")
    rows, columns = (*located.location_shape, 1, 1)[:2]
    down, across = (np.arange(side) * cells // side for side in (rows, columns))
    cell = (down[:, None] * cells + across).reshape(-1)
    n_cells = cells * cells
    area = np.bincount(cell, minlength=n_cells)
    blocks: list[scipy.sparse.csr_array] = []
    for start, stop in table.sample_blocks():
        ranks = located.block(start, stop)
        n_ranks = int(ranks.max()) + 1
        place = np.arange(stop - start)[:, None] * n_cells + cell
        counts = np.bincount(
            (place * n_ranks + ranks).reshape(-1), minlength=(stop - start) * n_cells * n_ranks
        )
        filled = np.flatnonzero(counts)
        row, rank = np.divmod(filled, n_ranks)
        signature = table.patches.signature[table.patches.indptr[start + row // n_cells] + rank]
        share: Float64[np.ndarray, " filled"] = counts[filled] / area[row % n_cells]
        blocks.append(
            scipy.sparse.csr_array(
                (share.astype(np.float32), (row, signature)),
                shape=((stop - start) * n_cells, len(table.signatures)),
            )
        )
    return scipy.sparse.csr_array(scipy.sparse.vstack(blocks))
