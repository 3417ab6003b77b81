"""Top/Bott vectors of one's own: have them checked, and compare the work they take.

    python scripts/own_vectors.py

The published vectors take the largest and the smallest values over all concepts. `LabelVectors`
takes the largest over the concepts that a label does not hold yet. `OthersVectors`, written here,
does the same for the smallest. `PairVectors` also knows what the label may share with each concept.
See docs/how_to/own_bounds.md.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

import optexp_jax as ox
from optexp_jax.bounds import LabelBatch, ProblemView, TopBott
from optexp_jax.counts.quantities import Quantities
from optexp_jax.testing import check_admissible


class OthersVectors(ox.AbstractVectors):
    """Top_t and Bott_1 over the concepts that the label does not hold."""

    top: ox.LabelVectors = ox.LabelVectors()

    def prepare(self, view: ProblemView) -> PyTree[Array]:
        """For each quantity and sample, the concepts with the smallest values."""

        # A label that can grow holds fewer than `length` concepts, so one of these is free.
        def smallest(part: Array) -> tuple[Array, Array]:
            values, ids = jax.lax.top_k(-part.T, min(view.length, part.shape[0]))
            return -values, ids.astype(jnp.int32)

        parts = (view.concepts.iu, view.concepts.ic, view.concepts.eu, view.concepts.ec)
        return self.top.prepare(view), [smallest(part) for part in parts]

    def of_labels(self, prepared: PyTree[Array], labels: LabelBatch) -> TopBott:
        """The vectors of each label."""
        for_top, lowest = prepared

        def least(values: Array, ids: Array) -> Array:
            held = (ids[None, :, :, None] == labels.concepts[:, None, None, :]).any(-1)
            free = jnp.where(held, jnp.iinfo(values.dtype).max, values[None])
            # Where nothing is free no path goes on, and 0 is as good as any.
            return jnp.where(held.all(-1), 0, free.min(-1))

        best = self.top.of_labels(for_top, labels)
        bottom = Quantities(*(least(values, ids) for values, ids in lowest))
        return TopBott(best.top, best.top_one, bottom)


def make_dataset(seed: int) -> tuple[ox.ConceptTable, np.ndarray]:
    """Overlapping rectangles of 16 concepts in 40 images, and neurons that fire on some of them."""
    rng = np.random.default_rng(seed)
    masks = np.zeros((16, 40, 14, 14), bool)
    for image in masks.reshape(-1, 14, 14):
        if rng.random() < 0.5:
            top, left = rng.integers(0, 11, 2)
            height, width = rng.integers(2, 8, 2)
            image[top : top + height, left : left + width] = True
    a, b, c = masks[:3]
    fires = np.stack([(a | b) & ~c, (a & b) | c, a | b | c])
    return ox.ConceptTable.from_masks(masks), fires ^ (rng.random(fires.shape) < 0.03)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=40, help="problems to check the vectors on")
    arguments = parser.parse_args()

    report = check_admissible(
        ox.PaperBounds(OthersVectors()), cases=arguments.cases, seed=arguments.seed, lengths=(3,)
    )
    print(report)
    if not report.admissible:
        raise SystemExit(1)

    table, bitmaps = make_dataset(arguments.seed)
    print(f"\n{'vectors':18} {'visited':>8} {'expanded':>9} {'estimated':>10} {'seconds':>8}")
    results: list[list[ox.Formula | None]] = []
    for vectors in (ox.PublishedVectors(), ox.LabelVectors(), OthersVectors(), ox.PairVectors()):
        method = ox.Optimal(3, bounds=ox.PaperBounds(vectors), batch_size=1)
        ox.explain(table, bitmaps[0], method)  # compiles
        found = list(ox.explain_many(table, bitmaps, method))
        stats = [explanation.stats for explanation in found]
        print(
            f"{type(vectors).__name__:18} {sum(s.visited for s in stats):8} "
            f"{sum(s.expanded for s in stats):9} {sum(s.estimated for s in stats):10} "
            f"{sum(s.seconds.total for s in stats):8.2f}"
        )
        results.append([explanation.formula for explanation in found])
    assert all(found == results[0] for found in results), (
        "vectors may change the work, not the result"
    )
    print("\nThe same formulas with all of them:")
    for formula in results[0]:
        print(f"  {formula}")


if __name__ == "__main__":
    main()
