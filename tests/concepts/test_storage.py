"""Tables on disk: the same when read back, lazily read, and never silently wrong."""

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from helpers.strategies import Case, WeightedCase, cases, weighted_cases
from helpers.support import as_users_run_it, examples
from hypothesis import given

from optexp_jax.concepts import ConceptTable, TableFileError, patches
from optexp_jax.counts.neuron import NeuronCounts

MASKS = np.random.default_rng(0).random((3, 10, 4, 5)) < 0.4


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of 10 samples in a folder, three samples a chunk."""
    monkeypatch.setattr(patches, "CHUNK_BYTES", 60)
    path = tmp_path / "table.zarr"
    ConceptTable.from_masks(MASKS, ["a", "b", "c"], ["x", None, "y"]).save(path)
    return path


def masks_of(table: ConceptTable) -> np.ndarray:
    return np.stack([table.mask(name) for name in table.names])


# --- round trip -----------------------------------------------------------------------------------


@given(cases())
@examples(20)
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, case: Case):
    path = tmp_path_factory.mktemp("round") / "t"
    case.table.save(path)
    table = ConceptTable.load(str(path), verify=True)
    assert table.fingerprint == case.table.fingerprint
    assert (table.names, table.categories) == (case.table.names, case.table.categories)
    assert np.array_equal(masks_of(table), case.masks)
    # Counts made with either belong to both.
    assert table.count(case.bitmap).table_fingerprint == case.neuron.table_fingerprint
    case.neuron.require_table(table)


@given(weighted_cases())
@examples(20)
def test_round_trip_of_counts(tmp_path_factory: pytest.TempPathFactory, case: WeightedCase):
    path = tmp_path_factory.mktemp("round") / "t"
    case.table.save(path)
    table = ConceptTable.load(path, verify=True)
    assert table.fingerprint == case.table.fingerprint
    assert table.sample_map is None
    counts = NeuronCounts.from_signatures(table, case.inside)
    assert counts.inside.tolist() == case.neuron.inside.tolist()


def test_table_without_any_annotation(tmp_path: Path):
    for name, table in {
        "masks": ConceptTable.from_masks(np.zeros((2, 3, 4), bool)),
        "counts": ConceptTable.from_signatures([[]], [3], ["a"]),
    }.items():
        table.save(tmp_path / name)
        assert ConceptTable.load(tmp_path / name, verify=True).fingerprint == table.fingerprint


@pytest.mark.parametrize(
    "name", ["traffic light", 'say "x"', "\\", "é ü 猫", "\U0001f408", "\ud800", "", "\n", "OR"]
)
def test_any_name_survives(tmp_path: Path, name: str):
    table = ConceptTable.from_masks(MASKS[:2], [name, "plain"], [name, None])
    table.save(tmp_path / "t")
    loaded = ConceptTable.load(tmp_path / "t")
    assert loaded.names == (name, "plain")
    assert loaded.categories == (name, None)
    assert loaded.fingerprint == table.fingerprint


def test_numpy_names_survive(tmp_path: Path):
    names, categories = np.array(["a", "b", "c"]), np.array(["x", "y", "x"])
    with as_users_run_it():
        table = ConceptTable.from_masks(MASKS, names, categories)  # type: ignore[arg-type]
    table.save(tmp_path / "t")
    assert ConceptTable.load(tmp_path / "t").fingerprint == table.fingerprint


def test_wide_ranks_survive(tmp_path: Path):
    """A sample of more than 256 different sets needs two bytes a location."""
    masks = np.array([[(np.arange(1024) >> k) & 1 for k in range(10)]], bool).transpose(1, 0, 2)
    table = ConceptTable.from_masks(masks)
    assert len(table.signatures) == 1024
    table.save(tmp_path / "t")
    loaded = ConceptTable.load(tmp_path / "t", verify=True)
    assert np.array_equal(masks_of(loaded), masks)
    assert loaded.fingerprint == table.fingerprint


def test_operations_on_a_loaded_table(stored: Path):
    memory = ConceptTable.from_masks(MASKS, ["a", "b", "c"], ["x", None, "y"])
    table = ConceptTable.load(stored)
    samples = [7, 0, 9, 1, 2, 0]
    assert (
        table.select(["a", "c"], samples=samples).fingerprint
        == memory.select(["a", "c"], samples=samples).fingerprint
    )
    other = ConceptTable.from_masks(~MASKS)
    assert table.with_concepts(other).fingerprint == memory.with_concepts(other).fingerprint
    bitmaps = np.random.default_rng(1).random((3, 10, 4, 5)) < 0.3
    for one, two in zip(table.count_many(bitmaps), memory.count_many(bitmaps), strict=True):
        assert one.inside.tolist() == two.inside.tolist()
        assert one.active_patches.tolist() == two.active_patches.tolist()
    assert repr(table) == repr(memory)


def test_a_loaded_table_can_be_pickled_and_saved_again(stored: Path, tmp_path: Path):
    table = pickle.loads(pickle.dumps(ConceptTable.load(stored)))
    assert np.array_equal(masks_of(table), MASKS)
    table.save(tmp_path / "copy")
    assert ConceptTable.load(tmp_path / "copy", verify=True).fingerprint == table.fingerprint
    table.save(stored, overwrite=True)  # over itself
    assert np.array_equal(masks_of(table), MASKS)


def test_the_map_is_read_when_asked_for(stored: Path):
    read: list[slice] = []
    table = ConceptTable.load(stored)
    assert table.sample_map is not None
    ranks = table.sample_map.ranks

    class Spy:
        shape = ranks.shape

        def __getitem__(self, key: slice) -> np.ndarray:
            read.append(key)
            return ranks[key]

    object.__setattr__(table.sample_map, "ranks", Spy())
    assert table.concept("a").n_locations == MASKS[0].sum()
    assert table.sizes.sum() == 200
    assert not read
    table.signature_map(2, 4)
    assert read == [slice(2, 4)]
    read.clear()
    table.select(samples=[0, 1, 2, 3, 9])  # three samples a chunk, each read once
    assert read == [slice(0, 3), slice(3, 6), slice(9, 10)]


# --- damage ---------------------------------------------------------------------------------------


def chunks(path: Path, array: str) -> list[Path]:
    return sorted(file for file in (path / array / "c").rglob("*") if file.is_file())


PARTS = ["signature_indptr", "signature_indices", "patch_indptr", "patch_signature", "patch_size"]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("damage", ["truncated", "emptied", "flipped", "missing"])
def test_damage_is_noticed_on_loading(stored: Path, part: str, damage: str):
    (chunk,) = chunks(stored, part)
    break_file(chunk, damage)
    with pytest.raises(TableFileError, match="is damaged"):
        ConceptTable.load(stored)


@pytest.mark.parametrize("damage", ["truncated", "emptied", "flipped"])
def test_damage_to_the_map_is_noticed_when_it_is_read(stored: Path, damage: str):
    files = chunks(stored, "ranks")
    assert len(files) == 4
    break_file(files[2], damage)
    table = ConceptTable.load(stored)
    assert np.array_equal(
        table.signature_map(0, 6), ConceptTable.from_masks(MASKS).signature_map(0, 6)
    )
    with pytest.raises(TableFileError, match=r"is not what was written there.*Build the table"):
        table.signature_map(6, 9)
    with pytest.raises(TableFileError, match="is damaged or incomplete"):
        table.count(MASKS[0])
    with pytest.raises(TableFileError, match="damaged"):
        ConceptTable.load(stored, verify=True)


def test_a_missing_map_chunk_is_noticed_on_loading(stored: Path):
    """Zarr would read zeros."""
    break_file(chunks(stored, "ranks")[1], "missing")
    with pytest.raises(TableFileError, match=r"1 of 16 files are missing, the first ranks/c/1/0"):
        ConceptTable.load(stored)


@pytest.mark.parametrize("part", [*PARTS, "ranks"])
def test_a_missing_array_is_noticed(stored: Path, part: str):
    shutil.rmtree(stored / part)
    with pytest.raises(TableFileError, match="damaged or incomplete"):
        ConceptTable.load(stored)


@pytest.mark.parametrize("part", PARTS)
def test_an_altered_array_is_noticed(stored: Path, part: str):
    """Written by Zarr itself, so that every chunk's own checksum fits."""
    array = zarr.open_array(stored / part)
    values = np.asarray(array[:])
    values[-1] += 1
    array[:] = values
    with pytest.raises(TableFileError, match="is damaged"):
        ConceptTable.load(stored)


def test_an_altered_map_is_noticed_by_verify(stored: Path):
    array = zarr.open_array(stored / "ranks")
    ranks = np.asarray(array[:])
    ranks[5, [0, -1]] = ranks[5, [-1, 0]]
    ranks[5, 0] = (ranks[5, 0] + 1) % 2
    array[:] = ranks
    with pytest.raises(TableFileError, match=r"ranks/c/1/0 is not what was written there"):
        ConceptTable.load(stored, verify=True)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("names", ["a", "b", "d"]),
        ("names", ["a", "b"]),
        ("names", None),
        ("categories", ["x", "x", "y"]),
        ("location_shape", [5, 4]),
        ("location_shape", [21]),
        ("location_shape", None),
        ("ranks_digest", "00"),
        ("fingerprint", "00"),
        ("fingerprint", None),
    ],
)
def test_altered_attributes_are_noticed(stored: Path, key: str, value: Any):
    zarr.open_group(stored).attrs[key] = value
    with pytest.raises(TableFileError, match="is damaged"):
        ConceptTable.load(stored)


@pytest.mark.parametrize(
    "key", ["names", "categories", "location_shape", "ranks_digest", "fingerprint"]
)
def test_missing_attributes_are_noticed(stored: Path, key: str):
    metadata = json.loads((stored / "zarr.json").read_text())
    del metadata["attributes"][key]
    (stored / "zarr.json").write_text(json.dumps(metadata))
    with pytest.raises(TableFileError, match="is damaged"):
        ConceptTable.load(stored)


def test_another_version_is_refused(stored: Path):
    zarr.open_group(stored).attrs.update({"version": 1})
    with pytest.raises(
        TableFileError, match=r"format version 1; this release reads 2. Build .* optexp"
    ):
        ConceptTable.load(stored)


def test_what_is_not_a_table_is_refused(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="no concept table at"):
        ConceptTable.load(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "cat.jpg").write_bytes(b"cat")
    (tmp_path / "file").write_bytes(b"\x00" * 100)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "zarr.json").write_text("{not json")
    zarr.create_array(tmp_path / "array", shape=(3,), dtype="i4")
    zarr.create_group(tmp_path / "group")
    zarr.create_group(tmp_path / "old", zarr_format=2)
    zarr.create_group(tmp_path / "foreign", attributes={"format": "other", "version": 1})
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(TableFileError, match="not a concept table"):
            ConceptTable.load(path)
    assert issubclass(TableFileError, ValueError)


def break_file(file: Path, damage: str) -> None:
    content = file.read_bytes()
    match damage:
        case "truncated":
            file.write_bytes(content[: len(content) // 2])
        case "emptied":
            file.write_bytes(b"")
        case "flipped":
            middle = len(content) // 2
            flipped = bytes([content[middle] ^ 1])
            file.write_bytes(content[:middle] + flipped + content[middle + 1 :])
        case _:
            file.unlink()


# --- what stands there already --------------------------------------------------------------------


def test_an_existing_path_is_refused(stored: Path):
    other = ConceptTable.from_masks(~MASKS)
    with pytest.raises(FileExistsError, match="pass overwrite=True"):
        other.save(stored)
    assert ConceptTable.load(stored).names == ("a", "b", "c")
    other.save(stored, overwrite=True)
    assert ConceptTable.load(stored, verify=True).fingerprint == other.fingerprint
    assert [entry.name for entry in stored.parent.iterdir()] == [stored.name]


@pytest.mark.parametrize(
    "use", [lambda t: t.mask("a"), lambda t: t.count(MASKS[0]), lambda t: t.select()]
)
def test_a_table_whose_file_was_replaced_or_removed_is_not_read(
    stored: Path, use: Callable[[ConceptTable], object]
):
    """Its patches would be laid out by the map of another table."""
    table = ConceptTable.load(stored)
    ConceptTable.from_masks(~MASKS).save(stored, overwrite=True)
    with pytest.raises(TableFileError, match=r"replaced by another store .* Open it again"):
        use(table)
    shutil.rmtree(stored)
    with pytest.raises(TableFileError, match="is damaged or incomplete"):
        use(table)


def test_a_table_of_the_same_map_is_another_table(stored: Path):
    """Every chunk that is read fits, and still the table is not the one that was loaded."""
    table = ConceptTable.load(stored)
    ConceptTable.from_masks(MASKS, ["a", "b", "other"]).save(stored, overwrite=True)
    with pytest.raises(TableFileError, match=r"replaced by another store"):
        table.mask("a")


def test_folders_of_the_user_are_left_alone(tmp_path: Path):
    table = ConceptTable.from_masks(MASKS)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"cat")
    with pytest.raises(FileExistsError, match="holds no Zarr store"):
        table.save(tmp_path / "photos", overwrite=True)
    assert (tmp_path / "photos" / "cat.jpg").read_bytes() == b"cat"
    # Folders that look like leftovers may be somebody's backup.
    backup = tmp_path / "t.old"
    table.save(backup)
    for _ in range(2):
        table.save(tmp_path / "t", overwrite=True)
        assert ConceptTable.load(backup, verify=True).fingerprint == table.fingerprint
    (tmp_path / "empty").mkdir()
    table.save(tmp_path / "empty", overwrite=True)
    table.save(tmp_path / "new" / "folders" / "t")
    assert ConceptTable.load(tmp_path / "new" / "folders" / "t").n_locations == 200


def test_a_save_that_fails_leaves_the_old_table(stored: Path, monkeypatch: pytest.MonkeyPatch):
    before = ConceptTable.load(stored).fingerprint
    table = ConceptTable.from_masks(~MASKS)
    assert table.sample_map is not None

    class Failing:
        shape = table.sample_map.ranks.shape

        def __getitem__(self, key: slice) -> np.ndarray:
            raise OSError("disk on fire")

    object.__setattr__(table.sample_map, "ranks", Failing())
    with pytest.raises(OSError, match="disk on fire"):
        table.save(stored, overwrite=True)
    assert ConceptTable.load(stored, verify=True).fingerprint == before
