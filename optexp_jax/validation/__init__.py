"""Does an explanation hold on other images, and is it more than chance?"""

from optexp_jax.validation.confidence_set import ConfidenceMember, ConfidenceSet, confidence_set
from optexp_jax.validation.families import (
    FamilyPValues,
    family_p_values,
    holm,
    sequential_p_value,
)
from optexp_jax.validation.groups import Groups, prefix_groups
from optexp_jax.validation.held_out import FoldScore, HeldOut, held_out
from optexp_jax.validation.length import ChosenLength, ComparedLength, choose_length
from optexp_jax.validation.resamples import Folds, Resamples, Scheme
from optexp_jax.validation.stability import IoUInterval, ResampleScore, Stability, stability

__all__ = [
    "ChosenLength",
    "ComparedLength",
    "ConfidenceMember",
    "ConfidenceSet",
    "FamilyPValues",
    "FoldScore",
    "Folds",
    "Groups",
    "HeldOut",
    "IoUInterval",
    "ResampleScore",
    "Resamples",
    "Scheme",
    "Stability",
    "choose_length",
    "confidence_set",
    "family_p_values",
    "held_out",
    "holm",
    "prefix_groups",
    "sequential_p_value",
    "stability",
]
