"""Other images from the same ones: folds, bootstraps, and one group left out at a time."""

import enum
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from optexp_jax.methods.base import check_count
from optexp_jax.validation.groups import Groups

FEWEST_TO_DRAW = 10
"""Groups below which drawing them with replacement says little: one is left out at a time then."""
MOST_RESAMPLES = 100_000


@dataclass(frozen=True, eq=False)
class Folds:
    """Which fold each sample is held out in, and what had to be said about it."""

    fold: Int64[np.ndarray, " samples"]
    n: int
    note: str | None = None

    def held_out(self, k: int) -> Bool[np.ndarray, " samples"]:
        """The samples of fold k."""
        return self.fold == k


def make_folds(groups: Groups, n: int, seed: int) -> Folds:
    """Deal groups into n folds of about as many samples each, at random; none is split.

    The largest come first, each into the fold with the fewest samples so far.
    """
    check_count(n, "folds")
    note = None
    if n < 2:
        raise ValueError("There must be at least two folds: one to find a formula, one to score.")
    if len(groups) < 2:
        raise ValueError(
            "All samples belong to one group, so none is left to score on. Pass groups that "
            "divide the samples."
        )
    if len(groups) < n:
        what = "samples" if groups.are_samples else "groups"
        note = f"there are {len(groups)} {what}, so each is a fold, in place of {n} folds"
        n = len(groups)
    order = np.random.default_rng([seed, n]).permutation(len(groups))
    order = order[np.argsort(-groups.sizes[order], kind="stable")]
    loads = np.zeros(n, np.int64)
    fold_of_group = np.empty(len(groups), np.int64)
    for group in order.tolist():
        k = int(np.argmin(loads))
        fold_of_group[group] = k
        loads[k] += groups.sizes[group]
    return Folds(fold_of_group[groups.member], n, note)


class Scheme(enum.StrEnum):
    """How resamples are made."""

    BOOTSTRAP = "bootstrap"
    """As many groups as there are, drawn with replacement."""
    LEAVE_ONE_OUT = "leave one group out"
    """Each group is left out once."""


@dataclass(frozen=True, eq=False)
class Resamples:
    """Weights of samples, resample by resample."""

    groups: Groups
    scheme: Scheme
    n: int
    seed: int

    @classmethod
    def of(cls, groups: Groups, n: int, seed: int) -> "Resamples":
        """n bootstraps; where groups are too few for that, each is left out once."""
        check_count(n, "resamples", MOST_RESAMPLES)
        if len(groups) < 2:
            raise ValueError(
                "All samples belong to one group, so there is nothing to draw from. Pass groups "
                "that divide the samples."
            )
        if len(groups) < FEWEST_TO_DRAW:
            return cls(groups, Scheme.LEAVE_ONE_OUT, len(groups), seed)
        return cls(groups, Scheme.BOOTSTRAP, n, seed)

    def weights(self, k: int) -> Int64[np.ndarray, " samples"]:
        """How often each sample counts in resample k, whichever others are made."""
        if self.scheme is Scheme.LEAVE_ONE_OUT:
            return (self.groups.member != k).astype(np.int64)
        rng = np.random.default_rng([self.seed, k])
        drawn = rng.integers(0, len(self.groups), len(self.groups))
        return np.bincount(drawn, minlength=len(self.groups))[self.groups.member]

    def __iter__(self) -> Iterator[Int64[np.ndarray, " samples"]]:
        return (self.weights(k) for k in range(self.n))
