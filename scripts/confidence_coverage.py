"""How often the confidence set holds the truth: the optimum on a population of images.

A population of images, 100 times larger than a sample of them, is generated with units of three
noise levels. The truth of a unit is the proved optimum on the population. Then samples are drawn;
on each the unit is explained, its noise c estimated by bootstraps, and the truth is in the
confidence set if its IoU is at least best − c: formulas that hold at the same locations have the
same IoU, so membership is by set of locations. The coverage is told apart where the margin of
the truth to the second-best formula of the population exceeds two standard errors of that margin
on samples of this size.

    python scripts/confidence_coverage.py --populations 10 --trials 20
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool
from scipy.stats import binomtest

import optexp_jax as ox

LEVELS = (0.5, 0.8, 0.93)
"""Shares of the unit's locations that are chance."""
LARGER = 100
"""Images of a population for one of a sample."""
SHAPE = (4, 4)
METHOD = ox.Optimal(length=2)


@dataclass(frozen=True)
class Trial:
    """One sample of a population."""

    covered: bool
    clear: bool
    """Whether the margin to the second-best exceeds two standard errors."""
    size: int
    """Formulas in the confidence set."""


@dataclass(frozen=True, eq=False)
class Population:
    """Concepts and a unit on many images."""

    masks: Bool[np.ndarray, "concepts images rows columns"]
    unit: Bool[np.ndarray, "images rows columns"]

    @classmethod
    def of(cls, rng: np.random.Generator, n_images: int, n_concepts: int, noise: float):
        """Images with some of the concepts each; the unit sees two of them, and some noise."""
        shown = rng.random((n_concepts, n_images, 1, 1)) < 0.4
        masks = shown & (rng.random((n_concepts, n_images, *SHAPE)) < 0.35)
        seen = masks[0] | (masks[1] & (rng.random((n_images, *SHAPE)) < 0.6))
        chance = rng.random(seen.shape) < 0.25
        return cls(masks, np.where(rng.random(seen.shape) < noise, chance, seen))

    @property
    def names(self) -> list[str]:
        return [f"c{k}" for k in range(len(self.masks))]

    def sample(self, images: np.ndarray) -> "Population":
        return Population(self.masks[:, images], self.unit[images])

    def table(self) -> ox.ConceptTable:
        return ox.ConceptTable.from_masks(self.masks, names=self.names)


def trials(rng: np.random.Generator, noise: float, options: argparse.Namespace) -> Iterator[Trial]:
    """Samples of one population."""
    population = Population.of(rng, LARGER * options.images, options.concepts, noise)
    table = population.table()
    best = ox.explain(table, population.unit, ox.Optimal(2, top_k=2))
    truth, second = best.formula, best.runners_up[0].formula
    assert truth is not None
    clear = _margin(population, table, (truth, second), rng, options.images) > 2
    for _ in range(options.trials):
        drawn = population.sample(rng.integers(0, LARGER * options.images, options.images))
        own = drawn.table()
        resampled = ox.stability(
            own, drawn.unit, METHOD, resamples=options.resamples, seed=int(rng.integers(2**31))
        )
        near = ox.confidence_set(own, drawn.unit, resampled.noise(), METHOD, most=2000)
        assert near.complete
        covered = ox.iou(own, drawn.unit, truth).ratio >= resampled.score.ratio - near.noise
        assert covered == any(own.same_locations(truth, each.formula) for each in near.members)
        yield Trial(covered, clear, len(near.members))


def _margin(
    population: Population,
    table: ox.ConceptTable,
    formulas: tuple[ox.Formula, ox.Formula],
    rng: np.random.Generator,
    n: int,
) -> float:
    """How many standard errors, on samples of n images, the first formula is above the second."""
    counts = []
    for formula in formulas:
        held = table.mask(formula)
        pair = (held & population.unit, held | population.unit)
        counts.append(np.stack([each.sum((1, 2)) for each in pair]))
    drawn = rng.integers(0, len(population.unit), (500, n))
    ious = [own[0][drawn].sum(1) / own[1][drawn].sum(1) for own in counts]
    whole = [own[0].sum() / own[1].sum() for own in counts]
    return float((whole[0] - whole[1]) / (ious[0] - ious[1]).std())


def told(found: list[Trial]) -> str:
    """The coverage, with its exact binomial interval."""
    if not found:
        return "none"
    covered = sum(each.covered for each in found)
    interval = binomtest(covered, len(found)).proportion_ci(0.95, "exact")
    share = covered / len(found)
    return f"{covered}/{len(found)} = {share:.1%} ({interval.low:.1%} to {interval.high:.1%})"


def main() -> None:
    parser = argparse.ArgumentParser(description="Coverage of the confidence set.")
    parser.add_argument("--populations", type=int, default=10, help="of each noise level")
    parser.add_argument("--trials", type=int, default=20, help="samples of each population")
    parser.add_argument("--images", type=int, default=40, help="in a sample")
    parser.add_argument("--concepts", type=int, default=8)
    parser.add_argument("--resamples", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for level, noise in enumerate(LEVELS):
        found: list[Trial] = []
        for number in range(options.populations):
            rng = np.random.default_rng([options.seed, level, number])
            found += trials(rng, noise, options)
        clear, close = ([x for x in found if x.clear is which] for which in (True, False))
        middle = int(np.median([each.size for each in found]))
        print(
            f"noise {noise:g}: {told(found)}; clear margin: {told(clear)}; "
            f"close: {told(close)}; median size {middle}",
            flush=True,
        )


if __name__ == "__main__":
    main()
