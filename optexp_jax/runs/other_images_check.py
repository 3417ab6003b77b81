"""Folds and resamples checked: scores counted location by location, and searches done again."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Int64

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.scores import Score
from optexp_jax.explanation import Explanation
from optexp_jax.formulas.formula import Formula
from optexp_jax.methods.base import AbstractMethod
from optexp_jax.runs.other_images import (
    OtherImages,
    OtherImagesResult,
    method_of_length,
    one_formula,
)
from optexp_jax.runs.raw_maps import truth
from optexp_jax.validation.confidence_set import confidence_set
from optexp_jax.validation.groups import Groups
from optexp_jax.validation.held_out import HeldOut, score_folds
from optexp_jax.validation.length import of_lengths
from optexp_jax.validation.stability import Resample, Stability, StoredUnit


@dataclass(frozen=True)
class OtherImagesCheck:
    """How many searches were done again, of how many, and what is wrong with them."""

    again: int
    total: int
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class SampleCounts:
    """Scores of formulas under any weights of samples, counted location by location."""

    table: ConceptTable
    bitmap: Bool[np.ndarray, "samples *location"]
    _known: dict[Formula, Int64[np.ndarray, "two samples"]] = field(default_factory=dict)

    def score(self, formula: Formula | None, weights: Int64[np.ndarray, " samples"]) -> Score:
        """Intersection and union, each sample counted as often as its weight says."""
        by_sample = self._by_sample(formula)
        return Score(int(by_sample[0] @ weights), int(by_sample[1] @ weights))

    def active(self, weights: Int64[np.ndarray, " samples"]) -> int:
        return self.score(None, weights).union

    def _by_sample(self, formula: Formula | None) -> Int64[np.ndarray, "two samples"]:
        if formula is None:
            union = np.count_nonzero(self.bitmap.reshape(len(self.bitmap), -1), axis=1)
            return np.stack([np.zeros_like(union), union]).astype(np.int64)
        if formula not in self._known:
            self._known[formula] = self._count(formula)
        return self._known[formula]

    def _count(self, formula: Formula) -> Int64[np.ndarray, "two samples"]:
        held_by = [
            self.table.signatures.membership(self.table.names.index(name))
            for name in formula.concepts
        ]
        counted = np.zeros((2, len(self.bitmap)), np.int64)
        for start, stop in self.table.sample_blocks():
            signature = self.table.signature_map(start, stop)
            held = held_by[0][signature]
            for operator, holding in zip(formula.operators, held_by[1:], strict=True):
                right = holding[signature]
                held = truth(operator)[held.astype(np.intp), right.astype(np.intp)]
            active = self.bitmap[start:stop]
            for k, both in enumerate((held & active, held | active)):
                counted[k, start:stop] = both.reshape(len(both), -1).sum(1)
        return counted


def conformity_to_other_images(
    result: OtherImagesResult | None, found: Explanation, asked: OtherImages | None, groups: Groups
) -> list[str]:
    """What in a result is not what the run asks for."""
    if asked is None or result is None:
        there = result is not None
        return [] if there == (asked is not None) else ["other images, which were not asked for"]
    faults: list[str] = []
    folds = None if asked.folds is None else asked.deal(groups)
    held_out = [] if result.held_out is None else [result.held_out]
    if result.chosen is not None:
        held_out = [each.held_out for each in result.chosen.compared]
    if (folds is None) == bool(held_out) or (result.chosen is None) != (asked.length is None):
        faults.append("held-out scores are missing, or were not asked for")
    elif folds is not None and any(
        len(each.folds) != folds.n or each.note != folds.note for each in held_out
    ):
        faults.append(f"held-out scores of other folds than the {folds.n} of the run")
    wanted = asked.bootstrap is not None and found.formula is not None
    if wanted != (result.stability is not None):
        faults.append("resamples are missing, or were not asked for")
    elif result.stability is not None:
        plan = asked.resamples(groups)
        told = (len(result.stability.resamples), result.stability.scheme)
        if told != (plan.n, plan.scheme) or result.stability.formula != found.formula:
            faults.append("resamples of another number, scheme or formula than the run's")
        if result.stability.score != found.score:
            faults.append("resamples give the formula another IoU")
    if (asked.within is not None and wanted) != (result.confidence is not None):
        faults.append("a confidence set is missing, or was not asked for")
    near, stable = result.confidence, result.stability
    if near is not None and stable is not None and near.noise != stable.noise():
        faults.append(f"the confidence set is within {near.noise}, not {stable.noise()}")
    return faults


def check_other_images(
    asked: OtherImages,
    groups: Groups,
    stored: OtherImagesResult,
    table: ConceptTable,
    bitmap: Bool[np.ndarray, "samples *location"],
    method: AbstractMethod,
    time_limit: float,
) -> OtherImagesCheck:
    """Count every score again, then do searches again for so many seconds.

    A search that may stop early finds others another time: only its scores are checked then.
    """
    counted = SampleCounts(table, bitmap)
    faults = [*_score_faults(asked, groups, stored, counted)]
    total = _searches(stored)
    if faults or not method.repeatable:
        return OtherImagesCheck(0, total, tuple(faults[:3]))
    deadline = time.perf_counter() + time_limit
    again = 0
    for fault in _searched_again(asked, groups, stored, table, bitmap, method):
        if fault is not None:
            return OtherImagesCheck(again, total, (fault,))
        again += 1
        if time.perf_counter() > deadline:
            break
    return OtherImagesCheck(again, total)


def _searches(stored: OtherImagesResult) -> int:
    held_out = 0 if stored.held_out is None else len(stored.held_out.folds)
    lengths = 1 if stored.chosen is None else len(stored.chosen.compared)
    resamples = 0 if stored.stability is None else len(stored.stability.resamples)
    return held_out * lengths + resamples + (stored.confidence is not None)


def _score_faults(
    asked: OtherImages, groups: Groups, stored: OtherImagesResult, counted: SampleCounts
) -> Iterator[str]:
    """Scores that are not those of their formulas on their samples."""
    for held_out in _by_length(stored):
        dealt = asked.deal(groups)
        for k, fold in enumerate(held_out.folds):
            here = dealt.held_out(k).astype(np.int64)
            there = 1 - here
            found = counted.score(fold.formula, there) if counted.active(there) else Score(0, 0)
            if (found, counted.score(fold.formula, here)) != (fold.found, fold.held_out):
                yield f"{fold.formula} has other scores around fold {k}"
    if stored.stability is not None:
        for k, weights in enumerate(asked.resamples(groups)):
            each = stored.stability.resamples[k]
            left_out = (weights == 0).astype(np.int64)
            formula = stored.stability.formula
            best = counted.score(each.formula, weights) if counted.active(weights) else Score(0, 0)
            now = (best, counted.score(formula, weights), counted.score(formula, left_out))
            if now != (each.best, each.stored, each.out_of_bag):
                yield f"resample {k} has other scores"
    if stored.confidence is not None:
        ones = np.ones(len(counted.bitmap), np.int64)
        lowest = stored.confidence.members[0].score.ratio - stored.confidence.noise
        for member in stored.confidence.members:
            if counted.score(member.formula, ones) != member.score or member.score.ratio < lowest:
                yield f"{member.formula} is not in the confidence set with that IoU"


def _by_length(stored: OtherImagesResult) -> list[HeldOut]:
    if stored.chosen is not None:
        return [each.held_out for each in stored.chosen.compared]
    return [] if stored.held_out is None else [stored.held_out]


def _searched_again(
    asked: OtherImages,
    groups: Groups,
    stored: OtherImagesResult,
    table: ConceptTable,
    bitmap: Bool[np.ndarray, "samples *location"],
    method: AbstractMethod,
) -> Iterator[str | None]:
    """What is wrong with each search, or None."""
    neuron, plain = table.count(bitmap), one_formula(method)
    lengths = _by_length(stored)
    methods = [plain] if stored.chosen is None else of_lengths(plain, len(lengths))
    for held_out, of_length in zip(lengths, methods[: len(lengths)], strict=True):
        (now,) = score_folds(table, [neuron], of_length, asked.deal(groups))
        for k, (was, fold) in enumerate(zip(held_out.folds, now.folds, strict=True)):
            yield None if was == fold else f"another formula is found around fold {k}"
    if stored.stability is not None:
        yield from _resampled_again(asked, groups, stored.stability, stored, table, bitmap, method)


def _resampled_again(
    asked: OtherImages,
    groups: Groups,
    stability: Stability,
    stored: OtherImagesResult,
    table: ConceptTable,
    bitmap: Bool[np.ndarray, "samples *location"],
    method: AbstractMethod,
) -> Iterator[str | None]:
    neuron, own = table.count(bitmap), method_of_length(method, stored.chosen)
    unit = StoredUnit(neuron, stability.formula, one_formula(own))
    if stored.confidence is not None:
        most = getattr(own, "max_within", 1)
        near = confidence_set(table, neuron, stored.confidence.noise, own, most=most)
        yield None if near == stored.confidence else "other formulas are in the confidence set"
    for k, weights in enumerate(asked.resamples(groups)):
        again = Resample.of(table, weights).score(unit)
        same = again == stability.resamples[k]
        yield None if same else f"resample {k} has another optimum"
