"""Estimates of guides: what they are by their definition, and which tables they refuse."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.beam_reference import Call, Recorder, make_case
from helpers.strategies import ALL_OPERATORS, Case
from helpers.support import examples
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.bounds import PublishedVectors
from optexp_jax.bounds.paper.chains import UNKNOWN, Chains, View, label_bounds
from optexp_jax.bounds.paper.label import LabelBounds
from optexp_jax.bounds.paper.path import MARGIN
from optexp_jax.concepts import table as table_module
from optexp_jax.counts.quantities import concept_quantities, padded_formula_quantities
from optexp_jax.methods.beam.guides import host_quantities, quantity_on_host
from optexp_jax.methods.beam.guides import regions as regions_module
from optexp_jax.methods.beam.guides.host_quantities import HostQuantities
from optexp_jax.methods.beam.guides.members import DeviceQuantities
from optexp_jax.methods.beam.guides.mmesh import concept_shapes
from optexp_jax.methods.beam.guides.pairs import TablePairs, by_sample, pair_quantities, table_pairs
from optexp_jax.methods.beam.guides.quantity import QuantityEstimator
from optexp_jax.methods.beam.guides.regions import SampleRegions, measure
from optexp_jax.search.problem import Problem

seeds = st.integers(0, 2**32 - 1)


def estimates_of(case: Case, guide, operators=ox.DEFAULT_OPERATORS) -> list[Call]:
    recorder = Recorder(guide)
    ox.explain(case.table, case.neuron, ox.Beam(4, size=2, guide=recorder, operators=operators))
    return recorder.calls


# Quantities.

_label_bounds = jax.jit(label_bounds)


def published_estimates(case: Case, call: Call, exact: bool) -> np.ndarray:
    """dIoU_max of all candidates of a level from dense quantities, step by step along chains."""
    problem = Problem(case.table, case.neuron, 4, ox.DEFAULT_OPERATORS)
    members, shape = call.members, call.estimates.shape
    member, operator, concept = (axis.reshape(-1) for axis in np.indices(shape))
    concepts, operators = members.concepts[member], members.operators[member]
    concepts[:, members.size], operators[:, members.size] = concept, operator
    batch = members.batch(len(members.parents), problem.operators)
    known = padded_formula_quantities(case.table, case.neuron, batch)
    slot = member if exact else np.full(len(member), UNKNOWN)
    length = np.full(len(member), members.size if exact else 1)
    with jax.enable_x64(True):
        view = View(
            problem.concepts,
            problem.whole,
            known,
            problem.disjoint,
            (),
            PublishedVectors(),
            problem.operators,
        )
        parts = (part.astype(np.int32) for part in (concepts, operators, slot, length))
        bounds: LabelBounds = _label_bounds(view, Chains(*map(jnp.asarray, parts)))
    inside = np.asarray(bounds.iu + bounds.ic.high).sum(1)
    outside = np.asarray(bounds.eu + bounds.ec.low).sum(1)
    return (inside / (case.neuron.size + outside) * (1 + MARGIN)).reshape(shape)


@pytest.mark.parametrize("exact", [True, False], ids=["exact updates", "low memory"])
@pytest.mark.parametrize("on_grid", [True, False], ids=["all samples", "pairs"])
@pytest.mark.parametrize("on_host", [True, False], ids=["host", "device"])
@given(seed=seeds)
@examples(10)
def test_quantity_estimates_are_the_published_ones(
    exact: bool, on_grid: bool, on_host: bool, seed: int
):
    case = make_case(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TablePairs, "fill_the_grid", on_grid)
        patch.setattr(quantity_on_host, "BLOCK", 20)
        with ox.kernels("host" if on_host else "device"):
            calls = estimates_of(case, ox.QuantityGuide(exact_updates=exact))
    for call in calls:
        expected = published_estimates(case, call, exact)
        for row in range(call.members.count):
            new = np.setdiff1d(np.arange(len(case.names)), call.members.concepts[row])
            np.testing.assert_array_equal(call.estimates[row][:, new], expected[row][:, new])


@pytest.mark.parametrize("on_grid", [True, False], ids=["all samples", "pairs"])
@given(seed=seeds)
@examples(8)
def test_host_and_device_estimate_alike_with_any_operators(on_grid: bool, seed: int):
    case = make_case(seed)
    problem = Problem(case.table, case.neuron, 4, ALL_OPERATORS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TablePairs, "fill_the_grid", on_grid)
        on_device = QuantityEstimator(problem, exact_updates=True, on_host=False)
        with ox.kernels("host"):
            calls = estimates_of(case, ox.QuantityGuide(), ALL_OPERATORS)
        for call in calls:
            n = call.members.count
            expected = on_device.estimate(call.members)[:n]
            np.testing.assert_array_equal(call.estimates[:n], expected)


@given(seed=seeds)
@examples(10)
def test_pairs_hold_the_quantities_of_all_concepts(seed: int):
    case = make_case(seed)
    dense = concept_quantities(case.table, case.neuron)
    pairs = table_pairs(case.table)
    areas = case.masks.reshape(*case.masks.shape[:2], -1).sum(2)
    np.testing.assert_array_equal(np.stack([pairs.concept, pairs.sample]), np.nonzero(areas))
    np.testing.assert_array_equal(pairs.size, areas[pairs.concept, pairs.sample])
    sparse = pair_quantities(case.table, case.neuron)
    with jax.enable_x64(True):
        rows = by_sample(pairs.device, sparse, jnp.arange(len(case.names), dtype=jnp.int32))
    for expected, found in zip(jax.tree.leaves(dense), jax.tree.leaves(rows), strict=True):
        np.testing.assert_array_equal(expected, found)


@pytest.mark.parametrize("on_grid", [True, False], ids=["all samples", "pairs"])
@given(seed=seeds)
@examples(10)
def test_host_and_device_sum_up_the_same_quantities(on_grid: bool, seed: int):
    case = make_case(seed)
    some = np.random.default_rng(seed).integers(0, len(case.names), 7, np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TablePairs, "fill_the_grid", on_grid)
        patch.setattr(host_quantities, "BLOCK", 3 * len(case.table.patches))
        on_host = HostQuantities(case.table, case.neuron)
        on_device = DeviceQuantities(case.table, case.neuron)
        for call in estimates_of(case, ox.QuantityGuide()):
            members = call.members
            found, expected = (
                np.asarray(quantities.of_members(members, ox.DEFAULT_OPERATORS))
                for quantities in (on_host, on_device)
            )
            np.testing.assert_array_equal(found, expected[:, : members.count])
        np.testing.assert_array_equal(on_host.of_concepts(some), on_device.of_concepts(some))
    for part in ("neuron", "grid", "of_padded_pairs"):
        np.testing.assert_array_equal(getattr(on_host, part), getattr(on_device, part))
    size = len(table_pairs(case.table))
    np.testing.assert_array_equal(on_host.of_pairs, on_device.of_padded_pairs[:, :size])


# Shapes.


def box(mask: np.ndarray) -> np.ndarray:
    """The mask of the smallest rectangle around a mask."""
    filled = np.zeros_like(mask)
    if mask.any():
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        filled[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] = True
    return filled


def rectangle_masks(shapes, at: int, grid: tuple[int, int]) -> list[np.ndarray]:
    """Box and inscribed rectangle as masks."""
    masks: list[np.ndarray] = []
    for rectangles in (shapes.box, shapes.inscribed):
        mask = np.zeros(grid, bool)
        top, left, bottom, right = (
            int(np.asarray(side)[at])
            for side in (rectangles.top, rectangles.left, rectangles.bottom, rectangles.right)
        )
        mask[top:bottom, left:right] = True
        masks.append(mask)
    return masks


def largest_inside(mask: np.ndarray) -> int:
    height, width = mask.shape
    return max(
        (
            (bottom - top) * (right - left)
            for top in range(height)
            for bottom in range(top + 1, height + 1)
            for left in range(width)
            for right in range(left + 1, width + 1)
            if mask[top:bottom, left:right].all()
        ),
        default=0,
    )


@given(seed=seeds, small_blocks=st.booleans())
@examples(10)
def test_regions_are_measured_from_their_masks(seed: int, small_blocks: bool):
    case = make_case(seed)
    grid = case.bitmap.shape[1:]
    rng = np.random.default_rng(seed)
    sample = rng.integers(0, case.table.n_samples, 12)
    patch, region = [], []
    for k, x in enumerate(sample.tolist()):
        own = np.arange(*case.table.patches.indptr[x : x + 2])
        chosen = own[rng.random(len(own)) < rng.choice([0.4, 1.0])]
        patch.extend(chosen.tolist())
        region.extend([k] * len(chosen))
    order = rng.permutation(len(patch))
    regions = SampleRegions(
        sample, np.array(patch, np.int64)[order], np.array(region, np.int64)[order]
    )
    with pytest.MonkeyPatch.context() as patched:
        if small_blocks:  # one sample at a time
            patched.setattr(table_module, "BLOCK_LOCATIONS", 1)
            patched.setattr(regions_module, "BLOCK_CELLS", 1)
        shapes = measure(case.table, regions)
    signatures = case.table.signature_map(0, case.table.n_samples)
    for k, x in enumerate(sample.tolist()):
        held = case.table.patches.signature[regions.patch[regions.region == k]]
        mask = np.isin(signatures[x], held)
        around, inside = rectangle_masks(shapes, k, grid)
        np.testing.assert_array_equal(around, box(mask))
        assert not (inside & ~mask).any()
        assert inside.sum() == largest_inside(mask)


def spatial_estimate(case: Case, left: np.ndarray, right: np.ndarray, name: str, inner) -> float:
    """The spatial estimate as it is told, from masks; `inner` finds an inscribed rectangle."""
    d = left[0].size
    total_inside = total_outside = 0
    scene_like = any(all(mask.sum() in (0, d) for mask in side) for side in (left, right))
    for x, active in enumerate(case.bitmap):
        a, b, n = left[x], right[x], int(active.sum())
        i_a, i_b = int((a & active).sum()), int((b & active).sum())
        if scene_like:
            joined = {"OR": a | b, "AND": a & b, "AND NOT": a & ~b}[name]
            inside, size = int((joined & active).sum()), int(joined.sum())
        else:
            overlap = int((box(a) & box(b)).sum())
            if name == "OR":
                inside = min(n, i_a + i_b)
                size = max(a.sum(), b.sum(), int(a.sum()) + int(b.sum()) - overlap)
            elif name == "AND":
                inside, size = min(i_a, i_b), int((inner(x, 0) & inner(x, 1)).sum())
            else:
                inside, size = min(i_a, n - i_b), int(a.sum()) - overlap
        total_inside += inside
        total_outside += max(int(size) - inside, 0)
    return total_inside / (case.neuron.size + total_outside) * (1 + MARGIN)


@given(seed=seeds)
@examples(10)
def test_spatial_estimates_are_what_rectangles_allow(seed: int):
    case = make_case(seed)
    grid = case.bitmap.shape[1:]
    table, pairs, shapes = case.table, table_pairs(case.table), concept_shapes(case.table)
    empty = np.zeros(grid, bool)

    def inscribed(concept: int, x: int) -> np.ndarray:
        found = np.flatnonzero((pairs.concept == concept) & (pairs.sample == x))
        return rectangle_masks(shapes.of_pairs, found[0], grid)[1] if len(found) else empty

    # Level 2: both sides are concepts, whose inscribed rectangles are known to be largest ones.
    level = estimates_of(case, ox.MMESHGuide())[:1]
    rows = [(call, row) for call in level for row in range(call.members.count)]
    for asked, row in rows:
        first = int(asked.members.concepts[row, 0])
        for column, operator in enumerate(ox.DEFAULT_OPERATORS):
            for second in range(table.n_concepts):
                if second == first:
                    continue
                expected = spatial_estimate(
                    case,
                    case.masks[first],
                    case.masks[second],
                    operator.name,
                    lambda x, side, ab=(first, second): inscribed(ab[side], x),
                )
                assert asked.estimates[row, column, second] == expected


@given(seed=seeds)
@examples(10)
def test_members_are_measured_like_concepts(seed: int):
    # Where the members are concepts, their shapes are known: measure them all the same.
    case = make_case(seed)
    estimator = ox.MMESHGuide().open(Problem(case.table, case.neuron, 4, ox.DEFAULT_OPERATORS))
    for call in estimates_of(case, ox.MMESHGuide())[:1]:
        with jax.enable_x64(True):
            stored = by_sample(
                table_pairs(case.table).device,
                concept_shapes(case.table).of_pairs,
                jnp.asarray(call.members.last_concepts),
            )
        measured = estimator._measure(call.members)
        for one, other in zip(jax.tree.leaves(stored), jax.tree.leaves(measured), strict=True):
            rows = slice(call.members.count)
            np.testing.assert_array_equal(np.asarray(one)[rows], np.asarray(other)[rows])


def test_scenes_are_estimated_exactly():
    rng = np.random.default_rng(0)
    case = make_case(0)
    masks = case.masks.copy()
    masks[:3] = (rng.random((3, case.table.n_samples)) < 0.6)[:, :, None, None]
    masks[0, 0] = True
    case = Case(masks, case.bitmap | masks[0], case.names)
    for call in estimates_of(case, ox.MMESHGuide(), ALL_OPERATORS):
        if call.members.size > 1:
            continue
        for row, column, k in np.ndindex(call.members.count, len(ALL_OPERATORS), 3):
            first = case.names[int(call.members.concepts[row, 0])]
            if first != case.names[k]:
                formula = ox.Formula.concept(first).then(ALL_OPERATORS[column], case.names[k])
                exact = ox.iou(case.table, case.neuron, formula).iou
                assert call.estimates[row, column, k] == exact * (1 + MARGIN)


def test_tables_without_a_grid():
    masks = make_case(5).masks
    flat = masks.reshape(*masks.shape[:2], -1)
    bitmap = flat[0] | flat[1]
    method = ox.Beam(2, size=2, guide=ox.MMESHGuide())
    expected = ox.explain(ox.ConceptTable.from_masks(flat), bitmap, ox.Beam(2, size=2, guide=None))
    one_row = ox.explain(ox.ConceptTable.from_masks(flat), bitmap, method)
    assert (one_row.formula, one_row.score) == (expected.formula, expected.score)
    # One location a sample: everything is like a scene, so only the best candidate is visited.
    samples = ox.ConceptTable.from_masks(flat[:, 0])
    found = ox.explain(samples, bitmap[0], method)
    assert found.iou == 1
    with pytest.raises(ValueError, match=r"at most two axes; .* \(2, 2, 5\). Use QuantityGuide"):
        ox.explain(
            ox.ConceptTable.from_masks(masks.reshape(*masks.shape[:2], 2, 2, 5)),
            bitmap.reshape(-1, 2, 2, 5),
            method,
        )
    counted = ox.ConceptTable.from_signatures([[0], [1]], [3, 4], ["a", "b"])
    neuron = ox.NeuronCounts.from_signatures(counted, [2, 2])
    with pytest.raises(ValueError, match="MMESHGuide needs to know where the concepts lie"):
        ox.explain(counted, neuron, method)
