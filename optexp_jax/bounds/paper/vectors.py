"""Top and Bott vectors: the most and the least that further concepts can add to a label.

The published estimates of paths need, per sample, the sum of the k largest values of a quantity
over concepts (`Top_k`) and its smallest value (`Bott_1`). They are an object of their own so that
others can be tried: subclass `AbstractVectors`, pass it as `PaperBounds(vectors=...)`, and let
`optexp_jax.testing.check_admissible` look for a counterexample.
"""

import abc
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Int32, PyTree

from optexp_jax.bounds.paper.problem_view import LabelBatch, ProblemView
from optexp_jax.counts.quantities import Quantities
from optexp_jax.internal.tracing import note_trace


class TopBott(eqx.Module):
    """What paths can gain that go on from each label, `[row, sample]`.

    Take a label L that can take t further concepts, a sample, and one of the quantities: it counts
    locations of one sort, such as common ones inside the neuron. To be admissible:

    - any 1 to t concepts that L does not hold have together at most `top` locations of that sort
      that L does not have;
    - any one of them has at most `top_one` in common with L;
    - any one of them has at least `bottom`.

    It is enough, and looser, if the values of any 1 to t concepts add up to at most `top`, and the
    value of any one is at most `top_one`. This says nothing of L and needs no knowledge of it.

    `top` is read for paths with an OR, `top_one` for paths without one, `bottom` for OR and AND
    NOT (see `path.py`). So a concept that is disjoint from L may be left out of `top_one`, but not
    of `top`: L OR d may overlap it. And not of `bottom`: L AND NOT c is L then, which may hold
    more than all but c.
    """

    top: Quantities
    top_one: Quantities
    bottom: Quantities


class AbstractVectors(eqx.Module):
    """A way to make Top and Bott vectors."""

    @abc.abstractmethod
    def prepare(self, view: ProblemView) -> PyTree[Array]:
        """What is computed once a neuron, for all labels.

        Called once with the quantities of each sample and once with aggregated ones, which have a
        single sample: `view.aggregated` tells. Not compiled: what takes many steps is faster in a
        function under `jax.jit`.
        """

    @abc.abstractmethod
    def of_labels(self, prepared: PyTree[Array], labels: LabelBatch) -> TopBott:
        """The vectors of labels.

        Runs inside `jax.jit`, for every row of a frontier expansion at once. What it does not read
        of the labels is not computed.
        """


class PublishedVectors(AbstractVectors):
    """Top_t and Bott_1 over all concepts, whatever the label: the published vectors."""

    def prepare(self, view: ProblemView) -> PyTree[Array]:
        return _published(view.concepts, view.length)

    def of_labels(self, prepared: PyTree[Array], labels: LabelBatch) -> TopBott:
        sums, smallest = prepared
        one = jnp.minimum(jnp.ones_like(labels.further), labels.further)
        return TopBott(
            top=jax.tree.map(lambda part: part[labels.further], sums),
            top_one=jax.tree.map(lambda part: part[one], sums),
            bottom=_each_row(smallest, len(labels)),
        )


class LabelVectors(AbstractVectors):
    """Top_t over the concepts that the label does not hold already: tighter, dearer.

    The t best of the others are among the t + |L| best of all, so `length` ranks are enough.
    """

    def prepare(self, view: ProblemView) -> PyTree[Array]:
        return _ranked(view.concepts, view.length)

    def of_labels(self, prepared: PyTree[Array], labels: LabelBatch) -> TopBott:
        ranks, smallest = prepared

        def best(k: Int32[Array, " rows"]) -> Quantities:
            iu, ic, eu, ec = (
                sum_of_unused(values, ids, labels.concepts, k) for values, ids in ranks
            )
            return Quantities(iu, ic, eu, ec)

        one = jnp.minimum(jnp.ones_like(labels.further), labels.further)
        return TopBott(best(labels.further), best(one), _each_row(smallest, len(labels)))


def _each_row(quantities: Quantities, n_rows: int) -> Quantities:
    return jax.tree.map(lambda part: jnp.broadcast_to(part, (n_rows, *part.shape)), quantities)


@partial(jax.jit, static_argnames="length")
def _published(concepts: Quantities, length: int) -> tuple[Quantities, Quantities]:
    """Top_k for k = 0 .. length, `[k, sample]`, and Bott_1."""
    note_trace("published")
    return _top_sums(concepts, length), jax.tree.map(lambda part: part.min(0), concepts)


def _top_sums(concepts: Quantities, length: int) -> Quantities:
    """`Top_k` for k = 0 .. length, `[k, sample]`; with fewer concepts than k, what there is."""

    def sums(part: Int[Array, "concepts samples"]) -> Int[Array, "ks samples"]:
        k = min(length, part.shape[0])
        largest = jax.lax.top_k(part.T, k)[0].T
        padded = jnp.pad(largest, ((1, length - k), (0, 0)))
        return jnp.cumsum(padded, axis=0)

    return jax.tree.map(sums, concepts)


@partial(jax.jit, static_argnames="length")
def _ranked(concepts: Quantities, length: int) -> tuple[list[tuple[Array, Array]], Quantities]:
    """The `length` largest values of each quantity and sample with their concepts, and Bott_1."""
    note_trace("ranked")
    parts = (concepts.iu, concepts.ic, concepts.eu, concepts.ec)
    return (
        [largest(part, length) for part in parts],
        jax.tree.map(lambda part: part.min(0), concepts),
    )


def largest(
    part: Int[Array, "concepts samples"], ranks: int
) -> tuple[Int[Array, "samples ranks"], Int32[Array, "samples ranks"]]:
    """The largest values of each sample in descending order, and whose they are."""
    values, ids = jax.lax.top_k(part.T, min(ranks, part.shape[0]))
    return values, ids.astype(jnp.int32)


def sum_of_unused(
    values: Int[Array, "samples ranks"],
    ids: Int32[Array, "samples ranks"],
    chains: Int32[Array, "rows length"],
    k: Int32[Array, " rows"],
) -> Int[Array, "rows samples"]:
    """Per row and sample, the sum of the k largest values whose concept the row does not hold."""

    def one_row(chain: Int32[Array, " length"], most: Int32[Array, ""]) -> Int[Array, " samples"]:
        free: Bool[Array, "samples ranks"] = (ids[:, :, None] != chain[None, None, :]).all(-1)
        taken = free & (jnp.cumsum(free, axis=1, dtype=most.dtype) <= most)
        return jnp.where(taken, values, 0).sum(1, dtype=values.dtype)

    return jax.vmap(one_row)(chains, k)
