"""TableBuilder: the same table in a stream, on disk, and in bounded memory."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from helpers.strategies import Case, cases
from helpers.support import as_users_run_it, examples
from hypothesis import given

from optexp_jax.concepts import ConceptTable, LabelLayer, TableBuilder, patches


def masks_of(table: ConceptTable) -> np.ndarray:
    return np.stack([table.mask(name) for name in table.names])


@given(cases())
def test_one_sample_at_a_time(case: Case):
    builder = TableBuilder(case.names)
    for sample in range(case.masks.shape[1]):
        assert builder.n_samples == sample
        builder.add_masks(case.masks[:, sample])
    assert builder.build().fingerprint == case.table.fingerprint


@given(cases())
@examples(10)
def test_one_location_a_sample(case: Case):
    flat = case.masks.reshape(len(case.masks), -1)
    builder = TableBuilder(case.names)
    for location in range(flat.shape[1]):
        builder.add_masks(flat[:, location])
    assert builder.build().fingerprint == ConceptTable.from_masks(flat, case.names).fingerprint


@given(cases())
@examples(20)
def test_with_a_path_equals_in_memory(tmp_path_factory: pytest.TempPathFactory, case: Case):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patches, "CHUNK_BYTES", 2 * case.masks.shape[2])  # two samples a chunk
        path = tmp_path_factory.mktemp("stream") / "table.zarr"
        builder = TableBuilder(case.names, path=path)
        for sample in range(case.masks.shape[1]):
            builder.add_masks(case.masks[:, sample])
            assert not path.exists()
        table = builder.build()
    assert table.fingerprint == case.table.fingerprint
    assert np.array_equal(masks_of(table), case.masks)
    assert ConceptTable.load(path, verify=True).fingerprint == case.table.fingerprint
    assert [entry.name for entry in path.parent.iterdir()] == ["table.zarr"]


def test_label_stream_on_disk(tmp_path: Path):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, (9, 3, 4))
    layer = LabelLayer({1: "a", 2: "b", 3: "c"}, "object")
    scenes = [f"s{k}" for k in rng.integers(0, 3, 9)]
    builder = TableBuilder.for_labels([layer], path=tmp_path / "t")
    for image, scene in zip(labels, scenes, strict=True):
        builder.add_labels([image], [scene], "scene")
    expected = ConceptTable.from_label_maps([labels], [layer], scenes)
    assert builder.build().fingerprint == expected.fingerprint


def test_concepts_met_late_are_absent_before():
    builder = TableBuilder.for_labels([LabelLayer({1: "a"})])
    builder.add_labels([np.array([1, 0])])
    builder.add_labels([np.array([1, 0])], ["late"])
    table = builder.build()
    assert table.mask("late").tolist() == [[False, False], [True, True]]
    assert table.mask("a").tolist() == [[True, False], [True, False]]


def test_a_refused_sample_leaves_no_trace():
    builder = TableBuilder.for_labels([LabelLayer({1: "a"})])
    with pytest.raises(ValueError, match="without a name"):
        builder.add_labels([np.array([[5, 1, 1]])], ["kitchen"])  # a label nobody knows
    builder.add_labels([np.array([1, 0])])
    with pytest.raises(ValueError, match="Resize all samples"):
        builder.add_labels([np.array([1, 0, 0])], ["bathroom"])
    table = builder.build()
    assert table.names == ("a",)
    assert (table.n_samples, table.n_locations) == (1, 2)


def test_names_as_a_numpy_array():
    with as_users_run_it():
        builder = TableBuilder(np.array(["b", "a"]), np.array(["x", "y"]))  # type: ignore[arg-type]
        builder.add_masks(np.eye(2, dtype=bool))
        table = builder.build()
    assert (table.names, table.categories) == (("b", "a"), ("x", "y"))
    assert {type(text) for text in (*table.names, *table.categories)} == {str}


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_builder_builds_once(tmp_path: Path, on_disk: bool):
    path = tmp_path / "t" if on_disk else None
    builder = TableBuilder(["a"], path=path)
    builder.add_masks(np.array([[True, False]]))
    table = builder.build()
    with pytest.raises(ValueError, match="make a new one"):
        builder.build()
    with pytest.raises(ValueError, match="make a new one"):
        builder.add_masks(np.array([[True, False]]))
    # And the table that was built is still whole.
    assert table.mask("a").tolist() == [[True, False]]
    if path is not None:
        assert ConceptTable.load(path, verify=True).fingerprint == table.fingerprint


def test_an_existing_path_is_refused_at_once(tmp_path: Path):
    ConceptTable.from_masks(np.ones((1, 2, 3), bool)).save(tmp_path / "t")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        TableBuilder(["a"], path=tmp_path / "t")
    builder = TableBuilder(["a"], path=tmp_path / "t", overwrite=True)
    builder.add_masks(np.array([[True, False]]))
    assert ConceptTable.load(tmp_path / "t").n_locations == 6  # there until the new one is whole
    assert builder.build().n_locations == 2
    assert ConceptTable.load(tmp_path / "t").n_locations == 2


def test_an_abandoned_build_leaves_no_table(tmp_path: Path):
    builder = TableBuilder(["a"], path=tmp_path / "t")
    builder.add_masks(np.array([[True, False]]))
    del builder
    with pytest.raises(FileNotFoundError):
        ConceptTable.load(tmp_path / "t")
    builder = TableBuilder(["a"], path=tmp_path / "t")  # and does not stand in the way
    builder.add_masks(np.array([[False, True]]))
    assert builder.build().mask("a").tolist() == [[False, True]]


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The map goes to disk: ten times the samples, not ten times the memory."""
    size = 128
    monkeypatch.setattr(patches, "CHUNK_BYTES", 4 * size * size * 2)
    image = np.arange(size * size).reshape(size, size) % 7
    layer = LabelLayer([f"c{k}" for k in range(7)])

    def peak(n_samples: int) -> int:
        tracemalloc.start()
        builder = TableBuilder.for_labels([layer], path=tmp_path / f"t{n_samples}")
        for sample in range(n_samples):
            builder.add_labels([np.roll(image, sample)])
        table = builder.build()
        counts = table.count_many(np.ones((1, n_samples, size, size), bool))[0]
        assert counts.size == n_samples * size * size
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used - n_samples * size * size  # the bitmap

    monkeypatch.setattr("optexp_jax.concepts.table.BLOCK_LOCATIONS", 4 * size * size)
    few, many = peak(12), peak(120)
    map_bytes = 120 * size * size * 2
    assert many < few + map_bytes / 8
