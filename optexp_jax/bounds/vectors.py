"""Top and Bott vectors: the most and the least that further concepts can add to a label.

The published estimates of paths need, per sample, the sum of the k largest values of a quantity
over concepts (`Top_k`) and its smallest value (`Bott_1`). They are an object of their own so that
others can be tried: subclass `ImprovementVectors`, pass it as `PaperBounds(vectors=...)`, and let
`optexp_jax.testing.check_admissible` look for a counterexample.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Int32, PyTree

from optexp_jax.quantities import Quantities


class TopBott(eqx.Module):
    """What a path from each label can gain, `[row, sample]`, with t further concepts at most.

    To be admissible, for every choice of 1 to t concepts that the label does not hold:
    their values of a quantity add up to at most `top` of it, any one of them is at most
    `top_one` and at least `bottom`.
    """

    top: Quantities
    top_one: Quantities
    bottom: Quantities


class ImprovementVectors(eqx.Module):
    """A way to make Top and Bott vectors."""

    @abc.abstractmethod
    def prepare(self, concepts: Quantities, length: int) -> PyTree[Array]:
        """What is computed once a neuron from the concepts' quantities `[concept, sample]`.

        `length` is the greatest number of concepts in a formula. Called once with per-sample
        quantities and once with aggregated ones, which have a single sample.
        """

    @abc.abstractmethod
    def of_labels(
        self,
        prepared: PyTree[Array],
        chains: Int32[Array, "rows length"],
        further: Int32[Array, " rows"],
    ) -> TopBott:
        """The vectors of labels, with t = `further`; `chains` holds their concepts, padded with -1.

        Runs inside `jax.jit`, for every row of a frontier expansion at once.
        """


class PublishedVectors(ImprovementVectors):
    """Top_t and Bott_1 over all concepts, whatever the label: the published vectors."""

    def prepare(self, concepts: Quantities, length: int) -> PyTree[Array]:
        return _top_sums(concepts, length), jax.tree.map(lambda part: part.min(0), concepts)

    def of_labels(
        self,
        prepared: PyTree[Array],
        chains: Int32[Array, "rows length"],
        further: Int32[Array, " rows"],
    ) -> TopBott:
        sums, smallest = prepared
        one = jnp.minimum(jnp.ones_like(further), further)
        return TopBott(
            top=jax.tree.map(lambda part: part[further], sums),
            top_one=jax.tree.map(lambda part: part[one], sums),
            bottom=_each_row(smallest, len(chains)),
        )


class LabelVectors(ImprovementVectors):
    """Top_t over the concepts that the label does not hold already: tighter, dearer.

    The t best of the others are among the t + |L| best of all, so `length` ranks are enough.
    """

    def prepare(self, concepts: Quantities, length: int) -> PyTree[Array]:
        def ranked(part: Int[Array, "concepts samples"]) -> tuple[Array, Array]:
            k = min(length, part.shape[0])
            values, ids = jax.lax.top_k(part.T, k)
            return values, ids.astype(jnp.int32)

        return (
            [ranked(part) for part in _parts(concepts)],
            jax.tree.map(lambda part: part.min(0), concepts),
        )

    def of_labels(
        self,
        prepared: PyTree[Array],
        chains: Int32[Array, "rows length"],
        further: Int32[Array, " rows"],
    ) -> TopBott:
        ranks, smallest = prepared

        def best(k: Int32[Array, " rows"]) -> Quantities:
            iu, ic, eu, ec = (_sum_of_unused(values, ids, chains, k) for values, ids in ranks)
            return Quantities(iu, ic, eu, ec)

        one = jnp.minimum(jnp.ones_like(further), further)
        return TopBott(best(further), best(one), _each_row(smallest, len(chains)))


def _parts(quantities: Quantities) -> tuple[Array, Array, Array, Array]:
    return quantities.iu, quantities.ic, quantities.eu, quantities.ec


def _each_row(quantities: Quantities, n_rows: int) -> Quantities:
    return jax.tree.map(lambda part: jnp.broadcast_to(part, (n_rows, *part.shape)), quantities)


def _top_sums(concepts: Quantities, length: int) -> Quantities:
    """`Top_k` for k = 0 .. length, `[k, sample]`; with fewer concepts than k, what there is."""

    def sums(part: Int[Array, "concepts samples"]) -> Int[Array, "ks samples"]:
        k = min(length, part.shape[0])
        largest = jax.lax.top_k(part.T, k)[0].T
        padded = jnp.pad(largest, ((1, length - k), (0, 0)))
        return jnp.cumsum(padded, axis=0)

    return jax.tree.map(sums, concepts)


def _sum_of_unused(
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
