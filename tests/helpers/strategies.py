"""Inputs for tests of tables, scores and searches: small, odd, and as unkind as they get.

A strategy draws a few small integers and the *styles* of what to make; numpy does the rest. That is
fast, and a failing example shrinks to few concepts, samples and locations of the plainest styles.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from hypothesis import strategies as st

from helpers.support import as_users_run_it
from optexp_jax.concepts import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import DEFAULT_OPERATORS, Operator
from optexp_jax.methods.oracle import OracleResult, best_formula

XOR = Operator("XOR", p=True, q=True, r=False)
BUT = Operator("EXCEPT FROM", p=False, q=True, r=False)  # right without left
ALL_OPERATORS = (*DEFAULT_OPERATORS, XOR, BUT)

# None of these sorts as it stands here, capitals come before small letters, and some need quotes.
NAMES = ("m", "c10", "c2", "traffic light", "B", "OR", "a", "zebra", "é", "b")

CONCEPT_STYLES = (
    "half",
    "sparse",
    "dense",
    "empty",
    "full",
    "duplicate",
    "nested",
    "disjoint",
    "complement",
    "rest",
    "shifted",
    "scene",
    "single",
)
NEURON_STYLES = (
    "concept",
    "formula",
    "noisy",
    "half",
    "sparse",
    "dense",
    "full",
    "uncovered",
    "complement",
    "samples",
    "single",
)
DENSITY = {"half": 0.5, "sparse": 0.15, "dense": 0.85}


@dataclass(frozen=True)
class Case:
    """Raw masks `[concept, sample, location]`, a neuron's bitmap, and what is made of them."""

    masks: np.ndarray
    bitmap: np.ndarray
    names: tuple[str, ...]

    @cached_property
    def table(self) -> ConceptTable:
        return ConceptTable.from_masks(self.masks, self.names)

    @cached_property
    def neuron(self) -> NeuronCounts:
        return self.table.count(self.bitmap)

    def mask(self, formula: Formula) -> np.ndarray:
        """Where a formula holds, from the raw masks, by truth table, location by location."""
        held = self.masks[self.names.index(formula.concepts[0])]
        for operator, name in zip(formula.operators, formula.concepts[1:], strict=True):
            table = np.array([[False, operator.q], [operator.p, operator.r]])
            held = table[held.astype(int), self.masks[self.names.index(name)].astype(int)]
        return held

    def optimum(
        self, length: int, operators: tuple[Operator, ...] = DEFAULT_OPERATORS
    ) -> OracleResult:
        """The best formula by enumeration on the raw masks: no table, no signatures."""
        columns = self.masks.reshape(len(self.masks), -1)
        inside = self.bitmap.reshape(-1).astype(np.int64)
        return best_formula(columns, inside, 1 - inside, self.names, length, operators)


@dataclass(frozen=True)
class WeightedCase:
    """Concept sets with many locations each, for tables made of counts."""

    sets: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    inside: tuple[int, ...]
    names: tuple[str, ...]

    @cached_property
    def table(self) -> ConceptTable:
        return ConceptTable.from_signatures([list(s) for s in self.sets], self.sizes, self.names)

    @cached_property
    def neuron(self) -> NeuronCounts:
        return NeuronCounts.from_signatures(self.table, self.inside)

    @cached_property
    def membership(self) -> np.ndarray:
        """Bool `[concept, given row]`."""
        return np.array([[k in s for s in self.sets] for k in range(len(self.names))])

    def mask(self, formula: Formula) -> np.ndarray:
        """Where a formula holds, by given row."""
        return Case(self.membership, np.empty(0), self.names).mask(formula)

    def score(self, formula: Formula) -> tuple[int, int]:
        """Intersection and union in Python integers."""
        rows = np.flatnonzero(self.mask(formula)).tolist()
        extras = sum(self.sizes[row] - self.inside[row] for row in rows)
        return sum(self.inside[row] for row in rows), sum(self.inside) + extras

    def optimum(
        self, length: int, operators: tuple[Operator, ...] = DEFAULT_OPERATORS
    ) -> OracleResult:
        """The best formula by enumeration on the rows as they were given."""
        inside = np.array(self.inside, np.int64)
        outside = np.array(self.sizes, np.int64) - inside
        return best_formula(self.membership, inside, outside, self.names, length, operators)


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    max_concepts: int = 7,
    max_samples: int = 5,
    max_locations: int = 12,
    may_be_silent: bool = False,
) -> Case:
    """Tables with their masks, and a neuron that fires at least once unless it `may_be_silent`."""
    n_concepts = draw(st.integers(1, max_concepts))
    shape = draw(st.integers(1, max_samples)), draw(st.integers(1, max_locations))
    layout = draw(st.sampled_from(("mixed", "mixed", "partition", "scenes")))
    styles = draw(
        st.lists(st.sampled_from(CONCEPT_STYLES), min_size=n_concepts, max_size=n_concepts)
    )
    neuron_styles = (*NEURON_STYLES, "formula", "noisy", "noisy")  # the likeliest to need a chain
    if may_be_silent:
        neuron_styles = (*neuron_styles, "silent")
    neuron_style = draw(st.sampled_from(neuron_styles))
    names = draw(st.permutations(NAMES))[:n_concepts]
    rng = np.random.default_rng(draw(st.integers(0, 2**16 - 1)))

    masks = np.zeros((n_concepts, *shape), bool)
    if layout == "mixed":
        for k, style in enumerate(styles):
            masks[k] = _concept(rng, style, masks[:k], shape)
    else:
        # Every location has one label, or none; with scenes, every sample has one concept too.
        n_scenes = n_concepts // 2 if layout == "scenes" else 0
        labels = rng.integers(0, n_concepts - n_scenes + 1, shape)
        scenes = rng.integers(0, n_scenes + 1, shape[0])
        for k in range(n_concepts - n_scenes):
            masks[k] = labels == k
        for k in range(n_scenes):
            masks[n_concepts - n_scenes + k] = (scenes == k)[:, None]
    bitmap = _neuron(rng, neuron_style, masks)
    if not bitmap.any() and not may_be_silent:
        bitmap[_one_location(rng, shape)] = True
    return Case(masks, bitmap, tuple(names))


@st.composite
def formulas(
    draw: st.DrawFn,
    names: tuple[str, ...],
    max_length: int = 4,
    operators: tuple[Operator, ...] = ALL_OPERATORS,
) -> Formula:
    """Chains over some of the names."""
    concepts = draw(st.permutations(names))
    length = draw(st.integers(1, min(max_length, len(names))))
    steps = draw(st.lists(st.sampled_from(operators), min_size=length - 1, max_size=length - 1))
    with as_users_run_it():  # The checks use `random`, which a strategy must not.
        return Formula(tuple(concepts[:length]), tuple(steps))


def some_formulas(
    rng: np.random.Generator,
    names: tuple[str, ...],
    n: int,
    max_length: int = 4,
    operators: tuple[Operator, ...] = ALL_OPERATORS,
) -> list[Formula]:
    """Many random chains at once, for tests that draw only a seed."""
    found: list[Formula] = []
    for _ in range(n):
        length = int(rng.integers(1, min(max_length, len(names)) + 1))
        concepts = [names[k] for k in rng.permutation(len(names))[:length]]
        steps = [operators[k] for k in rng.integers(0, len(operators), length - 1)]
        found.append(Formula(tuple(concepts), tuple(steps)))
    return found


@st.composite
def weighted_cases(draw: st.DrawFn, *, max_concepts: int = 5, max_rows: int = 12) -> WeightedCase:
    """Tables made of counts: sizes past 2**24, 2**31, to 2**40, and ratios that hardly differ.

    - *random*: sets, sizes and active parts of any magnitude;
    - *perturbed*: small counts times a power of two, each off by at most one, so that formulas that
      were level now differ in the last place of a long number;
    - *farey*: the best formulas of length one, or two, are as near as can be, or level: with unions
      about 2**40, no floating point number tells them apart (see `farey_case`).
    """
    style = draw(st.sampled_from(("random", "perturbed", "farey")))
    n_concepts = draw(st.integers(1, max_concepts))
    names = tuple(draw(st.permutations(NAMES))[:n_concepts])
    bits = draw(st.sampled_from((3, 12, 25, 32, 40)))
    n_rows = draw(st.integers(2, max_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**16 - 1)))
    if style == "farey" and n_concepts >= 2:
        partner = n_concepts >= 3 and rng.random() < 0.5
        return farey_case(rng, max(bits, 12), names, partner, level=rng.random() < 0.25)
    sets = [tuple(np.flatnonzero(rng.random(n_concepts) < 0.5).tolist()) for _ in range(n_rows)]
    if style == "perturbed":
        small = rng.integers(0, 4, (2, n_rows)) << bits
        inside, outside = np.maximum(small + rng.integers(-1, 2, (2, n_rows)), 0).tolist()
    else:
        exponents = rng.integers(0, bits + 1, n_rows)
        sizes = ((1 << exponents) + rng.integers(0, 2, n_rows)).tolist()
        inside = [_part(rng, size) for size in sizes]
        outside = [size - active for size, active in zip(sizes, inside, strict=True)]
    if sum(inside) == 0:
        inside[0] += 1
    sizes = tuple(a + b for a, b in zip(inside, outside, strict=True))
    return WeightedCase(tuple(sets), sizes, tuple(inside), names)


def _concept(
    rng: np.random.Generator, style: str, before: np.ndarray, shape: tuple[int, int]
) -> np.ndarray:
    """A concept's mask, made of chance and of one of the concepts before it."""
    earlier = before[rng.integers(len(before))] if len(before) else rng.random(shape) < 0.5
    chance = rng.random(shape) < 0.5
    match style:
        case "half" | "sparse" | "dense":
            return rng.random(shape) < DENSITY[style]
        case "empty":
            return np.zeros(shape, bool)
        case "full":
            return np.ones(shape, bool)
        case "duplicate":
            return earlier.copy()
        case "nested":
            return earlier & chance
        case "disjoint":
            return chance & ~before.any(axis=0)
        case "complement":
            return ~earlier
        case "rest":
            return np.logical_not(before.any(axis=0))
        case "shifted":  # overlaps the other in part, and has as many locations
            return np.roll(earlier, 1, axis=1)
        case "scene":
            return np.repeat(rng.random((shape[0], 1)) < 0.5, shape[1], axis=1)
        case "single":
            mask = np.zeros(shape, bool)
            mask[_one_location(rng, shape)] = True
            return mask
        case _:
            raise AssertionError(style)


def _neuron(rng: np.random.Generator, style: str, masks: np.ndarray) -> np.ndarray:
    shape = masks.shape[1:]
    concept = masks[rng.integers(len(masks))]
    match style:
        case "half" | "sparse" | "dense":
            return rng.random(shape) < DENSITY[style]
        case "concept":
            return concept.copy()
        case "formula" | "noisy":
            held = concept.copy()
            for k in rng.permutation(len(masks))[: rng.integers(1, 4)]:
                held = (held | masks[k], held & masks[k], held & ~masks[k])[rng.integers(3)]
            return held ^ (rng.random(shape) < 0.1) if style == "noisy" else held
        case "full":
            return np.ones(shape, bool)
        case "uncovered":
            return np.logical_not(masks.any(axis=0))
        case "complement":
            return ~concept
        case "samples":
            return np.repeat(rng.random((shape[0], 1)) < 0.5, shape[1], axis=1)
        case "single":
            bitmap = np.zeros(shape, bool)
            bitmap[_one_location(rng, shape)] = True
            return bitmap
        case "silent":
            return np.zeros(shape, bool)
        case _:
            raise AssertionError(style)


def _one_location(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(rng.integers(n)) for n in shape)


def _part(rng: np.random.Generator, size: int) -> int:
    """An active part of `size` locations: none, one, half, all, all but one, or any."""
    choices = (0, min(1, size), size // 2, size, max(size - 1, 0), int(rng.integers(0, size + 1)))
    return choices[rng.integers(len(choices))]


def farey_case(
    rng: np.random.Generator, bits: int, names: tuple[str, ...], partner: bool, level: bool
) -> WeightedCase:
    """Two formulas whose IoUs p/q, s/t are as near as fractions get: |p·t - q·s| = 1 (or 0).

    They are concepts 0 and 1, the best formulas of length one; or, with a partner, concept 2 OR
    each of them, the best formulas of length two. Other concepts lie outside the neuron.
    """
    p, q, s, t = _farey_neighbours(rng, bits, 0.6 if partner else 0.4)
    if level:
        s, t = p, q
    n = min(q, t) * 9 // 10
    shared = min(q, t) // 2 if partner else 0  # the partner's part of the intersection
    sets: list[tuple[int, ...]] = [(0,), (1,)]
    inside, outside = [p - shared, s - shared], [q - n, t - n]
    if partner:
        sets.append((2,))
        inside.append(shared)
        outside.append(0)
    for k in range(len(sets), len(names)):
        sets.append((k,))
        inside.append(0)
        outside.append(int(rng.integers(1, 2**bits)))
    sets.append(())
    inside.append(n - sum(inside))
    outside.append(int(rng.integers(0, 3)))
    assert min(inside) >= 0
    if rng.random() < 0.5:  # The better one is now the other one.
        sets[0], sets[1] = sets[1], sets[0]
    sizes = tuple(i + o for i, o in zip(inside, outside, strict=True))
    return WeightedCase(tuple(sets), sizes, tuple(inside), names)


def _farey_neighbours(
    rng: np.random.Generator, bits: int, ratio: float
) -> tuple[int, int, int, int]:
    """p, q, s, t with p/q near `ratio`, t within a tenth of q, and p·t - q·s = 1 or -1."""
    while True:
        q = int(rng.integers(2**bits, 2 ** (bits + 1)))
        p = int(q * ratio) + int(rng.integers(0, q // 100))
        if math.gcd(p, q) > 1:
            continue
        smallest = pow(p, -1, q)  # p·t = 1 (mod q)
        for sign, t in (
            (1, smallest),
            (-1, q - smallest),
            (1, smallest + q),
            (-1, 2 * q - smallest),
        ):
            if 0.9 * q < t < 1.1 * q:
                s = (p * t - sign) // q
                assert p * t - q * s == sign
                return p, q, s, t
