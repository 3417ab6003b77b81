"""The spatial guide of earlier work (MMESH): candidates estimated from sizes and rectangles.

Two masks overlap at most where their bounding boxes do, and at least where rectangles inside them
do. With sizes a, overlaps i with the neuron and n active locations in a sample:

    label          I at most            size A at least
    L OR c         min(n, i_L + i_c)    max(a_L, a_c, a_L + a_c − overlap of boxes)
    L AND c        min(i_L, i_c)        overlap of inscribed rectangles
    L AND NOT c    min(i_L, n − i_c)    a_L − overlap of boxes

and at least A − I of the mask lies outside the neuron. If one side covers every sample whole or
not at all, as scenes do, sizes and overlaps are exact.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float64, Int64

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.quantities import NeuronQuantities, Quantities
from optexp_jax.counts.scores import held_on_host
from optexp_jax.counts.table_cache import per_table
from optexp_jax.formulas.operators import Operator
from optexp_jax.internal.tracing import note_trace
from optexp_jax.methods.beam.guides.base import AbstractEstimator, AbstractGuide, Members
from optexp_jax.methods.beam.guides.geometry import overlap_area
from optexp_jax.methods.beam.guides.members import MemberQuantities
from optexp_jax.methods.beam.guides.pairs import Pairs, by_sample, table_pairs
from optexp_jax.methods.beam.guides.regions import RegionShapes, SampleRegions, grid_shape, measure
from optexp_jax.methods.beam.guides.totals import Best, estimate_children, estimate_rows
from optexp_jax.search.problem import Problem


class MMESHGuide(AbstractGuide):
    """Bounds each candidate from bounding boxes and inscribed rectangles of its two sides.

    Needs a table with a map whose samples have at most two axes. Rectangles of concepts are
    computed once a table, those of beam members after each level.
    """

    def open(self, problem: Problem) -> "MMESHEstimator":
        return MMESHEstimator(problem)


class MMESHEstimator(AbstractEstimator):
    """The spatial guide at work on one problem."""

    def __init__(self, problem: Problem):
        self._problem = problem
        self._shapes = concept_shapes(problem.table)
        self._pairs = table_pairs(problem.table).device
        self._quantities = MemberQuantities(problem)

    def estimate(self, members: Members) -> Float64[np.ndarray, "rows operators concepts"]:
        with jax.enable_x64(True):
            quantities = self._quantities.exact(members)
            if members.size == 1:
                concepts = jnp.asarray(members.last_concepts)
                shapes = by_sample(self._pairs, self._shapes.of_pairs, concepts)
            else:
                shapes = self._measure(members)
            return np.asarray(
                _estimate(
                    self._pairs,
                    self._quantities.summed.of_padded_pairs,
                    self._shapes.of_pairs,
                    self._shapes.scene_like,
                    quantities,
                    shapes,
                    self._quantities.summed.neuron,
                    np.int64(self._shapes.sample_size),
                    np.int64(members.count),
                    self._problem.operators,
                )
            )

    def _measure(self, members: Members) -> RegionShapes:
        """Rectangles of members from their masks, `[row, sample]`."""
        table = self._problem.table
        held = held_on_host(table, members.batch(members.count, self._problem.operators))
        member, patch = np.nonzero(held[:, table.patches.signature])
        # One region for each member and sample: both ascend.
        cell = member * table.n_samples + table.patches.sample[patch]
        starts = np.diff(cell, prepend=-1) > 0
        cells = cell[starts]
        regions = SampleRegions(cells % table.n_samples, patch, np.cumsum(starts) - 1)
        shapes = RegionShapes.zeros(len(members.parents), table.n_samples)
        shapes.put(cells, measure(table, regions))
        return jax.tree.map(jnp.asarray, shapes)


class ConceptShapes:
    """Rectangles of the concepts of one table; get them with `concept_shapes`."""

    def __init__(self, table: ConceptTable):
        height, width = grid_shape(table)
        self.sample_size = height * width
        pairs = table_pairs(table)
        regions = SampleRegions(pairs.sample, pairs.entry_patch, pairs.entry_pair)
        self.of_pairs: RegionShapes = jax.tree.map(pairs.pad, measure(table, regions))
        scene_like = np.ones(table.n_concepts, np.bool_)
        scene_like[pairs.concept[pairs.size < self.sample_size]] = False
        self.scene_like: Bool[Array, " concepts"] = jnp.asarray(scene_like)
        """Concepts that cover all or nothing of each sample."""


@per_table
def concept_shapes(table: ConceptTable) -> ConceptShapes:
    """The shapes of a table's concepts; the same object for as long as the table lives."""
    return ConceptShapes(table)


class Side(eqx.Module):
    """A side of a candidate, `[pair]`: its overlap with the neuron, its size and its shapes."""

    inside: Int64[Array, " pairs"]
    size: Int64[Array, " pairs"]
    shapes: RegionShapes


class _ShapedRow(eqx.Module):
    """A member: its quantities and shapes in each sample."""

    quantities: Quantities
    shapes: RegionShapes


@partial(jax.jit, static_argnums=9)
def _estimate(
    pairs: Pairs,
    concepts: Int64[Array, "4 pairs"],
    concept_shapes: RegionShapes,
    scene_like: Bool[Array, " concepts"],
    members: Int64[Array, "4 rows samples"],
    member_shapes: RegionShapes,
    neuron: Int64[Array, "5 samples"],
    sample_size: Int64[Array, ""],
    count: Int64[Array, ""],
    operators: tuple[Operator, ...],
) -> Float64[Array, "rows operators concepts"]:
    note_trace("estimate_by_shapes")
    right = Side(_inside(Quantities(*concepts)), _size(Quantities(*concepts)), concept_shapes)
    right_is_scene = scene_like.at[pairs.concept].get(mode="fill", fill_value=True)
    active = NeuronQuantities(*neuron).n
    n = active[pairs.sample]

    def of_member(member: _ShapedRow) -> Float64[Array, "operators concepts"]:
        inside, size = _inside(member.quantities), _size(member.quantities)
        is_scene = ((size == 0) | (size == sample_size)).all()
        left = Side(*(jax.tree.map(lambda part: part[pairs.sample], (inside, size, member.shapes))))
        joined: dict[Operator, Best] = {}
        for operator in operators:
            exact = join_exactly(operator, left, right)
            bound = join_shapes(operator, left, right, n)
            joined[operator] = jax.tree.map(
                partial(jnp.where, right_is_scene | is_scene), exact, bound
            )
        return estimate_children(pairs, Best(inside, size - inside), joined, active.sum())

    rows = _ShapedRow(Quantities(*members), member_shapes)
    return estimate_rows(rows, count, (len(operators), pairs.n_concepts), of_member)


def join_shapes(operator: Operator, left: Side, right: Side, n: Int64[Array, " pairs"]) -> Best:
    """The table above, by sample; for other operators what follows from the same rectangles."""
    most_shared = overlap_area(left.shapes.box, right.shapes.box).astype(jnp.int64)
    match operator.truth_table:
        case 0b111:  # OR
            inside = jnp.minimum(n, left.inside + right.inside)
            larger = jnp.maximum(left.size, right.size)
            size = jnp.maximum(larger, left.size + right.size - most_shared)
        case 0b001:  # AND
            inside = jnp.minimum(left.inside, right.inside)
            size = overlap_area(left.shapes.inscribed, right.shapes.inscribed).astype(jnp.int64)
        case 0b100:  # AND NOT
            inside = jnp.minimum(left.inside, n - right.inside)
            size = left.size - most_shared
        case _:
            # Only two are left, `c AND NOT L` and XOR: both lose what the sides share.
            least_shared = jnp.maximum(left.inside + right.inside - n, 0)
            inside = _joined(operator, left.inside, right.inside, least_shared)
            most_shared = jnp.minimum(most_shared, jnp.minimum(left.size, right.size))
            size = _joined(operator, left.size, right.size, most_shared)
    return Best(inside, jnp.maximum(size - inside, 0))


def join_exactly(operator: Operator, left: Side, right: Side) -> Best:
    """For sides of which one covers all or nothing of each sample: they share the smaller one."""
    inside, size = (
        _joined(operator, a, b, jnp.minimum(a, b))
        for a, b in ((left.inside, right.inside), (left.size, right.size))
    )
    return Best(inside, size - inside)


def _joined(operator: Operator, left: Array, right: Array, overlap: Array) -> Array:
    """Locations of `L∘c` by how many the sides have and share."""
    p, q, r = operator.p, operator.q, operator.r
    return int(p) * (left - overlap) + int(q) * (right - overlap) + int(r) * overlap


def _inside(quantities: Quantities) -> Int64[Array, "..."]:
    return quantities.iu + quantities.ic


def _size(quantities: Quantities) -> Int64[Array, "..."]:
    return _inside(quantities) + quantities.eu + quantities.ec
