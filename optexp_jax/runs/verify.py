"""An independent check of stored results: scores location by location, and optima proved again."""

import enum
import hashlib
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Bool

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.metrics import Objective
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.scores import Score
from optexp_jax.explanation import Explanation, Status
from optexp_jax.formulas.formula import Formula
from optexp_jax.methods.claim import FormulaSpace
from optexp_jax.runs.configuration import Configuration
from optexp_jax.runs.conformity import conformity_faults, ranking
from optexp_jax.runs.null_check import NullCheck, check_null
from optexp_jax.runs.objective_reproof import reprove_objective
from optexp_jax.runs.other_images import method_of_length
from optexp_jax.runs.other_images_check import check_other_images
from optexp_jax.runs.raw_maps import RawMaps, truth
from optexp_jax.runs.reproof import reprove, reprove_ranking
from optexp_jax.runs.results import UnitResult
from optexp_jax.runs.run import Run
from optexp_jax.runs.sources import UnitSource
from optexp_jax.validation.groups import Groups


class ClaimOutcome(enum.StrEnum):
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
    claim: ClaimOutcome
    how: str
    faults: tuple[str, ...] = ()
    seconds: float = 0.0
    on_data: bool = False
    """Whether scores were counted on the dataset's label maps too."""
    others_proved: bool | None = None
    """Whether it was proved again that no other runners-up belong there; None if none are asked."""
    draws: int | None = None
    """Draws of the null model, if there is one."""
    draws_again: int = 0
    """How many of them were done again."""
    resamples: int | None = None
    """Searches on folds and resamples of the images, if there are any."""
    resamples_again: int = 0
    """How many of them were done again."""

    @property
    def good(self) -> bool:
        return not self.faults

    def __str__(self) -> str:
        if self.faults:
            return "WRONG: " + "; ".join(self.faults)
        parts = ["IoU checked on the dataset" if self.on_data else "IoU checked"]
        parts.append(str(self.claim) + (f" ({self.how})" if self.how else ""))
        if self.others_proved is not None:
            parts.append(f"runners-up {'' if self.others_proved else 'not '}re-proved")
        if self.draws is not None:
            parts.append(f"{self.draws_again} of {self.draws} draws done again")
        if self.resamples is not None:
            again = f"{self.resamples_again} of {self.resamples}"
            parts.append(f"{again} searches on folds and resamples done again")
        return ", ".join(parts)


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
    asked = run.asked
    for unit in sorted(set(units or ()) - set(asked.units)):
        raise ValueError(f"There is no unit {unit} in {run.path}.")
    opened = run.open_source() if source is None else run.check_source(source)
    chosen = {
        result.unit: result
        for result in run.results
        if result.explanation is not None and (units is None or result.unit in units)
    }
    groups = [list(chosen)] if raw is None else raw.groups(list(chosen))
    for group in groups:
        known = [unit for unit in group if _all_known(_explained(chosen[unit]), opened.table)]
        wanted = {unit: _formulas(_explained(chosen[unit])) for unit in known}
        scores = {} if raw is None else raw.scores(opened, wanted)
        for unit in group:
            yield check_unit(opened, chosen[unit], asked, time_limit, scores.get(unit))


def _explained(result: UnitResult) -> Explanation:
    assert result.explanation is not None
    return result.explanation


def _formulas(found: Explanation) -> list[Formula]:
    """Every formula that the result gives a score, its best single concept too."""
    concept = None if found.neuron is None else found.neuron.single.concept
    single = [] if concept is None else [Formula.concept(concept)]
    return [*single, *(formula for each in ranking(found) for formula in each.formulas)]


def _all_known(found: Explanation, table: ConceptTable) -> bool:
    """Whether the table has every concept of a result, so that it can be counted at all."""
    names = set(table.names)
    return all(set(formula.concepts) <= names for formula in _formulas(found))


def check_unit(
    source: UnitSource,
    result: UnitResult,
    asked: Configuration,
    time_limit: float,
    raw: Mapping[Formula, Score] | None = None,
) -> UnitCheck:
    """Check one unit, from its bitmap on; `raw` has scores that were counted without the table."""
    start = time.perf_counter()
    found, table = _explained(result), source.table
    claim, how, others_proved, null = ClaimOutcome.NOT_CLAIMED, "", None, NullCheck(0)
    other, resampled = result.other_images, None
    method = method_of_length(asked.method, None if other is None else other.chosen)
    groups = Groups.of(asked.groups, table.n_samples)
    bitmap = source.bitmap(result.unit)
    faults = conformity_faults(result, found, asked, table)
    if _all_known(found, table):
        faults += _score_faults(table, bitmap, found, raw)
        faults += _neuron_faults(table, bitmap, found, raw)
    if not faults:
        space, neuron = method.formula_space, table.count(bitmap)
        claim, how, faults = _check_claim(table, neuron, found, space, time_limit)
        if not faults and space.lists and found.status is Status.OPTIMAL:
            others_proved, faults = _check_runners_up(table, neuron, found, space, time_limit)
        if not faults and asked.null is not None and result.null is not None:
            null = check_null(
                asked.null, result.null, table, bitmap, asked.method, time_limit, groups
            )
            faults = list(null.faults)
        if not faults and asked.other_images is not None and other is not None:
            resampled = check_other_images(
                asked.other_images, groups, other, table, bitmap, asked.method, time_limit
            )
            faults = list(resampled.faults)
    return UnitCheck(
        result.unit,
        claim,
        how,
        tuple(faults),
        time.perf_counter() - start,
        on_data=raw is not None,
        others_proved=others_proved,
        draws=None if asked.null is None or result.null is None else result.null.n,
        draws_again=null.again,
        resamples=None if resampled is None else resampled.total,
        resamples_again=0 if resampled is None else resampled.again,
    )


def _score_faults(
    table: ConceptTable,
    bitmap: Bool[np.ndarray, "samples *location"],
    found: Explanation,
    raw: Mapping[Formula, Score] | None,
) -> list[str]:
    """What is wrong with the scores of the formula and its runners-up, and with their sets."""
    if found.formula is None:
        right = found.intersection == 0 and found.union == np.count_nonzero(bitmap)
        return [] if right else ["no formula, but a score"]
    faults: list[str] = []
    seen: dict[bytes, Formula] = {}
    for each in ranking(found):
        counted = [count_at_locations(table, bitmap, formula) for formula in each.formulas]
        for formula, (score, places) in zip(each.formulas, counted, strict=True):
            faults += _difference(formula, each.score, score, "")
            if raw is not None:
                where = " on the dataset's label maps"
                faults += _difference(formula, each.score, raw[formula], where)
            if places != counted[0][1]:
                faults.append(f"{formula} holds at other locations than {each.formula}")
        first = seen.setdefault(counted[0][1], each.formula)
        if first is not each.formula:
            faults.append(f"{each.formula} holds at the same locations as {first}")
    return faults


def _neuron_faults(
    table: ConceptTable,
    bitmap: Bool[np.ndarray, "samples *location"],
    found: Explanation,
    raw: Mapping[Formula, Score] | None,
) -> list[str]:
    """What is wrong with the unit's size and its best single concept."""
    neuron = found.neuron
    if neuron is None:
        return []
    faults: list[str] = []
    if neuron.active != np.count_nonzero(bitmap) or neuron.n_locations != bitmap.size:
        counted = f"{np.count_nonzero(bitmap)} of {bitmap.size}"
        said = f"{neuron.active} of {neuron.n_locations}"
        faults.append(f"{counted} locations are active, not {said}")
    single = neuron.single
    if single.concept is not None:
        formula = Formula.concept(single.concept)
        faults += _difference(formula, single.score, score_at_locations(table, bitmap, formula), "")
        if raw is not None:
            where = " on the dataset's label maps"
            faults += _difference(formula, single.score, raw[formula], where)
    best = _first_best_concept(table, bitmap)
    if not faults and best != single.concept:
        faults.append(f"the best single concept is {best}, not {single.concept}")
    return faults


def _first_best_concept(
    table: ConceptTable, bitmap: Bool[np.ndarray, "samples *location"]
) -> str | None:
    """The best single concept, counted along the lists of the signatures."""
    active, lists = table.count(bitmap).inside, table.signatures
    owner = np.repeat(np.arange(len(lists)), lists.lengths)
    inside, size = (np.zeros(table.n_concepts, np.int64) for _ in range(2))
    np.add.at(inside, lists.indices, active[owner])
    np.add.at(size, lists.indices, table.sizes[owner])
    n_active = int(np.count_nonzero(bitmap))
    scores = {
        name: Fraction(int(held), n_active + int(total) - int(held))
        for name, held, total in zip(table.names, inside, size, strict=True)
        if held
    }
    return min(scores, key=lambda name: (-scores[name], name), default=None)


def _difference(formula: Formula, stored: Score, counted: Score, where: str) -> list[str]:
    if counted == stored:
        return []
    shown, wrong = (f"{score.intersection}/{score.union}" for score in (counted, stored))
    return [f"{formula} has IoU {shown}{where}, not {wrong}"]


def score_at_locations(
    table: ConceptTable, bitmap: Bool[np.ndarray, "samples *location"], formula: Formula
) -> Score:
    """A formula's score, counted location by location from the table's map."""
    return count_at_locations(table, bitmap, formula)[0]


def count_at_locations(
    table: ConceptTable, bitmap: Bool[np.ndarray, "samples *location"], formula: Formula
) -> tuple[Score, bytes]:
    """A formula's score, location by location, and a checksum of where it holds."""
    concepts = [table.names.index(name) for name in formula.concepts]
    held_by = [_holding(table, concept) for concept in concepts]
    intersection = union = 0
    places = hashlib.blake2b(digest_size=16)
    for start, stop in table.sample_blocks():
        signature = table.signature_map(start, stop)
        held = held_by[0][signature]
        for operator, holding in zip(formula.operators, held_by[1:], strict=True):
            right = holding[signature]
            held = truth(operator)[held.astype(np.intp), right.astype(np.intp)]
        active = bitmap[start:stop]
        intersection += int(np.count_nonzero(held & active))
        union += int(np.count_nonzero(held | active))
        places.update(np.packbits(held).tobytes())
    return Score(intersection, union), places.digest()


def _holding(table: ConceptTable, concept: int) -> Bool[np.ndarray, " signatures"]:
    """Signatures with a concept, from their lists."""
    lists = table.signatures
    held = np.zeros(len(lists), bool)
    owner = np.searchsorted(lists.indptr, np.flatnonzero(lists.indices == concept), side="right")
    held[owner - 1] = True
    return held


def _check_claim(
    table: ConceptTable,
    neuron: NeuronCounts,
    found: Explanation,
    space: FormulaSpace,
    time_limit: float,
) -> tuple[ClaimOutcome, str, list[str]]:
    """What became of the claim, how, and what is wrong with it."""
    claims_optimum = found.status is Status.OPTIMAL
    if not claims_optimum and found.upper_bound >= 1.0:
        return ClaimOutcome.NOT_CLAIMED, "", []
    if found.objective in (Objective.COSINE, Objective.PHI):
        proof = reprove_objective(table, neuron, space, found)
    else:
        claimed = found.score if claims_optimum else _as_score(_highest_iou(found))
        proof = reprove(table, neuron, space.length, space.operators, claimed, time_limit)
    if proof.better is not None:
        better = f"{proof.better.intersection}/{proof.better.union}"
        if found.objective is not Objective.IOU:
            fault = f"a formula has a higher {found.objective.label}, at the IoU {better}"
            return ClaimOutcome.DISPROVED, proof.how, [f"{fault}, {proof.how}"]
        return ClaimOutcome.DISPROVED, proof.how, [f"a formula has the IoU {better}, {proof.how}"]
    if claims_optimum and proof.first is not None and proof.first != found.formula:
        return ClaimOutcome.DISPROVED, proof.how, [f"{proof.first} is level and comes first"]
    if proof.proved:
        return ClaimOutcome.REPROVED if claims_optimum else ClaimOutcome.BOUND_HOLDS, proof.how, []
    return ClaimOutcome.NOT_REPROVED, proof.how, []


def _check_runners_up(
    table: ConceptTable,
    neuron: NeuronCounts,
    found: Explanation,
    space: FormulaSpace,
    time_limit: float,
) -> tuple[bool, list[str]]:
    """Whether it was proved again that just these are the best, and what is wrong with that."""
    listed = [each.score for each in ranking(found)]
    proof = reprove_ranking(table, neuron, space, listed, time_limit)
    if proof.better is None:
        return proof.proved, []
    missing = f"{proof.better.intersection}/{proof.better.union}"
    return False, [f"the runners-up are not the best ones: the IoU {missing} is missing"]


def _highest_iou(found: Explanation) -> Fraction:
    """The IoU that goes with the upper bound: F1 is `2·IoU / (1 + IoU)`."""
    bound = Fraction(found.upper_bound)
    return bound / (2 - bound) if found.objective is Objective.F1 else bound


def _as_score(upper_bound: Fraction) -> Score:
    return Score(*upper_bound.as_integer_ratio())
