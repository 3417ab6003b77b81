"""Stored activations: keys, resuming after a kill, damage."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

from optexp_jax.activations import (
    ActivationFileError,
    ActivationKey,
    ActivationMetadata,
    ActivationStore,
    ActivationWriter,
    progress,
)

KEY = ActivationKey("net", "w" * 8, "layer4", "d" * 8, "{}")
SHAPE = (11, 6, 2, 3)


@pytest.fixture
def values() -> np.ndarray:
    return np.random.default_rng(0).normal(size=SHAPE).astype(np.float32)


@pytest.fixture(autouse=True)
def _small_rows(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(progress, "MOST_SAMPLES_PER_ROW", 4)
    monkeypatch.setattr(progress, "CHUNK_BYTES", 4 * 2 * 3 * 4 * 4)  # four units


def write(path, values, key=KEY, until=SHAPE[0]):
    with ActivationWriter(path, ActivationMetadata(key), SHAPE) as writer:
        for start in range(writer.n_done, until, writer.samples_per_row):
            writer.append(values[start : start + writer.samples_per_row])
    return writer


def test_what_was_written_is_read(tmp_path, values):
    store = write(tmp_path / "a.zarr", values).finish()
    assert store.shape == SHAPE
    assert store.metadata.key == KEY
    assert store.units_per_chunk == 4
    assert np.array_equal(store.block(0, 11), values)
    assert np.array_equal(store.block(3, 9), values[3:9])
    assert np.array_equal(store.units(3, 6), values[:, 3:6])
    assert not (tmp_path / "a.zarr.partial").exists()


def test_a_killed_writer_is_continued(tmp_path, values):
    path = tmp_path / "a.zarr"
    write(path, values, until=8)  # and it is gone
    with pytest.raises(FileNotFoundError, match="unfinished"):
        ActivationStore.open(path)
    # What a kill in the middle of a row leaves: part of it, not counted.
    with ActivationWriter(path, ActivationMetadata(KEY), SHAPE) as writer:
        assert writer.n_done == 8
        writer._array[8:10] = -1.0
    writer = ActivationWriter(path, ActivationMetadata(KEY), SHAPE)
    assert writer.n_done == 8
    writer.append(values[8:])
    assert np.array_equal(writer.finish().block(0, 11), values)


@pytest.mark.parametrize(
    "damage",
    ["flipped", "missing", "swapped", "torn line", "flipped line", "lost line", "no lines"],
)
def test_only_whole_rows_are_continued(tmp_path, values, damage):
    """Whatever became of the others, they are written again."""
    path, partial = tmp_path / "a.zarr", tmp_path / "a.zarr.partial"
    expected = write(tmp_path / "b.zarr", values).finish().content
    write(path, values, until=8)
    one, two = (partial / "activations" / "c" / "1" / unit / "0" / "0" for unit in "01")
    listed = partial / "progress.txt"
    head, first, second = listed.read_bytes().splitlines(keepends=True)
    content = bytearray(one.read_bytes())
    match damage:
        case "flipped":
            content[len(content) // 2] ^= 1
            one.write_bytes(content)
        case "missing":
            one.unlink()
        case "swapped":
            one.write_bytes(two.read_bytes())
            two.write_bytes(content)
        case "torn line":
            listed.write_bytes(head + first + second[:50])
        case "flipped line":
            listed.write_bytes(head + first + second.replace(b"content", b"constant"))
        case "lost line":
            listed.write_bytes(head + second)
        case _:
            listed.write_bytes(head)
    with ActivationWriter(path, ActivationMetadata(KEY), SHAPE) as writer:
        assert writer.n_done == (0 if damage in {"lost line", "no lines"} else 4)
    store = write(path, values).finish()
    assert np.array_equal(store.block(0, 11), values)
    assert store.content == expected


def test_progress_that_cannot_be_read_is_refused(tmp_path, values):
    path = tmp_path / "a.zarr"
    write(path, values, until=8)
    (tmp_path / "a.zarr.partial" / "progress.txt").write_bytes(b"")
    with pytest.raises(ActivationFileError, match="cannot be continued"):
        write(path, values)


@pytest.mark.parametrize("left", ["zarr.json", "activations"])
def test_a_kill_in_the_first_moments_is_continued(tmp_path, values, left):
    """Before the group or the array was made."""
    path, partial = tmp_path / "a.zarr", tmp_path / "a.zarr.partial"
    write(path, values, until=0)
    shutil.rmtree(partial / "activations")
    if left == "zarr.json":
        (partial / "zarr.json").unlink()
    assert np.array_equal(write(path, values).finish().block(0, 11), values)


def test_a_kill_before_the_last_step_is_continued(tmp_path, values):
    path = tmp_path / "a.zarr"
    write(path, values)
    assert np.array_equal(write(path, values).finish().block(0, 11), values)
    assert sorted(file.name for file in path.iterdir()) == [
        "activations",
        "digests.txt",
        "zarr.json",
    ]


def test_one_writer_at_a_time(tmp_path, values):
    path = tmp_path / "a.zarr"
    with (
        ActivationWriter(path, ActivationMetadata(KEY), SHAPE),
        pytest.raises(BlockingIOError, match="Another process is writing"),
    ):
        write(path, values)
    write(path, values).finish()


def test_nothing_is_finished_early(tmp_path, values):
    with pytest.raises(ValueError, match="Only 8 of 11"):
        write(tmp_path / "a.zarr", values, until=8).finish()


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(ActivationKey)])
def test_keys_never_share_a_store(tmp_path, values, field):
    other = dataclasses.replace(KEY, **{field: "other"})
    assert other.fingerprint != KEY.fingerprint
    write(tmp_path / "a.zarr", values, until=4)
    with pytest.raises(ActivationFileError, match="another model, layer or dataset"):
        write(tmp_path / "a.zarr", values, other)


def test_a_finished_store_is_not_overwritten(tmp_path, values):
    write(tmp_path / "a.zarr", values).finish()
    with pytest.raises(FileExistsError, match="exists"):
        write(tmp_path / "a.zarr", values)


def test_damage_is_noticed(tmp_path, values):
    path = tmp_path / "a.zarr"
    write(path, values).finish()
    chunk = path / "activations" / "c" / "1" / "0" / "0" / "0"
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    chunk.write_bytes(bytes(content))
    store = ActivationStore.open(path)
    assert np.array_equal(store.block(0, 4), values[:4])
    with pytest.raises(ActivationFileError, match="damaged"):
        store.block(4, 8)
    chunk.unlink()
    with pytest.raises(ActivationFileError, match="1 of 8 files are missing"):
        ActivationStore.open(path)


def test_other_files_are_refused(tmp_path, values):
    (tmp_path / "folder").mkdir()
    with pytest.raises(ActivationFileError, match="not an activation store"):
        ActivationStore.open(tmp_path / "folder")
    with pytest.raises(FileNotFoundError, match="no activation store"):
        ActivationStore.open(tmp_path / "none")
    path = tmp_path / "a.zarr"
    write(path, values).finish()
    group = path / "zarr.json"
    attributes = json.loads(group.read_text())
    attributes["attributes"]["version"] = 99
    group.write_text(json.dumps(attributes))
    with pytest.raises(ActivationFileError, match="version 99"):
        ActivationStore.open(path)
    shutil.rmtree(path)
    (tmp_path / "a.zarr.partial").mkdir()
    (tmp_path / "a.zarr.partial" / "zarr.json").write_text("nothing")
    with pytest.raises(ActivationFileError, match="cannot be continued"):
        write(path, values)


def test_bad_activations_are_named(tmp_path, values):
    with ActivationWriter(tmp_path / "a.zarr", ActivationMetadata(KEY), SHAPE) as writer:
        with pytest.raises(ValueError, match="need activations of shape"):
            writer.append(values[:3])
        values[2, 0, 0, 0] = np.nan
        with pytest.raises(ValueError, match=r"Samples 0 to 3.*finite"):
            writer.append(values[:4])
    with pytest.raises(ValueError, match=r"\[sample, unit\]"):
        ActivationStore.from_array(tmp_path / "b.zarr", np.zeros((2, 3, 4)))
