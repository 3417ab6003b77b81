"""The driver on search spaces made up for it, and the incumbent."""

import time
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import equinox as eqx
import numpy as np
import pytest
from helpers.support import examples
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import Bool, Int64

import optexp_jax as ox
from optexp_jax.counts.scores import Score
from optexp_jax.explanation import Speculative
from optexp_jax.formulas.batch import FormulaBatch
from optexp_jax.internal.tracing import note_trace
from optexp_jax.search import (
    AbstractSpace,
    Candidate,
    Expansion,
    Incumbent,
    Progress,
    StoppingCriteria,
)
from optexp_jax.search.driver import InadmissibleBoundError, best_first
from optexp_jax.search.frontier import Queued
from optexp_jax.search.problem import Problem

NEURON = 100


class Ids(eqx.Module):
    """Nodes that are numbered."""

    id: Int64[np.ndarray, " nodes"]


@dataclass(frozen=True)
class Node:
    """A node of a made-up space: its bound, its children, the formula found when it is expanded."""

    upper: float
    children: tuple[int, ...] = ()
    found: Candidate | None = None
    lower: float = 0.0
    shortest: int = 1


class Tree(AbstractSpace[Ids]):
    """A space that is written down; node 0 is the root and is never queued."""

    def __init__(self, nodes: list[Node], batch_size: int = 1, seconds: float = 0.0):
        super().__init__(batch_size)
        self.nodes = nodes
        self.seconds = seconds
        self.expanded: list[int] = []

    def root(self, incumbent: Incumbent) -> Expansion[Ids]:
        return self._turn([0])

    def expand(self, batch: Queued[Ids], incumbent: Incumbent) -> Expansion[Ids]:
        time.sleep(self.seconds)
        self.expanded += batch.nodes.id.tolist()
        return self._turn(batch.nodes.id.tolist())

    def shortest(self, nodes: Ids) -> Int64[np.ndarray, " nodes"]:
        return np.array([self.nodes[k].shortest for k in nodes.id.tolist()], np.int64)

    def stands_for(self, nodes: Ids, formulas: FormulaBatch) -> Bool[np.ndarray, "n f"]:
        raise AssertionError("the driver does not ask this")

    def _turn(self, ids: list[int]) -> Expansion[Ids]:
        children = [child for k in ids for child in self.nodes[k].children]
        upper = np.array([self.nodes[k].upper for k in children], float)
        queued = Queued(Ids(np.array(children, np.int64)), upper, np.zeros(len(upper), np.int64))
        found = [self.nodes[k].found for k in ids]
        return Expansion(
            queued if children else None,
            [candidate for candidate in found if candidate is not None],
            max(self.nodes[k].lower for k in ids),
        )


def candidate(intersection: int, name: str = "a", length: int = 1, union: int = NEURON):
    names = (name, *(f"{name}{k}" for k in range(1, length)))
    return Candidate(ox.Formula(names, (ox.OR,) * (length - 1)), Score(intersection, union))


def search(nodes: list[Node], batch_size: int = 1, **limits) -> ox.Explanation:
    return best_first(Tree(nodes, batch_size), NEURON, StoppingCriteria(**limits))


@dataclass(frozen=True)
class Sketch:
    """A node of a random tree: where it hangs, what is found there, how loose its bound is."""

    parent: int
    score: int
    slack: int
    tells_lower: bool


@st.composite
def sketches(draw: st.DrawFn) -> list[Sketch]:
    return [
        Sketch(
            draw(st.integers(0, max(k - 1, 0))),
            draw(st.integers(0, 100)),
            draw(st.sampled_from([0, 0, 1, 20])),
            draw(st.booleans()),
        )
        for k in range(draw(st.integers(1, 25)))
    ]


def grow(sketched: list[Sketch]) -> list[Node]:
    """A tree whose bounds hold: a node's is at least what is found in or below it."""
    best = [sketch.score for sketch in sketched]
    children: list[list[int]] = [[] for _ in sketched]
    for k in range(len(sketched) - 1, 0, -1):
        parent = sketched[k].parent
        best[parent] = max(best[parent], best[k])
        children[parent].append(k)
    return [
        Node(
            min(1.0, (best[k] + sketch.slack) / NEURON * (1 + 2**-44)),
            tuple(children[k]),
            candidate(sketch.score, f"n{k:02d}"),
            lower=best[0] / NEURON * (1 - 2**-44) if sketch.tells_lower else 0.0,
        )
        for k, sketch in enumerate(sketched)
    ]


@examples(60)
@given(sketches(), st.sampled_from([1, 2, 8]), st.booleans())
def test_finds_the_best_of_any_tree(sketched: list[Sketch], batch_size: int, reduction: bool):
    nodes = grow(sketched)
    found = [node.found for node in nodes if node.found is not None]
    best = max(c.score.intersection for c in found)
    first = min((c.formula for c in found if c.score.intersection == best), default=None)
    seen: list[Progress] = []
    result = search(nodes, batch_size, frontier_reduction=reduction, callback=seen.append)
    assert result.status == "optimal"
    assert result.intersection == best
    assert result.formula == (first if best else None)
    assert result.upper_bound == result.iou
    assert result.gap == 0
    assert type(result.upper_bound) is float
    assert all(progress.upper_bound >= best / NEURON for progress in seen)
    proved = [progress.upper_bound for progress in seen]
    assert proved == sorted(proved, reverse=True)


def test_best_first_one_at_a_time():
    nodes = [
        Node(1.0, (1, 2, 3)),
        Node(0.5, (4,)),
        Node(0.9, (5,)),
        Node(0.2),
        Node(0.4, found=candidate(40)),
        Node(0.6, found=candidate(30)),
    ]
    space = Tree(nodes)
    result = best_first(space, NEURON, StoppingCriteria())
    # 3 is never looked at: 0.2 is below what was found.
    assert space.expanded == [2, 5, 1, 4]
    assert (result.intersection, result.union) == (40, NEURON)
    assert result.stats.speculative == Speculative()


class CompilingBounds(ox.AbstractBounds):
    """Bounds that compile a program when a search begins, before its first turn."""

    def open(
        self, problem: Problem, batch_size: int | None = None, *, prepared: object = None
    ) -> AbstractSpace[Any]:
        note_trace("opening")
        return ox.TightBounds().open(problem, batch_size)


def test_programs_of_the_opening_are_counted():
    table = ox.ConceptTable.from_signatures([[0], [1]], [5, 5], ["a", "b"])
    neuron = ox.NeuronCounts.from_signatures(table, [4, 1])
    ox.explain(table, neuron, ox.Optimal(2))  # the others are compiled
    assert ox.explain(table, neuron, ox.Optimal(2)).stats.compilations == 0
    found = ox.explain(table, neuron, ox.Optimal(2, bounds=CompilingBounds()))
    assert found.stats.compilations == 1


def test_a_batch_may_take_nodes_in_vain():
    nodes = [Node(1.0, (1, 2)), Node(0.9, found=candidate(80)), Node(0.5)]
    one = search(nodes)
    both = search(nodes, batch_size=2)
    assert (one.stats.speculative, both.stats.speculative) == (
        Speculative(),
        Speculative(expanded=1),
    )
    assert one.formula == both.formula


def test_lower_bounds_drop_nodes_before_anything_is_found():
    nodes = [
        Node(1.0, (1, 2, 3), lower=0.5),
        Node(0.9, found=candidate(50)),
        Node(0.5, found=candidate(50, "b")),  # level with the bound: kept
        Node(0.4, found=candidate(40)),
    ]
    space = Tree(nodes)
    assert best_first(space, NEURON, StoppingCriteria()).intersection == 50
    assert space.expanded == [1, 2]


@pytest.mark.parametrize(("reduction", "waiting"), [(True, [3, 1]), (False, [3, 2, 1])])
def test_a_space_may_raise_min_iou_by_itself(reduction: bool, waiting: list[int]):
    class Raising(Tree):
        def expand(self, batch: Queued[Ids], incumbent: Incumbent) -> Expansion[Ids]:
            incumbent.raise_min_iou(0.5)
            return super().expand(batch, incumbent)

    nodes = [Node(1.0, (1, 2, 3)), Node(0.9), Node(0.6, found=candidate(55)), Node(0.4)]
    told: list[Progress] = []
    best_first(
        Raising(nodes), NEURON, StoppingCriteria(frontier_reduction=reduction, callback=told.append)
    )
    assert [progress.nodes for progress in told] == waiting


def test_an_empty_space():
    result = search([Node(1.0)])
    assert result.formula is None
    assert (result.intersection, result.union) == (0, NEURON)
    assert result.status == "optimal"
    assert result.upper_bound == 0


def test_nodes_that_cannot_overlap_are_not_looked_at():
    space = Tree([Node(1.0, (1,)), Node(0.0, found=candidate(0))])
    assert best_first(space, NEURON, StoppingCriteria()).formula is None
    assert space.expanded == []


def test_nothing_longer_can_beat_a_perfect_formula():
    nodes = [
        Node(1.0, (1, 2, 3)),
        Node(1.0 + 2**-44, found=candidate(100, "m")),
        Node(1.0 + 2**-44, found=candidate(100, "b"), shortest=1),
        Node(1.0 + 2**-44, found=candidate(100, "a", length=2), shortest=2),
    ]
    space = Tree(nodes)
    assert best_first(space, NEURON, StoppingCriteria()).formula == ox.Formula.concept("b")
    assert 3 not in space.expanded


# Stopping early.

DEEP = [
    Node(1.0, (1, 2), candidate(10)),
    Node(0.8, (3,), candidate(40)),
    Node(0.7, found=candidate(45)),
    Node(0.6, (4,), candidate(50)),
    Node(0.58, found=candidate(55)),
]


def test_gap_stops_early():
    result = search(DEEP, gap=0.8)
    assert result.status == "feasible"
    assert (result.intersection, result.upper_bound) == (40, 0.7)
    assert type(result.upper_bound) is float
    assert result.gap == pytest.approx(0.75)
    assert search(DEEP, gap=0.01).status == "optimal"


def test_time_limit_stops_early():
    started = time.perf_counter()
    result = best_first(Tree(DEEP, seconds=0.2), NEURON, StoppingCriteria(time_limit=0.1))
    assert time.perf_counter() - started < 5
    assert result.status == "feasible"
    assert (result.intersection, result.upper_bound) == (40, 0.7)
    assert type(result.upper_bound) is float
    assert result.gap == pytest.approx(0.75)
    assert result.stats.seconds.total >= 0.1


def test_what_a_callback_is_told():
    told: list[Progress] = []
    search(DEEP, callback=told.append)
    assert [p.upper_bound for p in told] == [0.8, 0.7, 0.6, 0.58]
    assert [p.nodes for p in told] == [2, 2, 1, 1]
    found = [p.incumbent.score.intersection for p in told if p.incumbent is not None]
    assert found == [10, 40, 45, 50]
    assert told[1].gap == pytest.approx(0.75)
    assert Progress(None, 0.5, 1, 0.0).gap == np.inf


def test_a_callback_may_stop_the_search_by_an_error():
    def stop(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(DEEP, callback=stop)


# Bounds that do not hold.


def test_a_formula_above_every_bound_is_an_error():
    nodes = [Node(1.0, (1, 2), candidate(10)), Node(0.5, (3,)), Node(0.3), Node(0.9, (4,))]
    nodes.append(Node(0.9, found=candidate(70)))
    with pytest.raises(InadmissibleBoundError, match=r"a has IoU 0\.7, above 0\.5"):
        search(nodes)


def test_the_error_is_public():
    assert ox.InadmissibleBoundError is InadmissibleBoundError


# The incumbent.


def test_scores_are_compared_in_integers():
    # These ratios are equal in float64.
    low, high = Score(2**52 - 1, 2**52), Score(2**53 - 1, 2**53)
    assert low.iou <= high.iou
    assert low.ratio < high.ratio
    a, z = (ox.Formula.concept(name) for name in "az")
    for order in ((a, low), (z, high)), ((z, high), (a, low)):
        incumbent = Incumbent()
        for formula, score in order:
            incumbent.offer(Candidate(formula, score))
        assert incumbent.best is not None
        assert incumbent.best.formula == z


@pytest.mark.parametrize(
    ("first", "second"),
    [("b", "a"), ("a OR c", "b"), ("a OR c", "a OR b"), ("a AND c", "a OR c"), ("z", "a AND b")],
)
def test_ties_go_to_the_shorter_then_the_smaller(first: str, second: str):
    one, two = (Candidate(ox.Formula.parse(text), Score(1, 3)) for text in (first, second))
    better, worse = (two, one) if two.formula < one.formula else (one, two)
    for order in ((better, worse), (worse, better)):
        incumbent = Incumbent()
        for offered in order:
            incumbent.offer(offered)
        assert incumbent.best is better


def test_formulas_that_overlap_nothing_are_no_incumbent():
    incumbent = Incumbent()
    incumbent.offer(candidate(0))
    assert incumbent.best is None
    assert incumbent.iou == 0
    assert not incumbent.may_improve(np.zeros(2), np.ones(2, np.int64)).any()


@examples(60)
@given(st.integers(1, 2**40), st.integers(0, 2**40))
def test_min_iou_is_a_lower_bound(intersection: int, rest: int):
    incumbent = Incumbent()
    incumbent.offer(candidate(intersection, union=intersection + rest))
    assert Fraction(incumbent.min_iou) <= Fraction(intersection, intersection + rest)
    # A bound that is level with the incumbent is kept for ties, at any length if it is not perfect.
    level = np.array([intersection / (intersection + rest)])
    assert incumbent.may_improve(level, np.array([1])).all()
    if rest:
        assert incumbent.may_improve(level, np.array([5])).all()
    assert not incumbent.may_improve(level * (1 - 2**-40), np.array([1])).any()


def test_min_iou_never_falls():
    incumbent = Incumbent()
    incumbent.raise_min_iou(0.5)
    incumbent.offer(candidate(30))
    assert incumbent.min_iou == 0.5
    incumbent.raise_min_iou(0.2)
    assert incumbent.min_iou == 0.5
    incumbent.offer(candidate(60))
    assert incumbent.min_iou == np.nextafter(0.6, 0)
