"""Does a unit's formula hold on other images? Folds and resamples of the images of a run."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.explanation import Explanation
from optexp_jax.methods.base import AbstractMethod, check_count
from optexp_jax.methods.optimal import Optimal
from optexp_jax.validation.confidence_set import ConfidenceSet, confidence_set
from optexp_jax.validation.groups import Groups
from optexp_jax.validation.held_out import HeldOut, score_folds
from optexp_jax.validation.length import ChosenLength, choose_lengths, of_lengths
from optexp_jax.validation.resamples import MOST_RESAMPLES, Folds, Resamples, make_folds
from optexp_jax.validation.stability import Stability, StoredUnit, resample_units

MOST_FOLDS = 100_000
OTHER_IMAGES_COLUMNS = (
    *("folds", "held_out_iou", "held_out_spread", "in_sample_iou"),
    *("chosen_length", "held_out_by_length"),
    *("resamples", "resampling", "recurrence", "concept_shares"),
    *("interval_low", "interval_high", "out_of_bag_iou"),
    *("noise", "confidence_size", "confidence_complete", "in_all", "in_some", "simplest"),
)


@dataclass(frozen=True)
class OtherImages:
    """Ask of each unit whether its formula holds on images that it was not found on.

    What counts as active is decided on all images before; only the formula is held out.
    """

    folds: int | None = None
    """Find the formula on all folds of the images but one and score it on that one, in turn."""
    bootstrap: int | None = None
    """Explain each unit on so many resamples of the images; whole groups are drawn, and below
    ten groups each is left out once instead."""
    seed: int = 0
    """Another seed, other folds and resamples."""
    within: Literal["noise"] | None = None
    """`noise`: list all formulas that resamples cannot tell from the best one."""
    length: Literal["auto"] | None = None
    """`auto`: choose each unit's length by its folds, up to the method's."""

    def __post_init__(self) -> None:
        if self.folds is None and self.bootstrap is None:
            raise ValueError("Ask for folds or for bootstrap resamples, or for both.")
        if self.folds is not None:
            check_count(self.folds, "folds", MOST_FOLDS)
            if self.folds < 2:
                raise ValueError("There must be at least two folds: one to find, one to score.")
        if self.bootstrap is not None:
            check_count(self.bootstrap, "bootstrap", MOST_RESAMPLES)
        if isinstance(self.seed, bool) or not isinstance(cast(object, self.seed), int):
            raise ValueError(f"seed of other images must be a whole number; got {self.seed!r}.")
        if self.seed < 0:
            raise ValueError(f"seed of other images must not be negative; got {self.seed}.")
        if self.within not in (None, "noise"):
            raise ValueError(f'within is "noise" or None here; got {self.within!r}.')
        if self.length not in (None, "auto"):
            raise ValueError(f'length is "auto" or None here; got {self.length!r}.')
        if self.within is not None and self.bootstrap is None:
            raise ValueError("What is within noise is told by resamples: ask for bootstrap, too.")
        if self.length is not None and self.folds is None:
            raise ValueError("A length is chosen by folds: ask for folds, too.")

    def check(self, method: AbstractMethod, groups: Groups) -> None:
        """Refuse what cannot be done with this method and these samples."""
        if self.folds is not None:
            self.deal(groups)
        if self.bootstrap is not None:
            self.resamples(groups)
        if self.length is not None:
            of_lengths(method, 1)
        if self.within is not None and not isinstance(method, Optimal):
            raise ValueError("Only the optimal method can list all formulas that are within noise.")

    def deal(self, groups: Groups) -> Folds:
        """The folds of some samples."""
        assert self.folds is not None
        return make_folds(groups, self.folds, self.seed)

    def resamples(self, groups: Groups) -> Resamples:
        """The resamples of some samples."""
        assert self.bootstrap is not None
        return Resamples.of(groups, self.bootstrap, self.seed)


@dataclass(frozen=True)
class OtherImagesResult:
    """What folds and resamples of the images say about a unit."""

    held_out: HeldOut | None = None
    stability: Stability | None = None
    """None also for a unit that no concept overlaps."""
    confidence: ConfidenceSet | None = None
    chosen: ChosenLength | None = None

    def row(self) -> dict[str, Any]:
        """As columns of a table; those that were not asked for are empty."""
        row: dict[str, Any] = dict.fromkeys(OTHER_IMAGES_COLUMNS)
        if self.held_out is not None:
            row |= {
                "folds": len(self.held_out.folds),
                "held_out_iou": self.held_out.iou,
                "held_out_spread": self.held_out.spread,
                "in_sample_iou": self.held_out.found.iou,
            }
        if self.chosen is not None:
            row |= {
                "chosen_length": self.chosen.length,
                "held_out_by_length": [each.held_out.iou for each in self.chosen.compared],
            }
        if self.stability is not None:
            interval = self.stability.interval()
            row |= {
                "resamples": len(self.stability.resamples),
                "resampling": self.stability.scheme.value,
                "recurrence": self.stability.recurrence,
                "concept_shares": [
                    {"concept": name, "share": share}
                    for name, share in self.stability.concepts.items()
                ],
                "interval_low": interval.low,
                "interval_high": interval.high,
                "out_of_bag_iou": self.stability.out_of_bag.iou,
            }
        if self.confidence is not None:
            row |= {
                "noise": float(self.confidence.noise),
                "confidence_size": len(self.confidence.members),
                "confidence_complete": self.confidence.complete,
                "in_all": list(self.confidence.in_all),
                "in_some": list(self.confidence.in_some),
                "simplest": str(self.confidence.simplest.formula),
            }
        return row


def method_of_length(method: AbstractMethod, chosen: ChosenLength | None) -> AbstractMethod:
    """The method for a unit, with the length that was chosen for it."""
    if chosen is None:
        return method
    return dataclasses.replace(cast(Any, method), length=chosen.length)


def one_formula(method: AbstractMethod) -> AbstractMethod:
    """The method without runners-up, which folds and resamples have no use for."""
    if isinstance(method, Optimal):
        return dataclasses.replace(method, top_k=1, within=None)
    return method


def choose_unit_lengths(
    asked: OtherImages,
    groups: Groups,
    table: ConceptTable,
    units: Mapping[int, NeuronCounts],
    method: AbstractMethod,
) -> dict[int, ChosenLength]:
    """The length of each unit, up to that of the method."""
    longest = int(cast(Any, method).length)
    methods = of_lengths(one_formula(method), longest)
    chosen = choose_lengths(table, list(units.values()), methods, asked.deal(groups))
    return dict(zip(units, chosen, strict=True))


def explain_on_other_images(
    asked: OtherImages,
    groups: Groups,
    table: ConceptTable,
    units: Mapping[int, NeuronCounts],
    found: Mapping[int, Explanation],
    method: AbstractMethod,
    chosen: Mapping[int, ChosenLength],
) -> dict[int, OtherImagesResult]:
    """What folds and resamples say about explained units; they share folds and resamples."""
    held_out = _held_out(asked, groups, table, units, method, chosen)
    stable: dict[int, Stability] = {}
    confident: dict[int, ConfidenceSet] = {}
    if asked.bootstrap is not None:
        plain = one_formula(method)
        stored = {
            unit: StoredUnit(units[unit], each.formula, method_of_length(plain, chosen.get(unit)))
            for unit, each in found.items()
            if each.formula is not None
        }
        resampled = resample_units(table, list(stored.values()), asked.resamples(groups))
        stable = dict(zip(stored, resampled, strict=True))
    if asked.within is not None:
        for unit, resamples in stable.items():
            own = method_of_length(method, chosen.get(unit))
            most = own.max_within if isinstance(own, Optimal) else 1
            near = confidence_set(table, units[unit], resamples.noise(), own, most=most)
            confident[unit] = near
    return {
        unit: OtherImagesResult(
            held_out.get(unit), stable.get(unit), confident.get(unit), chosen.get(unit)
        )
        for unit in found
    }


def _held_out(
    asked: OtherImages,
    groups: Groups,
    table: ConceptTable,
    units: Mapping[int, NeuronCounts],
    method: AbstractMethod,
    chosen: Mapping[int, ChosenLength],
) -> dict[int, HeldOut]:
    if asked.folds is None:
        return {}
    if asked.length is not None:
        return {unit: each.held_out for unit, each in chosen.items()}
    scored = score_folds(table, list(units.values()), one_formula(method), asked.deal(groups))
    return dict(zip(units, scored, strict=True))
