"""ConceptTable: lossless, merged, selectable, joinable, and strict about what it is given."""

import pickle
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from helpers.strategies import Case, WeightedCase, cases, some_formulas, weighted_cases
from helpers.support import examples
from hypothesis import given
from hypothesis import strategies as st

from optexp_jax.concepts import ConceptTable
from optexp_jax.concepts import table as table_module
from optexp_jax.formulas.formula import Formula


def masks_of(table: ConceptTable) -> np.ndarray:
    return np.stack([table.mask(name) for name in table.names])


def random_masks(*shape: int, seed: int = 0, density: float = 0.4) -> np.ndarray:
    return np.random.default_rng(seed).random(shape) < density


# --- from masks -----------------------------------------------------------------------------------


@given(cases())
def test_masks_come_back(case: Case):
    assert np.array_equal(masks_of(case.table), case.masks)
    assert case.table.names == case.names


@given(cases(), st.integers(0, 2**16))
def test_masks_of_formulas(case: Case, seed: int):
    for formula in some_formulas(np.random.default_rng(seed), case.names, 5):
        held = case.mask(formula)
        assert np.array_equal(case.table.mask(formula), held)
        assert np.array_equal(formula.mask(case.table), held)


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 1), (3, 4, 5), (3, 2, 3, 4), (2, 1, 2, 1, 2)])
def test_any_number_of_location_axes(shape: tuple[int, ...]):
    """`[concept, sample]` is non-spatial data, one location a sample."""
    masks = random_masks(*shape)
    table = ConceptTable.from_masks(masks)
    found = masks_of(table)
    assert found.shape == shape
    assert np.array_equal(found, masks)
    assert table.n_samples == shape[1]
    assert table.n_locations == masks[0].size


@pytest.mark.parametrize("n_concepts", [1, 8, 9, 63, 64, 65, 128, 200])
def test_any_number_of_concepts(n_concepts: int):
    masks = random_masks(n_concepts, 3, 7, density=0.2)
    table = ConceptTable.from_masks(masks)
    assert np.array_equal(masks_of(table), masks)
    assert table.names == tuple(sorted(table.names))  # padded so that they sort by number


def test_jax_masks():
    masks = random_masks(4, 3, 5)
    table = ConceptTable.from_masks(jnp.asarray(masks))
    assert table.fingerprint == ConceptTable.from_masks(masks).fingerprint


def test_torch_masks():
    torch = pytest.importorskip("torch")
    masks = random_masks(4, 3, 5)
    expected = ConceptTable.from_masks(masks).fingerprint
    tensor = torch.from_numpy(masks)
    assert ConceptTable.from_masks(tensor).fingerprint == expected
    assert ConceptTable.from_masks([tensor[k] for k in range(4)]).fingerprint == expected
    table = ConceptTable.from_masks(masks)
    assert table.count(tensor[0]).size == int(masks[0].sum())


def test_layout_in_memory_does_not_matter():
    masks = random_masks(4, 3, 5)
    expected = ConceptTable.from_masks(masks).fingerprint
    assert ConceptTable.from_masks(np.asfortranarray(masks)).fingerprint == expected
    assert ConceptTable.from_masks(masks[::-1, ::-1][::-1, ::-1]).fingerprint == expected
    assert ConceptTable.from_masks(masks.tolist()).fingerprint == expected


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr"])
@given(case=cases())
@examples(15)
def test_sparse_masks(kind: str, case: Case):
    sparse = [scipy.sparse.coo_array(mask).asformat(kind) for mask in case.masks]
    table = ConceptTable.from_masks(sparse, case.names)
    assert table.fingerprint == case.table.fingerprint


def test_old_sparse_matrices_mix_with_sparse_arrays():
    masks = random_masks(2, 3, 4)
    mixed = [scipy.sparse.csc_matrix(masks[0]), scipy.sparse.csr_array(masks[1])]
    assert np.array_equal(masks_of(ConceptTable.from_masks(mixed)), masks)


def test_sparse_entries_stored_as_false_and_stored_twice():
    stored = scipy.sparse.csr_array(
        (
            np.array([True, False, True, True, False]),
            np.array([0, 1, 2, 2, 2]),
            np.array([0, 2, 5]),
        ),
        shape=(2, 3),
    )
    assert stored.nnz == 5
    table = ConceptTable.from_masks([stored, scipy.sparse.csr_array((2, 3), dtype=bool)])
    expected = np.array([[True, False, False], [False, False, True]])
    assert np.array_equal(table.mask("c0"), expected)
    assert not table.mask("c1").any()


def test_sparse_masks_in_several_blocks(monkeypatch: pytest.MonkeyPatch):
    from optexp_jax.concepts import constructors

    masks = random_masks(70, 9, 5)  # two words a location
    monkeypatch.setattr(constructors, "SPARSE_BLOCK_BYTES", 2 * 2 * 8 * 5)
    table = ConceptTable.from_masks([scipy.sparse.csr_array(mask) for mask in masks])
    assert np.array_equal(masks_of(table), masks)


# --- what a table holds ---------------------------------------------------------------------------


@given(cases())
def test_signatures_are_distinct_and_counted(case: Case):
    table, flat = case.table, case.masks.reshape(len(case.masks), -1)
    sets = [tuple(table.signatures[s].tolist()) for s in range(len(table.signatures))]
    assert sets[0] == ()
    assert len(set(sets)) == len(sets)
    found = [tuple(np.flatnonzero(column).tolist()) for column in flat.T]
    assert dict(zip(sets, table.sizes.tolist(), strict=True)) == {
        (): 0,
        **{s: found.count(s) for s in found},
    }
    assert table.sizes.sum() == table.n_locations == flat.shape[1]
    assert table.signatures.lengths.tolist() == [len(s) for s in sets]
    for k in range(table.n_concepts):
        assert table.signatures.membership(k).tolist() == [k in s for s in sets]
    ids = table.signature_map(0, table.n_samples)
    assert ids.shape == case.bitmap.shape
    assert [sets[s] for s in ids.reshape(-1).tolist()] == found


@given(cases())
def test_concepts(case: Case):
    for k, name in enumerate(case.names):
        concept = case.table.concept(name)
        assert (concept.id, concept.name, concept.category) == (k, name, None)
        assert concept.n_locations == case.masks[k].sum() == case.table.concept_sizes[k]
        assert concept.n_samples == case.masks[k].any(axis=1).sum()


@given(cases())
def test_disjoint_concepts(case: Case):
    flat = case.masks.reshape(len(case.masks), -1).astype(int)
    assert np.array_equal(case.table.disjoint, flat @ flat.T == 0)


@given(cases(), st.integers(1, 30))
def test_passes_in_several_blocks(case: Case, block: int):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_module, "BLOCK_LOCATIONS", block)
        assert len(case.table.sample_blocks()) == -(
            -case.table.n_samples // max(1, block // case.masks.shape[2])
        )
        assert np.array_equal(masks_of(case.table), case.masks)
        assert case.table.count(case.bitmap).inside.tolist() == case.neuron.inside.tolist()


def test_repr_tells_the_numbers():
    masks = np.zeros((2, 4, 5), bool)
    masks[0, :2] = True
    masks[1, 1] = True
    text = repr(ConceptTable.from_masks(masks))
    for part in ("2 concepts", "4 samples of 5", "20 locations", "3 signatures"):
        assert part in text
    assert "50.0% / 25.0% / 25.0%" in text
    assert "4 samples of one location" in repr(ConceptTable.from_masks(masks[:, :, 0]))
    assert "3 samples of 2x2" in repr(ConceptTable.from_masks(random_masks(2, 3, 2, 2)))
    assert "no map" in repr(ConceptTable.from_signatures([[0]], [3]))


def test_compression_counts_the_bytes_of_the_table():
    masks = np.zeros((400, 10, 64, 64), bool)
    for k in range(400):
        masks[k, k % 10, k % 64] = True
    table = ConceptTable.from_masks(masks)
    # Of 400 bits a location, the map keeps a rank of 16; all else is small here.
    assert 15 < table.compression < 400 / 16
    assert f"{table.compression:.3g}" in repr(table)


@given(cases(), cases())
def test_equal_fingerprints_mean_equal_tables(one: Case, two: Case):
    equal = one.names == two.names and np.array_equal(one.masks, two.masks)
    assert (one.table.fingerprint == two.table.fingerprint) == equal
    again = ConceptTable.from_masks(one.masks.copy(), one.names)
    assert again.fingerprint == one.table.fingerprint


@pytest.mark.parametrize(
    "other",
    [
        lambda m: ConceptTable.from_masks(m, ["a", "c"]),
        lambda m: ConceptTable.from_masks(m, ["b", "a"]),
        lambda m: ConceptTable.from_masks(m, ["a", "b"], ["x", None]),
        lambda m: ConceptTable.from_masks(m[:, :, ::-1], ["a", "b"]),
        lambda m: ConceptTable.from_masks(m.reshape(2, 3, 2, 2), ["a", "b"]),
        lambda m: ConceptTable.from_masks(m.reshape(2, 2, 6), ["a", "b"]),
    ],
)
def test_fingerprints_see_every_part(other: Callable[[np.ndarray], ConceptTable]):
    masks = random_masks(2, 3, 4, seed=5)
    table = ConceptTable.from_masks(masks, ["a", "b"])
    assert other(masks).fingerprint != table.fingerprint


@given(cases())
@examples(10)
def test_pickle(case: Case):
    case.table.concept_sizes  # noqa: B018  a cached property travels along or not, as it likes
    copy = pickle.loads(pickle.dumps(case.table))
    assert copy.fingerprint == case.table.fingerprint
    assert np.array_equal(masks_of(copy), case.masks)
    assert copy.count(case.bitmap).inside.tolist() == case.neuron.inside.tolist()


# --- from signatures ------------------------------------------------------------------------------


@given(weighted_cases())
def test_equal_signatures_merge(case: WeightedCase):
    table = case.table
    sets = [tuple(table.signatures[s].tolist()) for s in range(len(table.signatures))]
    assert len(set(sets)) == len(sets)
    expected: dict[tuple[int, ...], int] = {(): 0}
    for concepts, size in zip(case.sets, case.sizes, strict=True):
        expected[concepts] = expected.get(concepts, 0) + size
    assert dict(zip(sets, table.sizes.tolist(), strict=True)) == expected
    assert table.n_locations == sum(case.sizes)
    assert table.given_rows is not None
    assert [sets[s] for s in table.given_rows.tolist()] == list(case.sets)
    assert table.sample_map is None
    assert table.n_samples == 1


@given(weighted_cases(), st.integers(0, 2**16))
def test_csr_pairs_and_unsorted_ids(case: WeightedCase, seed: int):
    rng = np.random.default_rng(seed)
    shuffled = [rng.permutation(np.array(s, int)) for s in case.sets]
    indptr = np.concatenate([[0], np.cumsum([len(s) for s in shuffled])])
    indices = np.concatenate([np.empty(0, int), *shuffled])
    pair = (indptr.astype(np.int32), indices.astype(np.int16))
    for given_form in (pair, (jnp.asarray(indptr), jnp.asarray(indices)), shuffled):
        table = ConceptTable.from_signatures(given_form, np.array(case.sizes), case.names)
        assert table.fingerprint == case.table.fingerprint


def test_locations_without_a_row_are_uncovered():
    table = ConceptTable.from_signatures([[0], [], [1, 0]], [5, 2, 3], n_locations=2**40)
    assert table.n_locations == 2**40
    assert table.sizes.tolist() == [2**40 - 8, 5, 3]
    assert table.names == ("c0", "c1")
    assert ConceptTable.from_signatures([[0]], [5], n_locations=5).n_locations == 5
    assert ConceptTable.from_signatures([[], []], [3, 4], names=["a"]).sizes.tolist() == [7]


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t.mask("c0"),
        lambda t: Formula.concept("c0").mask(t),
        lambda t: t.signature_map(0, 1),
        lambda t: t.count(np.ones((1, 1), bool)),
        lambda t: t.with_concepts(ConceptTable.from_masks(random_masks(1, 1, 3), ["x"])),
        lambda t: ConceptTable.from_masks(random_masks(1, 1, 3), ["x"]).with_concepts(t),
        lambda t: t.select(samples=[0]),
    ],
)
def test_tables_of_counts_refuse_what_needs_a_map(use: Callable[[ConceptTable], Any]):
    with pytest.raises(ValueError, match=r"needs to know where .* made with from_signatures"):
        use(ConceptTable.from_signatures([[0]], [3]))


# --- select and join ------------------------------------------------------------------------------


@given(cases(), st.integers(0, 2**16))
def test_select_is_slicing(case: Case, seed: int):
    rng = np.random.default_rng(seed)
    concepts = np.flatnonzero(rng.random(len(case.names)) < 0.6)
    samples = rng.integers(0, case.masks.shape[1], rng.integers(1, 6))  # any order, repetition too
    if not len(concepts):
        concepts = np.array([0])
    names = [case.names[k] for k in concepts]
    sliced = ConceptTable.from_masks(case.masks[np.ix_(concepts, samples)], names)
    shuffled = [names[k] for k in rng.permutation(len(names))]
    assert case.table.select(shuffled, samples=samples).fingerprint == sliced.fingerprint
    whole = ConceptTable.from_masks(case.masks[concepts], names)
    assert case.table.select(frozenset(names)).fingerprint == whole.fingerprint
    assert case.table.select().fingerprint == case.table.fingerprint


@pytest.mark.parametrize(
    "samples",
    [slice(1, 3), [1, 2], np.array([1, 2]), jnp.array([1, 2]), [False, True, True, False], [-3, 2]],
)
def test_ways_to_name_samples(samples: Any):
    masks = random_masks(3, 4, 5)
    selected = ConceptTable.from_masks(masks).select(samples=samples)
    assert np.array_equal(masks_of(selected), masks[:, 1:3])


def test_select_by_category():
    masks = random_masks(4, 3, 5)
    table = ConceptTable.from_masks(masks, list("abcd"), ["x", None, "y", "x"])
    selected = table.select(categories=["x"])
    assert (selected.names, selected.categories) == (("a", "d"), ("x", "x"))
    assert np.array_equal(masks_of(selected), masks[[0, 3]])
    assert table.select(["a", "b", "c"], categories={"x", "y"}).names == ("a", "c")


@given(weighted_cases(), st.integers(0, 2**16))
def test_select_from_a_table_of_counts(case: WeightedCase, seed: int):
    kept = np.flatnonzero(np.random.default_rng(seed).random(len(case.names)) < 0.6).tolist() or [0]
    reduced = [tuple(kept.index(k) for k in s if k in kept) for s in case.sets]
    names = tuple(case.names[k] for k in kept)
    selected = case.table.select(names)
    expected = WeightedCase(tuple(reduced), case.sizes, case.inside, names)
    assert selected.names == names
    assert selected.n_locations == sum(case.sizes)
    assert selected.concept_sizes.tolist() == expected.table.concept_sizes.tolist()
    # Rows keep their order, so that counts aligned with them still fit.
    counts = type(case.neuron).from_signatures(selected, case.inside)
    assert counts.size == sum(case.inside)
    assert sorted(counts.inside.tolist()) == sorted(expected.neuron.inside.tolist())


@given(cases(max_samples=3, max_locations=6), st.integers(0, 2**16))
def test_joining_is_stacking(case: Case, seed: int):
    other = random_masks(3, *case.bitmap.shape, seed=seed)
    stacked = ConceptTable.from_masks(np.concatenate([case.masks, other]), (*case.names, *"xyw"))
    joined = case.table.with_concepts(ConceptTable.from_masks(other, list("xyw")))
    assert joined.fingerprint == stacked.fingerprint


def test_joining_keeps_categories():
    masks = random_masks(2, 3, 4)
    one = ConceptTable.from_masks(masks[:1], ["a"], ["x"])
    two = ConceptTable.from_masks(masks[1:], ["b"], [None])
    assert one.with_concepts(two).categories == ("x", None)
