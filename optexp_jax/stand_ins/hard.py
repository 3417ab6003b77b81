"""Hard cases: what makes a search long, one reason a case."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

from optexp_jax.activations import TopQuantile
from optexp_jax.concepts import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.stand_ins.broden import BrodenGroups, broden_scenes
from optexp_jax.stand_ins.layer import plant_layer
from optexp_jax.stand_ins.zipf import zipf

WEAK, BROAD, DOMINANT, NO_UNIQUE, ONE_LOCATION = (
    "weak",
    "broad",
    "dominant",
    "no unique element",
    "one location",
)
BROAD_SHARE = 0.2
WEAK_SHARE = 0.005


@dataclass(frozen=True, eq=False)
class HardCase:
    """A table and some units over it that are hard in one way."""

    name: str
    table: ConceptTable
    units: tuple[NeuronCounts, ...]


def hard_cases(
    n_units: int = 4,
    *,
    n_samples: int = 2000,
    groups: BrodenGroups = BrodenGroups(),
    size: int = 112,
    seed: int = 0,
) -> Iterator[HardCase]:
    """The hard set, case by case.

    `weak`: no formula explains the unit, IoUs are below 0.04. `broad`: 20 % of all locations are
    active. `dominant`: one concept nearly explains the unit. `no unique element`: every location
    has several concepts or none. `one location`: samples without rows and columns.
    """
    table = broden_scenes(n_samples, groups=groups, size=size, seed=seed)
    yield HardCase(WEAK, table, tuple(_weak_units(table, n_units, seed)))
    broad = plant_layer(table, n_units, seed=seed + 1)
    yield HardCase(BROAD, table, tuple(broad.counts(TopQuantile(BROAD_SHARE))))
    yield HardCase(DOMINANT, table, tuple(_dominant_units(table, n_units, seed)))
    crowded = broden_scenes(n_samples, groups=groups, size=size, seed=seed, unlabelled=0.0)
    yield HardCase(NO_UNIQUE, crowded, tuple(plant_layer(crowded, n_units, seed=seed).counts()))
    n_attributes = sum(1 for _ in groups.names())
    plain = sample_attributes(n_attributes, 20 * n_samples, seed=seed)
    yield HardCase(ONE_LOCATION, plain, tuple(plant_layer(plain, n_units, seed=seed).counts()))


def sample_attributes(n_concepts: int, n_samples: int, *, seed: int = 0) -> ConceptTable:
    """Concepts that hold for whole samples, as words in sentences do; one location a sample.

    Samples belong to topics, so that concepts occur together.
    """
    rng = np.random.default_rng(seed)
    n_topics = 10
    often = np.minimum(0.5, 6 * zipf(n_concepts, 1.0))
    topics = often * rng.lognormal(0, 1.0, (n_topics, n_concepts))
    topic = rng.integers(n_topics, size=n_samples)
    chances = np.minimum(0.9, topics).astype(np.float32)
    masks: Bool[np.ndarray, "concepts samples"] = np.empty((n_concepts, n_samples), np.bool_)
    for k in range(n_concepts):
        masks[k] = rng.random(n_samples, dtype=np.float32) < chances[topic, k]
    names = [f"attribute-{k}" for k in range(n_concepts)]
    return ConceptTable.from_masks(masks, names=names)


def _weak_units(table: ConceptTable, n_units: int, seed: int) -> Iterator[NeuronCounts]:
    """Units that are active by chance, here a little more and there a little less."""
    for unit in range(n_units):
        rng = np.random.default_rng([seed, unit])
        chance = WEAK_SHARE * rng.lognormal(0, 0.5, len(table.patches))
        yield _drawn(rng, table, chance.clip(0, 1))


def _dominant_units(table: ConceptTable, n_units: int, seed: int) -> Iterator[NeuronCounts]:
    """Units that are active on most of one concept and, by chance, elsewhere."""
    sizes = table.concept_sizes
    share = np.abs(sizes / table.n_locations - 0.005)
    likely = np.argsort(np.where(sizes > 0, share, np.inf), kind="stable")[:n_units]
    for unit, concept in enumerate(likely.tolist()):
        rng = np.random.default_rng([seed, unit])
        held = table.signatures.membership(concept)[table.patches.signature]
        often, seldom = rng.uniform(0.8, 1.0, len(held)), 0.002 * rng.exponential(1.0, len(held))
        yield _drawn(rng, table, np.where(held, often, seldom).clip(0, 1))


def _drawn(
    rng: np.random.Generator, table: ConceptTable, chance: Float64[np.ndarray, " patches"]
) -> NeuronCounts:
    """Active locations of a unit for which each location of a patch is active by chance."""
    active = rng.binomial(table.patches.size, chance)
    touched = np.flatnonzero(active)
    return NeuronCounts.from_patches(table, touched, active[touched])
