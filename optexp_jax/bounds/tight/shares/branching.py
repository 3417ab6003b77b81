"""Which concept comes in next: children of a node, with the candidates that are left for each."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

from optexp_jax.bounds.tight.shares.shares import Shares


@dataclass(frozen=True, eq=False)
class NextConcept:
    """One child: a concept comes in, and others of a lower share stay candidates."""

    concept: int
    kept: Bool[np.ndarray, " concepts"]
    most: float
    """No function of any of its sets has a higher W, up to rounding."""


def next_concepts(
    found: Shares, kept: Bool[np.ndarray, " concepts"], t: int, needed: float
) -> list[NextConcept]:
    """The children of a node with t > 2 concepts to come, where W has to reach `needed`.

    Concepts come in by falling share, and each is taken out before the next: so every set is in one
    child. A child's bound is the lowest of three (Propositions 22, 23 and 24).
    """
    ids = np.flatnonzero(kept)
    ids = ids[np.argsort(-found.alone[ids], kind="stable")]
    alone = found.alone[ids]
    sums = np.concatenate([[0.0], np.cumsum(alone)])
    need = needed - found.base
    n_open = _open(sums, t, need)
    if not n_open:
        return []
    together = found.together(ids)
    half = _sum_of_highest(together, t - 2) / 2
    children: list[NextConcept] = []
    for place in range(n_open):
        others = ids[place + 1 :]
        pair = together[place, place + 1 :]
        forced = pair + (sums[place + t - 1] - sums[place + 1])
        mean = (pair + half[place + 1 :]) / (t - 1)
        highest = np.sort(np.partition(mean, len(mean) - (t - 1))[len(mean) - (t - 1) :])
        left = (forced >= need) & (mean + highest[1:].sum() >= need)
        if left.sum() < t - 1:
            continue
        most = min(sums[place + t] - sums[place], float(forced.max()), float(highest.sum()))
        if most < need:
            continue
        mask = np.zeros(len(kept), bool)
        mask[others[left]] = True
        children.append(NextConcept(int(ids[place]), mask, found.base + most))
    return children


def _open(sums: Float64[np.ndarray, " places"], t: int, need: float) -> int:
    """How many concepts, the highest shares first, reach what is needed with t − 1 after them."""
    if len(sums) <= t:
        return 0
    reached = sums[t:] - sums[:-t] >= need
    return int(reached.sum())  # shares fall, and so do their sums


def _sum_of_highest(
    values: Float64[np.ndarray, "rows columns"], k: int
) -> Float64[np.ndarray, " rows"]:
    if k >= values.shape[1]:
        return values.sum(1)
    return np.partition(values, values.shape[1] - k, axis=1)[:, values.shape[1] - k :].sum(1)
