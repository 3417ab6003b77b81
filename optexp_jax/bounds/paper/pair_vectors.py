"""Top and Bott vectors that know what a label shares with every concept.

The overlap of a label L with a concept c is not known, but the overlaps of pairs are, and limits of
|L ∩ c| follow from them step by step, as the limits of a label's common elements do: the lines of
`label.py` are used with the locations of c in place of those of a sample. Only concepts that L does
not hold count.

*Admissible.* Let `low <= |L ∩ c| <= high`, inside the neuron or outside, in the whole dataset.

- `top`, aggregated. Concepts S have at most `sum |c \\ L| = sum (|c| − |L ∩ c|)` locations that L
  does not have, so at most the t largest of `|c| − low` added up. Unique elements of c are never
  in L: there it is the t largest values.
- `top_one`. L shares `|L ∩ c| <= high` with c in the dataset, so no more in a sample; nor more
  than c has there. The largest `min(|c|, high)` over concepts is enough. Concepts that never meet L
  have `high = 0` and drop out.
- `bottom` is the smallest value. ∎

Per sample, `top` cannot use totals: there it is that of `LabelVectors`.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Int32, Int64, PyTree

from optexp_jax.bounds.paper.chains import disjoint_after, row_bits
from optexp_jax.bounds.paper.label import Interval, join_common
from optexp_jax.bounds.paper.problem_view import LabelBatch, ProblemView
from optexp_jax.bounds.paper.vectors import AbstractVectors, TopBott, largest, sum_of_unused
from optexp_jax.counts.pair_overlaps import PairOverlaps
from optexp_jax.counts.quantities import Quantities
from optexp_jax.formulas.operators import Operator
from optexp_jax.internal.tracing import note_trace


class PairVectors(AbstractVectors):
    """Top and Bott vectors from pair overlaps: tighter for OR and AND paths, dearer.

    Concepts that the label holds are left out. What a concept shares with the label is no gain of
    an OR, and all that is left by an AND.
    """

    ranks: int = eqx.field(static=True, default=8)
    """How many of the largest concepts of a sample are looked at one by one for `top_one`; at least
    as many as a formula may have."""

    def __check_init__(self) -> None:
        if not isinstance(self.ranks, int) or self.ranks < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"ranks must be a whole number from 1 on, got {self.ranks!r}")

    def prepare(self, view: ProblemView) -> PyTree[Array]:
        return _prepare(
            view.concepts,
            view.pairs,
            view.disjoint,
            operators=view.operators,
            length=view.length,
            ranks=self.ranks,
            aggregated=view.aggregated,
        )

    def of_labels(self, prepared: PyTree[Array], labels: LabelBatch) -> TopBott:
        known: _Prepared = prepared
        n_concepts = len(known.inside.sizes)
        every = jnp.arange(n_concepts, dtype=jnp.int32)
        held = (labels.concepts[:, :, None] == every[None, None, :]).any(1)
        top_common, one_common = zip(
            *(
                _common(overlaps, ranked, labels, held, known)
                for overlaps, ranked in ((known.inside, known.ic), (known.outside, known.ec))
            ),
            strict=True,
        )
        top_iu, top_eu = (_most_unused(ranked, labels) for ranked in (known.iu, known.eu))
        # A label and a concept that it does not hold share no unique elements.
        none = jnp.zeros_like(top_iu)
        return TopBott(
            top=Quantities(top_iu, top_common[0], top_eu, top_common[1]),
            top_one=Quantities(none, one_common[0], none, one_common[1]),
            bottom=Quantities(
                *(
                    _least_unused(ranked, labels)
                    for ranked in (known.iu, known.ic, known.eu, known.ec)
                )
            ),
        )


class _Ranked(eqx.Module):
    """The largest and the smallest values of a quantity in each sample, and whose they are."""

    values: Int[Array, "samples ranks"]
    ids: Int32[Array, "samples ranks"]
    least_values: Int[Array, "samples few"]
    least_ids: Int32[Array, "samples few"]


class SharedCounts(eqx.Module):
    """What concepts share, and common elements of each, in the dataset; inside or outside."""

    shared: Int64[Array, "concepts concepts"]
    sizes: Int64[Array, " concepts"]


class _Prepared(eqx.Module):
    disjoint: Bool[Array, "concepts concepts"]
    inside: SharedCounts
    outside: SharedCounts
    iu: _Ranked
    ic: _Ranked
    eu: _Ranked
    ec: _Ranked
    operators: tuple[Operator, ...] = eqx.field(static=True)
    length: int = eqx.field(static=True)
    aggregated: bool = eqx.field(static=True)


@partial(jax.jit, static_argnames=("operators", "length", "ranks", "aggregated"))
def _prepare(
    concepts: Quantities,
    pairs: PairOverlaps,
    disjoint: Bool[Array, "concepts concepts"],
    *,
    operators: tuple[Operator, ...],
    length: int,
    ranks: int,
    aggregated: bool,
) -> _Prepared:
    note_trace("prepare")

    def ranked(part: Int[Array, "concepts samples"]) -> _Ranked:
        # `length` are enough to find t that a label of length − t concepts does not hold.
        values, ids = largest(part, max(length, ranks))
        negative, least_ids = largest(-part, length)
        return _Ranked(values, ids, -negative, least_ids)

    def overlaps(
        shared: Int64[Array, "concepts concepts"], common: Int[Array, "concepts samples"]
    ) -> SharedCounts:
        return SharedCounts(shared, common.sum(1, dtype=jnp.int64))

    return _Prepared(
        disjoint,
        overlaps(pairs.inside, concepts.ic),
        overlaps(pairs.outside, concepts.ec),
        *(ranked(part) for part in (concepts.iu, concepts.ic, concepts.eu, concepts.ec)),
        operators=operators,
        length=length,
        aggregated=aggregated,
    )


def label_overlaps(
    overlaps: SharedCounts,
    disjoint: Bool[Array, "concepts concepts"],
    labels: LabelBatch,
    operators: tuple[Operator, ...],
) -> Interval:
    """Limits of |L ∩ c|, `[row, concept]`, for every concept c that label L does not hold.

    Among the locations of c, `P∘d` has `p(P − k) + q(d − k) + r·k`, with any k that |P ∩ c|,
    |d ∩ c| and |c| allow: the same limits as in `bounds.paper.label`.
    """
    leaf = labels.concepts[:, 0]
    bounds = Interval(overlaps.shared[leaf], overlaps.shared[leaf])
    apart = disjoint[leaf]
    rows = jnp.arange(len(labels))
    for step in range(1, labels.concepts.shape[1]):
        bits = row_bits(operators, labels.operators[:, step])
        concept = jnp.maximum(labels.concepts[:, step], 0)
        joined = overlaps.shared[concept]
        grown = join_common(bounds, joined, bits, apart[rows, concept], overlaps.sizes)
        present = (labels.concepts[:, step] >= 0)[:, None]
        bounds = jax.tree.map(partial(jnp.where, present), grown, bounds)
        after = disjoint_after(apart, disjoint[concept], bits.q == 0, bits.p == 0)
        apart = jnp.where(present, after, apart)
    return bounds


def _common(
    overlaps: SharedCounts,
    ranked: _Ranked,
    labels: LabelBatch,
    held: Bool[Array, "rows concepts"],
    known: _Prepared,
) -> tuple[Int[Array, "rows samples"], Int[Array, "rows samples"]]:
    """`top` and `top_one` of common elements."""
    limits = label_overlaps(overlaps, known.disjoint, labels, known.operators)
    high = jnp.where(held, 0, limits.high)
    if not known.aggregated:
        return _most_unused(ranked, labels), _most_shared(ranked, high)
    gains = jnp.where(held, 0, overlaps.sizes[None, :] - limits.low)
    most = jax.lax.top_k(gains, min(known.length, gains.shape[1]))[0]
    taken = jnp.arange(most.shape[1], dtype=jnp.int32)[None, :] < labels.further[:, None]
    top = jnp.where(taken, most, 0).sum(1, keepdims=True)
    return top, high.max(1, keepdims=True)


def _most_unused(ranked: _Ranked, labels: LabelBatch) -> Int[Array, "rows samples"]:
    """Top_t over the concepts that each label does not hold."""
    length = labels.concepts.shape[1]
    values, ids = ranked.values[:, :length], ranked.ids[:, :length]
    return sum_of_unused(values, ids, labels.concepts, labels.further)


def _most_shared(
    ranked: _Ranked, high: Int64[Array, "rows concepts"]
) -> Int[Array, "rows samples"]:
    """The largest `min(|c|, high)` of each sample; concepts past the ranks have at most the last.

    `high` is 0 for concepts that do not count.
    """
    dtype = ranked.values.dtype
    limit = jnp.minimum(high, jnp.iinfo(dtype).max).astype(dtype)

    def one_row(limit: Int[Array, " concepts"]) -> Int[Array, " samples"]:
        shared = jnp.minimum(ranked.values, limit[ranked.ids]).max(1)
        everything = ranked.values.shape[1] == limit.shape[0]
        return shared if everything else jnp.maximum(shared, ranked.values[:, -1])

    return jax.vmap(one_row)(limit)


def _least_unused(ranked: _Ranked, labels: LabelBatch) -> Int[Array, "rows samples"]:
    """Bott_1 over the concepts that each label does not hold."""
    values, ids = ranked.least_values, ranked.least_ids

    def one_row(chain: Int32[Array, " length"]) -> Int[Array, " samples"]:
        held = (ids[:, :, None] == chain[None, None, :]).any(-1)
        least = jnp.where(held, jnp.iinfo(values.dtype).max, values).min(1)
        # Where all are held no path goes on, and 0 is as good as any.
        return jnp.where(held.all(1), 0, least)

    return jax.vmap(one_row)(labels.concepts)
