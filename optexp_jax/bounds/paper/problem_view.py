"""What Top and Bott vectors may be made of: a neuron's problem, and a batch of its labels."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import equinox as eqx
from jaxtyping import Array, Bool, Int32

from optexp_jax.bounds.paper.label import LabelBounds
from optexp_jax.counts.pair_overlaps import PairOverlaps
from optexp_jax.counts.quantities import NeuronQuantities, Quantities
from optexp_jax.formulas.operators import Operator


@dataclass(frozen=True, eq=False)
class ProblemView:
    """A problem as one of the two computations sees it: per sample, or summed over samples."""

    concepts: Quantities
    """I^U, I^C, E^U, E^C of every concept, `[concept, sample]`."""
    neuron: NeuronQuantities
    """|N|, N^U, N^C, SE^U, SE^C: all there is to cover, `[sample]`."""
    disjoint: Bool[Array, "concepts concepts"]
    """Which concepts never share a location, in any sample."""
    operators: tuple[Operator, ...]
    """The operators in use; labels name them by their place here."""
    length: int
    """The greatest number of concepts in a formula."""
    aggregated: bool
    """Whether there is a single sample, which holds the sums over all of them."""
    count_pairs: Callable[[], PairOverlaps] = field(repr=False)
    """How `pairs` are counted."""

    @cached_property
    def pairs(self) -> PairOverlaps:
        """What any two concepts share in the whole dataset, inside the neuron and outside.

        Counted when it is asked for first, and once for both computations. What two different
        concepts share are common elements: parts of I^C and of E^C.
        """
        return self.count_pairs()


class LabelBatch(eqx.Module):
    """Labels that paths go on from, one a row, and what is known of them."""

    concepts: Int32[Array, "rows length"]
    """Their concepts, from the leaf on, padded with -1."""
    operators: Int32[Array, "rows length"]
    """Column j joins concept j to what stands left of it; -1 for the leaf and for padding."""
    further: Int32[Array, " rows"]
    """t, the most concepts that a path can add; 0 where the label has full length."""
    bounds: LabelBounds
    """Limits of each label's own quantities, `[row, sample]`."""
    apart: Bool[Array, "rows concepts"]
    """Concepts that each label is known never to share a location with."""

    def __len__(self) -> int:
        return len(self.further)
