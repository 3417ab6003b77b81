"""What methods say of themselves, so that nothing has to know which one it has."""

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from helpers.run_cases import memory_layer
from helpers.search_cases import Bucket

import optexp_jax as ox
from optexp_jax.explanation import Explanation, SearchStats, Status
from optexp_jax.methods import FormulaSpace, Proof
from optexp_jax.runs import NullModel, explain_layer
from optexp_jax.runs.conformity import _status_faults
from optexp_jax.runs.verify import verify_run
from optexp_jax.search.stopping import Progress


class First(ox.AbstractMethod):
    """The first concept, whatever it is worth; says nothing about itself."""

    def run(self, table: ox.ConceptTable, neuron: ox.NeuronCounts) -> Explanation:
        formula = ox.Formula.concept(table.names[0])
        score = ox.iou(table, neuron, formula)
        return Explanation(formula, score.intersection, score.union, 1.0, Status.FEASIBLE)


class Told(First):
    """The same, and says what it is about and that it can go on."""

    proof: ClassVar[Proof] = Proof.NEVER

    @property
    def formula_space(self) -> FormulaSpace:
        return FormulaSpace(1, ox.DEFAULT_OPERATORS)

    def resume(self, table: ox.ConceptTable, neuron: ox.NeuronCounts, state: object) -> Explanation:
        assert state == "where it was"
        return self.run(table, neuron)


def test_a_method_of_the_user_can_be_resumed():
    case = Bucket(4, 3, 2).case(0)
    found = ox.explain(case.table, case.neuron, Told(), resume="where it was")
    assert found.formula == ox.Formula.concept(case.table.names[0])
    with pytest.raises(TypeError, match="First always runs to its end"):
        ox.explain(case.table, case.neuron, First(), resume="where it was")


def test_a_method_of_the_user_is_verified_by_what_it_says(tmp_path: Path):
    layer = memory_layer(2)
    run = explain_layer(tmp_path / "told", layer, Told())
    assert all(check.good for check in verify_run(run, layer))
    run = explain_layer(tmp_path / "untold", layer, First())
    with pytest.raises(ValueError, match="Define `formula_space` in its class"):
        list(verify_run(run, layer))


def test_formula_spaces():
    assert ox.NetDissect().formula_space == FormulaSpace(1, ox.DEFAULT_OPERATORS)
    for method in (ox.Beam(2), ox.Exhaustive(2), ox.Optimal(2)):
        assert method.formula_space == FormulaSpace(2, ox.DEFAULT_OPERATORS)
        assert not method.formula_space.lists
    several = ox.Optimal(2, operators=(ox.OR,), top_k=3)
    assert several.formula_space == FormulaSpace(2, (ox.OR,), 3)
    within = ox.Optimal(2, within=0.0, max_within=1)
    assert within.formula_space == FormulaSpace(2, ox.DEFAULT_OPERATORS, 1, 0.0)
    assert several.formula_space.lists
    assert within.formula_space.lists


def test_callbacks_are_added():
    case = Bucket(6, 3, 3).case(1)
    told: list[tuple[str, Progress]] = []

    def note(name: str) -> Any:
        return lambda progress: told.append((name, progress))

    method = ox.Optimal(3, bounds=ox.PaperBounds(), callback=note("own"))
    both = method.with_callback(note("added"))
    found = ox.explain(case.table, case.neuron, both)
    assert found.formula == ox.explain(case.table, case.neuron, replace(method)).formula
    names = [name for name, _ in told]
    half = names.count("added")
    assert half > 0
    assert names[: 2 * half] == ["own", "added"] * half
    alone = ox.Optimal(3).with_callback(note("alone"))
    assert alone.callback is not None
    for other in (ox.NetDissect(), ox.Beam(), ox.Exhaustive(), First()):
        assert other.with_callback(note("never")) is other


def test_what_stops_by_the_clock_is_not_repeatable(tmp_path: Path):
    for method in (ox.NetDissect(), ox.Beam(), ox.Exhaustive(), ox.Optimal(max_nodes=5)):
        assert method.repeatable
    assert not ox.Optimal(time_limit=60.0).repeatable
    assert not ox.Optimal(gap=0.1).repeatable
    layer = memory_layer(1)
    for again, method in ((2, ox.Beam(2)), (2, ox.Optimal(2)), (0, ox.Optimal(2, gap=0.1))):
        run = explain_layer(tmp_path / str(hash(method)), layer, method, null=NullModel(2))
        (check,) = verify_run(run, layer)
        assert (check.good, check.draws_again) == (True, again)


def found(status: Status, stopped_by: ox.StoppedBy | None = None) -> Explanation:
    upper_bound = 0.5 if status is Status.OPTIMAL else 1.0
    stats = SearchStats(stopped_by=stopped_by)
    return Explanation(ox.Formula.concept("a"), 1, 2, upper_bound, status, stats)


@pytest.mark.parametrize(
    ("method", "good"),
    [
        (ox.NetDissect(), {(Status.OPTIMAL, None)}),
        (ox.Exhaustive(), {(Status.OPTIMAL, None)}),
        (ox.Beam(), {(Status.FEASIBLE, None)}),
        (ox.Optimal(), {(Status.OPTIMAL, None), (Status.FEASIBLE, ox.StoppedBy.GAP)}),
        (
            First(),
            {(Status.OPTIMAL, None), (Status.FEASIBLE, None), (Status.FEASIBLE, ox.StoppedBy.GAP)},
        ),
    ],
    ids=["NetDissect", "Exhaustive", "Beam", "Optimal", "of the user"],
)
def test_a_status_has_to_be_one_that_the_method_gives(
    method: ox.AbstractMethod, good: set[tuple[Status, ox.StoppedBy | None]]
):
    for status in Status:
        for stopped_by in (None, ox.StoppedBy.GAP):
            faults = _status_faults(found(status, stopped_by), method)
            assert (not faults) == ((status, stopped_by) in good), (status, stopped_by, faults)
