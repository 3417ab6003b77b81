"""The best formula of every set of concepts, by taking its outermost concept off.

Give every location a weight; the weight of a formula is that of the locations where it holds. Let
(p, q, r) be the bits of the last operator of a chain `L o c`. At a location that c does not hold,
the chain has what p says where L holds, and nothing elsewhere; at one that c holds, what r says
where L holds, and q elsewhere. So its weight is

    q Σ w(c = 1)  +  the weight of L, where locations weigh  p w(c = 0) + (r - q) w(c = 1),

summed over c. What is left is the same question with one concept less. Which concepts were taken
off, each by what kind of sum, names it, whatever their order was; so few questions are asked, and
each once. Weights are integers, and nothing is rounded.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from optexp_jax.formulas.operators import Operator

Weights = Int64[np.ndarray, "sets units"]
Asked = tuple[int, ...]
"""For each concept of a set: `ASKED`, `HELD`, or how it was taken off, as a place in `_kinds`."""
ASKED, HELD = 0, 1


@dataclass(frozen=True)
class _Kind:
    """How a concept is taken off: locations weigh `without` w(c = 0) + `with_it` w(c = 1)."""

    without: int
    with_it: int


@dataclass(frozen=True)
class _Step:
    """An operator before one of the concepts: what it adds, and the question that it leaves."""

    added: Asked | None
    left: Asked


class BestChains:
    """The highest weight of a chain of all of so many concepts, for many sets and units at once."""

    def __init__(self, size: int, operators: tuple[Operator, ...]):
        self._size = size
        held, asked = _Kind(0, 1), None
        self._kinds: list[_Kind | None] = [asked, held]
        for operator in operators:
            if _kind(operator) not in self._kinds:
                self._kinds.append(_kind(operator))
        used = [ASKED, *sorted({self._kinds.index(_kind(operator)) for operator in operators})]
        questions = [
            question for question in itertools.product(used, repeat=size) if ASKED in question
        ]
        questions.sort(key=lambda question: question.count(ASKED))
        self._steps = {
            question: [
                _Step(_replaced(question, c, HELD) if operator.q else None, left)
                for c in range(size)
                if question[c] == ASKED
                for operator in operators
                for left in [_replaced(question, c, self._kinds.index(_kind(operator)))]
            ]
            for question in questions
        }

    @property
    def work(self) -> int:
        """Passes over arrays of one number a set and unit, about."""
        sums = len(self._kinds) ** self._size
        return sums + sum(3 * len(steps) for steps in self._steps.values())

    @property
    def held_at_once(self) -> int:
        """Arrays of one number a set and unit that are held at once."""
        return len(self._kinds) ** self._size + len(self._steps)

    def highest(self, shared: Mapping[Asked, Weights]) -> Weights:
        """The highest weights, from those of all locations that hold some of a set's concepts.

        `shared` has a key for every choice of one concept or more: HELD where one is chosen, ASKED
        elsewhere.
        """
        sums = self._all_sums(dict(shared))
        best: dict[Asked, Weights] = {}
        for question, steps in self._steps.items():
            if question.count(ASKED) == 1:  # the innermost concept, a formula by itself
                best[question] = sums[_replaced(question, question.index(ASKED), HELD)]
                continue
            reached = (
                best[step.left] if step.added is None else sums[step.added] + best[step.left]
                for step in steps
            )
            highest = next(reached).copy()
            for weights in reached:
                np.maximum(highest, weights, out=highest)
            best[question] = highest
        return best[(ASKED,) * self._size]

    def _all_sums(self, sums: dict[Asked, Weights]) -> dict[Asked, Weights]:
        """Sums of weights with some concepts taken off, others held, over all of the rest."""
        for c in range(self._size):
            for question in list(sums):
                if question[c] != ASKED or HELD not in question:
                    continue
                everywhere, held = sums[question], sums[_replaced(question, c, HELD)]
                for place, kind in enumerate(self._kinds):
                    if kind is None or place == HELD:
                        continue
                    sums[_replaced(question, c, place)] = _sum(kind, everywhere - held, held)
        return sums


def subsets(size: int) -> list[Asked]:
    """Every choice of one concept or more of a set, as `BestChains.highest` names them."""
    return [chosen for chosen in itertools.product((ASKED, HELD), repeat=size) if any(chosen)]


def _sum(kind: _Kind, without: Weights, with_it: Weights) -> Weights:
    """What locations weigh after a concept was taken off."""
    if not kind.with_it:
        return without
    return kind.without * without + kind.with_it * with_it


def _kind(operator: Operator) -> _Kind:
    return _Kind(int(operator.p), int(operator.r) - int(operator.q))


def _replaced(question: Asked, place: int, value: int) -> Asked:
    return (*question[:place], value, *question[place + 1 :])
