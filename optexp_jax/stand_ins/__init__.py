"""Generated stand-ins for annotated datasets and layers: same shapes, same overlaps, no downloads.

    table = disjoint_scenes(19, 500)         # like Cityscapes: no two concepts meet
    table = disjoint_scenes(847, 2000)       # like ADE20K-Full
    table = broden_scenes()                  # like Broden: 1198 overlapping concepts
    layer = plant_layer(table, 50)           # units that respond to concepts, with noise
    counts = layer.counts()                  # one NeuronCounts a unit

Everything follows from a seed. Results on stand-ins tell how searches behave at a scale; they are
no results about any dataset or network.
"""

from optexp_jax.stand_ins.broden import BrodenGroups, broden_scenes
from optexp_jax.stand_ins.counted import (
    CountedUnit,
    counted_ade20k,
    counted_broden,
    counted_streets,
    counted_unit,
)
from optexp_jax.stand_ins.disjoint import disjoint_scenes
from optexp_jax.stand_ins.hard import HardCase, hard_cases, sample_attributes
from optexp_jax.stand_ins.layer import PlantedLayer, plant_layer
from optexp_jax.stand_ins.planted import Planted, PlantedUnit, Setting, make_planted
from optexp_jax.stand_ins.scenes import Annotations, make_annotations, make_bitmaps

__all__ = [
    "Annotations",
    "BrodenGroups",
    "CountedUnit",
    "HardCase",
    "Planted",
    "PlantedLayer",
    "PlantedUnit",
    "Setting",
    "broden_scenes",
    "counted_ade20k",
    "counted_broden",
    "counted_streets",
    "counted_unit",
    "disjoint_scenes",
    "hard_cases",
    "make_annotations",
    "make_bitmaps",
    "make_planted",
    "plant_layer",
    "sample_attributes",
]
