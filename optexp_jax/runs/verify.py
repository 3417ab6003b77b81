"""An independent check of stored results: scores location by location, and optima proved again."""

import itertools
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from jaxtyping import Bool

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.metrics import Objective
from optexp_jax.counts.scores import Score
from optexp_jax.explanation import Explanation, Status
from optexp_jax.formulas.formula import Formula
from optexp_jax.methods.claim import FormulaSpace
from optexp_jax.runs.configuration import Configuration
from optexp_jax.runs.conformity import conformity_faults, ranking
from optexp_jax.runs.located_counts import LocatedCounts, count_located
from optexp_jax.runs.null_check import NullCheck, check_null
from optexp_jax.runs.objective_reproof import reprove_objective
from optexp_jax.runs.other_images import method_of_length
from optexp_jax.runs.other_images_check import check_other_images
from optexp_jax.runs.raw_maps import RawMaps
from optexp_jax.runs.reproof import Prover, Reproofs, StoredClaim
from optexp_jax.runs.results import UnitResult
from optexp_jax.runs.run import Run
from optexp_jax.runs.sources import UnitSource
from optexp_jax.runs.unit_check import ClaimOutcome, UnitCheck
from optexp_jax.validation.groups import Groups

__all__ = ["ClaimOutcome", "UnitCheck", "Verification", "verify_run"]

HELD_BYTES = 2**28
"""Of bitmaps that are counted in one pass over the map."""
LONG = 1.0
"""Seconds that are not spent twice to know how long the rest takes."""
MOST_TOGETHER = 64
"""Units that are checked together, so that the first are told of soon."""


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
    results = explained_results(run, units)
    opened = run.open_source(anew=True) if source is None else run.check_source(source)
    return Verification(opened, run.asked, time_limit, raw).check(results)


def explained_results(run: Run, units: Collection[int] | None) -> list[UnitResult]:
    """The results of a run that have an explanation to be checked."""
    for unit in sorted(set(units or ()) - set(run.asked.units)):
        raise ValueError(f"There is no unit {unit} in {run.path}.")
    return [
        result
        for result in run.results
        if result.explanation is not None and (units is None or result.unit in units)
    ]


@dataclass(frozen=True)
class Forecast:
    """How long a check will take, before it begins."""

    n_units: int
    counting: float
    """Seconds to count one unit."""
    proving: float
    """Seconds to prove the claim of one unit, at most."""

    def seconds(self, n_workers: int = 1) -> float:
        """Of all units, about, or at most where only the limit of a proof is known."""
        return self.n_units * (self.counting + self.proving) / n_workers


@dataclass
class _Checked:
    """A unit on its way through the checks."""

    result: UnitResult
    bitmap: Bool[np.ndarray, "samples *location"] | None
    counted: LocatedCounts
    faults: list[str]
    claim: StoredClaim | None = None
    seconds: float = 0.0
    raw: Mapping[Formula, Score] | None = None

    @property
    def found(self) -> Explanation:
        return _explained(self.result)


@dataclass(frozen=True, eq=False)
class Verification:
    """Checks results over one source, as one configuration asked for them."""

    source: UnitSource
    asked: Configuration
    time_limit: float = 60.0
    raw: RawMaps | None = None
    _provers: dict[FormulaSpace, Prover] = field(default_factory=dict, repr=False)
    """Of each space of formulas that a unit was asked about."""

    def _prover(self, space: FormulaSpace) -> Prover:
        if space not in self._provers:
            self._provers[space] = Prover(self.source.table, space, self.time_limit)
        return self._provers[space]

    def _space(self, result: UnitResult) -> FormulaSpace:
        """The formulas that a unit's result is about: its length may have been chosen."""
        other = result.other_images
        method = method_of_length(self.asked.method, None if other is None else other.chosen)
        return method.formula_space

    def forecast(self, results: Sequence[UnitResult]) -> Forecast:
        """How long a check will take; one unit is counted to know."""
        counting = 0.0
        for unit in [result.unit for result in results[:1]] * 2:  # the second time all is read
            start = time.perf_counter()
            count_located(self.source.table, [self.source.bitmap(unit)])
            counting = time.perf_counter() - start
            if counting > LONG:
                break
        proof = self._prover(self.asked.method.formula_space).seconds_a_unit
        return Forecast(len(results), counting, self.time_limit if proof is None else proof)

    def check(self, results: Sequence[UnitResult]) -> Iterator[UnitCheck]:
        """Check results, from the units' bitmaps on."""
        by_unit = {result.unit: result for result in results}
        groups = [list(by_unit)] if self.raw is None else self.raw.groups(list(by_unit))
        for group in groups:
            wanted = {
                unit: _formulas(found)
                for unit in group
                for found in [_explained(by_unit[unit])]
                if _all_known(found, self.source.table)
            }
            scores = {} if self.raw is None else self.raw.scores(self.source, wanted)
            for some in _batches(group, self._together):
                yield from self._check_batch([by_unit[unit] for unit in some], scores)

    @property
    def _together(self) -> int:
        table = self.source.table
        size = table.n_samples * table.require_map("verify").sample_size
        return max(1, min(MOST_TOGETHER, HELD_BYTES // size))

    def _check_batch(
        self, results: Sequence[UnitResult], raw: Mapping[int, Mapping[Formula, Score]]
    ) -> Iterator[UnitCheck]:
        start = time.perf_counter()
        table = self.source.table
        bitmaps = [self.source.bitmap(result.unit) for result in results]
        batch = [
            _Checked(result, bitmap, counted, [], raw=raw.get(result.unit))
            for result, bitmap, counted in zip(
                results, bitmaps, count_located(table, bitmaps), strict=True
            )
        ]
        for unit in batch:
            unit.faults = conformity_faults(unit.result, unit.found, self.asked, table)
            if _all_known(unit.found, table):
                unit.faults += _score_faults(unit.counted, unit.found, unit.raw)
                unit.faults += _neuron_faults(unit.counted, unit.found, unit.raw)
            unit.claim = None if unit.faults else self._claim(unit)
            if self.asked.null is None and self.asked.other_images is None:
                unit.bitmap = None
        counting = (time.perf_counter() - start) / len(batch)
        claims: dict[FormulaSpace, list[StoredClaim]] = {}
        for unit in batch:
            if unit.claim is not None and not _is_curved(unit.found):
                claims.setdefault(self._space(unit.result), []).append(unit.claim)
        proofs = {space: self._prover(space).prove(some) for space, some in claims.items()}
        for unit in batch:
            unit.seconds = counting
            if unit.claim is None:
                yield self._conclude(unit, None)
            elif _is_curved(unit.found):
                yield self._conclude(unit, self._reprove_curved(unit, unit.claim))
            else:
                yield self._conclude(unit, next(proofs[self._space(unit.result)]))

    def _reprove_curved(self, unit: _Checked, claim: StoredClaim) -> Reproofs:
        """The proof for an objective that is no function of the IoU alone."""
        start, space = time.perf_counter(), self._space(unit.result)
        best, listed = reprove_objective(self.source.table, claim.neuron, space, unit.found), None
        if claim.listed is not None and best.better is None:
            listed = self._prover(space).prove_list(claim, claim.listed)
        return Reproofs(best, listed, time.perf_counter() - start)

    def _claim(self, unit: _Checked) -> StoredClaim | None:
        """What the result says of all formulas, if it says anything."""
        found = unit.found
        if found.status is Status.OPTIMAL:
            lists = self._space(unit.result).lists
            listed = tuple(each.score for each in ranking(found)) if lists else None
            return StoredClaim(unit.counted.neuron, found.score, listed)
        if found.upper_bound >= 1.0:
            return None
        highest = _highest_iou(found)
        return StoredClaim(unit.counted.neuron, Score(*highest.as_integer_ratio()))

    def _conclude(self, unit: _Checked, proof: Reproofs | None) -> UnitCheck:
        """All that was checked of a unit, its draws last."""
        start = time.perf_counter()
        claim, how, faults = ClaimOutcome.NOT_CLAIMED, "", unit.faults
        others_proved, null = None, NullCheck(0)
        if proof is not None:
            claim, faults = judge_claim(unit.found, proof)
            how = proof.best.how
        if proof is not None and proof.listed is not None and not faults:
            others_proved, faults = proof.listed.proved, _list_faults(proof)
        asked, drawn = self.asked, unit.result.null
        if not faults and asked.null is not None and drawn is not None and unit.bitmap is not None:
            table, limit = self.source.table, self.time_limit
            groups = Groups.of(asked.groups, table.n_samples)
            null = check_null(asked.null, drawn, table, unit.bitmap, asked.method, limit, groups)
            faults = list(null.faults)
        other, resampled = unit.result.other_images, None
        if not faults and asked.other_images is not None and other is not None:
            assert unit.bitmap is not None
            table = self.source.table
            groups = Groups.of(asked.groups, table.n_samples)
            resampled = check_other_images(
                asked.other_images, groups, other, table, unit.bitmap, asked.method, self.time_limit
            )
            faults = list(resampled.faults)
        proving = 0.0 if proof is None else proof.seconds
        return UnitCheck(
            unit.result.unit,
            claim,
            how,
            tuple(faults),
            unit.seconds + proving + time.perf_counter() - start,
            on_data=unit.raw is not None,
            others_proved=others_proved,
            draws=None if asked.null is None or drawn is None else drawn.n,
            draws_again=null.again,
            resamples=None if resampled is None else resampled.total,
            resamples_again=0 if resampled is None else resampled.again,
        )


def judge_claim(found: Explanation, proof: Reproofs) -> tuple[ClaimOutcome, list[str]]:
    """What became of the claim, and what is wrong with it."""
    best, claims_optimum = proof.best, found.status is Status.OPTIMAL
    if best.better is not None:
        better = f"{best.better.intersection}/{best.better.union}"
        if found.objective is not Objective.IOU:
            fault = f"a formula has a higher {found.objective.label}, at the IoU {better}"
            return ClaimOutcome.DISPROVED, [f"{fault}, {best.how}"]
        return ClaimOutcome.DISPROVED, [f"a formula has the IoU {better}, {best.how}"]
    if claims_optimum and best.first is not None and best.first != found.formula:
        return ClaimOutcome.DISPROVED, [f"{best.first} is level and comes first"]
    if best.proved:
        return ClaimOutcome.REPROVED if claims_optimum else ClaimOutcome.BOUND_HOLDS, []
    return ClaimOutcome.NOT_REPROVED, []


def _is_curved(found: Explanation) -> bool:
    """Whether another formula than that of the highest IoU may be the best."""
    return found.objective in (Objective.COSINE, Objective.PHI)


def _highest_iou(found: Explanation) -> Fraction:
    """The IoU that goes with the upper bound: F1 is `2·IoU / (1 + IoU)`."""
    bound = Fraction(found.upper_bound)
    return bound / (2 - bound) if found.objective is Objective.F1 else bound


def _list_faults(proof: Reproofs) -> list[str]:
    if proof.listed is None or proof.listed.better is None:
        return []
    missing = f"{proof.listed.better.intersection}/{proof.listed.better.union}"
    return [f"the runners-up are not the best ones: the IoU {missing} is missing"]


def _batches(units: Sequence[int], n: int) -> Iterator[list[int]]:
    waiting = iter(units)
    while batch := list(itertools.islice(waiting, n)):
        yield batch


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


def _score_faults(
    counted: LocatedCounts, found: Explanation, raw: Mapping[Formula, Score] | None
) -> list[str]:
    """What is wrong with the scores of the formula and its runners-up, and with their sets."""
    if found.formula is None:
        right = found.intersection == 0 and found.union == counted.active
        return [] if right else ["no formula, but a score"]
    faults: list[str] = []
    seen: dict[bytes, Formula] = {}
    for each in ranking(found):
        places = counted.places(each.formula)
        for formula in each.formulas:
            faults += _difference(formula, each.score, counted.score(formula), "")
            if raw is not None:
                where = " on the dataset's label maps"
                faults += _difference(formula, each.score, raw[formula], where)
            if counted.places(formula) != places:
                faults.append(f"{formula} holds at other locations than {each.formula}")
        first = seen.setdefault(places, each.formula)
        if first is not each.formula:
            faults.append(f"{each.formula} holds at the same locations as {first}")
    return faults


def _neuron_faults(
    counted: LocatedCounts, found: Explanation, raw: Mapping[Formula, Score] | None
) -> list[str]:
    """What is wrong with the unit's size and its best single concept."""
    neuron = found.neuron
    if neuron is None:
        return []
    faults: list[str] = []
    if neuron.active != counted.active or neuron.n_locations != counted.n_locations:
        said = f"{neuron.active} of {neuron.n_locations}"
        right = f"{counted.active} of {counted.n_locations}"
        faults.append(f"{right} locations are active, not {said}")
    single = neuron.single
    if single.concept is not None:
        formula = Formula.concept(single.concept)
        faults += _difference(formula, single.score, counted.score(formula), "")
        if raw is not None:
            where = " on the dataset's label maps"
            faults += _difference(formula, single.score, raw[formula], where)
    best = counted.best_concept
    if not faults and best != single.concept:
        faults.append(f"the best single concept is {best}, not {single.concept}")
    return faults


def _difference(formula: Formula, stored: Score, counted: Score, where: str) -> list[str]:
    if counted == stored:
        return []
    shown, wrong = (f"{score.intersection}/{score.union}" for score in (counted, stored))
    return [f"{formula} has IoU {shown}{where}, not {wrong}"]
