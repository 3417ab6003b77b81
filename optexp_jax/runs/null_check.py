"""P-values checked: draws of the null model done again, from the unit's bitmap."""

import time
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.methods import AbstractMethod
from optexp_jax.runs.null import NullModel, NullResult, draw_bound
from optexp_jax.runs.sources import roll_maps
from optexp_jax.validation.groups import Groups


@dataclass(frozen=True)
class NullCheck:
    """How many draws were done again, and what is wrong with them."""

    again: int
    faults: tuple[str, ...] = ()


def check_null(
    model: NullModel,
    stored: NullResult,
    table: ConceptTable,
    bitmap: Bool[np.ndarray, "samples *location"],
    method: AbstractMethod,
    time_limit: float,
    groups: Groups | None = None,
) -> NullCheck:
    """Explain draws again, in their order, for so many seconds; their scores must be the same.

    A search that may stop early gives other scores another time: nothing can be checked then.
    """
    if not method.repeatable:
        return NullCheck(0)
    deadline = time.perf_counter() + time_limit
    again = 0
    # Draws of a unit that is clearly not above chance end before the last one.
    for draw, score in zip(model.draws(table, groups), stored.scores, strict=False):
        moved = bitmap[draw.order]
        if draw.shifts is not None:
            moved = roll_maps(moved[None], draw.shifts)[0]
        found = method.run(table, table.count(moved))
        if draw_bound(found) is not None:
            return NullCheck(again)
        if found.score != score:
            shown = f"{score.intersection}/{score.union}, not {found.intersection}/{found.union}"
            return NullCheck(again, (f"the best IoU of draw {again} is stored as {shown}",))
        again += 1
        if time.perf_counter() > deadline:
            break
    return NullCheck(again)
