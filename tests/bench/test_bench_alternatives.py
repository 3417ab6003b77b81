"""Methods held against each other: with made-up ones, and once with all that there are."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import optexp_jax as ox
from optexp_jax.bench import memory
from optexp_jax.bench.contenders import (
    ENUMERATION,
    LOWER_LIMIT,
    OURS,
    PAPER,
    TIGHT,
    BenchQuestion,
    Contender,
    Finding,
    Patience,
    contenders,
    pair_table,
)
from optexp_jax.bench.data import BenchData, BenchUnit, DataSize, hard_data, planted_data, real_data
from optexp_jax.bench.memory import MemoryProbe
from optexp_jax.bench.outcome import Outcome, Role
from optexp_jax.bench.plan import BenchPlan
from optexp_jax.bench.suites import alternatives
from optexp_jax.bench.suites.alternatives import hold_against, method_row, time_units
from optexp_jax.bench.turns import OverBudgetError, StillCompilingError
from optexp_jax.counts.scores import Score
from optexp_jax.stand_ins import BrodenGroups, disjoint_scenes

PLAN = BenchPlan(turns=2, budget=30.0)


def finds(intersection: int, union: int, *, proved: bool = True) -> Callable[[int], Finding]:
    return lambda _: lambda: Outcome(Score(intersection, union), proved)


def made_up(name: str, found: Callable[[int], Finding], role: Role = Role.EXACT) -> Contender:
    return Contender(name, role, lambda unit: lambda: found(unit))


def nothing(_: str) -> None:
    pass


def test_exact_methods_that_agree():
    every = [made_up(TIGHT, finds(1, 2)), made_up(PAPER, finds(2, 4))]
    units, faults = time_units("here", every, 3, PLAN, nothing)
    assert faults == []
    row = method_row(every[1], units, PLAN)
    assert (row.best, row.proved, row.units, row.mean_iou) == (3, 3, 3, 0.5)
    assert row.to_reference is not None
    assert len(row.cells()) == len(alternatives.COLUMNS)


def test_exact_methods_that_disagree_are_a_fault_on_each_unit():
    every = [made_up(TIGHT, finds(1, 2)), made_up(PAPER, finds(1, 3))]
    _, faults = time_units("here", every, 2, PLAN, nothing)
    assert len(faults) == 2
    assert "here, unit 1 of 2" in faults[0]
    assert "1/3" in faults[0]


def test_a_heuristic_below_the_optimum_is_only_told():
    beam = made_up("beam", finds(1, 3, proved=False), Role.HEURISTIC)
    every = [made_up(TIGHT, finds(1, 2)), beam]
    units, faults = time_units("here", every, 2, PLAN, nothing)
    assert faults == []
    assert method_row(beam, units, PLAN).best == 0


def test_what_exceeds_its_budget_is_told_and_not_tried_again():
    tried: list[int] = []

    def endless(unit: int) -> Finding:
        tried.append(unit)
        raise OverBudgetError("stopped after 30 s")

    every = [made_up(TIGHT, finds(1, 2)), made_up("endless", endless)]
    units, faults = time_units("here", every, 3, PLAN, nothing)
    assert tried == [0]
    assert faults == []
    row = method_row(every[1], units, PLAN)
    assert row.seconds is None
    assert row.at_least is not None
    assert "> budget" in row.cells()
    assert "stopped after 30 s" in row.cells()
    assert method_row(every[0], units, PLAN).units == 3


def test_nothing_is_said_of_the_time_of_what_was_never_begun():
    def refused(_: int) -> Finding:
        raise OverBudgetError("not run: its masks would be 300 GB")

    every = [made_up(TIGHT, finds(1, 2)), made_up("peer", refused)]
    units, _ = time_units("here", every, 1, PLAN, nothing)
    row = method_row(every[1], units, PLAN)
    assert row.at_least is None
    assert "not run: its masks would be 300 GB" in row.cells()


def tiny() -> BenchData:
    table = disjoint_scenes(5, 12, size=8)
    return planted_data("tiny", "a test", table, 2)


def test_all_methods_of_ours_agree_on_a_tiny_dataset():
    data = tiny()
    rows, faults = hold_against(data, BenchQuestion(budget=60.0), PLAN, nothing, weigh=False)
    assert faults == []
    named = {row.method: row for row in rows}
    assert {LOWER_LIMIT, ENUMERATION, *OURS} <= set(named)
    for name in (TIGHT, PAPER, ENUMERATION):
        assert (named[name].best, named[name].proved) == (2, 2)
    assert named[LOWER_LIMIT].mean_iou is None
    table = alternatives._table(data, rows, PLAN)
    assert table.columns[1] == "time / TightBounds"
    assert table.markdown().count("\n") == len(rows) + 1
    watched = [figure for figure in alternatives._figures(data, rows) if figure.watched]
    assert len(watched) == len(OURS)


def test_without_the_authors_package_its_methods_do_not_take_part():
    names = [each.name for each in contenders(tiny(), BenchQuestion(), None)]
    assert not [name for name in names if "authors" in name]


def test_a_search_that_is_stopped_is_over_budget():
    data = tiny()
    question = BenchQuestion(budget=1e-9)
    (paper,) = [each for each in contenders(data, question, None) if each.name == PAPER]
    with pytest.raises(OverBudgetError, match="stopped after"):
        paper.on(0)()


def test_the_suite_reports_what_is_wrong(monkeypatch: pytest.MonkeyPatch):
    def wrong(*_: object) -> Sequence[Contender]:
        return [
            made_up(LOWER_LIMIT, lambda _: lambda: Outcome(None), Role.LIMIT),
            made_up(TIGHT, finds(1, 2)),
            made_up(PAPER, finds(1, 3)),
        ]

    monkeypatch.setattr(alternatives, "contenders", wrong)
    monkeypatch.setattr(alternatives, "_datasets", lambda *_: iter([tiny()]))
    monkeypatch.setattr(alternatives, "_with_memory", lambda _data, _question, rows, _tell: rows)
    report = alternatives.run(replace(PLAN, quick=True), nothing)
    assert len(report.faults) == 2


def test_the_pair_table_counts_what_concepts_share(fresh_seed: int):
    rng = np.random.default_rng(fresh_seed)
    masks = rng.random((4, 3, 20)) < 0.4
    bitmap = rng.random((3, 20)) < 0.5
    table = ox.ConceptTable.from_masks(masks)
    expected = [[int((a & b & bitmap).sum()) for b in masks] for a in masks]
    np.testing.assert_array_equal(pair_table(table, table.count(bitmap)), expected)


def test_bitmaps_of_hard_units_have_their_counts():
    size = DataSize(units=2, hard_samples=6, groups=BrodenGroups().scaled(0.01), size=8)
    for data in hard_data(size):
        for unit in data.units:
            assert unit.bitmap is not None
            again = data.table.count(unit.bitmap)
            np.testing.assert_array_equal(again.inside, unit.counts.inside)
            np.testing.assert_array_equal(again.active_patches, unit.counts.active_patches)


def test_memory_is_measured_in_a_process_of_its_own():
    with MemoryProbe(tiny(), BenchQuestion(budget=60.0)) as probe:
        peak = probe.peak(ENUMERATION)
    assert peak is not None
    assert 0 <= peak < 2**30


def test_a_method_that_does_not_end_has_no_memory_to_tell(monkeypatch: pytest.MonkeyPatch):
    data = tiny()

    def endless(*_: object) -> Sequence[Contender]:
        def stop(_: int) -> Finding:
            raise OverBudgetError("stopped")

        return [made_up("endless", stop)]

    monkeypatch.setattr(memory, "contenders", endless)
    with MemoryProbe(data, BenchQuestion()) as probe:
        task = memory.MemoryTask(str(probe._table), str(probe._unit), "endless", 3, 5, 1.0)
        assert memory.measure(task) is None


def test_units_without_a_bitmap_begin_with_their_counts():
    data = tiny()
    bare = BenchUnit(data.units[0].counts)
    assert bare.neuron is data.units[0].counts
    assert data.units[0].neuron is data.units[0].bitmap


def test_a_search_that_comes_further_is_begun_again():
    patience = Patience()

    def stopped(expanded: int, compilations: int = 0) -> OverBudgetError:
        stats = ox.SearchStats(expanded=expanded, compilations=compilations)
        return patience.stopped(ox.Explanation(None, 0, 1, 1.0, ox.Status.FEASIBLE, stats))

    assert isinstance(stopped(100), StillCompilingError)
    assert isinstance(stopped(200), StillCompilingError)
    assert not isinstance(stopped(205), StillCompilingError)
    assert isinstance(stopped(205, compilations=1), StillCompilingError)


def test_real_annotations_are_there_as_long_as_they_are_measured(tmp_path: Path):
    for data in real_data("shapes:n=4", 1):
        assert data.units[0].bitmap is not None
        assert data.table.mask(data.table.names[0]).shape == data.units[0].bitmap.shape
    table = disjoint_scenes(3, 4, size=8)
    table.save(tmp_path / "stored.zarr")
    (stored,) = real_data(str(tmp_path / "stored.zarr"), 1)
    assert stored.table.fingerprint == table.fingerprint
