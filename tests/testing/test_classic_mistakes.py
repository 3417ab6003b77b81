"""Top and Bott vectors as they are often got wrong: the checker finds them with its defaults."""

import jax
import jax.numpy as jnp
import pytest
from helpers.support import thorough
from jaxtyping import Array, PyTree

import optexp_jax as ox
from optexp_jax.bounds import LabelBatch, ProblemView, TopBott
from optexp_jax.testing import check_admissible

PUBLISHED = ox.PublishedVectors()
SEEDS = range(8) if thorough() else (0, 1)
"""Every kind of vectors is compiled anew, which takes most of the time."""


class Wrong(ox.AbstractVectors):
    """The published vectors, prepared wrongly."""

    def of_labels(self, prepared: PyTree[Array], labels: LabelBatch) -> TopBott:
        return PUBLISHED.of_labels(prepared, labels)


class UnsortedTop(Wrong):
    """The n largest values of a sample, not sorted: the first is the n-th largest."""

    def prepare(self, view: ProblemView) -> PyTree[Array]:
        def sums(part: Array) -> Array:
            n = min(view.length, part.shape[0])
            backwards = jax.lax.top_k(part.T, n)[0].T[::-1]
            return jnp.cumsum(jnp.pad(backwards, ((1, view.length - n), (0, 0))), axis=0)

        return jax.tree.map(sums, view.concepts), PUBLISHED.prepare(view)[1]


class TopOfTotals(Wrong):
    """In every sample the values of the concepts that are largest in the dataset."""

    def prepare(self, view: ProblemView) -> PyTree[Array]:
        def sums(part: Array) -> Array:
            n = min(view.length, part.shape[0])
            values = part[jnp.argsort(-part.sum(1))[:n]]
            return jnp.cumsum(jnp.pad(values, ((1, view.length - n), (0, 0))), axis=0)

        return jax.tree.map(sums, view.concepts), PUBLISHED.prepare(view)[1]


class BottOfTotals(Wrong):
    """In every sample the value of the concept that is smallest in the dataset."""

    def prepare(self, view: ProblemView) -> PyTree[Array]:
        smallest = jax.tree.map(lambda part: part[part.sum(1).argmin()], view.concepts)
        return PUBLISHED.prepare(view)[0], smallest


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "vectors",
    [UnsortedTop(), BottOfTotals(), pytest.param(TopOfTotals(), marks=pytest.mark.slow)],
    ids=repr,
)
def test_classic_mistakes_are_found(vectors: ox.AbstractVectors, seed: int):
    report = check_admissible(ox.PaperBounds(vectors), seed=seed)
    assert report.counterexample is not None
    claim = report.counterexample.claim
    assert claim.what == "bound"
    assert claim.claimed < claim.score.iou
    # So early that a person who waits for it waits for one size of problem to be compiled.
    assert report.cases <= 100
