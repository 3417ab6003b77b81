"""All formulas that noise could have made the best: complete, because the search proves it."""

import dataclasses
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.scores import Score
from optexp_jax.explain import check_question, explain_counts, firing
from optexp_jax.explanation import Status
from optexp_jax.formulas.formula import Formula
from optexp_jax.methods.base import AbstractMethod
from optexp_jax.methods.optimal import Optimal


@dataclass(frozen=True)
class ConfidenceMember:
    """A formula of a confidence set, with its score on all images."""

    formula: Formula
    score: Score


@dataclass(frozen=True)
class ConfidenceSet:
    """The formulas, as sets of locations, whose IoU is at most `noise` below the best."""

    members: tuple[ConfidenceMember, ...]
    """Best first."""
    noise: Fraction
    complete: bool
    """Whether these are proved to be all of them."""

    @property
    def in_all(self) -> tuple[str, ...]:
        """Concepts that every member has."""
        return self._concepts(lambda n: n == len(self.members))

    @property
    def in_some(self) -> tuple[str, ...]:
        """Concepts that some members have and others do not, the most frequent first."""
        return self._concepts(lambda n: n < len(self.members))

    @property
    def simplest(self) -> ConfidenceMember:
        """The member with the fewest concepts; of several, the one with the highest IoU."""
        return min(self.members, key=lambda each: len(each.formula))  # they are best first

    def _concepts(self, wanted: Callable[[int], bool]) -> tuple[str, ...]:
        seen = Counter(name for each in self.members for name in each.formula.concepts)
        ordered = sorted(seen.items(), key=lambda item: (-item[1], item[0]))
        return tuple(name for name, n in ordered if wanted(n))

    def __str__(self) -> str:
        n = len(self.members)
        size = f"{n} formula{'' if n == 1 else 's'}" + ("" if self.complete else " or more")
        return (
            f"{size} within {float(self.noise):.4f} of the best; in all: "
            f"{', '.join(self.in_all) or 'no concept'}; simplest: {self.simplest.formula}"
        )


def confidence_set(
    table: ConceptTable,
    neuron: Any,
    noise: Fraction | float | int,
    method: AbstractMethod | None = None,
    *,
    most: int = 1000,
) -> ConfidenceSet:
    """All formulas with IoU >= best − noise, at most `most` of them.

    `noise` is `Stability.noise()`. Formulas that hold at the same locations are one member.
    """
    method = Optimal() if method is None else method
    check_question(table, method)
    if not isinstance(method, Optimal):
        raise TypeError(f"Only Optimal lists all formulas near the best one; got {method!r}.")
    margin = Fraction(noise)
    if margin < 0:
        raise ValueError(f"noise must not be negative; got {noise!r}.")
    counts = firing(table, neuron)
    best = explain_counts(table, counts, dataclasses.replace(method, top_k=1, within=None))
    if best.formula is None:
        raise ValueError("No concept overlaps the neuron, so no formula is better than another.")
    share = _share_of_at_least(margin / best.score.ratio)
    listing = dataclasses.replace(method, top_k=1, within=share, max_within=most)
    found = explain_counts(table, counts, listing)
    assert found.formula is not None
    listed = [
        ConfidenceMember(found.formula, found.score),
        *(
            ConfidenceMember(each.formula, Score(each.intersection, each.union))
            for each in found.runners_up
        ),
    ]
    lowest = found.score.ratio - margin
    return ConfidenceSet(
        tuple(each for each in listed if each.score.ratio >= lowest),
        margin,
        complete=found.status is Status.OPTIMAL and not found.within_truncated and lowest > 0,
    )


def _share_of_at_least(share: Fraction) -> float:
    """The smallest number below 1 that `Optimal(within=...)` reads as at least the share.

    What is listed too much is taken out afterwards, in exact numbers.
    """
    most = math.nextafter(1.0, 0.0)
    given = min(float(share), most)
    while Fraction(repr(given)) < share and given < most:
        given = math.nextafter(given, 1.0)
    return given
