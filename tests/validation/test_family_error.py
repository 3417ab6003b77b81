"""Corrected p-values on generated layers: how often noise is called above chance; what is found.

The statistic is the best IoU of a single concept, computed here for all draws at once; one layer
shows that it is what a run computes.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from jaxtyping import Bool, Float64

import optexp_jax as ox
from optexp_jax.runs import BitmapUnits, NullModel
from optexp_jax.runs.null import compare_with_null
from optexp_jax.validation import family_p_values

SAMPLES, SIDE, CONCEPTS, UNITS, DRAWS = 24, 6, 8, 20, 99
LAYERS = 1000
LEVEL, MOST = 0.05, 0.065


@dataclass(frozen=True, eq=False)
class NoiseLayer:
    """Concepts that keep to places of images, and units that have nothing to do with them."""

    masks: Bool[np.ndarray, "concepts samples rows columns"]
    bitmaps: Bool[np.ndarray, "units samples rows columns"]

    @classmethod
    def of(cls, rng: np.random.Generator, planted: int = 0) -> "NoiseLayer":
        shown = rng.random((CONCEPTS, SAMPLES, 1, 1)) < 0.5
        where = rng.random((CONCEPTS, 1, SIDE, SIDE)) < 0.4
        masks = shown & where & (rng.random((CONCEPTS, SAMPLES, SIDE, SIDE)) < 0.8)
        # Units share most of what they respond to, and a bias to places.
        common = rng.standard_normal((1, SAMPLES, SIDE, SIDE))
        place = rng.standard_normal((1, 1, SIDE, SIDE))
        own = rng.standard_normal((UNITS, SAMPLES, SIDE, SIDE))
        activation = common + place + 0.7 * own
        share = rng.uniform(0.02, 0.3, UNITS)  # sizes from 17 to 260 locations
        edges = [np.quantile(each, 1 - part) for each, part in zip(activation, share, strict=True)]
        bitmaps = activation > np.array(edges)[:, None, None, None]
        for unit in range(planted):
            bitmaps[unit] = masks[unit] ^ (rng.random(masks[unit].shape) < 0.05)
        return cls(masks, bitmaps)

    def highest(self, orders: np.ndarray) -> Float64[np.ndarray, "orders units"]:
        """The best IoU of a concept, for every unit and every order of its maps."""
        cells = SIDE * SIDE
        maps = self.bitmaps.reshape(UNITS, SAMPLES, cells).astype(np.float64)
        concepts = self.masks.reshape(CONCEPTS, SAMPLES, cells).astype(np.float64)
        both = np.einsum("uyl,cxl->xyuc", maps, concepts, optimize=True)
        inside = both[np.arange(SAMPLES), orders].sum(1)  # [order, unit, concept]
        union = maps.sum((1, 2))[:, None] + concepts.sum((1, 2))[None] - inside
        return (inside / union).max(-1)

    def family(self, seed: int) -> Float64[np.ndarray, " units"]:
        """Corrected p-values, with the draws of the null model."""
        orders = np.stack([np.arange(SAMPLES), *_orders(seed)])
        values = self.highest(orders)
        return family_p_values(values[0], values[1:]).family_wise


def _orders(seed: int) -> list[np.ndarray]:
    table = ox.ConceptTable.from_masks(np.ones((1, SAMPLES, 1, 1), bool), ["a"])
    return [draw.order for draw in NullModel(DRAWS, seed=seed).draws(table)]


def test_the_statistic_is_that_of_a_run():
    layer = NoiseLayer.of(np.random.default_rng(3), planted=2)
    table = ox.ConceptTable.from_masks(layer.masks, [f"c{k}" for k in range(CONCEPTS)])
    source = BitmapUnits(table, layer.bitmaps)
    found = {unit: ox.explain(table, layer.bitmaps[unit], ox.NetDissect()) for unit in range(4)}
    compared = compare_with_null(NullModel(5, seed=1), source, found, ox.NetDissect())
    orders = np.stack([np.arange(SAMPLES), *_orders(1)[:5]])
    values = layer.highest(orders)
    for unit in range(4):
        assert values[0, unit] == found[unit].iou
        assert values[1:, unit].tolist() == list(compared[unit].values)


def rejected(layers: int) -> int:
    """Layers of noise in which any unit is called above chance."""
    return sum(
        bool((NoiseLayer.of(np.random.default_rng([9, k])).family(k) <= LEVEL).any())
        for k in range(layers)
    )


@pytest.mark.slow
def test_noise_is_called_above_chance_in_a_twentieth_of_layers():
    share = rejected(LAYERS) / LAYERS
    print(f"share of {LAYERS} noise layers with any rejection at {LEVEL}: {share}")
    assert 0.02 < share <= MOST


def test_planted_units_are_found():
    for k in range(5):
        layer = NoiseLayer.of(np.random.default_rng([5, k]), planted=3)
        corrected = layer.family(k)
        assert (corrected[:3] <= LEVEL).all()
        assert (corrected[3:] <= LEVEL).sum() <= 1
