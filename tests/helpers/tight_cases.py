"""Problems for the tests of the tight search, and its quantities counted by plain enumeration."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

import optexp_jax as ox
from optexp_jax.bounds.tight.operator_set import (
    DIFFERENCE,
    INTERSECTION,
    OPERATORS,
    UNION,
    OperatorSet,
)
from optexp_jax.bounds.tight.search.subproblem import Prefix, Step, Subproblem, SubproblemCache
from optexp_jax.formulas.operators import Operator
from optexp_jax.methods.oracle import enumerate_formulas
from optexp_jax.search.problem import Problem
from optexp_jax.testing import Case, random_case

N = 6
"""Concepts of nearly all cases: every number of concepts is compiled anew."""

OP_OF = {ox.OR: UNION, ox.AND: INTERSECTION, ox.AND_NOT: DIFFERENCE}
HUGE_BITS = 40


def ops_of(operators: Sequence[Operator]) -> OperatorSet:
    """The operators as the bounds take them."""
    return OperatorSet(ox.OR in operators, ox.AND in operators, ox.AND_NOT in operators)


def flat(masks: np.ndarray, inside: np.ndarray, outside: np.ndarray) -> Case:
    """A case of one sample, from masks `[concept, column]` and counts by column."""
    return Case(masks[:, None], inside[None].astype(np.int64), outside[None].astype(np.int64))


def by_sets(n_concepts: int, rows: dict[str, tuple[int, int]]) -> Case:
    """A case from concept sets, written as letters, with their active and inactive locations."""
    masks = np.array([["abcdef"[k] in name for name in rows] for k in range(n_concepts)])
    counts = np.array(list(rows.values()))
    return flat(masks, counts[:, 0], counts[:, 1])


DIRECTED = {
    # A source outside the filter is not filtered: `(a AND NOT d) OR b` has W = 20 at v = 0.5.
    "outside the filter": by_sets(N, {"a": (10, 0), "ad": (0, 10), "bd": (10, 0), "d": (0, 100)}),
    # What x shares with both is inside once: `(a OR b) AND NOT c` has W = 35 at v = 0.5.
    "shared inside": by_sets(
        N, {"abc": (10, 0), "ac": (0, 40), "bc": (0, 40), "a": (30, 0), "b": (5, 0)}
    ),
    # Three filters that share nothing: each removes ten extras.
    "star": by_sets(N, {"a": (10, 0), "ab": (0, 10), "ac": (0, 10), "ad": (0, 10), "e": (9, 1)}),
    # One filter for three sources: `((a OR b) OR c) AND NOT d` has no extras.
    "one filter for all": by_sets(
        N,
        {
            "a": (30, 0),
            "b": (30, 0),
            "c": (30, 0),
            "ad": (0, 40),
            "bd": (0, 40),
            "cd": (0, 40),
        },
    ),
    # An AND takes all extras away: `((a OR b) AND d) OR e`.
    "one AND for all": by_sets(
        N,
        {
            "a": (0, 100),
            "b": (0, 100),
            "d": (0, 100),
            "ad": (10, 0),
            "bd": (10, 0),
            "e": (5, 0),
        },
    ),
    # Extras that two of three sources share, so that each pays for half.
    "shared extras": by_sets(
        N,
        {
            "a": (20, 0),
            "b": (20, 0),
            "c": (20, 0),
            "ab": (0, 10),
            "bc": (0, 10),
            "ac": (0, 10),
            "e": (5, 0),
        },
    ),
    # The outermost of `(a OR b) OR c` pays for nothing: the others have all of its extras.
    "paid by others": by_sets(
        N, {"a": (20, 0), "b": (20, 0), "c": (10, 0), "ac": (0, 10), "bc": (0, 10)}
    ),
    "nested": by_sets(
        N,
        {"a": (5, 3), "ab": (2, 7), "abc": (4, 0), "abcd": (1, 9), "abcde": (6, 2), "f": (1, 1)},
    ),
    "duplicate": by_sets(
        N, {"abc": (7, 2), "de": (3, 3), "abcde": (1, 4), "f": (2, 0), "": (3, 9)}
    ),
    "disjoint": by_sets(
        N, {"a": (9, 1), "b": (8, 2), "c": (7, 3), "d": (6, 4), "e": (5, 5), "f": (4, 6)}
    ),
    "empty": by_sets(N, {"a": (3, 1), "ab": (2, 2), "": (4, 4)}),
    "full": by_sets(N, {"abcdef": (5, 5), "bcdef": (3, 1), "cdef": (0, 8)}),
    "all pairs": by_sets(
        N,
        {
            a + b: (int(3 * k % 7), int(5 * k % 11))
            for k, (a, b) in enumerate(product("abcdef", repeat=2), 1)
            if a < b
        },
    ),
    # All extras are shared, so that each of three sources pays for a third of them.
    "a third each": by_sets(
        N, {"ad": (10, 0), "bd": (10, 0), "cd": (10, 0), "abc": (0, 15), "d": (0, 16)}
    ),
    # In `(d OR e) AND a` d and e share the extras that are left.
    "half each": by_sets(
        N, {"ad": (10, 0), "ae": (20, 0), "ade": (0, 20), "a": (0, 8), "de": (0, 9), "e": (0, 30)}
    ),
    # Each of three filters removes extras of its own: all three are needed.
    "three filters": by_sets(
        N, {"a": (10, 0), "ab": (0, 10), "ac": (0, 10), "ad": (0, 10), "e": (8, 0)}
    ),
    # In `(b OR c) AND d` b and c share extras, which count once.
    "counted once": by_sets(
        N,
        {"cd": (13, 0), "abd": (10, 0), "ad": (0, 22), "abc": (0, 19), "abcd": (0, 11)},
    ),
    # In `((b AND NOT d) OR a) AND NOT c` c removes extras that a brought, none of b's.
    "removed of the third": by_sets(N, {"b": (0, 33), "acd": (0, 14), "abd": (4, 0), "bd": (4, 0)}),
    # In `((b OR d) AND NOT a) OR c` c brings back what a took away.
    "brought back": by_sets(
        N, {"b": (4, 0), "a": (0, 20), "abc": (6, 0), "d": (0, 40), "ab": (0, 25)}
    ),
    "one location": by_sets(N, {"abc": (1, 0)}),
    "never paid twice": by_sets(
        N, {"abcdef": (0, 60), "a": (10, 0), "b": (10, 0), "c": (10, 0), "d": (10, 0)}
    ),
}


def any_case(rng: np.random.Generator, n_concepts: int = N) -> Case:
    """A random case of many columns: single locations, small counts, or huge ones."""
    case = random_case(rng, n_concepts, int(rng.integers(1, 4)))
    masks = case.masks.reshape(n_concepts, -1)
    columns = masks.shape[1]
    kind = rng.integers(4)
    if kind == 0:
        inside, outside = case.inside.reshape(-1), case.outside.reshape(-1)
    elif kind < 3:
        inside, outside = rng.integers(0, 10, (2, columns)) * (rng.random((2, columns)) < 0.7)
    else:
        inside, outside = rng.integers(0, 2 ** rng.integers(2, HUGE_BITS, (2, columns)))
    inside[0] += not inside.any()
    return flat(masks, inside, outside)


def tiny_unit(rng: np.random.Generator, n_concepts: int = N) -> Case:
    """A unit of a few locations, in concepts of as few and of up to 2**44, that overlap."""
    columns = int(rng.integers(6, 25))
    masks = rng.random((n_concepts, columns)) < rng.choice([0.2, 0.5])
    inside = np.zeros(columns, np.int64)
    np.add.at(inside, rng.integers(columns, size=rng.integers(1, 11)), 1)
    outside = rng.integers(0, 2 ** rng.choice([1, 3, 30, 40, 44], columns))
    return flat(masks, inside, outside)


def some_v(rng: np.random.Generator) -> float:
    """What an extra costs: anything in [0, 1], with its ends, and from a millionth to a million.

    IoUs are below 1, slopes of a trade-off are not.
    """
    if rng.random() < 0.3:
        return float(10.0 ** rng.uniform(-6, 6))
    chosen = rng.integers(8)
    ends = (0.0, 1.0, 2.0**-60, 0.5)
    return ends[chosen] if chosen < len(ends) else float(rng.random() ** rng.integers(1, 4))


def some_steps(
    rng: np.random.Generator, operators: Sequence[Operator], n_concepts: int = N, most: int = 2
) -> tuple[Step, ...]:
    """Outer steps of distinct concepts; often none."""
    count = int(rng.choice([0, 0, *range(1, most + 1)]))
    concepts = rng.permutation(n_concepts)[:count].tolist()
    used = [OP_OF[operator] for operator in operators]
    return tuple(Step(used[rng.integers(len(used))], k) for k in concepts)


@dataclass(frozen=True, eq=False)
class Chains:
    """All chains of one length inside a subproblem, as written, with their counts there."""

    concepts: np.ndarray
    ops: np.ndarray
    i: np.ndarray
    e: np.ndarray
    masks: np.ndarray

    def __len__(self) -> int:
        return len(self.i)

    def take(self, rows: np.ndarray) -> "Chains":
        return Chains(
            *(getattr(self, part)[rows] for part in ("concepts", "ops", "i", "e", "masks"))
        )

    def w(self, v: float) -> np.ndarray:
        """W = I − v·E, rounded."""
        return self.i - v * self.e

    def exact_w(self, row: int, v: float) -> Fraction:
        return int(self.i[row]) - Fraction(v) * int(self.e[row])

    def text(self, row: int) -> str:
        parts = ["abcdef"[self.concepts[row, 0]]]
        for op, concept in zip(self.ops[row], self.concepts[row, 1:], strict=True):
            parts.append(f"{OPERATORS[op]} {'abcdef'[concept]}")
        return " ".join(parts)


@dataclass(frozen=True, eq=False)
class Setting:
    """A subproblem in a case, and everything that can be written there, by enumeration."""

    case: Case
    operators: tuple[Operator, ...]
    steps: tuple[Step, ...]
    v: float

    @cached_property
    def problem(self) -> Problem:
        return Problem(self.case.table, self.case.neuron, N, self.operators)

    @cached_property
    def sub(self) -> Subproblem:
        sub = SubproblemCache(self.problem).at(Prefix(self.steps))
        sub.keep(np.ones(N, bool))  # Bounds hold for absent concepts, too.
        return sub

    @cached_property
    def residual(self) -> np.ndarray:
        """Columns that the outer steps leave residual."""
        left = np.ones(self.case.columns.shape[1], bool)
        for step in self.steps:
            member = self.case.columns[step.concept]
            left &= member if step.op == INTERSECTION else ~member
        return left

    @cached_property
    def free(self) -> np.ndarray:
        """Concepts that no outer step uses."""
        return np.setdiff1d(np.arange(N), [step.concept for step in self.steps])

    @cached_property
    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        """Active and inactive locations by column, 0 where all is captured."""
        left = self.residual
        return self.case.inside.reshape(-1) * left, self.case.outside.reshape(-1) * left

    def chains(self, length: int) -> Chains:
        """All chains of exactly this many concepts."""
        return self._by_length(length)[length]

    def _by_length(self, length: int) -> dict[int, Chains]:
        known = self.__dict__.setdefault("_chains", {})
        if length not in known:
            known.update(enumerate_chains(self, length))
        return known


def enumerate_chains(setting: Setting, length: int) -> Iterator[tuple[int, Chains]]:
    """Chains of up to `length` concepts in a subproblem, by number of concepts."""
    inside, outside = setting.counts
    codes = np.array([OP_OF[operator] for operator in setting.operators])
    masks = setting.case.columns[setting.free]
    by_length: dict[int, list[Chains]] = {k: [] for k in range(1, length + 1)}
    for part in enumerate_formulas(masks, inside, outside, length, setting.operators):
        by_length[part.concepts.shape[1]].append(
            Chains(
                setting.free[part.concepts],
                codes[part.operators],
                part.intersections,
                part.extras,
                part.masks & setting.residual,
            )
        )
    for k, parts in by_length.items():
        # Longer chains than there are concepts do not exist.
        none = Chains(
            np.empty((0, k), int),
            np.empty((0, k - 1), int),
            np.empty(0, int),
            np.empty(0, int),
            np.empty((0, masks.shape[1]), bool),
        )
        yield (
            k,
            Chains(
                *(
                    np.concatenate([getattr(chains, name) for chains in [none, *parts]])
                    for name in ("concepts", "ops", "i", "e", "masks")
                )
            ),
        )


def tiny_setting(rng: np.random.Generator, operators: tuple[Operator, ...]) -> Setting:
    """A unit of a few locations, bounded at the IoU of a formula, or at any."""
    case, v = tiny_unit(rng), some_v(rng)
    if rng.random() < 0.7:
        a, b = case.columns[rng.permutation(N)[:2]]
        held = (a | b, a & b, a & ~b)[rng.integers(3)]
        inside, extras = (int(part.reshape(-1)[held].sum()) for part in (case.inside, case.outside))
        v = inside / (case.neuron.size + extras)
    return Setting(case, operators, some_steps(rng, operators), v)


def some_setting(rng: np.random.Generator, operators: tuple[Operator, ...]) -> Setting:
    """A random case, a directed one or a tiny unit, with thresholds and outer steps."""
    kind = rng.random()
    if kind > 0.8:
        return tiny_setting(rng, operators)
    if kind < 0.3:
        name = rng.choice(list(DIRECTED))
        case = DIRECTED[str(name)]
        if rng.random() < 0.5:  # the same with its concepts in another order
            case = replace(case, masks=case.masks[rng.permutation(N)])
    else:
        case = any_case(rng)
    return Setting(case, operators, some_steps(rng, operators), some_v(rng))


def assert_bounded(chains: Chains, bounds: np.ndarray, setting: Setting, what: str) -> None:
    """Every chain's W is at most its bound, in exact numbers."""
    assert not np.isnan(bounds).any()
    # Only where the two are as close as float64 tells them apart, exact numbers are needed.
    close = 2.0**-50 * (chains.i + setting.v * chains.e)
    suspects = np.flatnonzero(chains.w(setting.v) > bounds - close)
    for row in suspects.tolist():
        exact = chains.exact_w(row, setting.v)
        held = np.isfinite(bounds[row]) and exact <= Fraction(float(bounds[row]))
        assert held, (
            f"{what}: {chains.text(row)} has W = {float(exact)!r}, above {bounds[row]!r}, inside "
            f"{setting.steps} at v = {setting.v!r} in\n{setting.case}"
        )


def truth_tables(chains: Chains) -> np.ndarray:
    """Each chain's truth table over its concepts in ascending order, as an integer.

    Chains of the same concepts with the same table are one formula written in several ways.
    """
    length = chains.concepts.shape[1]
    sub_of = np.argsort(np.argsort(chains.concepts, axis=1), axis=1)
    rows = np.arange(2**length)
    bit = (rows[None, None, :] >> sub_of[:, :, None]) & 1 == 1  # [chain, concept, row]
    held = bit[:, 0]
    for k in range(1, length):
        op = chains.ops[:, k - 1][:, None]
        held = np.select(
            [op == UNION, op == INTERSECTION],
            [held | bit[:, k], held & bit[:, k]],
            held & ~bit[:, k],
        )
    return held @ (1 << rows)


def groups(chains: Chains) -> np.ndarray:
    """The number of the formula that each chain is a way to write."""
    sets = np.sort(chains.concepts, axis=1) @ N ** np.arange(chains.concepts.shape[1])
    return np.unique(np.column_stack([sets, truth_tables(chains)]), axis=0, return_inverse=True)[
        1
    ].reshape(-1)


def is_new(setting: Setting, chains: Chains) -> np.ndarray:
    """Which chains hold elsewhere than every formula of fewer concepts, where there is anything."""
    there = setting.counts[0] + setting.counts[1] > 0
    shorter = {b"", np.packbits(np.zeros(there.sum(), bool)).tobytes()}
    for length in range(1, chains.concepts.shape[1]):
        packed = np.packbits(setting.chains(length).masks[:, there], axis=1)
        shorter |= {row.tobytes() for row in packed}
    return np.array(
        [row.tobytes() not in shorter for row in np.packbits(chains.masks[:, there], axis=1)], bool
    )
