"""Exact scores of formulas: intersections and extras as integers, for many formulas at once."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32, Int64, UInt32

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.device_table import LANES, device_neuron, device_table
from optexp_jax.counts.neuron import NeuronCounts, as_counts
from optexp_jax.formulas.batch import PADDING, FormulaBatch
from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import operator_bits
from optexp_jax.internal.mesh import split_batch
from optexp_jax.internal.padding import round_up_to_power_of_two
from optexp_jax.internal.tracing import note_trace

BLOCK_WORDS = 2**23
"""About how many packed words of held signatures are made at once."""


@dataclass(frozen=True)
class Score:
    """How a formula overlaps a neuron, in exact Python integers."""

    intersection: int
    union: int

    @property
    def iou(self) -> float:
        """Intersection over union, correctly rounded; 0 where the union is empty."""
        return self.intersection / self.union if self.union else 0.0

    @property
    def ratio(self) -> Fraction:
        """The IoU without rounding, for comparisons."""
        return Fraction(self.intersection, self.union or 1)

    @property
    def value(self) -> float:
        """What searches compare, correctly rounded: the IoU."""
        return self.iou

    def ahead_of(self, other: "Score") -> int:
        """Positive if this one is better, 0 if both are level: exact, and without a fraction."""
        return self._above * other._below - other._above * self._below

    @property
    def _above(self) -> int:
        """What is compared is a fraction: this,"""
        return self.intersection

    @property
    def _below(self) -> int:
        """over this."""
        return self.union


@dataclass(frozen=True)
class PivotScore(Score):
    """A score that searches compare by `I / (base + E)`, where the IoU has `I / (|N| + E)`.

    On a plane of extras and intersections it is the slope of the line through (−base, 0).
    """

    shift: Fraction
    """The base, less |N|."""

    @property
    def ratio(self) -> Fraction:
        """`I / (base + E)` without rounding."""
        return Fraction(self._above, self._below)

    @property
    def value(self) -> float:
        """`I / (base + E)`, correctly rounded: Python divides integers that way."""
        return self._above / self._below

    @property
    def _above(self) -> int:
        return self.intersection * self.shift.denominator

    @property
    def _below(self) -> int:
        return self.union * self.shift.denominator + self.shift.numerator


def iou(table: ConceptTable, neuron: Any, formula: Formula) -> Score:
    """The exact score of one formula; `neuron` is a bitmap or the `NeuronCounts` of one."""
    counts = as_counts(table, neuron)
    held = table.holds(formula)
    intersection = int(counts.inside[held].sum())
    return Score(intersection, counts.size + int(counts.outside[held].sum()))


@dataclass(frozen=True, eq=False)
class BatchScores:
    """I(L) and E(L) of a batch of formulas; `IoU = I / (|N| + E)`."""

    intersections: Int64[np.ndarray, " batch"]
    extras: Int64[np.ndarray, " batch"]
    neuron_size: int

    def __len__(self) -> int:
        return len(self.intersections)

    def __getitem__(self, row: int) -> Score:
        return Score(int(self.intersections[row]), self.neuron_size + int(self.extras[row]))

    def first(self, n: int) -> "BatchScores":
        """The scores of the first n formulas."""
        return BatchScores(self.intersections[:n], self.extras[:n], self.neuron_size)

    @property
    def iou(self) -> np.ndarray:
        """Rounded IoUs; compare exactly with `self[row].ratio` where they are close."""
        return self.intersections / np.maximum(self.neuron_size + self.extras, 1)


def highest_rows(
    intersections: Int64[np.ndarray, " rows"], unions: Int64[np.ndarray, " rows"]
) -> list[int]:
    """All rows whose ratio is exactly the highest one.

    Division rounds each ratio by at most one part in 2**53, so rows further below the highest are
    out; the few others are compared by cross-multiplying Python integers.
    """
    rounded = intersections / np.maximum(unions, 1)
    best: list[int] = []
    top = Fraction(-1)
    for row in np.flatnonzero(rounded >= rounded.max() * (1 - 2.0**-50)).tolist():
        ratio = Fraction(int(intersections[row]), max(int(unions[row]), 1))
        if ratio > top:
            best, top = [row], ratio
        elif ratio == top:
            best.append(row)
    return best


def iou_many(
    table: ConceptTable, neuron: Any, formulas: Iterable[Formula] | FormulaBatch
) -> BatchScores:
    """The exact scores of many formulas, evaluated in batches on the device.

    `neuron` is a bitmap or the `NeuronCounts` of one.
    """
    counts = as_counts(table, neuron)
    batch = as_batch(table, formulas)
    n = len(batch)
    inside, outside = np.empty(n, np.int64), np.empty(n, np.int64)
    step = round_up_to_power_of_two(BLOCK_WORDS // device_table(table).n_words, 8)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        part = batch.part(start, rows.stop)
        scores = score_rows(table, counts, pad_batch(part)).first(len(part))
        inside[rows], outside[rows] = scores.intersections, scores.extras
    return BatchScores(inside, outside, counts.size)


def score_rows(table: ConceptTable, neuron: NeuronCounts, batch: FormulaBatch) -> BatchScores:
    """The exact scores of a batch that is known to be right, in one call, in its own shape.

    Its rows are spread over the devices of this process.
    """
    device = device_neuron(table, neuron)
    # Counts can pass 2**31, so the sums run in 64 bits whatever the process-wide setting is.
    with jax.enable_x64(True):
        sums = _score_chains(
            device_table(table).membership,
            split_batch(batch.concepts),
            split_batch(batch.operators),
            operator_bits(batch.operator_set),
            device.inside,
            device.outside,
        )
        inside, outside = np.asarray(sums)
    return BatchScores(inside, outside, neuron.size)


def as_batch(table: ConceptTable, formulas: Iterable[Formula] | FormulaBatch) -> FormulaBatch:
    """Formulas as a batch on the host; refuses one that names concepts the table lacks."""
    if not isinstance(formulas, FormulaBatch):
        return FormulaBatch.from_formulas(formulas, table.names)
    # Compiled code would take the nearest concept or operator there is, without a word.
    concepts, operators = np.asarray(formulas.concepts), np.asarray(formulas.operators)
    used = concepts != PADDING
    steps = used[:, 1:]
    operator = operators[:, 1:]
    good = used[:, :1].any(axis=1)
    good &= (~used | ((concepts >= 0) & (concepts < table.n_concepts))).all(axis=1)
    good &= (~steps | ((operator >= 0) & (operator < len(formulas.operator_set)))).all(axis=1)
    if not good.all():
        raise ValueError(
            f"row {int(np.argmin(good))} of the formula batch has a concept that is not among the "
            f"table's {table.n_concepts}, no first concept, or an operator not in operator_set"
        )
    return FormulaBatch(concepts, operators, formulas.operator_set)


def pad_batch(batch: FormulaBatch, n_rows: int | None = None) -> FormulaBatch:
    """The batch with its last row repeated, so that few shapes are compiled.

    It gets `n_rows`, or a power of two.
    """
    if n_rows is None:
        n_rows = round_up_to_power_of_two(len(batch), 8)
    rows = np.minimum(np.arange(n_rows), max(len(batch) - 1, 0))
    if not len(batch):
        filler = np.zeros((len(rows), batch.concepts.shape[1]), np.int32)
        return FormulaBatch(filler, np.full_like(filler, PADDING), batch.operator_set)
    return FormulaBatch(
        np.asarray(batch.concepts)[rows], np.asarray(batch.operators)[rows], batch.operator_set
    )


def signatures_held(table: ConceptTable, batch: FormulaBatch) -> UInt32[Array, "batch words"]:
    """Where each formula of a batch holds, as packed signatures."""
    return evaluate_chains(
        device_table(table).membership,
        batch.concepts,
        batch.operators,
        operator_bits(batch.operator_set),
    )


def held_on_host(table: ConceptTable, batch: FormulaBatch) -> Bool[np.ndarray, "batch signatures"]:
    """The same without the device, a signature to a cell: for a few formulas."""
    membership = device_table(table).host_membership
    concepts, operators = np.asarray(batch.concepts), np.asarray(batch.operators)
    # All bits of a word or none, for each operator; padding keeps the left side: 1, 0, 1.
    bits = np.concatenate([operator_bits(batch.operator_set), [[True, False, True]]])
    words = -bits.astype(np.uint32)
    held = membership[concepts[:, 0]]
    for step in range(1, concepts.shape[1]):
        if (concepts[:, step] == PADDING).all():
            break
        right = membership[concepts[:, step]]
        p, q, r = words[operators[:, step]].T[:, :, None]
        held = (p & held & ~right) | (q & ~held & right) | (r & held & right)
    as_bytes = held.astype("<u4", copy=False).view(np.uint8)
    n = len(table.signatures)
    return np.unpackbits(as_bytes, axis=1, count=n, bitorder="little").view(np.bool_)


@jax.jit
def evaluate_chains(
    membership: UInt32[Array, "concepts words"],
    concepts: Int32[Array, "batch length"],
    operators: Int32[Array, "batch length"],
    bits: Bool[Array, "operators three"],
) -> UInt32[Array, "batch words"]:
    """Where each chain holds, from where its concepts do; 32 signatures to a word."""
    full = jnp.uint32(0xFFFFFFFF)
    words = jnp.where(bits, full, jnp.uint32(0))
    held = membership[concepts[:, 0]]
    for step in range(1, concepts.shape[1]):
        right = membership[jnp.maximum(concepts[:, step], 0)]
        p, q, r = (words[jnp.maximum(operators[:, step], 0), k][:, None] for k in range(3))
        joined = (p & held & ~right) | (q & ~held & right) | (r & held & right)
        held = jnp.where((concepts[:, step] != PADDING)[:, None], joined, held)
    return held


@jax.jit
def _score_chains(
    membership: UInt32[Array, "concepts words"],
    concepts: Int32[Array, "batch length"],
    operators: Int32[Array, "batch length"],
    bits: Bool[Array, "operators three"],
    inside: Int64[Array, "words lanes"],
    outside: Int64[Array, "words lanes"],
) -> Int64[Array, "two batch"]:
    note_trace("score_chains")
    return _weighted_sums(evaluate_chains(membership, concepts, operators, bits), inside, outside)


def _weighted_sums(
    held: UInt32[Array, "batch words"],
    inside: Int64[Array, "words lanes"],
    outside: Int64[Array, "words lanes"],
) -> Int64[Array, "two batch"]:
    # One word a step: a sum over all of them at once would first write out an integer for every
    # formula and signature, in gigabytes.
    lanes = jnp.arange(LANES, dtype=jnp.uint32)

    def add_word(
        totals: Int64[Array, "two batch"],
        word: tuple[UInt32[Array, " batch"], Int64[Array, "two lanes"]],
    ) -> tuple[Int64[Array, "two batch"], None]:
        packed, weights = word
        bits = ((packed[:, None] >> lanes[None, :]) & jnp.uint32(1)).astype(jnp.int64)
        return totals + (bits[None] * weights[:, None]).sum(2), None

    start = jnp.zeros((2, held.shape[0]), jnp.int64)
    weights = jnp.stack([inside, outside], axis=1)
    return jax.lax.scan(add_word, start, (held.T, weights))[0]
