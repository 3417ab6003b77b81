"""Fixed-shape cases for tests of beams, and a plain beam search that shares no code with ours."""

from dataclasses import dataclass
from fractions import Fraction

import equinox as eqx
import numpy as np
from jaxtyping import Float64

from helpers.strategies import CONCEPT_STYLES, NAMES, NEURON_STYLES, Case, _concept, _neuron
from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import DEFAULT_OPERATORS, Operator
from optexp_jax.methods.beam.guides import AbstractEstimator, AbstractGuide, Members
from optexp_jax.search.problem import Problem

# Every shape of a table costs a compilation, so the tests share these.
SAMPLES, GRID, N_CONCEPTS = 3, (4, 5), 6


def make_case(
    seed: int,
    n_concepts: int = N_CONCEPTS,
    n_samples: int = SAMPLES,
    grid: tuple[int, ...] = GRID,
    names: tuple[str, ...] = NAMES,
) -> Case:
    """Masks and a neuron of styles that the seed picks, always of the same shape."""
    rng = np.random.default_rng(seed)
    shape = n_samples, int(np.prod(grid))
    masks = np.zeros((n_concepts, *shape), bool)
    for k in range(n_concepts):
        masks[k] = _concept(rng, str(rng.choice(CONCEPT_STYLES)), masks[:k], shape)
    bitmap = _neuron(rng, str(rng.choice(NEURON_STYLES)), masks)
    if not bitmap.any():
        bitmap[0, 0] = True
    names = tuple(names[k] for k in rng.permutation(len(names))[:n_concepts])
    return Case(
        masks.reshape(n_concepts, n_samples, *grid), bitmap.reshape(n_samples, *grid), names
    )


def score(case: Case, formula: Formula) -> Fraction:
    """The exact IoU, from the raw masks."""
    held = case.mask(formula)
    return Fraction(int((held & case.bitmap).sum()), int((held | case.bitmap).sum()))


@dataclass(frozen=True)
class Level:
    """One level of the reference: what was extended and what came of it."""

    beam: list[Formula]
    """Before the level, best first."""
    keep: int
    """How many the level keeps."""
    extended: list[Formula]
    candidates: list[Formula]
    """Each written as the member it extends, and one step."""


@dataclass(frozen=True)
class Reference:
    best: Formula | None
    iou: Fraction
    levels: list[Level]


def reference_beam(
    case: Case,
    length: int,
    size: int,
    operators: tuple[Operator, ...] = DEFAULT_OPERATORS,
) -> Reference:
    """Beam search as it is told: make all candidates, score them all, sort, cut."""
    known: dict[Formula, Fraction] = {}

    def rank(formula: Formula):
        if formula not in known:
            known[formula] = score(case, formula)
        return -known[formula], formula.sort_key

    def apart(formula: Formula, name: str) -> bool:
        """The published rule for disjoint sides, which goes by the parts of the formula."""
        *before, last = formula.concepts
        masks = [case.masks[case.names.index(n)] for n in (last, name)]
        right = not (masks[0] & masks[1]).any()
        if not before:
            return right
        left = apart(Formula(tuple(before), formula.operators[:-1]), name)
        operator = formula.operators[-1]
        if not operator.p and not operator.q:  # holds only where both do
            return left or right
        if not operator.q:
            return left
        return right if not operator.p else left and right

    atoms = [Formula.concept(name) for name in case.names]
    beam = sorted((a for a in atoms if score(case, a) > 0), key=rank)[: 2 * size]
    levels: list[Level] = []
    depth = min(length, len(case.names))
    for level in range(2, depth + 1):
        extended = [formula for formula in beam if len(formula) == level - 1]
        candidates: dict[Formula, None] = {}
        for formula in extended:
            for operator in operators:
                for name in case.names:
                    if name in formula.concepts:
                        continue
                    if not (operator.p and operator.q) and apart(formula, name):
                        continue
                    candidates.setdefault(formula.then(operator, name))
        keep = 1 if level == depth else size
        levels.append(Level(beam, keep, extended, list(candidates)))
        beam = sorted([*beam, *candidates], key=rank)[:keep]
    if not beam:
        return Reference(None, Fraction(0), [])
    return Reference(beam[0], known[beam[0]], [level for level in levels if level.extended])


@dataclass(frozen=True)
class Call:
    """What a guide was asked, and what it said."""

    members: Members
    estimates: np.ndarray


class Recorder(AbstractGuide):
    """A guide that remembers what another one estimates, level by level."""

    inner: AbstractGuide
    calls: list[Call] = eqx.field(static=True, default_factory=list)

    def open(self, problem: Problem) -> AbstractEstimator:
        return _Recording(self.inner.open(problem), self.calls)

    @property
    def estimates(self) -> list[np.ndarray]:
        return [call.estimates for call in self.calls]


class _Recording(AbstractEstimator):
    def __init__(self, inner: AbstractEstimator, calls: list[Call]):
        self._inner = inner
        self._calls = calls

    def estimate(self, members: Members) -> Float64[np.ndarray, "rows operators concepts"]:
        self._calls.append(Call(members, self._inner.estimate(members)))
        return self._calls[-1].estimates
