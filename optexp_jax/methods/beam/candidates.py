"""What beam members can become: each joined to each concept, without what is not new."""

import functools
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import Operator, operator_bits
from optexp_jax.methods.beam.queue import Member


@dataclass(frozen=True, eq=False)
class Candidates:
    """Members joined to concepts, highest estimate first."""

    member: Int64[np.ndarray, " candidates"]
    """Which of the extended members."""
    operator: Int64[np.ndarray, " candidates"]
    concept: Int64[np.ndarray, " candidates"]
    estimate: Float64[np.ndarray, " candidates"]

    def __len__(self) -> int:
        return len(self.estimate)

    def __getitem__(self, rows: slice) -> "Candidates":
        parts = (self.member, self.operator, self.concept, self.estimate)
        return Candidates(*(part[rows] for part in parts))


def degenerate(
    apart: Bool[np.ndarray, "members concepts"], operators: tuple[Operator, ...]
) -> Bool[np.ndarray, "members operators concepts"]:
    """Candidates that are nothing new: with disjoint sides `P AND c` is empty, `P AND NOT c` is P.

    `apart` tells which concepts a member is disjoint from.
    """
    bits = operator_bits(operators)
    adds = bits[:, 0] & bits[:, 1]
    return apart[:, None, :] & ~adds[:, None]


def new_candidates(
    members: list[Member],
    left_out: Bool[np.ndarray, "members operators concepts"],
    operators: tuple[Operator, ...],
) -> Bool[np.ndarray, "members operators concepts"]:
    """Which members, joined by which operators to which concepts, make formulas to look at.

    Of candidates that are the same formula one is made.
    """
    made = ~left_out
    held = np.array([member.concepts for member in members])
    made[np.arange(len(members))[:, None], :, held] = False
    _drop_twins(members, operators, made)
    return made


def in_order(
    made: Bool[np.ndarray, "members operators concepts"],
    estimates: Float64[np.ndarray, "members operators concepts"],
    by_name: Int64[np.ndarray, " concepts"],
) -> Candidates:
    """Candidates as they are visited: by estimate, then by member, operator and concept name.

    `by_name` are the concepts sorted by name, so nothing depends on the order they were given in.
    """
    chosen = np.flatnonzero(made[:, :, by_name])
    values = estimates[:, :, by_name].reshape(-1)[chosen]
    order = np.argsort(-values, kind="stable")
    member, operator, rank = np.unravel_index(chosen[order], made.shape)
    return Candidates(member, operator, by_name[rank], values[order])


def _drop_twins(
    members: list[Member],
    operators: tuple[Operator, ...],
    made: Bool[np.ndarray, "members operators concepts"],
) -> None:
    """Keep one of the candidates that are the same formula.

    They come from members that hold the same concepts, or all but one. Whether two are equal
    depends on the pattern of the chains, not on which concepts these are, so few are compared.
    """
    if all(len(member) == 1 for member in members):
        _drop_twins_of_concepts(members, operators, made)
        return
    for b, second in enumerate(members):
        for a, first in enumerate(members[:b]):
            missing = [c for c in second.concepts if c not in first.concepts]
            if len(missing) > 1:
                continue
            extra = [c for c in first.concepts if c not in second.concepts]
            numbers = {c: k for k, c in enumerate((*first.concepts, *missing))}
            pattern = tuple(numbers[c] for c in second.concepts)
            for one, other in _twins(operators, first.operators, second.operators, pattern):
                if missing:
                    made[b, other, extra[0]] &= not made[a, one, missing[0]]
                else:
                    made[b, other] &= ~made[a, one]


def _drop_twins_of_concepts(
    members: list[Member],
    operators: tuple[Operator, ...],
    made: Bool[np.ndarray, "members operators concepts"],
) -> None:
    """The same for single concepts, of which there are most, all pairs at once."""
    concepts = [member.concepts[0] for member in members]
    later = np.tri(len(members), k=-1, dtype=np.bool_)  # [second, first]
    for one, other in _twins(operators, (), (), (1,)):
        made[:, other, concepts] &= ~(later & made[:, one, concepts].T)


@functools.lru_cache(maxsize=4096)
def _twins(
    operators: tuple[Operator, ...],
    first_steps: tuple[int, ...],
    second_steps: tuple[int, ...],
    second_concepts: tuple[int, ...],
) -> tuple[tuple[int, int], ...]:
    """Pairs of operators with which two chains become the same formula.

    The first chain has concepts 0, 1, 2, ... Each takes the one concept that only the other has, or
    both take the same new one.
    """
    length = len(second_concepts)
    names = [f"c{k}" for k in range(length + 1)]
    first = Formula(tuple(names[:length]), tuple(operators[k] for k in first_steps))
    second = Formula(
        tuple(names[k] for k in second_concepts), tuple(operators[k] for k in second_steps)
    )
    (lacking,) = set(names) - set(second.concepts)
    return tuple(
        (a, b)
        for a, one in enumerate(operators)
        for b, other in enumerate(operators)
        # Equal formulas use each operator equally often.
        if sorted((*first_steps, a)) == sorted((*second_steps, b))
        and first.then(one, names[length]) == second.then(other, lacking)
    )
