"""An independent check of stored results: scores location by location, and optima proved again."""

import enum
import itertools
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.explanation import Explanation, Status
from optexp_jax.formula import Formula
from optexp_jax.methods import AbstractMethod, NetDissect
from optexp_jax.operators import DEFAULT_OPERATORS, Operator
from optexp_jax.runs.raw_maps import RawMaps, truth
from optexp_jax.runs.reproof import reprove
from optexp_jax.runs.run import Run
from optexp_jax.runs.sources import UnitSource
from optexp_jax.scores import Score


class Claim(enum.StrEnum):
    """What became of a result's claim about all other formulas."""

    REPROVED = "optimality re-proved"
    NOT_REPROVED = "optimality not re-proved"
    BOUND_HOLDS = "upper bound holds"
    NOT_CLAIMED = "optimality not claimed"
    DISPROVED = "optimality disproved"


@dataclass(frozen=True)
class UnitCheck:
    """What was checked of one unit, and what is wrong with it."""

    unit: int
    claim: Claim
    how: str
    faults: tuple[str, ...] = ()
    seconds: float = 0.0
    on_data: bool = False
    """Whether scores were counted on the dataset's label maps too."""

    @property
    def good(self) -> bool:
        return not self.faults

    def __str__(self) -> str:
        if self.faults:
            return "WRONG: " + "; ".join(self.faults)
        checked = "IoU checked on the dataset" if self.on_data else "IoU checked"
        return f"{checked}, {self.claim}" + (f" ({self.how})" if self.how else "")


def verify_run(
    run: Run,
    source: UnitSource | None = None,
    *,
    units: Collection[int] | None = None,
    time_limit: float = 60.0,
    raw: RawMaps | None = None,
) -> Iterator[UnitCheck]:
    """Check every explained unit of a run, or some, each proof within `time_limit` seconds.

    With `raw`, formulas are also scored on the dataset's label maps, apart from the table.
    """
    opened = run.open_source() if source is None else run.check_source(source)
    method = run.method
    chosen = {
        result.unit: result.explanation
        for result in run.results
        if result.explanation is not None and (units is None or result.unit in units)
    }
    groups = [list(chosen)] if raw is None else raw.groups(list(chosen))
    for group in groups:
        wanted = {unit: [formula for formula, _ in _ranked(chosen[unit])] for unit in group}
        scores = {} if raw is None else raw.scores(opened, wanted)
        for unit in group:
            yield check_unit(opened, unit, chosen[unit], method, time_limit, scores.get(unit))


def check_unit(
    source: UnitSource,
    unit: int,
    found: Explanation,
    method: AbstractMethod,
    time_limit: float,
    raw: Mapping[Formula, Score] | None = None,
) -> UnitCheck:
    """Check one unit, from its bitmap on; `raw` has scores that were counted without the table."""
    start = time.perf_counter()
    bitmap = source.bitmap(unit)
    faults = _score_faults(source.table, bitmap, found, raw)
    claim, how = Claim.NOT_CLAIMED, ""
    if not faults:
        claim, how, fault = _check_claim(source.table, bitmap, found, method, time_limit)
        faults = [] if fault is None else [fault]
    seconds = time.perf_counter() - start
    return UnitCheck(unit, claim, how, tuple(faults), seconds, raw is not None)


def _ranked(found: Explanation) -> list[tuple[Formula, Score]]:
    """All formulas of a result with their scores, best first."""
    if found.formula is None:
        return []
    ranked = [(formula, found.score) for formula in (found.formula, *found.equivalents)]
    for other in found.runners_up:
        score = Score(other.intersection, other.union)
        ranked += [(formula, score) for formula in (other.formula, *other.equivalents)]
    return ranked


def _score_faults(
    table: ConceptTable,
    bitmap: Bool[np.ndarray, "samples *location"],
    found: Explanation,
    raw: Mapping[Formula, Score] | None,
) -> list[str]:
    """What is wrong with the scores of the formula and its runners-up."""
    if found.formula is None:
        right = found.intersection == 0 and found.union == np.count_nonzero(bitmap)
        return [] if right else ["no formula, but a score"]
    ranked = _ranked(found)
    faults: list[str] = []
    for formula, stored in ranked:
        counted = score_at_locations(table, bitmap, formula)
        faults += _difference(formula, stored, counted, "")
        if raw is not None:
            faults += _difference(formula, stored, raw[formula], " on the dataset's label maps")
    ratios = [stored.ratio for _, stored in ranked]
    if any(low < high for low, high in itertools.pairwise(ratios)):
        faults.append("a runner-up is above what it comes after")
    if found.upper_bound < found.iou:
        faults.append(f"the upper bound {found.upper_bound} is below the IoU {found.iou}")
    if found.status is Status.OPTIMAL and found.upper_bound != found.iou:
        faults.append(f"optimal, but with the upper bound {found.upper_bound}")
    return faults


def _difference(formula: Formula, stored: Score, counted: Score, where: str) -> list[str]:
    if counted == stored:
        return []
    shown, wrong = (f"{score.intersection}/{score.union}" for score in (counted, stored))
    return [f"{formula} has IoU {shown}{where}, not {wrong}"]


def score_at_locations(
    table: ConceptTable, bitmap: Bool[np.ndarray, "samples *location"], formula: Formula
) -> Score:
    """A formula's score, counted location by location from the table's map."""
    concepts = [table.names.index(name) for name in formula.concepts]
    held_by = [_holding(table, concept) for concept in concepts]
    intersection = union = 0
    for start, stop in table.sample_blocks():
        signature = table.signature_map(start, stop)
        held = held_by[0][signature]
        for operator, holding in zip(formula.operators, held_by[1:], strict=True):
            right = holding[signature]
            held = truth(operator)[held.astype(np.intp), right.astype(np.intp)]
        active = bitmap[start:stop]
        intersection += int(np.count_nonzero(held & active))
        union += int(np.count_nonzero(held | active))
    return Score(intersection, union)


def _holding(table: ConceptTable, concept: int) -> Bool[np.ndarray, " signatures"]:
    """Signatures with a concept, from their lists."""
    lists = table.signatures
    held = np.zeros(len(lists), bool)
    owner = np.searchsorted(lists.indptr, np.flatnonzero(lists.indices == concept), side="right")
    held[owner - 1] = True
    return held


def _check_claim(
    table: ConceptTable,
    bitmap: Bool[np.ndarray, "samples *location"],
    found: Explanation,
    method: AbstractMethod,
    time_limit: float,
) -> tuple[Claim, str, str | None]:
    """What became of the claim, how, and what is wrong with it."""
    claims_optimum = found.status is Status.OPTIMAL
    if not claims_optimum and found.upper_bound >= 1.0:
        return Claim.NOT_CLAIMED, "", None
    length, operators = _space(method)
    claimed = found.score if claims_optimum else _as_score(found.upper_bound)
    proof = reprove(table, table.count(bitmap), length, operators, claimed, time_limit)
    if proof.better is not None:
        better = f"{proof.better.intersection}/{proof.better.union}"
        return Claim.DISPROVED, proof.how, f"a formula has the IoU {better}, {proof.how}"
    if proof.proved:
        return Claim.REPROVED if claims_optimum else Claim.BOUND_HOLDS, proof.how, None
    return Claim.NOT_REPROVED, proof.how, None


def _as_score(upper_bound: float) -> Score:
    return Score(*upper_bound.as_integer_ratio())


def _space(method: AbstractMethod) -> tuple[int, tuple[Operator, ...]]:
    """The formulas that a method's claim is about."""
    if isinstance(method, NetDissect):
        return 1, DEFAULT_OPERATORS
    length = getattr(method, "length", None)
    operators = getattr(method, "operators", None)
    if length is None or operators is None:
        raise ValueError(f"It is not known which formulas {method!r} is about.")
    return length, operators
