"""Damage to every kind of store is noticed, before it is opened and while it is open."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from helpers.build_cases import CHEAP, Small
from helpers.chaos import Count
from helpers.corruption import BEFORE_OPENING, WHILE_OPEN, count_detected, mend
from helpers.support import thorough

from optexp_jax.activations import ActivationStore, progress
from optexp_jax.concepts import ConceptTable, patches
from optexp_jax.datasets.build import build_table
from optexp_jax.datasets.provenance import read_provenance
from optexp_jax.runs import BitmapUnits
from optexp_jax.runs.shared import SharedArrays, share_bitmaps, share_table
from optexp_jax.stores.store import DataFileError

ROUNDS = 40 if thorough() else 3


@dataclass(frozen=True)
class Kind:
    """A kind of store: how one is made, from a seed, and how all of it is read."""

    make: Callable[[Path, int], Path]
    read: Callable[[Path], Callable[[], object]]
    late: str = ""
    """The array that is read long after the store was opened."""


def masks_of(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((3, 10, 4, 5)) < 0.4


def make_table(folder: Path, seed: int) -> Path:
    ConceptTable.from_masks(masks_of(seed), ["a", "b", "c"], ["x", None, "y"]).save(folder / "t")
    return folder / "t"


def build(folder: Path, seed: int) -> Path:
    build_table(Small(CHEAP.n, seed), folder / "t", mask_shape=(4, 4))
    return folder / "t"


def read_table(path: Path) -> Callable[[], object]:
    table = ConceptTable.load(path)
    return lambda: table.signature_map(0, table.n_samples)


def read_built(path: Path) -> Callable[[], object]:
    read_provenance(path)
    return read_table(path)


def make_activations(folder: Path, seed: int) -> Path:
    values = np.random.default_rng(seed).normal(size=(11, 6, 2, 3))
    ActivationStore.from_array(folder / "a", values.astype(np.float32))
    return folder / "a"


def read_activations(path: Path) -> Callable[[], object]:
    store = ActivationStore.open(path)
    return lambda: store.units(0, store.shape[1])


def make_shared_table(folder: Path, seed: int) -> Path:
    return share_table(ConceptTable.from_masks(masks_of(seed)), folder)


def make_shared_bitmaps(folder: Path, seed: int) -> Path:
    table = ConceptTable.from_masks(masks_of(0))
    return Path(share_bitmaps(BitmapUnits(table, masks_of(seed + 1)), folder).folder)


def read_shared(path: Path) -> Callable[[], object]:
    return lambda: SharedArrays.open(path)


pytestmark = pytest.mark.chaos("damage to stores detected")

KINDS = {
    "table": Kind(make_table, read_table, "ranks/"),
    "built table": Kind(build, read_built, "ranks/"),
    "activations": Kind(make_activations, read_activations, "activations/"),
}
SHARED = {
    "shared table": Kind(make_shared_table, read_shared),
    "shared bitmaps": Kind(make_shared_bitmaps, read_shared),
}


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(patches, "CHUNK_BYTES", 60)
    monkeypatch.setattr(progress, "MOST_SAMPLES_PER_ROW", 4)
    monkeypatch.setattr(progress, "CHUNK_BYTES", 4 * 2 * 3 * 4 * 4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("damage", BEFORE_OPENING)
def test_damage_is_noticed(tmp_path: Path, tally: Count, kind: str, damage: str):
    tally(*check(KINDS[kind], tmp_path, damage, while_open=False))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("damage", WHILE_OPEN)
def test_damage_is_noticed_while_a_store_is_open(
    tmp_path: Path, tally: Count, kind: str, damage: str
):
    tally(*check(KINDS[kind], tmp_path, damage, while_open=True))


@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        (kind, damage)
        for kind in SHARED
        for damage in BEFORE_OPENING
        if (kind, damage) != ("shared bitmaps", "swap_data")  # it is one array
    ],
)
def test_damage_to_shared_arrays_is_noticed_when_they_are_mapped(
    tmp_path: Path, tally: Count, kind: str, damage: str
):
    tally(*check(SHARED[kind], tmp_path, damage, while_open=False))


def check(kind: Kind, folder: Path, damage: str, *, while_open: bool) -> tuple[int, int]:
    whole, other = kind.make(folder / "whole", 0), kind.make(folder / "other", 1)
    tally = count_detected(
        whole,
        other,
        folder / "damaged" / whole.name,
        kind.read,
        DataFileError,
        damages=[damage],
        array=kind.late if while_open else "",
        while_open=while_open,
        rounds=ROUNDS,
    )
    assert tally.detected == tally.total == ROUNDS, str(tally)
    return tally.detected, tally.total


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_is_put_back_is_read(tmp_path: Path, kind: str):
    made = KINDS[kind].make(tmp_path / "whole", 0)
    mend(tmp_path / "copy", made)
    reader = KINDS[kind].read(made)
    before = np.asarray(reader())
    mend(made, tmp_path / "copy")
    np.testing.assert_array_equal(np.asarray(reader()), before)
