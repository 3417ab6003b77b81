"""The oracle: every left-deep formula, scored on plain boolean masks.

It is what every search is compared with, so it shares no code with them: no signatures, no device,
no bounds, no canonical order of enumeration, nothing but numpy.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Bool, Int, Int64

from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import Operator

CHUNK_CELLS = 2**24
"""Mask cells that are made at once."""


@dataclass(frozen=True, eq=False)
class Scored:
    """Some of the formulas of one length, with their exact scores."""

    concepts: Int[np.ndarray, "formulas length"]
    operators: Int[np.ndarray, "formulas length_minus_one"]
    intersections: Int64[np.ndarray, " formulas"]
    extras: Int64[np.ndarray, " formulas"]
    masks: Bool[np.ndarray, "formulas columns"]

    def formula(self, row: int, names: Sequence[str], operators: Sequence[Operator]) -> Formula:
        return Formula(
            tuple(str(names[k]) for k in self.concepts[row]),
            tuple(operators[k] for k in self.operators[row]),
        )


@dataclass(frozen=True)
class OracleResult:
    """The best formula (shortest, then smallest, among equals) and how many were tried."""

    formula: Formula | None
    intersection: int
    extras: int
    tried: int


def count_formulas(n_concepts: int, length: int, n_operators: int) -> int:
    """How many chains of at most `length` distinct concepts there are."""
    total, of_this_length = 0, n_concepts
    for used in range(1, min(length, n_concepts) + 1):
        total += of_this_length
        of_this_length *= n_operators * (n_concepts - used)
    return total


def enumerate_formulas(
    masks: Bool[np.ndarray, "concepts columns"],
    inside: Int64[np.ndarray, " columns"],
    outside: Int64[np.ndarray, " columns"],
    length: int,
    operators: Sequence[Operator],
) -> Iterator[Scored]:
    """Every formula once, shorter ones first.

    A column is a location, or several that carry the same concepts; `inside` and `outside` tell how
    many of its locations are active and not.
    """
    n_concepts = len(masks)
    level = _score(
        np.arange(n_concepts)[:, None], np.empty((n_concepts, 0), np.int64), masks, inside, outside
    )
    yield level
    longest = min(length, n_concepts)
    for n in range(2, longest + 1):
        chunks: list[Scored] = []
        step = max(1, CHUNK_CELLS // (masks.size * len(operators)))
        for start in range(0, len(level.masks), step):
            chunk = _extend(level, slice(start, start + step), masks, inside, outside, operators)
            yield chunk
            if n < longest:
                chunks.append(chunk)
        if n == longest:
            return
        level = Scored(
            *(
                np.concatenate([getattr(chunk, part) for chunk in chunks])
                for part in ("concepts", "operators", "intersections", "extras", "masks")
            )
        )


def _extend(
    level: Scored,
    rows: slice,
    masks: Bool[np.ndarray, "concepts columns"],
    inside: Int64[np.ndarray, " columns"],
    outside: Int64[np.ndarray, " columns"],
    operators: Sequence[Operator],
) -> Scored:
    """All formulas with one more concept, for some formulas of a level."""
    left, used, before = level.masks[rows], level.concepts[rows], level.operators[rows]
    grown = [operator(left[:, None, :], masks[None, :, :]) for operator in operators]
    n_rows, n_concepts = len(left), len(masks)
    fresh = (used[:, None, :] != np.arange(n_concepts)[None, :, None]).all(axis=2)
    row, concept = np.nonzero(fresh)
    return _score(
        np.concatenate([np.column_stack([used[row], concept])] * len(operators)),
        np.concatenate(
            [np.column_stack([before[row], np.full(len(row), k)]) for k in range(len(operators))]
        ),
        np.concatenate([new.reshape(n_rows, n_concepts, -1)[row, concept] for new in grown]),
        inside,
        outside,
    )


def _score(
    concepts: Int[np.ndarray, "formulas length"],
    operators: Int[np.ndarray, "formulas length_minus_one"],
    masks: Bool[np.ndarray, "formulas columns"],
    inside: Int64[np.ndarray, " columns"],
    outside: Int64[np.ndarray, " columns"],
) -> Scored:
    return Scored(concepts, operators, masks @ inside, masks @ outside, masks)


def best_formula(
    masks: Bool[np.ndarray, "concepts columns"],
    inside: Int64[np.ndarray, " columns"],
    outside: Int64[np.ndarray, " columns"],
    names: Sequence[str],
    length: int,
    operators: Sequence[Operator],
) -> OracleResult:
    """The formula of highest IoU, by trying them all.

    Ties are settled by length, then by the number of unverified pairs, then by canonical form.
    """
    neuron = int(inside.sum())
    there = inside + outside > 0
    held = {str(name): mask & there for name, mask in zip(names, masks, strict=True)}
    best: Formula | None = None
    best_length = tried = 0
    best_intersection, best_union = 0, neuron
    for scored in enumerate_formulas(masks, inside, outside, length, operators):
        n = scored.concepts.shape[1]
        tried += len(scored.intersections)
        ious = scored.intersections / np.maximum(neuron + scored.extras, 1)
        highest = max(float(ious.max()), best_intersection / max(best_union, 1))
        # Only what rounding could have put level with the highest is compared in integers.
        for row in np.flatnonzero((ious >= highest * (1 - 1e-12)) & (ious > 0)).tolist():
            intersection = int(scored.intersections[row])
            union = neuron + int(scored.extras[row])
            ahead = intersection * best_union - best_intersection * union
            # Shorter formulas come first, so one that is longer and only level has lost.
            if ahead < 0 or (ahead == 0 and best_length < n):
                continue
            challenger = scored.formula(row, names, operators)
            if ahead == 0 and best is not None:
                pairs, fewest = (count_unverified(each, held) for each in (challenger, best))
                if (pairs, challenger) >= (fewest, best):
                    continue
            best, best_length = challenger, n
            best_intersection, best_union = intersection, union
    return OracleResult(best, best_intersection, best_union - neuron, tried)


def best_by(
    masks: Bool[np.ndarray, "concepts columns"],
    inside: Int64[np.ndarray, " columns"],
    outside: Int64[np.ndarray, " columns"],
    names: Sequence[str],
    length: int,
    operators: Sequence[Operator],
    key: Callable[[int, int], Fraction],
) -> OracleResult:
    """The formula with the highest `key(intersection, extras)`, by trying them all.

    Formulas that overlap nothing do not count. Ties are settled as in `best_formula`.
    """
    there = inside + outside > 0
    held = {str(name): mask & there for name, mask in zip(names, masks, strict=True)}
    known: dict[tuple[int, int], Fraction] = {}
    best = OracleResult(None, 0, 0, 0)
    highest: Fraction | None = None
    tried = 0
    for scored in enumerate_formulas(masks, inside, outside, length, operators):
        tried += len(scored.intersections)
        counts = zip(scored.intersections.tolist(), scored.extras.tolist(), strict=True)
        for row, (intersection, extras) in enumerate(counts):
            if not intersection:
                continue
            place = intersection, extras
            if place not in known:
                known[place] = key(intersection, extras)
            if highest is not None and known[place] < highest:
                continue
            level = highest is not None and known[place] == highest
            # Shorter formulas come first, so one that is longer and only level has lost.
            if level and best.formula is not None and len(best.formula) < scored.concepts.shape[1]:
                continue
            formula = scored.formula(row, names, operators)
            if level and best.formula is not None:
                pairs, fewest = (count_unverified(each, held) for each in (formula, best.formula))
                if (pairs, formula) >= (fewest, best.formula):
                    continue
            best, highest = OracleResult(formula, intersection, extras, 0), known[place]
    return OracleResult(best.formula, best.intersection, best.extras, tried)


def count_unverified(formula: Formula, held: Mapping[str, Bool[np.ndarray, " columns"]]) -> int:
    """Pairs of a filter and a part of what stands before it of which it removes nothing.

    `held` tells in which columns that have locations each concept holds. A part is the first
    concept, with those that AND joins before there is another part, or a concept that OR joins;
    filters count once there are two parts, or if they make a part themselves, as XOR does.
    """
    chain = formula.canonical
    core = [held[chain.concepts[0]]]
    joined: list[Bool[np.ndarray, " columns"]] = []
    pairs = 0
    for operator, name in zip(chain.operators, chain.concepts[1:], strict=True):
        leaves = np.where(held[name], operator.r, operator.p)
        narrows = not joined and (operator.p, operator.q, operator.r) == (0, 0, 1)
        if narrows:
            core.append(held[name])
        elif not (operator.p and operator.r):
            parts = [np.logical_and.reduce(core), *joined]
            if operator.q or joined:
                pairs += sum(not (part & ~leaves).any() for part in parts)
        if operator.q:
            joined.append(held[name])
    return pairs
