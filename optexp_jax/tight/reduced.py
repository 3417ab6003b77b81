"""Places that hold few of the concepts, reduced to those.

A concept that is nowhere in a region is of no use there. The places within an AND often hold a
tenth of all concepts, and most turn out to hold nothing of interest. That can be told at a
fraction of the cost of matrices of all concepts; only where it cannot is the place looked at as
usual.
"""

from dataclasses import dataclass

import jax
import numpy as np
import scipy.sparse
from jaxtyping import Int64

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.device_table import move
from optexp_jax.neuron import NeuronCounts
from optexp_jax.platform import prefers_host_kernels
from optexp_jax.tight.forms import Forms
from optexp_jax.tight.grams import Gram
from optexp_jax.tight.pair_bounds import highest_pair_bounds
from optexp_jax.tight.pair_scores import Decided, score_pairs
from optexp_jax.tight.place import Place
from optexp_jax.tight.region import Region
from optexp_jax.tight.rows import rows_of

SHARE = 2
"""Places are reduced to half of the concepts, or not at all: one more shape to compile."""


@dataclass(frozen=True, eq=False)
class Reduced:
    """A place's region with half of the concepts; the rest are nowhere in it."""

    gram: Gram
    n_present: int

    @classmethod
    def of(cls, place: Place, table: ConceptTable, neuron: NeuronCounts) -> "Reduced | None":
        """None if the place holds too many concepts, or is on a device that does not mind."""
        size = table.n_concepts // SHARE
        rows = np.flatnonzero(place.undecided)
        if not prefers_host_kernels() or len(rows) * SHARE > len(place.undecided):
            return None
        held = table.signatures.incidence[rows]
        present = np.bincount(held.indices, minlength=table.n_concepts) > 0
        concepts = np.flatnonzero(present & place.allowed)
        if len(concepts) > size:
            return None
        held = held[:, concepts]

        def sums(weights: Int64[np.ndarray, " signatures"]) -> Int64[np.ndarray, "size size"]:
            weighted = scipy.sparse.diags_array(weights[rows], dtype=np.int64) @ held
            padded = np.zeros((size, size), np.int64)
            padded[: len(concepts), : len(concepts)] = (held.T @ weighted).toarray()
            return padded

        with jax.enable_x64(True):
            moved = move(sums(neuron.inside), sums(neuron.outside))
        return cls(Gram(moved[0], moved[1]), len(concepts))

    def holds_nothing(
        self, decided: Decided, reached: float, v: float, need: float, forms: Forms
    ) -> bool:
        """Whether one or two concepts reach no such IoU, and three not W = `need` at v."""
        with jax.enable_x64(True):
            allowed, at_v = move(np.arange(len(self.gram.inside)) < self.n_present, np.float64(v))
            region = Region(self.gram, allowed, allowed, at_v)
            scores = score_pairs(region, decided, forms=forms)
            if max(float(scores.single.max()), float(scores.highest.max())) >= reached:
                return False
            bounds = highest_pair_bounds(region, rows_of(region), forms=forms)
            return float(bounds.max()) < need
