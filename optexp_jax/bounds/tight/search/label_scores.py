"""Labels of some subproblems joined with every concept there, a chunk of them in one call."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float64, Int32, Int64, Shaped

from optexp_jax.bounds.tight.counts.device_labels import LabelCounts, merge_counts
from optexp_jax.bounds.tight.operator_set import DIFFERENCE, INTERSECTION, UNION, OperatorSet
from optexp_jax.bounds.tight.search.labels import Labels, count_labels, count_labels_on_device
from optexp_jax.bounds.tight.search.subproblem import Subproblem
from optexp_jax.bounds.tight.search.survivors import Survivors, highest, survivors
from optexp_jax.bounds.tight.theory.bound_inputs import BoundInputs
from optexp_jax.bounds.tight.theory.exact_scores import (
    CountedLabels,
    LabelContext,
    counts_of_children,
    highest_score,
    highest_w,
    joined_counts,
    score_children,
    surroundings_of,
)
from optexp_jax.bounds.tight.theory.last_step import any_last_step, last_steps_after
from optexp_jax.bounds.tight.theory.row_maxima import RowMaxima
from optexp_jax.bounds.tight.tuning import (
    COUNTS_AT_ONCE,
    FEW_LABELS,
    LABELS_AT_ONCE,
    SUBPROBLEMS_OF_LABELS,
)
from optexp_jax.counts.scores import Score
from optexp_jax.internal.padding import fill_up
from optexp_jax.internal.tracing import note_trace
from optexp_jax.internal.transfers import fetch, put, run
from optexp_jax.search.incumbent import Candidate


@dataclass(frozen=True, eq=False)
class SubproblemLabels:
    """Labels of one subproblem."""

    sub: Subproblem
    labels: Labels

    @classmethod
    def of_use(cls, sub: Subproblem, labels: Labels) -> "SubproblemLabels":
        """But those with a concept that is of no use there any more."""
        return cls(sub, labels.take(np.flatnonzero(sub.of_use[labels.inner].all(1))))


@dataclass(frozen=True, eq=False)
class ScoredChildren:
    """Labels of some subproblems joined with every concept there.

    Where the device counts, scores and counts stay there; what is asked of them comes back.
    """

    subs: Sequence[Subproblem]
    labels: Labels
    of_sub: Int32[np.ndarray, " labels"]
    there: CountedLabels
    """The labels as compiled programs see them, filled up with empty ones to one of a few sizes."""
    around: LabelContext
    scores: Float64[Array, "filled ops concepts"]
    """IoUs in floating point, to be compared exactly; −1 where a child is not needed."""

    @property
    def iou(self) -> Float64[np.ndarray, "labels ops concepts"]:
        """The scores of the labels on the host."""
        return fetch(self.scores)[: len(self.labels)]

    @property
    def n_children(self) -> int:
        return len(self.labels) * math.prod(self.scores.shape[1:])

    @cached_property
    def best(self) -> float:
        """The highest score."""
        if self._on_host:
            return float(self.iou.max())
        with jax.enable_x64(True):
            return float(fetch(run(highest_score, self.scores, np.int32(len(self.labels)))))

    def highest(self, k: int) -> Survivors:
        """The k highest scores, as far as they are positive."""
        with jax.enable_x64(True):
            return highest(self.scores, len(self.labels), k, self._on_host)

    def candidates(self, reached: float) -> list[Candidate]:
        """The children whose score is not below `reached`, as formulas."""
        need = np.full(len(self.there.inner), np.inf)
        need[: len(self.labels)] = reached
        with jax.enable_x64(True):
            row, op, x = survivors(self.scores, need, self._on_host).at
            inside, outside = self._joined(row, op, x)
        columns = (part.tolist() for part in (row, op, x, inside, outside))
        return [self._candidate(*each) for each in zip(*columns, strict=True)]

    def score(self, row: int, op: int, x: int) -> Score:
        """The exact score of a label joined with a concept."""
        at = (np.array([part], np.int32) for part in (row, op, x))
        with jax.enable_x64(True):
            inside, outside = self._joined(*at)
        return self.subs[int(self.of_sub[row])].score(int(inside[0]), int(outside[0]))

    def highest_w(self, v: float, ops: OperatorSet) -> Float64[np.ndarray, " labels"]:
        """The highest W of each label's children, over what is residual; −∞ if there is none."""
        with jax.enable_x64(True):
            found = run(highest_w, self.around, self.there, np.float64(v), ops=ops)
            return fetch(found)[: len(self.labels)]

    @property
    def _on_host(self) -> bool:
        return self.subs[0].overlaps.on_host

    def _candidate(self, row: int, op: int, x: int, inside: int, outside: int) -> Candidate:
        sub, labels = self.subs[int(self.of_sub[row])], self.labels
        inner = [*labels.inner[row].tolist(), int(sub.concepts.ids[x])]
        ops = [*labels.ops[row].tolist(), op]
        return sub.candidate(inner, ops, sub.score(inside, outside))

    def _joined(
        self,
        row: Int32[np.ndarray, " children"],
        op: Int32[np.ndarray, " children"],
        x: Int32[np.ndarray, " children"],
    ) -> Int64[np.ndarray, "two children"]:
        """How many residual locations children have, inside the neuron and outside."""
        if self._on_host:
            return joined_counts(self.around, self.there, row, op, x, np)
        found = [np.empty((2, 0), np.int64)]
        for start in range(0, len(row), COUNTS_AT_ONCE):
            chunk = slice(start, start + COUNTS_AT_ONCE)
            some = (fill_up(part[chunk], COUNTS_AT_ONCE) for part in (row, op, x))
            found.append(fetch(run(counts_of_children, self.around, self.there, *some)))
        return np.concatenate(found, axis=1)[:, : len(row)]


def expand(parts: Sequence[SubproblemLabels], ops: OperatorSet) -> Iterator[ScoredChildren]:
    """Exact scores of labels of one length joined with every other concept, a chunk at a time."""
    for size in sorted({part.sub.concepts.size for part in parts}):
        same = [part for part in parts if part.sub.concepts.size == size]
        for chunk in _chunks(same):
            yield _expand(chunk, ops)


def _chunks(parts: Sequence[SubproblemLabels]) -> Iterator[list[SubproblemLabels]]:
    """The same labels in lists of at most so many labels and subproblems."""
    chunk: list[SubproblemLabels] = []
    room = LABELS_AT_ONCE
    for part in parts:
        start = 0
        while start < len(part.labels):
            taken = part.labels.take(slice(start, start + room))
            chunk.append(SubproblemLabels(part.sub, taken))
            start += len(taken)
            room -= len(taken)
            if room == 0 or len(chunk) == SUBPROBLEMS_OF_LABELS:
                yield chunk
                chunk, room = [], LABELS_AT_ONCE
    if chunk:
        yield chunk


def _expand(parts: Sequence[SubproblemLabels], ops: OperatorSet) -> ScoredChildren:
    subs = [part.sub for part in parts]
    labels = parts[0].labels if len(parts) == 1 else Labels.concatenate([p.labels for p in parts])
    of_sub = np.repeat(np.arange(len(parts), dtype=np.int32), [len(p.labels) for p in parts])
    few = len(labels) <= FEW_LABELS and len(parts) == 1 and subs[0].concepts.is_everything
    size, n_subs = (FEW_LABELS, 1) if few else (LABELS_AT_ONCE, SUBPROBLEMS_OF_LABELS)
    inner = [part.sub.concepts.number[part.labels.inner] for part in parts]
    numbers = fill_up(of_sub, size), fill_up(np.concatenate(inner), size)
    with jax.enable_x64(True):
        if subs[0].overlaps.on_host:
            counts = [count_labels(part.sub, part.labels) for part in parts]
            filled = jax.tree.map(lambda *some: fill_up(np.concatenate(some), size), *counts)
            there = CountedLabels(*numbers, filled)
            around = _surroundings(subs, n_subs)
        else:
            of_labels, inner_numbers = put(*numbers)
            counts = _count_on_device(parts, of_sub, size)
            there = CountedLabels(of_labels, inner_numbers, counts)
            filled = [*subs, *[subs[0]] * (n_subs - len(subs))]
            grams = tuple(sub.gram for sub in filled)
            around = run(surroundings_of, grams, *_captured(subs, n_subs))
        scores = run(score_children, around, there, ops=ops)
    return ScoredChildren(subs, labels, of_sub, there, around, scores)


def _count_on_device(
    parts: Sequence[SubproblemLabels], of_sub: Int32[np.ndarray, " labels"], size: int
) -> LabelCounts:
    """Subproblem by subproblem, as one of them may have thousands of concepts."""
    found: LabelCounts | None = None
    first = 0
    for k, part in enumerate(parts):
        counts = count_labels_on_device(part.sub, part.labels, first, size)
        first += len(part.labels)
        taken = fill_up(of_sub == k, size)
        found = counts if found is None else run(merge_counts, found, counts, taken)
    assert found is not None, "there are no labels without a sub"
    return found


def _surroundings(subs: Sequence[Subproblem], size: int) -> LabelContext:
    return LabelContext(
        fill_up(np.stack([sub.own.inside for sub in subs]), size),
        fill_up(np.stack([sub.own.outside for sub in subs]), size),
        *_captured(subs, size),
    )


def _captured(
    subs: Sequence[Subproblem], size: int
) -> tuple[
    Bool[np.ndarray, "size concepts"], Int64[np.ndarray, " size"], Float64[np.ndarray, " size"]
]:
    """What is allowed at subproblems and what is captured there, as `LabelContext` has it."""
    inside = np.array([sub.captured_inside for sub in subs], np.int64)
    union = np.array([sub.captured_union for sub in subs])
    allowed = np.stack([sub.allowed for sub in subs])
    return fill_up(allowed, size), fill_up(inside, size), fill_up(union, size)


@dataclass(frozen=True, eq=False)
class LongerLabels:
    """Labels one concept longer, with bounds on W of all that one more step makes of them."""

    sub: Int32[np.ndarray, " labels"]
    labels: Labels
    upper: Float64[np.ndarray, " labels"]


def longer_labels(
    inputs: BoundInputs,
    maxima: RowMaxima,
    expanded: ScoredChildren,
    need: Float64[np.ndarray, " subs"],
    ops: OperatorSet,
) -> LongerLabels:
    """Labels `P∘x` that one more OR or AND NOT may take to what their subproblem needs."""
    labels, there = expanded.labels, expanded.there
    op = fill_up(labels.ops[:, 0], len(there.inner))
    of_sub, on_host = expanded.of_sub, expanded.subs[0].overlaps.on_host
    needed = np.full(len(there.inner), np.inf)
    needed[: len(labels)] = need[of_sub]
    with jax.enable_x64(True):
        best = run(any_last_step, inputs, maxima, there, op, ops=ops)
        reached = survivors(best, needed, on_host)
    labels_at, steps, numbers = reached.at
    there, op = _filled_up(there, on_host), fill_up(labels.ops[:, 0], LABELS_AT_ONCE)
    found: list[LongerLabels] = []
    for step in (UNION, INTERSECTION, DIFFERENCE):
        row, x = labels_at[steps == step], numbers[steps == step]
        upper = reached.value[steps == step]
        for start in range(0, len(row), LABELS_AT_ONCE):
            chunk = slice(start, start + LABELS_AT_ONCE)
            these = (fill_up(part[chunk], LABELS_AT_ONCE) for part in (row, x))
            with jax.enable_x64(True):
                after = run(last_steps_after, inputs, there, op, *these, step=step, ops=ops)
            upper[chunk] = np.minimum(upper[chunk], fetch(after)[: len(upper[chunk])])
        kept = upper >= need[of_sub[row]]
        row, x = row[kept], x[kept]
        concept = np.empty_like(x)
        for k, sub in enumerate(expanded.subs):
            here = of_sub[row] == k
            concept[here] = sub.concepts.ids[x[here]]
        longer = labels.take(row).joined(np.full(len(row), step, np.int32), concept)
        found.append(LongerLabels(of_sub[row], longer, upper[kept]))
    return LongerLabels(
        np.concatenate([part.sub for part in found]),
        Labels.concatenate([part.labels for part in found]),
        np.concatenate([part.upper for part in found]),
    )


def _filled_up(labels: CountedLabels, on_host: bool) -> CountedLabels:
    """The labels in the one size that `last_steps_after` is compiled for."""
    if len(labels.inner) == LABELS_AT_ONCE:
        return labels
    if on_host:
        return jax.tree.map(lambda part: fill_up(part, LABELS_AT_ONCE), labels)
    with jax.enable_x64(True):
        return _fill_up_there(labels)


@jax.jit
def _fill_up_there(labels: CountedLabels) -> CountedLabels:
    note_trace("fill_up_there")
    missing = LABELS_AT_ONCE - len(labels.inner)

    def filled(part: Shaped[Array, "labels ..."]) -> Shaped[Array, "filled ..."]:
        return jnp.pad(part, [(0, missing), *[(0, 0)] * (part.ndim - 1)])

    return jax.tree.map(filled, labels)
