"""Soft masks: a score for each concept and location, as segmentation models give them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int32, Shaped

from optexp_jax.datasets.values import maps_of_masks


@dataclass(frozen=True)
class SoftConcepts:
    """Concepts that hold where a score is above a threshold; those of one score are nested."""

    n_scores: int
    thresholds: tuple[float, ...]
    """Ascending."""
    names: tuple[str, ...]
    """Of the concepts: for each score in turn, one for each threshold."""

    def maps(
        self, scores: Shaped[np.ndarray, "scores height width"]
    ) -> tuple[Int32[np.ndarray, "height width"], ...]:
        """Label maps of one sample; ValueError if these are not its scores."""
        if len(scores) != self.n_scores:
            raise ValueError(f"there are {len(scores)} soft masks and {self.n_scores} names.")
        if not np.issubdtype(scores.dtype, np.floating):
            raise ValueError(f"soft masks are floats; got {scores.dtype}.")
        if np.isnan(scores).any():
            raise ValueError("it holds NaN, which is neither above nor below a threshold.")
        step = len(self.thresholds)
        masks = {
            k * step + place: score > threshold
            for k, score in enumerate(scores)
            for place, threshold in enumerate(self.thresholds)
        }
        return maps_of_masks({concept: mask for concept, mask in masks.items() if mask.any()})


def soft_concepts(names: Sequence[str], thresholds: float | Sequence[float]) -> SoftConcepts:
    """The concepts of some scores. With several thresholds they are named `dog>0.3`, `dog>0.5`."""
    given = [thresholds] if isinstance(thresholds, int | float) else list(thresholds)
    if not given or len(set(given)) != len(given) or not np.isfinite(given).all():
        raise ValueError(f"Thresholds are distinct numbers, at least one; got {given}.")
    if not names:
        raise ValueError("There is no soft mask: name at least one.")
    ordered = tuple(sorted(map(float, given)))
    if len(ordered) == 1:
        return SoftConcepts(len(names), ordered, tuple(names))
    nested = tuple(f"{name}>{threshold:g}" for name in names for threshold in ordered)
    if len(set(nested)) != len(nested):
        raise ValueError(
            f"Thresholds {given} are too near to each other, or names repeat: two concepts would "
            f"be called {next(name for name in nested if nested.count(name) > 1)!r}."
        )
    return SoftConcepts(len(names), ordered, nested)
