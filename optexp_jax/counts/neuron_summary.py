"""What is known of a neuron before any formula: its size, and the concept that overlaps it best."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.scores import Score, highest_rows


@dataclass(frozen=True)
class SingleConcept:
    """The concept with the highest IoU; of several that are level, the first by name."""

    concept: str | None
    """None if no concept overlaps the neuron; the IoU is 0 then."""
    intersection: int
    union: int

    @property
    def score(self) -> Score:
        return Score(self.intersection, self.union)

    @property
    def iou(self) -> float:
        return self.score.iou


@dataclass(frozen=True)
class NeuronSummary:
    """A neuron's size, and how well one concept describes it."""

    active: int
    """|N|: its active locations."""
    n_locations: int
    """All locations of the table."""
    single: SingleConcept
    """What Network Dissection would say."""

    @property
    def active_share(self) -> float:
        """The share of all locations that is active."""
        return self.active / self.n_locations


def summarise_neuron(
    table: ConceptTable,
    neuron: NeuronCounts,
    intersections: Int64[np.ndarray, " concepts"] | None = None,
) -> NeuronSummary:
    """The summary of a neuron of the table.

    `intersections` are the active locations of every concept, if they were counted before.
    """
    best = best_concept(table, neuron, intersections)
    return NeuronSummary(neuron.size, table.n_locations, best)


def best_concept(
    table: ConceptTable,
    neuron: NeuronCounts,
    intersections: Int64[np.ndarray, " concepts"] | None = None,
) -> SingleConcept:
    """The single concept that overlaps the neuron best."""
    inside = concept_intersections(table, neuron) if intersections is None else intersections
    unions = neuron.size + table.concept_sizes - inside
    rows = highest_rows(inside, unions)
    best = min(rows, key=lambda k: table.names[k])
    if not inside[best]:
        return SingleConcept(None, 0, neuron.size)
    return SingleConcept(table.names[best], int(inside[best]), int(unions[best]))


def concept_intersections(
    table: ConceptTable, neuron: NeuronCounts
) -> Int64[np.ndarray, " concepts"]:
    """Active locations of every concept."""
    return table.signatures.incidence.T @ neuron.inside
