"""Building tables from datasets: what comes out, and what is refused."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.build_cases import Small, plain_masks, table_of_masks
from helpers.dataset_fixtures import picture, save, write_table
from helpers.support import examples
from hypothesis import given
from hypothesis import strategies as st

from optexp_jax import ConceptTable, TableFileError, cli
from optexp_jax.datasets import BadSampleError, DatasetSpec, Sample
from optexp_jax.datasets.build import build_table
from optexp_jax.datasets.parts import (
    PartFileError,
    code_sample,
    make_part,
    read_part,
    resize_nearest,
    write_part,
)
from optexp_jax.datasets.provenance import Provenance, SkippedSample, read_provenance
from optexp_jax.stores.digests import add_file


@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(1, 7), st.integers(1, 7))
@examples(8)
def test_table_is_that_of_the_masks(
    tmp_path_factory: pytest.TempPathFactory, seed: int, n: int, height: int, width: int
):
    dataset = Small(n, seed)
    out = tmp_path_factory.mktemp("build") / "table.zarr"
    table = build_table(dataset, out, mask_shape=(height, width))
    masks = plain_masks(dataset, (height, width), range(n))
    assert table.fingerprint == table_of_masks(masks).fingerprint
    assert os.listdir(out.parent) == ["table.zarr"]


def test_many_maps_do_not_run_into_each_other():
    """More columns than a 64-bit word holds, with ids at both ends."""
    n_concepts = 1000
    rng = np.random.default_rng(0)
    maps = rng.choice(np.array([-1, 0, n_concepts - 1], np.int32), (13, 6, 6))
    coded = code_sample(Sample("s", np.zeros((6, 6, 3), np.uint8), tuple(maps)), (6, 6), n_concepts)
    for location, member in enumerate(coded.members.tolist()):
        expected = set(maps.reshape(13, -1)[:, location].tolist()) - {-1}
        assert set(coded.sets[member].tolist()) == expected


def test_resize_takes_the_floor():
    values = np.arange(5 * 7, dtype=np.int32).reshape(5, 7)
    np.testing.assert_array_equal(resize_nearest(values, (5, 7)), values)
    np.testing.assert_array_equal(resize_nearest(values, (2, 3)), values[[0, 2]][:, [0, 2, 4]])
    np.testing.assert_array_equal(resize_nearest(values, (1, 14))[0], np.repeat(values[0], 2))


def test_part_files_keep_everything(tmp_path: Path):
    part = make_part(Small(9, bad=(2, 7)), 1, 9, (4, 5))
    assert [sample.name for sample in part.samples] == [f"{k}.png" for k in (1, 3, 4, 5, 6, 8)]
    assert part.skipped[0] == SkippedSample(2, "2.png", "the file is cut off.")
    write_part(part, tmp_path / "a.part", "build 0")
    again = read_part(tmp_path / "a.part", "build 0")
    assert again.skipped == part.skipped
    for ours, theirs in zip(part.samples, again.samples, strict=True):
        assert ours.name == theirs.name
        np.testing.assert_array_equal(ours.members, theirs.members)
        assert [s.tolist() for s in ours.sets] == [s.tolist() for s in theirs.sets]
    assert os.listdir(tmp_path) == ["a.part"]
    with pytest.raises(PartFileError, match="not the part of its place"):
        read_part(tmp_path / "a.part", "build 1")
    (tmp_path / "a.part").write_bytes(b"PK")
    with pytest.raises(PartFileError, match=r"a\.part"):
        read_part(tmp_path / "a.part", "build 0")


def test_a_part_without_any_good_sample(tmp_path: Path):
    part = make_part(Small(2, bad=(0, 1)), 0, 2, (4, 5))
    write_part(part, tmp_path / "a.part", "build 0")
    assert read_part(tmp_path / "a.part", "build 0").samples == ()


def test_bad_samples(tmp_path: Path):
    out = tmp_path / "table.zarr"
    dataset = Small(40, bad=(3, 33))
    with pytest.raises(BadSampleError, match=r"'3\.png'.*cut off\. To leave.*--skip-bad"):
        build_table(dataset, out, mask_shape=(4, 4))
    table = build_table(dataset, out, mask_shape=(4, 4), skip_bad=True)
    kept = [k for k in range(40) if k not in (3, 33)]
    np.testing.assert_array_equal(table.mask("7"), plain_masks(dataset, (4, 4), kept)[2])
    provenance = read_provenance(out)
    assert [(s.index, s.name) for s in provenance.skipped] == [(3, "3.png"), (33, "33.png")]
    assert provenance.indices.tolist() == kept
    assert provenance.sample_names == tuple(f"{k}.png" for k in kept)


def test_nothing_but_bad_samples(tmp_path: Path):
    with pytest.raises(ValueError, match=r"No sample could be read.*0\.png"):
        build_table(Small(2, bad=(0, 1)), tmp_path / "table.zarr", skip_bad=True)


def test_what_is_there_is_kept(tmp_path: Path):
    out = tmp_path / "table.zarr"
    build_table(Small(), out, mask_shape=(2, 2))
    with pytest.raises(FileExistsError, match="overwrite"):
        build_table(Small(), out)
    assert ConceptTable.load(out).require_map("test").location_shape == (2, 2)
    build_table(Small(), out, mask_shape=(3, 3), overwrite=True)
    assert ConceptTable.load(out, verify=True).require_map("test").location_shape == (3, 3)
    assert os.listdir(tmp_path) == ["table.zarr"]


class Unsound(Small):
    """Says what no dataset may say."""

    def __getitem__(self, index: int) -> Sample:
        return replace(super().__getitem__(index), everywhere=(3,))


class Twins(Small):
    """Has samples of one name."""

    def __getitem__(self, index: int) -> Sample:
        return replace(super().__getitem__(index), name="twin")


def test_datasets_with_faults(tmp_path: Path):
    with pytest.raises(BadSampleError, match="everywhere` holds 3"):
        build_table(Unsound(), tmp_path / "a.zarr")
    with pytest.raises(ValueError, match="are called 'twin'"):
        build_table(Twins(), tmp_path / "b.zarr")
    with pytest.raises(ValueError, match="empty"):
        build_table(Small(0), tmp_path / "c.zarr")


def test_bad_arguments(tmp_path: Path):
    with pytest.raises(ValueError, match="at least one worker"):
        build_table(Small(), tmp_path / "a.zarr", workers=0)
    with pytest.raises(ValueError, match=r"\(4, 0\)"):
        build_table(Small(), tmp_path / "a.zarr", mask_shape=(4, 0))


def test_provenance(tmp_path: Path):
    out = tmp_path / "table.zarr"
    spec = DatasetSpec.parse("shapes:n=4,size=8", add=["position"])
    table = build_table(spec.open(), out, spec=spec, mask_shape=(9, 8))
    provenance = read_provenance(out)
    assert provenance.spec == spec
    assert provenance.fingerprint == spec.fingerprint
    assert provenance.mask_shape == (9, 8)
    assert "4 generated scenes" in provenance.description
    assert len(provenance.sample_names) == table.n_samples
    assert Provenance.from_json(provenance.to_json()) == provenance
    assert provenance.open()[3].name == provenance.sample_names[3]
    assert "position" in table.categories


def test_provenance_of_other_tables(tmp_path: Path):
    ConceptTable.from_masks(np.ones((1, 2, 3), bool)).save(tmp_path / "table.zarr")
    with pytest.raises(ValueError, match="does not say"):
        read_provenance(tmp_path / "table.zarr")
    with pytest.raises(FileNotFoundError, match="no concept table"):
        read_provenance(tmp_path / "none.zarr")
    sidecar = tmp_path / "table.zarr" / "dataset.json"
    sidecar.write_text("{}")
    with pytest.raises(TableFileError, match=r"dataset\.json is no part of it"):
        read_provenance(tmp_path / "table.zarr")
    for content in ("{", "[]", "{}", json.dumps({"format": "optexp_jax.Provenance"})):
        add_file(tmp_path / "table.zarr", "dataset.json", content.encode())
        with pytest.raises(ValueError, match=r"dataset\.json cannot be read"):
            read_provenance(tmp_path / "table.zarr")


def test_datasets_that_cannot_be_opened_again():
    plain = Provenance(None, None, "", ("a",), "", (1, 1), (), "0")
    with pytest.raises(ValueError, match="Pass the dataset itself"):
        plain.open()
    changed = replace(plain, spec=DatasetSpec.parse("shapes:n=3"), description="2 scenes")
    with pytest.raises(ValueError, match=r"3 generated scenes.* now, 2 scenes then"):
        changed.open()


def test_annotations_that_say_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
):
    """Binary masks of 0 and 255, of which the table names 1."""
    root = tmp_path / "binary"
    save(root / "images" / "a.png", picture(0, (8, 8)))
    save(root / "masks" / "a.png", np.full((8, 8), 255, np.uint8))
    args = ["data", "build", f"folder:{root}", "--out", str(tmp_path / "t.zarr"), "--overwrite"]
    write_table(root / "labels.csv", ["value", "name"], [[1, "car"]])
    assert cli.main(args) == 0
    assert "No concept holds anywhere in the 1 samples" in caplog.text
    assert "without a location: 1 of 1 concept: car\n" in capsys.readouterr().out
    write_table(root / "labels.csv", ["value", "name"], [[1, "car"], [255, "bus"]])
    assert cli.main(args) == 0
    assert "without a location: 1 of 2 concepts: car\n" in capsys.readouterr().out
