"""The algorithms of a table, one a row: what runs, and whose published figures stand beside it."""

from dataclasses import dataclass

from optexp_jax.bounds import PaperBounds
from optexp_jax.methods import AbstractMethod, Beam, Optimal
from optexp_jax.methods.beam.guides import AbstractGuide, MMESHGuide, QuantityGuide
from optexp_jax.reproduction.published import published_minutes

LENGTH, BEAM_SIZE = 3, 5
GUIDES: dict[str, AbstractGuide | None] = {
    "quantities": QuantityGuide(),
    "mmesh": MMESHGuide(),
    "vanilla": None,
}
GUIDE_TITLES = {"quantities": "quantities", "mmesh": "MMESH", "vanilla": "vanilla"}


@dataclass(frozen=True)
class AlgorithmRow:
    """A method as a row of a table."""

    key: str
    """The name of its run's folder."""
    title: str
    method: AbstractMethod
    published: str
    """The algorithm of the paper whose figures stand beside it."""
    counts_as_published: bool = True
    """Whether its counters mean what the paper's do."""


def optimal_row(budget: float) -> AlgorithmRow:
    """The optimum, by the tight bounds."""
    method = Optimal(LENGTH, time_limit=budget)
    return AlgorithmRow("optimal-tight", "Optimal, TightBounds", method, "optimal", False)


def beam_row(algorithm: str, length: int = LENGTH, size: int = BEAM_SIZE) -> AlgorithmRow:
    """A beam, counting as the paper does."""
    method = Beam(length, size=size, guide=GUIDES[algorithm], published_counters=True)
    key = f"beam-{algorithm}"
    if (length, size) != (LENGTH, BEAM_SIZE):
        key += f"-length{length}-size{size}"
    return AlgorithmRow(key, f"Beam, {GUIDE_TITLES[algorithm]}", method, algorithm)


def runtime_rows(budget: float) -> tuple[AlgorithmRow, ...]:
    """Of Tables 2, 5, 6 and 7.

    The published search goes without the discards, which are later than the tables: without them
    the counters come out as printed.
    """
    bounds = PaperBounds(published_counters=True, discards=False)
    title = "Optimal, PaperBounds"
    one_by_one = Optimal(LENGTH, bounds=bounds, batch_size=1, time_limit=budget)
    in_batches = Optimal(LENGTH, bounds=bounds, time_limit=budget)
    return (
        AlgorithmRow("optimal-paper-batch1", f"{title}, batch 1", one_by_one, "optimal"),
        AlgorithmRow("optimal-paper", title, in_batches, "optimal"),
        optimal_row(budget),
        *(beam_row(algorithm) for algorithm in GUIDES),
    )


def comparison_rows(budget: float) -> tuple[AlgorithmRow, ...]:
    """Of Tables 3, 4 and 9: a beam and the optimum. All beams find the same IoU."""
    return (beam_row("quantities"), optimal_row(budget))


def hyperparameter_rows() -> tuple[AlgorithmRow, ...]:
    """Of Table 8, each once."""
    asked = {(each.length, each.size): None for each in published_minutes()}
    return tuple(
        beam_row(algorithm, length, size)
        for algorithm in ("quantities", "mmesh")
        for length, size in asked
    )
