"""The admissibility checker: it passes what is right and finds what is wrong."""

from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest
from helpers.search_cases import OnlyOne
from helpers.strategies import XOR
from helpers.support import as_users_run_it, thorough
from jaxtyping import Array, Bool, Int64, PyTree

import optexp_jax as ox
from optexp_jax.bounds import LabelBatch, ProblemView, TopBott
from optexp_jax.bounds.base import Prepared
from optexp_jax.bounds.paper.nodes import PaperNodes
from optexp_jax.bounds.paper.space import PaperSpace
from optexp_jax.bounds.tight.search.labels import Labels
from optexp_jax.bounds.tight.search.nodes import TightNodes, node_text
from optexp_jax.bounds.tight.search.subproblem import Prefix, Step
from optexp_jax.counts.scores import Score
from optexp_jax.formulas.batch import FormulaBatch
from optexp_jax.search import AbstractSpace, Candidate, Expansion, Incumbent, Queued
from optexp_jax.search.problem import Problem
from optexp_jax.testing import AdmissibilityReport, Case, admissible, check_admissible, random_case
from optexp_jax.testing.admissible import BoundsOrFactory
from optexp_jax.testing.checked_space import Claim, LengthClaim
from optexp_jax.testing.truth import Trial, Truth

# In a quick run all cases have one shape, which other tests have compiled already.
SMALL = {3: ((3, 1),)}
CASES = 400 if thorough() else 12


@pytest.fixture(autouse=True)
def few_shapes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.setattr(admissible, "SHAPES", SMALL)


def check(bounds: BoundsOrFactory, cases: int = CASES, **settings: Any) -> AdmissibilityReport:
    return check_admissible(bounds, cases=cases, lengths=(3,), **settings)


# What is right passes.


def test_published_bounds_pass(fresh_seed: int):
    report = check(ox.PaperBounds(), seed=fresh_seed)
    assert report.admissible, report
    assert report.counterexample is None
    assert report.cases == CASES
    assert report.bounds > report.nodes > CASES
    assert str(report) == (
        f"No counterexample in {CASES} cases, {report.nodes} nodes, "
        f"{report.bounds} comparisons of a bound with a formula."
    )


def test_the_same_seed_checks_the_same():
    assert check(ox.PaperBounds(), cases=3) == check(ox.PaperBounds(), cases=3)
    assert check(ox.PaperBounds(), cases=3, seed=1) != check(ox.PaperBounds(), cases=3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "bounds",
    [
        ox.PaperBounds(),
        ox.PaperBounds(ox.LabelVectors()),
        ox.PaperBounds(ox.PairVectors(ranks=1)),
        ox.PaperBounds(aggregated_first=False),
        ox.PaperBounds(rewriting=False, recent_memory=False, propagation=False),
        ox.PaperBounds(min_iou=False, index_order=False),
    ],
    ids=repr,
)
@pytest.mark.parametrize(
    "operators", [ox.DEFAULT_OPERATORS, (ox.AND_NOT, ox.OR), (ox.AND, ox.AND_NOT, XOR)], ids=str
)
def test_all_forms_of_the_published_bounds_pass(
    bounds: ox.AbstractBounds, operators: tuple[ox.Operator, ...], fresh_seed: int
):
    report = check_admissible(bounds, cases=300, seed=fresh_seed, operators=operators)
    assert report.admissible, report


# Vectors that are wrong.


class BottomIsTop(ox.AbstractVectors):
    """The largest value in place of the smallest."""

    def prepare(self, view: ProblemView) -> PyTree[Array]:
        return ox.PublishedVectors().prepare(view)

    def of_labels(self, prepared: PyTree[Array], labels: LabelBatch) -> TopBott:
        right = ox.PublishedVectors().of_labels(prepared, labels)
        return TopBott(right.top, right.top_one, right.top_one)


WRONG_VECTORS = [OnlyOne(), BottomIsTop()] if thorough() else [OnlyOne()]


@pytest.mark.parametrize("vectors", WRONG_VECTORS, ids=repr)
def test_wrong_vectors_are_found(vectors: ox.AbstractVectors):
    report = check(ox.PaperBounds(vectors), cases=200)
    assert not report.admissible
    assert report.counterexample is not None
    claim = report.counterexample.claim
    assert claim.what == "bound"
    assert claim.claimed < claim.score.iou
    # The counterexample is small: hardly a cell that could be left out.
    trial = report.counterexample.trial
    matters = trial.case.masks.any(0) | (trial.case.inside > 0)
    assert matters.sum() <= 4
    # And it says what anybody needs to see it.
    text = str(report)
    assert text.startswith("NOT ADMISSIBLE, found after")
    assert claim.node is not None
    assert f"\n{claim.node}: bound 0." in text
    assert f", but {claim.written} has " in text
    assert claim.node.split(", next step")[0].strip("()") in claim.written
    assert "sample 0: {" in text
    assert "array(" not in text
    # It is true: the formula has that score in that problem.
    assert claim.formula is not None
    score = ox.iou(trial.case.table, trial.case.neuron, claim.formula)
    assert (score.intersection, score.union) == (claim.score.intersection, claim.score.union)


# Search spaces that are wrong in other ways. The rest of them is right.


class Spoiled(ox.AbstractBounds):
    """The published family with another search space."""

    space: type[PaperSpace] = eqx.field(static=True)

    def open(
        self, problem: Problem, batch_size: int | None = None, *, prepared: Prepared | None = None
    ) -> AbstractSpace[PaperNodes]:
        return self.space(problem, ox.PaperBounds(), 8 if batch_size is None else batch_size)


class LowUpper(PaperSpace):
    """Upper bounds a little too low, once nodes were looked at."""

    def expand(self, batch: Queued[PaperNodes], incumbent: Incumbent) -> Expansion[PaperNodes]:
        turn = super().expand(batch, incumbent)
        if turn.children is None:
            return turn
        children = turn.children
        lowered = Queued(children.nodes, children.upper * (1 - 1e-9), children.priority)
        return Expansion(lowered, turn.candidates, turn.lower)


class HighLower(PaperSpace):
    """A lower bound above the optimum."""

    def root(self, incumbent: Incumbent) -> Expansion[PaperNodes]:
        turn = super().root(incumbent)
        return Expansion(turn.children, turn.candidates, 0.99)


class LongShortest(PaperSpace):
    """Nodes said to hold longer formulas than they do."""

    def shortest(self, nodes: PaperNodes) -> Int64[np.ndarray, " nodes"]:
        return super().shortest(nodes) + 1


class WrongScores(PaperSpace):
    """Exact scores that are not."""

    def _evaluate(
        self, batch: Queued[PaperNodes], incumbent: Incumbent
    ) -> tuple[list[Candidate], Int64[np.ndarray, " nodes"]]:
        found, visited = super()._evaluate(batch, incumbent)
        wrong = [Score(c.score.intersection, c.score.union + 1) for c in found]
        return [Candidate(c.formula, s) for c, s in zip(found, wrong, strict=True)], visited


class Forgetful(PaperSpace):
    """Never looks at paths that go on by OR, and does not know it."""

    def expand(self, batch: Queued[PaperNodes], incumbent: Incumbent) -> Expansion[PaperNodes]:
        turn = super().expand(batch, incumbent)
        if turn.children is None:
            return turn
        kept = turn.children.nodes.kind != 0
        children = jax.tree.map(lambda part: part[kept], turn.children)
        return Expansion(children, turn.candidates, turn.lower)


class StandsForNothing(PaperSpace):
    """Claims nothing, so that no bound could ever be wrong."""

    def stands_for(
        self, nodes: PaperNodes, formulas: FormulaBatch
    ) -> Bool[np.ndarray, "nodes formulas"]:
        return np.zeros((len(nodes), len(formulas)), bool)


@pytest.mark.parametrize(
    ("space", "what"),
    [
        (LowUpper, "bound"),
        (HighLower, "a lower bound on the optimum"),
        (LongShortest, "shortest formula of length"),
        (WrongScores, "the exact score of a candidate"),
        (Forgetful, "the search's"),
        (StandsForNothing, "no first node stands for the optimum"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_wrong_spaces_are_found(space: type[PaperSpace], what: str):
    report = check(Spoiled(space), cases=200)
    assert report.counterexample is not None
    assert report.counterexample.claim.what.startswith(what)


# What may be left out.


class ForShorter(PaperSpace):
    """Gives a bound of 0 to every node that leads to nothing better than a shorter formula."""

    def expand(self, batch: Queued[PaperNodes], incumbent: Incumbent) -> Expansion[PaperNodes]:
        turn = super().expand(batch, incumbent)
        if turn.children is None:
            return turn
        nodes, upper = turn.children.nodes, turn.children.upper
        truth = self.truth
        pays = (self.stands_for(nodes, truth.formulas) & self.counts(truth)).any(1)
        lowered = Queued(nodes, np.where(pays, upper, 0.0), turn.children.priority)
        return Expansion(lowered, turn.candidates, turn.lower)

    @cached_property
    def truth(self) -> Truth:
        problem = self._problem
        signatures = problem.table.signatures
        masks = np.stack([signatures.membership(k) for k in range(problem.table.n_concepts)])
        case = Case(masks[:, None], problem.neuron.inside[None], problem.neuron.outside[None])
        return Truth(Trial(case, problem.length, problem.operators, 8, False))

    def counts(self, truth: Truth) -> Bool[np.ndarray, " formulas"]:
        return ~truth.outdone


class ForEquallyLong(ForShorter):
    """Leaves out formulas that are level with the optimum and as long: the result is right."""

    def counts(self, truth: Truth) -> Bool[np.ndarray, " formulas"]:
        return truth.is_optimum


def test_formulas_may_be_left_out_for_shorter_ones():
    report = check(Spoiled(ForShorter), cases=2 * CASES)
    assert report.admissible, report


def test_formulas_may_not_be_left_out_for_others_of_equal_length():
    report = check(Spoiled(ForEquallyLong), cases=200)
    assert report.counterexample is not None
    assert report.counterexample.claim.what == "bound"


def test_outdone_by_a_shorter_formula():
    # |N| = 3. c3 has 2/3, c10 has 1/3; c6 misses the neuron.
    masks = np.array([[[1, 1, 0, 0]], [[0, 0, 1, 0]], [[0, 0, 0, 1]]], bool)
    case = Case(masks, np.array([[1, 1, 1, 0]]), np.array([[0, 0, 0, 1]]))
    truth = Truth(Trial(case, 2, ox.DEFAULT_OPERATORS, 8, False))
    rows = np.flatnonzero(~truth.outdone).tolist()
    assert {truth.formula(row) for row in rows} == {
        *map(ox.Formula.concept, case.names),
        ox.Formula(("c3", "c10"), (ox.OR,)),
    }


# Families that are made for a problem.


def test_a_family_may_be_made_for_each_problem():
    seen: list[Problem] = []

    def make(problem: Problem) -> ox.AbstractBounds:
        seen.append(problem)
        return ox.PaperBounds()

    assert check(make, cases=3) == check(ox.PaperBounds(), cases=3)
    assert len(seen) == len({id(problem.table) for problem in seen}) == 3
    assert all(problem.length == 3 for problem in seen)


def test_a_wrong_family_made_for_a_problem_is_found_and_shrunk():
    report = check(lambda problem: Spoiled(LowUpper), cases=200)
    assert report.counterexample is not None
    assert report.counterexample.claim.what == "bound"


@pytest.mark.parametrize("bounds", [ox.PaperBounds, ox.LabelVectors(), "PaperBounds"], ids=str)
def test_what_is_no_family_is_refused(bounds: Any):
    message = r"must be a family such as PaperBounds\(\)"
    with as_users_run_it(), pytest.raises(TypeError, match=message):
        check_admissible(bounds)


def test_a_function_must_return_a_family():
    factory: Any = lambda problem: ox.LabelVectors()  # noqa: E731
    with as_users_run_it(), pytest.raises(TypeError, match="must return a family"):
        check_admissible(factory, lengths=(3,))


# What a report says.


def test_a_claim_is_one_line():
    formula = ox.Formula(("c6", "c10", "c2"), (ox.OR, ox.AND_NOT))
    claim = Claim("bound", 0.41, formula, Score(9, 20), "(c6 OR c10), next step AND NOT")
    assert str(claim) == (
        "(c6 OR c10), next step AND NOT: bound 0.41, but ((c6 OR c10) AND NOT c2) has 0.45 (9/20)"
    )
    near = Claim("a lower bound on the optimum", 0.5000001, None, Score(1, 2))
    assert (
        str(near) == "a lower bound on the optimum: 0.5000001, but no formula has 0.5000000 (1/2)"
    )
    length = LengthClaim(
        "shortest formula of length", 4.0, formula, Score(9, 20), "c6, next step OR"
    )
    assert str(length) == (
        "c6, next step OR: shortest formula of length 4, but ((c6 OR c10) AND NOT c2) has 3"
    )


def first_nodes(space: AbstractSpace[Any]) -> Any:
    turn = space.root(Incumbent())
    assert turn is not None
    assert turn.children is not None
    return turn.children.nodes


def test_nodes_of_the_published_search_are_described():
    case = random_case(np.random.default_rng(0), 3, 1)
    problem = Problem(case.table, case.neuron, 3, ox.DEFAULT_OPERATORS)
    space = ox.PaperBounds().open(problem, 8)
    nodes = first_nodes(space)
    texts = [space.describe(nodes, row) for row in range(len(nodes))]
    assert texts[0].startswith("c3, ")
    assert {"c3, next step AND NOT", "c10, no further step", "c6, next step OR"} <= set(texts)
    assert "PaperNodes(" in AbstractSpace.describe(space, nodes, 0)


def test_nodes_of_the_tight_search_are_described():
    names = ("a", "b", "traffic light", "d")
    steps = (Step(2, 1), Step(0, 2))
    around = TightNodes.around(
        Labels.pairs(np.array([1], np.int32), np.array([0], np.int32), np.array([3], np.int32)),
        5,
        Prefix(steps),
        1,
        0.5,
    )
    assert node_text(around, 0, names) == (
        '(a AND d), 1 more step, then OR "traffic light", then AND NOT b'
    )
    assert node_text(TightNodes.everything(5, 0.5), 0, names) == "any three concepts or more"


# The parts.


@pytest.mark.parametrize("settings", [{"lengths": (0,)}, {"operators": ()}])
def test_bad_settings_are_refused(settings: dict[str, Any]):
    with pytest.raises(ValueError, match=r"length|operator"):
        check_admissible(ox.PaperBounds(), **settings)


def test_truth_is_the_truth():
    case = random_case(np.random.default_rng(4), 4, 3)
    truth = Truth(Trial(case, 3, (*ox.DEFAULT_OPERATORS, XOR), 8, False))
    assert len(truth.formulas) == 4 + 4 * 3 * 4 + 4 * 3 * 2 * 16
    for row in range(0, len(truth.formulas), 7):
        score = ox.iou(case.table, case.neuron, truth.formula(row))
        assert (truth.score(row).intersection, truth.score(row).union) == (
            score.intersection,
            score.union,
        )
    assert truth.iou[truth.is_optimum] == pytest.approx(truth.best_score.iou)
    optima = np.flatnonzero(truth.is_optimum).tolist()
    assert {truth.formula(row) for row in optima} == {truth.best.formula}


@pytest.mark.parametrize("n_samples", [1, 3])
def test_cases_are_of_all_kinds(n_samples: int):
    cases = [random_case(np.random.default_rng(seed), 4, n_samples) for seed in range(200)]
    assert all(case.inside.sum() > 0 for case in cases)
    assert any(case.table.disjoint[np.triu_indices(4, 1)].all() for case in cases)
    assert any(not case.masks[k].any() for case in cases for k in range(4))
    assert any(case.masks[k].all() for case in cases for k in range(4))
    assert any((case.masks[0] == case.masks[1]).all() and case.masks[0].any() for case in cases)
    largest = max(int((case.inside + case.outside).max()) for case in cases)
    assert largest > 2**31 if n_samples == 1 else largest == 1
    for case in cases[:20]:
        assert case.neuron.size == case.inside.sum()
        sizes = (case.masks * (case.inside + case.outside)).sum((1, 2))
        np.testing.assert_array_equal(case.table.concept_sizes, sizes)


def test_a_case_prints_its_concept_sets():
    masks = np.array([[[True, True, False]], [[False, True, False]]])
    case = Case(masks, np.array([[1, 0, 1]]), np.array([[0, 1, 0]]))
    assert str(case) == (
        "sample 0: {} 1 active, 0 not\n"
        "sample 0: {c3} 1 active, 0 not\n"
        "sample 0: {c3, c10} 0 active, 1 not"
    )


def test_taking_parts_out_keeps_the_shape():
    case = random_case(np.random.default_rng(0), 3, 1)
    assert not case.without_concept(1).masks[1].any()
    smaller = case.without_cell(0, 0)
    assert smaller.masks.shape == case.masks.shape
    assert not smaller.masks[:, 0, 0].any()
    assert smaller.inside[0, 0] == 0
