"""Top and Bott vectors against plain numpy, and against what they promise."""

from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.search_cases import random_chains, seeds
from helpers.support import examples
from hypothesis import given
from hypothesis import strategies as st

from optexp_jax import DEFAULT_OPERATORS
from optexp_jax.bounds import (
    AbstractVectors,
    LabelBatch,
    LabelVectors,
    ProblemView,
    PublishedVectors,
    TopBott,
)
from optexp_jax.bounds.paper.label import LabelBounds
from optexp_jax.counts.pair_overlaps import PairOverlaps
from optexp_jax.counts.quantities import NeuronQuantities, Quantities

# Concepts, samples, formula length: also fewer concepts than a formula may have.
SHAPES = [(5, 3, 3), (2, 1, 4)]
N_ROWS = 12
PARTS = ("iu", "ic", "eu", "ec")
ALL_VECTORS = pytest.mark.parametrize(
    "vectors", [PublishedVectors(), LabelVectors()], ids=["published", "label"]
)


def make(
    vectors: AbstractVectors, quantities: dict[str, np.ndarray], chains: np.ndarray
) -> TopBott:
    n_concepts, n_samples = quantities["iu"].shape
    length = chains.shape[1]
    with jax.enable_x64(True):
        further = (length - (chains >= 0).sum(1)).astype(np.int32)
        parts = {part: jnp.asarray(quantities[part]) for part in PARTS}
        view = ProblemView(
            Quantities(**parts),
            NeuronQuantities(*(jnp.zeros(n_samples, jnp.int64) for _ in range(5))),
            jnp.zeros((n_concepts, n_concepts), bool),
            DEFAULT_OPERATORS,
            length,
            aggregated=False,
            count_pairs=must_not_be_counted,
        )
        labels = LabelBatch(
            jnp.asarray(chains),
            jnp.asarray(np.minimum(chains, 0)),
            jnp.asarray(further),
            LabelBounds.exact(Quantities(**parts)[chains[:, 0]]),
            jnp.zeros((len(chains), n_concepts), bool),
        )
        return jax.tree.map(np.asarray, compiled(vectors, vectors.prepare(view), labels))


def must_not_be_counted() -> PairOverlaps:
    raise AssertionError("pairs were counted, which nobody asked for")


@jax.jit
def compiled(vectors, prepared, labels):
    return vectors.of_labels(prepared, labels)


def draw(
    seed: int, shape: tuple[int, int, int], bits: int
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Quantities `[concept, sample]`, with many ties, and labels."""
    rng = np.random.default_rng(seed)
    n_concepts, n_samples, length = shape
    quantities = {part: rng.integers(0, 5, (n_concepts, n_samples)) << bits for part in PARTS}
    depth = min(length, n_concepts)
    chains = np.full((N_ROWS, length), -1, np.int32)
    chains[:, :depth] = random_chains(rng, n_concepts, N_ROWS, depth, 1)[0]
    return quantities, chains


def top(values: np.ndarray, k: int) -> np.ndarray:
    """The sum of the k largest values of each sample; of all, if there are fewer."""
    return np.sort(values, axis=0)[::-1][:k].sum(axis=0)


inputs = given(seed=seeds, shape=st.sampled_from(SHAPES), bits=st.sampled_from([0, 33, 48]))


@examples(12)
@inputs
def test_published_vectors(seed: int, shape: tuple[int, int, int], bits: int):
    quantities, chains = draw(seed, shape, bits)
    found = make(PublishedVectors(), quantities, chains)
    for part in PARTS:
        values = quantities[part]
        for row, chain in enumerate(chains):
            t = len(chain) - (chain >= 0).sum()
            np.testing.assert_array_equal(getattr(found.top, part)[row], top(values, t))
            np.testing.assert_array_equal(getattr(found.top_one, part)[row], top(values, min(t, 1)))
            np.testing.assert_array_equal(getattr(found.bottom, part)[row], values.min(axis=0))


@examples(12)
@inputs
def test_label_vectors(seed: int, shape: tuple[int, int, int], bits: int):
    quantities, chains = draw(seed, shape, bits)
    found = make(LabelVectors(), quantities, chains)
    for part in PARTS:
        values = quantities[part]
        for row, chain in enumerate(chains):
            t = len(chain) - (chain >= 0).sum()
            others = np.delete(values, chain[chain >= 0], axis=0)
            np.testing.assert_array_equal(getattr(found.top, part)[row], top(others, t))
            np.testing.assert_array_equal(getattr(found.top_one, part)[row], top(others, min(t, 1)))


@ALL_VECTORS
@examples(8)
@inputs
def test_what_vectors_promise(
    vectors: AbstractVectors, seed: int, shape: tuple[int, int, int], bits: int
):
    quantities, chains = draw(seed, shape, bits)
    found = make(vectors, quantities, chains)
    for row, chain in enumerate(chains):
        free = sorted(set(range(shape[0])) - set(chain.tolist()))
        t = len(chain) - int((chain >= 0).sum())
        for n in range(1, t + 1):
            for chosen in combinations(free, n):
                for part in PARTS:
                    values = quantities[part][list(chosen)]
                    assert (values.sum(0) <= getattr(found.top, part)[row]).all()
                    assert (values <= getattr(found.top_one, part)[row]).all()
                    assert (values >= getattr(found.bottom, part)[row]).all()


@examples(8)
@inputs
def test_label_vectors_are_never_looser(seed: int, shape: tuple[int, int, int], bits: int):
    quantities, chains = draw(seed, shape, bits)
    published = make(PublishedVectors(), quantities, chains)
    label = make(LabelVectors(), quantities, chains)
    for part in PARTS:
        assert (getattr(label.top, part) <= getattr(published.top, part)).all()
        assert (getattr(label.top_one, part) <= getattr(published.top_one, part)).all()
        assert (getattr(label.bottom, part) >= getattr(published.bottom, part)).all()


def test_top_vectors_are_ranked_in_each_sample():
    # The best concept of the dataset is not the best of the second sample.
    values = np.array([[9, 1], [2, 3], [0, 2]])
    quantities = dict.fromkeys(map(str, PARTS), values)
    chains = np.array([[2, -1]], np.int32)
    assert make(PublishedVectors(), quantities, chains).top.iu.tolist() == [[9, 3]]
