"""Builds that several processes work on, that are killed, and that go on."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers.build_cases import (
    CHEAP,
    Dying,
    Small,
    cheap_fingerprint,
    interrupted,
    make_parts_only,
)
from helpers.support import as_users_run_it

from optexp_jax import TableBuilder
from optexp_jax.datasets import DatasetSpec, Sample
from optexp_jax.datasets.build import build_table
from optexp_jax.datasets.parts import PART_SAMPLES
from optexp_jax.datasets.provenance import read_provenance
from optexp_jax.datasets.shapes import Shapes

MANY = Shapes(2 * PART_SAMPLES + 5, size=12)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("build") / "table.zarr"
    with as_users_run_it():
        return build_table(MANY, out, mask_shape=(12, 12)).fingerprint


def test_workers_build_the_same(tmp_path: Path, undisturbed: str):
    told: list[tuple[int, int]] = []
    table = build_table(
        MANY,
        tmp_path / "table.zarr",
        mask_shape=(12, 12),
        workers=2,
        progress=lambda done, total: told.append((done, total)),
    )
    assert table.fingerprint == undisturbed
    assert table.n_samples == len(MANY)
    assert told[0] == (0, len(MANY))
    assert told[-1] == (len(MANY), len(MANY))
    assert told == sorted(told)
    assert os.listdir(tmp_path) == ["table.zarr"]


SCRIPT = """
import sys, time
from optexp_jax.datasets import DatasetSpec
from optexp_jax.datasets.build import build_table
from optexp_jax.datasets.shapes import Shapes

class Slow(Shapes):
    def __getitem__(self, index):
        time.sleep(0.02)
        return super().__getitem__(index)

if __name__ == "__main__":
    spec = DatasetSpec.parse(sys.argv[2])
    plain = spec.open()
    dataset = Slow(plain.n, plain.seed, plain.size)
    build_table(dataset, sys.argv[1], mask_shape=(12, 12), spec=spec, workers=int(sys.argv[3]))
"""


@pytest.mark.parametrize("workers", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_goes_on_after_kill_9(tmp_path: Path, undisturbed: str, workers: int):
    script, out = tmp_path / "script.py", tmp_path / "table.zarr"
    script.write_text(SCRIPT)
    spec = DatasetSpec.parse(f"shapes:n={len(MANY)},size=12")
    assert spec.open() == MANY
    build = subprocess.Popen([sys.executable, script, out, str(spec), str(workers)])
    try:
        parts = wait_for(lambda: sorted(tmp_path.glob("table.zarr.building/part-*.part")))
        children = children_of(build.pid)
    finally:
        build.send_signal(signal.SIGKILL)
        build.wait()
    assert not out.exists()
    assert workers == 1 or len(children) >= workers
    wait_for(lambda: not any(map(is_alive, children)))  # no orphan goes on working

    kept = parts[0].stat().st_mtime_ns
    made: list[int] = []

    @dataclass(frozen=True)
    class Counted(Shapes):
        def __getitem__(self, index: int) -> Sample:
            made.append(index)
            return super().__getitem__(index)

    def check_kept(done: int, total: int) -> None:
        assert parts[0].stat().st_mtime_ns == kept

    dataset = Counted(MANY.n, MANY.seed, MANY.size)
    with as_users_run_it():
        table = build_table(dataset, out, mask_shape=(12, 12), spec=spec, progress=check_kept)
        names = tuple(MANY[k].name for k in range(len(MANY)))
    assert table.fingerprint == undisturbed
    assert 0 < len(made) < len(MANY), "what was done is not done again"
    assert read_provenance(out).sample_names == names


def wait_for(found: Callable[[], object], seconds: float = 60) -> list:
    end = time.monotonic() + seconds
    while not (result := found()):
        assert time.monotonic() < end, "nothing happened in time"
        time.sleep(0.02)
    return result  # pyright: ignore[reportReturnType]


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_goes_on_when_only_the_table_was_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    out = tmp_path / "table.zarr"
    make_parts_only(CHEAP, out, monkeypatch)
    expected = cheap_fingerprint()
    monkeypatch.delattr(Small, "__getitem__")  # All parts are there.
    assert build_table(CHEAP, out, mask_shape=(4, 4)).fingerprint == expected


@pytest.mark.parametrize("origin", ["another part", "another build"])
def test_a_part_of_another_place_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: str
):
    """Whole in itself, so that only its place tells."""
    out, other = tmp_path / "table.zarr", tmp_path / "other.zarr"
    make_parts_only(CHEAP, out, monkeypatch)
    folder = tmp_path / "table.zarr.building"
    if origin == "another build":
        make_parts_only(Small(CHEAP.n + 1, seed=CHEAP.seed + 1), other, monkeypatch)
        part = tmp_path / "other.zarr.building" / "part-000000.part"
    else:
        part = folder / "part-000001.part"
    (folder / "part-000000.part").write_bytes(part.read_bytes())
    assert build_table(CHEAP, out, mask_shape=(4, 4)).fingerprint == cheap_fingerprint()


def test_settings_that_cannot_be_read_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    out = tmp_path / "table.zarr"
    make_parts_only(Small(), out, monkeypatch)
    (tmp_path / "table.zarr.building" / "settings.json").write_bytes(b"\x00\xff")
    with pytest.raises(ValueError, match=r"other settings: .*overwrite"):
        build_table(Small(), out, mask_shape=(4, 4))
    build_table(Small(), out, mask_shape=(4, 4), overwrite=True)


@pytest.mark.parametrize("damage", ["emptied", "cut off", "overwritten"])
def test_a_damaged_part_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str):
    out = tmp_path / "table.zarr"
    make_parts_only(CHEAP, out, monkeypatch)
    part = tmp_path / "table.zarr.building" / "part-000001.part"
    content = bytearray(part.read_bytes())
    if damage == "overwritten":  # in its last array, which is not read until the parts are merged
        middle = content.index(b"members.npy") + 60
        content[middle : middle + 8] = bytes(8)
    part.write_bytes(content[: {"emptied": 0, "cut off": 300}.get(damage)])
    expected = cheap_fingerprint()
    read: list[int] = []
    reads = Small.__getitem__

    def counted(dataset: Small, index: int) -> Sample:
        read.append(index)
        return reads(dataset, index)

    monkeypatch.setattr(Small, "__getitem__", counted)
    assert build_table(CHEAP, out, mask_shape=(4, 4)).fingerprint == expected
    assert read == list(range(PART_SAMPLES, 2 * PART_SAMPLES))


@pytest.mark.parametrize(
    ("dataset", "shape", "named"),
    [
        (Small(), (4, 5), "mask_shape 4x4 there, 4x5 now"),
        (Small(6), (4, 4), "n_samples 5 there, 6 now"),
        (Shapes(5), (4, 4), "dataset Small there, Shapes now; n_concepts 3 there, 95 now"),
    ],
)
def test_another_build_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dataset: Small | Shapes,
    shape: tuple[int, int],
    named: str,
):
    out = tmp_path / "table.zarr"
    make_parts_only(Small(), out, monkeypatch)
    with pytest.raises(ValueError, match=named):
        build_table(dataset, out, mask_shape=shape)
    table = build_table(dataset, out, mask_shape=shape, overwrite=True)
    assert table.require_map("test").location_shape == shape


def test_another_spec_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    out = tmp_path / "table.zarr"
    spec = DatasetSpec.parse("shapes:n=3,size=8")
    with monkeypatch.context() as patched:
        patched.setattr(TableBuilder, "build", interrupted)
        with pytest.raises(KeyboardInterrupt):
            build_table(spec.open(), out, spec=spec, mask_shape=(4, 4))
    other = DatasetSpec.parse("shapes:n=3,size=8,seed=1")
    with pytest.raises(ValueError, match=r"dataset shapes:n=3,size=8 there, shapes:.*seed=1.* now"):
        build_table(other.open(), out, spec=other, mask_shape=(4, 4))


def test_a_repaired_sample_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    out = tmp_path / "table.zarr"
    make_parts_only(Small(bad=(1,)), out, monkeypatch, skip_bad=True)
    assert build_table(Small(), out, mask_shape=(4, 4), skip_bad=True).n_samples == 5


def test_one_build_at_a_time(tmp_path: Path):
    folder = tmp_path / "table.zarr.building"
    folder.mkdir()
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(BlockingIOError, match="Another process"):
            build_table(Small(), tmp_path / "table.zarr")


def test_a_dataset_that_cannot_be_sent(tmp_path: Path):
    class Local(Small):
        pass

    with pytest.raises(TypeError, match=r"Local cannot be sent.*spec=.*workers=1"):
        build_table(Local(100), tmp_path / "a.zarr", workers=2)


@pytest.mark.slow
def test_workers_that_die_or_fail(tmp_path: Path):
    with pytest.raises(ChildProcessError, match="__main__"):
        build_table(Dying(100), tmp_path / "a.zarr", workers=2)
    with pytest.raises(RuntimeError, match="a fault of the dataset"):
        build_table(Dying(100, error=True), tmp_path / "b.zarr", workers=2)
