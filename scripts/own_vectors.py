"""Top/Bott vectors of one's own: written, checked, and compared with the published ones.

    python scripts/own_vectors.py

`HalfwayVectors` below is the example of docs/own_bounds.md.
"""

import argparse
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32, PyTree
from rich.console import Console
from rich.table import Table

import optexp_jax as ox
from optexp_jax.bounds import TopBott
from optexp_jax.quantities import Quantities
from optexp_jax.testing import check_admissible


class HalfwayVectors(ox.ImprovementVectors):
    """Top_t is never more than t times Top_1: cheap, needs one maximum, and is looser.

    With `wrong=True` it claims only half of that, which is not admissible.
    """

    wrong: bool = eqx.field(default=False, static=True)  # decides in Python, not on the device

    def prepare(self, concepts: Quantities, length: int) -> PyTree[Array]:
        largest = jax.tree.map(lambda part: part.max(0), concepts)
        smallest = jax.tree.map(lambda part: part.min(0), concepts)
        return largest, smallest

    def of_labels(
        self,
        prepared: PyTree[Array],
        chains: Int32[Array, "rows length"],
        further: Int32[Array, " rows"],
    ) -> TopBott:
        largest, smallest = prepared
        times = further.astype(jnp.int64)[:, None]
        once = jnp.minimum(times, 1)
        if self.wrong:
            times = times // 2
        return TopBott(
            top=jax.tree.map(lambda part: times * part[None, :], largest),
            top_one=jax.tree.map(lambda part: once * part[None, :], largest),
            bottom=jax.tree.map(
                lambda part: jnp.broadcast_to(part, (len(chains), len(part))), smallest
            ),
        )


def make_units(seed: int) -> tuple[ox.ConceptTable, list[ox.NeuronCounts]]:
    """Twelve overlapping concepts over 30 samples of 12x12, and four noisy units."""
    rng = np.random.default_rng(seed)
    masks = np.zeros((12, 30, 12, 12), bool)
    for concept in masks:
        for sample in np.flatnonzero(rng.random(30) < 0.6):
            top, left = rng.integers(0, 8, 2)
            height, width = rng.integers(2, 9, 2)
            concept[sample, top : top + height, left : left + width] = True
    table = ox.ConceptTable.from_masks(masks)
    units: list[ox.NeuronCounts] = []
    for _ in range(4):
        a, b, c = rng.choice(12, 3, replace=False)
        bitmap = ((masks[a] | masks[b]) & ~masks[c]) ^ (rng.random(masks[0].shape) < 0.05)
        units.append(table.count(bitmap))
    return table, units


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=20, help="problems to check on")
    options = parser.parse_args()
    console = Console()

    console.rule("Is it admissible?")
    for wrong in (False, True):
        bounds = ox.PaperBounds(HalfwayVectors(wrong))
        report = check_admissible(bounds, cases=options.cases, lengths=(3,), seed=options.seed)
        console.print(f"HalfwayVectors(wrong={wrong}):", str(report), markup=False)

    console.rule("How much work does it save?")
    table, units = make_units(options.seed)
    shown = Table("vectors", "expanded", "estimated", "visited", "seconds a unit")
    for vectors in (HalfwayVectors(), ox.PublishedVectors(), ox.LabelVectors()):
        method = ox.Optimal(3, bounds=ox.PaperBounds(vectors))
        ox.explain(table, units[0], method)  # compiles
        start = time.perf_counter()
        stats = [ox.explain(table, unit, method).stats for unit in units]
        seconds = (time.perf_counter() - start) / len(units)
        shown.add_row(
            type(vectors).__name__,
            f"{np.mean([each.expanded for each in stats]):.0f}",
            f"{np.mean([each.estimated for each in stats]):.0f}",
            f"{np.mean([each.visited for each in stats]):.0f}",
            f"{seconds:.2f}",
        )
    console.print(shown)


if __name__ == "__main__":
    main()
