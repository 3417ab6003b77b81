"""Beam searches: the same result as a plain one with every guide, and honest counters."""

from fractions import Fraction

import numpy as np
import pytest
from helpers.beam_reference import Level, Recorder, make_case, reference_beam, score
from helpers.strategies import ALL_OPERATORS, BUT, XOR, Case
from helpers.support import examples
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import Float64

import optexp_jax as ox
from optexp_jax.counts import overlaps
from optexp_jax.explanation import Speculative
from optexp_jax.formulas.batch import PADDING, FormulaBatch
from optexp_jax.formulas.formula import Formula
from optexp_jax.internal.tracing import count_traces
from optexp_jax.methods.beam import beam as beam_module
from optexp_jax.methods.beam import children as beam_children
from optexp_jax.methods.beam.candidates import Candidates, degenerate, new_candidates
from optexp_jax.methods.beam.guides.base import AbstractEstimator, AbstractGuide, Members
from optexp_jax.methods.beam.queue import Member, Words
from optexp_jax.search.problem import Problem

GUIDES: dict[str, AbstractGuide | None] = {
    "vanilla": None,
    "quantity": ox.QuantityGuide(),
    "low memory": ox.QuantityGuide(exact_updates=False),
    "mmesh": ox.MMESHGuide(),
}
each_guide = pytest.mark.parametrize("guide", GUIDES.values(), ids=GUIDES.keys())
seeds = st.integers(0, 2**32 - 1)


def check(case: Case, length: int, size: int, operators=ox.DEFAULT_OPERATORS) -> None:
    """All guides give the reference's formula, score and counters."""
    expected = reference_beam(case, length, size, operators)
    visited: dict[str, int] = {}
    for name, guide in GUIDES.items():
        method = ox.Beam(length, size=size, guide=guide, operators=operators)
        found = ox.explain(case.table, case.neuron, method)
        assert found.formula == expected.best, name
        assert found.score.ratio == expected.iou, name
        if expected.best is None:
            assert (found.status, found.upper_bound, found.union) == (
                "optimal",
                0,
                case.neuron.size,
            )
        else:
            assert (found.status, found.upper_bound) == ("feasible", 1)
        assert found.stats.expanded == sum(len(level.extended) for level in expected.levels)
        assert found.stats.estimated == sum(len(level.candidates) for level in expected.levels)
        visited[name] = found.stats.visited
    assert visited["vanilla"] == sum(len(level.candidates) for level in expected.levels)
    assert max(visited.values()) == visited["vanilla"]


@pytest.mark.parametrize("length", [1, 2, 3, 4])
@given(seed=seeds)
@examples(12)
def test_all_guides_find_what_a_plain_beam_finds(length: int, seed: int):
    check(make_case(seed), length, size=2)


@pytest.mark.parametrize("size", [20, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 5))])
@given(seed=seeds)
@examples(6)
def test_beams_of_any_size(size: int, seed: int):
    check(make_case(seed), 3, size)


@pytest.mark.parametrize(
    "operators",
    [
        ALL_OPERATORS,
        *(pytest.param(ops, marks=pytest.mark.slow) for ops in ((XOR,), (BUT, ox.AND))),
    ],
    ids=lambda operators: " ".join(op.name for op in operators),
)
@given(seed=seeds)
@examples(5)
def test_operators_of_the_user(operators: tuple[ox.Operator, ...], seed: int):
    check(make_case(seed), 3, 2, operators)


UNION = ox.Operator("UNION", p=True, q=True, r=True)  # OR by another name


@given(
    seed=seeds,
    length=st.integers(1, 4),
    operators=st.sets(st.sampled_from((*ALL_OPERATORS, UNION)), min_size=1).map(tuple),
)
@examples(60)
def test_every_new_candidate_is_there_once(
    seed: int, length: int, operators: tuple[ox.Operator, ...]
):
    rng = np.random.default_rng(seed)
    names = ("a", "b", "c", "d", "e")
    words = Words(names, operators)
    members: list[Member] = []
    for _ in range(6):
        concepts = tuple(rng.permutation(5)[:length].tolist())
        steps = tuple(rng.integers(0, len(operators), length - 1).tolist())
        member = Member(words, concepts, steps, ox.Score(1, 2))
        if all(member.candidate.formula != other.candidate.formula for other in members):
            members.append(member)
    apart = rng.random((len(members), len(names))) < 0.3
    made = new_candidates(members, degenerate(apart, operators), operators)
    found = [
        members[m].candidate.formula.then(operators[o], names[c])
        for m, o, c in np.argwhere(made).tolist()
    ]
    expected = {
        member.candidate.formula.then(operator, name)
        for member, away in zip(members, apart, strict=True)
        for operator in operators
        for name, disjoint in zip(names, away, strict=True)
        if name not in member.candidate.formula.concepts
        and ((operator.p and operator.q) or not disjoint)
    }
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_twins_of_members_with_the_same_concepts():
    # (a OR b) UNION c is (a UNION b) OR c, with any c.
    operators = (ox.OR, UNION)
    members = [
        Member(Words(("a", "b", "c", "d"), operators), (0, 1), (step,), ox.Score(1, 2))
        for step in range(2)
    ]
    made = new_candidates(members, np.zeros((2, 2, 4), bool), operators)
    new = [False, False, True, True]
    np.testing.assert_array_equal(made[0], [new, new])  # OR OR, OR UNION
    np.testing.assert_array_equal(made[1], [[False] * 4, new])  # UNION OR, UNION UNION


@given(seed=seeds)
@examples(15)
def test_host_and_device_give_the_scores_of_children(seed: int):
    case = make_case(seed)
    rng = np.random.default_rng(seed)
    n, length = 5, 1 + seed % 3
    concepts, operators = np.full((2, n, 4), PADDING, np.int32)
    for row in range(n):
        concepts[row, :length] = rng.permutation(len(case.names))[:length]
    operators[:, 1:length] = rng.integers(0, len(ALL_OPERATORS), (n, length - 1))
    batch = FormulaBatch(concepts, operators, ALL_OPERATORS)
    formulas = batch.to_formulas(case.names)
    atoms = ox.iou_many(case.table, case.neuron, map(Formula.concept, case.names))
    shape = n, len(ALL_OPERATORS), len(case.names)
    member, operator, concept = (axis.reshape(-1) for axis in np.indices(shape))
    new = (concepts[member] != concept[:, None]).all(1)
    candidates = Candidates(member[new], operator[new], concept[new], np.ones(new.sum()))
    expected = ox.iou_many(
        case.table,
        case.neuron,
        [
            formulas[m].then(ALL_OPERATORS[o], case.names[c])
            for m, o, c in zip(member[new], operator[new], concept[new], strict=True)
        ],
    )
    members = ox.iou_many(case.table, case.neuron, formulas)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlaps, "BLOCK", 2 * len(case.table.signatures))
        for on_host in (True, False):
            children = beam_children.children_of(
                case.table, case.neuron, batch, members, atoms, on_host
            )
            found = children.scores(candidates)
            np.testing.assert_array_equal(found.intersections, expected.intersections)
            np.testing.assert_array_equal(found.extras, expected.extras)


@given(seed=seeds)
@examples(4)
def test_device_kernels_change_nothing(seed: int):
    case = make_case(seed)
    with ox.kernels("device"):
        check(case, 3, size=2)


@given(seed=seeds)
@examples(1)
def test_formulas_of_twenty_concepts(seed: int):
    case = make_case(seed, 21, 3, names=tuple(f"n{k:02d}" for k in range(21)))
    check(case, 20, 2)


def test_more_length_than_concepts():
    check(make_case(3), 20, 2)


@given(seed=seeds)
@examples(6)
def test_concepts_in_another_order(seed: int):
    case = make_case(seed)
    turned = Case(case.masks[::-1], case.bitmap, case.names[::-1])
    for guide in GUIDES.values():
        method = ox.Beam(3, size=2, guide=guide)
        one, other = (ox.explain(c.table, c.neuron, method) for c in (case, turned))
        assert one.formula == other.formula
        assert one.score == other.score
        assert one.stats.visited == other.stats.visited


@each_guide
@given(seed=seeds)
@examples(6)
def test_counters_do_not_depend_on_blocks(guide: AbstractGuide | None, seed: int):
    case = make_case(seed)
    method = ox.Beam(3, size=2, guide=guide)
    whole = ox.explain(case.table, case.neuron, method).stats
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beam_module, "FIRST_BLOCK", 1)
        patch.setattr(beam_module, "BLOCK", 1)
        single = ox.explain(case.table, case.neuron, method).stats
    assert single.speculative == Speculative()
    assert whole.visited == single.visited
    assert whole.visited + whole.speculative.visited <= whole.estimated


def visits_one_by_one(case: Case, level: Level, estimates: np.ndarray) -> int:
    """How many candidates a search visits that looks at one after another."""

    def place(candidate: Formula) -> tuple[int, int, str]:
        parent = Formula(candidate.concepts[:-1], candidate.operators[:-1])
        operator = ox.DEFAULT_OPERATORS.index(candidate.operators[-1])
        return level.extended.index(parent), operator, candidate.concepts[-1]

    def estimate(candidate: Formula) -> Fraction:
        member, operator, name = place(candidate)
        return Fraction(float(estimates[member, operator, case.names.index(name)]))

    queue = [score(case, formula) for formula in level.beam][: level.keep]
    ordered = sorted(level.candidates, key=lambda c: (-estimate(c), place(c)))
    for n_visited, candidate in enumerate(ordered):
        if len(queue) == level.keep and estimate(candidate) < min(queue):
            return n_visited
        queue = sorted([*queue, score(case, candidate)], reverse=True)[: level.keep]
    return len(ordered)


@pytest.mark.parametrize("name", ["quantity", "low memory", "mmesh"])
@given(seed=seeds)
@examples(12)
def test_visited_counts_what_a_sequential_search_looks_at(name: str, seed: int):
    case = make_case(seed)
    guide = GUIDES[name]
    assert guide is not None
    recorder = Recorder(guide)
    found = ox.explain(case.table, case.neuron, ox.Beam(3, size=2, guide=recorder))
    levels = reference_beam(case, 3, 2).levels
    assert len(levels) == len(recorder.calls)
    expected = map(visits_one_by_one, [case] * len(levels), levels, recorder.estimates)
    assert found.stats.visited == sum(expected)


@pytest.mark.parametrize("name", ["quantity", "low memory", "mmesh"])
@given(seed=seeds)
@examples(12)
def test_estimates_are_never_below_the_exact_score(name: str, seed: int):
    # Of everything that is expanded, what the search would not look at included.
    case = make_case(seed)
    guide = GUIDES[name]
    assert guide is not None
    operators = ALL_OPERATORS
    recorder = Recorder(guide)
    ox.explain(case.table, case.neuron, ox.Beam(4, size=2, guide=recorder, operators=operators))
    levels = reference_beam(case, 4, 2, operators).levels
    for level, estimates in zip(levels, recorder.estimates, strict=True):
        for row, member in enumerate(level.extended):
            for column, operator in enumerate(operators):
                for k, concept in enumerate(case.names):
                    if concept not in member.concepts:
                        candidate = member.then(operator, concept)
                        assert Fraction(float(estimates[row, column, k])) >= score(case, candidate)


def test_good_estimates_save_visits():
    saved = 0
    for seed in range(15):
        case = make_case(seed)
        counts = {
            name: ox.explain(case.table, case.neuron, ox.Beam(3, size=2, guide=guide)).stats.visited
            for name, guide in GUIDES.items()
        }
        assert counts["quantity"] <= counts["low memory"]
        saved += counts["quantity"] < counts["vanilla"]
    assert saved > 10


class Half(AbstractGuide):
    """A guide that is wrong."""

    def open(self, problem: Problem) -> AbstractEstimator:
        class Halved(AbstractEstimator):
            def estimate(self, members: Members) -> Float64[np.ndarray, "rows operators concepts"]:
                shape = len(members.parents), len(problem.operators), problem.table.n_concepts
                return np.full(shape, 0.5)

        return Halved()


def test_inadmissible_guides_are_found_out():
    masks = np.zeros((2, 1, 4), bool)
    masks[0, 0, :2] = masks[1, 0, 2:] = True
    table = ox.ConceptTable.from_masks(masks, names=["left", "right"])
    with pytest.raises(ox.InadmissibleBoundError, match=r"left OR right.*above its estimate 0\.5"):
        ox.explain(table, np.ones((1, 4), bool), ox.Beam(2, guide=Half()))


@pytest.mark.parametrize("guide", [ox.QuantityGuide(), ox.MMESHGuide()], ids=repr)
def test_compilations_stay_the_same_for_other_neurons(guide: AbstractGuide):
    case = make_case(0, 8, 4, (6, 7))
    rng = np.random.default_rng(0)
    units = rng.random((6, *case.bitmap.shape)) < rng.random((6, 1, 1, 1)) ** 2
    units[:, 0, 0, 0] = True
    units[0] = case.masks[0] | case.masks[1]
    method = ox.Beam(3, size=3, guide=guide)
    first, *others = ox.explain_many(case.table, units, method)
    before = count_traces()
    for _ in ox.explain_many(case.table, units, method):
        pass
    assert count_traces() == before
    assert sum(found.stats.compilations for found in others) == 0
    assert first.stats.compilations <= 8


@each_guide
def test_a_neuron_that_no_concept_overlaps(guide: AbstractGuide | None):
    masks = np.zeros((3, 2, 4, 5), bool)
    masks[0, 0, 1] = masks[1, :, :, 2] = True
    bitmap = ~masks.any(0)
    table = ox.ConceptTable.from_masks(masks)
    found = ox.explain(table, bitmap, ox.Beam(guide=guide))
    assert found.formula is None
    assert (found.iou, found.upper_bound, found.gap) == (0, 0, 0)
    assert (found.status, found.union) == ("optimal", bitmap.sum())
    assert found.stats.visited == found.stats.expanded == found.stats.estimated == 0


@pytest.mark.parametrize("exact_updates", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_counts_past_all_narrow_integers(exact_updates: bool):
    # IoUs that differ in the last of 40 binary places; a float32 or int32 anywhere would show.
    big = 2**40
    table = ox.ConceptTable.from_signatures(
        [[0], [1], [2], [0, 2]], [big, big + 1, big, 2**20], ["a", "b", "c", "d"][:3]
    )
    neuron = ox.NeuronCounts.from_signatures(table, [big - 2, big, 1, 2**20 - 1])
    guides = (None, ox.QuantityGuide(exact_updates=exact_updates))
    plain, guided = (ox.explain(table, neuron, ox.Beam(3, guide=guide)) for guide in guides)
    best = ox.explain(table, neuron, ox.Exhaustive(3))
    assert plain.formula == guided.formula == best.formula
    assert plain.score == guided.score == best.score


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"length": 0}, ValueError, "length must be a whole number"),
        ({"size": 0}, ValueError, "size must be a whole number, at least 1"),
        ({"size": True}, ValueError, "size must be a whole number, at least 1"),
        ({"guide": "mmesh"}, TypeError, "guide"),
        ({"operators": ()}, ValueError, "no operators given"),
    ],
    ids=str,
)
def test_settings_that_are_refused(settings, error, message):
    with pytest.raises(error, match=message):
        ox.Beam(**settings)
