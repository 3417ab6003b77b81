"""Datasets with planted units: neurons that fire, noisily, on a formula over generated scenes."""

from dataclasses import dataclass

import numpy as np
import scipy.ndimage
from jaxtyping import Bool, Float64

from optexp_jax.concepts import ConceptTable
from optexp_jax.formulas.formula import Formula
from optexp_jax.stand_ins.drawing import draw_formula
from optexp_jax.stand_ins.scenes import make_annotations


@dataclass(frozen=True)
class Setting:
    """Shape of a dataset: how many concepts of each kind, over how many samples of which size."""

    name: str
    samples: int
    size: int
    objects: int
    parts: int = 0
    materials: int = 0
    colours: int = 0
    scenes: int = 0

    @property
    def disjoint(self) -> bool:
        """Objects never share a location; every other kind lies over them."""
        return not (self.parts or self.materials or self.colours or self.scenes)


@dataclass(frozen=True, eq=False)
class PlantedUnit:
    """A unit, and the formula that it was made from before blur and noise."""

    formula: Formula
    bitmap: Bool[np.ndarray, "samples height width"]


@dataclass(frozen=True, eq=False)
class Planted:
    """A table and some units over it."""

    table: ConceptTable
    units: list[PlantedUnit]


def make_planted(setting: Setting, n_units: int, seed: int) -> Planted:
    """The dataset of a setting with units; unit k does not depend on how many there are."""
    table = _make_table(setting, seed)
    rngs = [np.random.default_rng([seed, unit]) for unit in range(n_units)]
    return Planted(table, [_make_unit(rng, table) for rng in rngs])


def _make_table(setting: Setting, seed: int) -> ConceptTable:
    # Kinds that a setting leaves out are generated all the same, and then not used: scenes decide
    # which objects occur together, and with several of them every object occurs.
    annotations = make_annotations(
        setting.samples,
        setting.size,
        seed,
        objects=setting.objects,
        parts=max(1, setting.parts),
        materials=max(1, setting.materials),
        colours=max(1, setting.colours),
        scenes=setting.scenes or 7,
    )
    counts = (setting.objects, setting.parts, setting.materials, setting.colours)
    used = [kind for kind, count in enumerate(counts) if count]
    return ConceptTable.from_label_maps(
        [annotations.maps[kind] for kind in used],
        [annotations.layers[kind] for kind in used],
        annotations.scenes if setting.scenes else None,
    )


def _make_unit(rng: np.random.Generator, table: ConceptTable) -> PlantedUnit:
    """Fires where a blurred formula mask plus smooth noise is in the top 0.5 to 5 %."""
    formula = draw_formula(rng, table)
    mask = table.mask(formula).astype(np.float64)
    size = mask.shape[1]
    response = _blur(mask, 0.03 * size)
    noise = _blur(rng.normal(size=mask.shape), 0.07 * size)
    # Samples differ in how strongly they excite the unit.
    response *= np.exp(0.5 * rng.normal(size=(len(mask), 1, 1)))
    response += 0.25 * noise / noise.std()
    active = np.exp(rng.uniform(np.log(0.005), np.log(0.05)))
    return PlantedUnit(formula, response > np.quantile(response, 1 - active))


def _blur(
    maps: Float64[np.ndarray, "samples height width"], width: float
) -> Float64[np.ndarray, "samples height width"]:
    return scipy.ndimage.gaussian_filter(maps, (0, width, width))
