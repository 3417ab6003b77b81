"""The methods that are held against each other: ours, the authors', and two marks in numpy."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Int64

from optexp_jax.bench.data import BenchData
from optexp_jax.bench.enumeration import enumerate_best
from optexp_jax.bench.outcome import Outcome, Role
from optexp_jax.bench.peer import Peer, PeerSearch, name_peer, score_peer
from optexp_jax.bench.peer_server import PeerFormula
from optexp_jax.bench.turns import OverBudgetError, StillCompilingError
from optexp_jax.bounds import PaperBounds
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts, as_counts
from optexp_jax.explain import explain
from optexp_jax.explanation import Explanation, Status
from optexp_jax.methods import AbstractMethod, Beam, Optimal
from optexp_jax.methods.beam.guides import MMESHGuide, QuantityGuide

TIGHT, PAPER, LOWER_LIMIT, ENUMERATION = "TightBounds", "PaperBounds", "lower limit", "enumeration"
GUIDED, MMESH, VANILLA = "guided beam", "MMESH beam", "vanilla beam"
PEER_OPTIMAL, PEER_BEAM = "authors' optimal", "authors' beam"
OURS = (TIGHT, PAPER, GUIDED, MMESH, VANILLA)
FURTHER = 1.1
"""How many times as many nodes a search has to expand to have come further than before."""

Finding = Callable[[], Outcome]
"""Tells what a work found; counting a formula of others again is not their time."""
Work = Callable[[], Finding]


@dataclass(frozen=True)
class BenchQuestion:
    """What every method is asked, and the seconds that it may take for a unit."""

    length: int = 3
    beam_size: int = 5
    budget: float = 60.0


@dataclass(frozen=True)
class Contender:
    """A method under its name: `on` makes the work of a unit of the dataset, ready to be timed."""

    name: str
    role: Role
    on: Callable[[int], Work]


def contenders(data: BenchData, question: BenchQuestion, peer: Peer | None) -> list[Contender]:
    """All that take part on a dataset; without the authors' package, its two do not."""
    found = [Contender(LOWER_LIMIT, Role.LIMIT, lambda unit: _lower_limit(data, unit))]
    for name, method in our_methods(question).items():
        role = Role.EXACT if isinstance(method, Optimal) else Role.HEURISTIC
        found.append(Contender(name, role, partial(_our_work, data, method)))
    found.append(Contender(ENUMERATION, Role.EXACT, partial(_enumeration, data, question)))
    if peer is not None:
        budget = question.budget
        optimal, beam = (partial(_peers_work, data, peer, each, budget) for each in _PEER_SEARCHES)
        found.append(Contender(PEER_OPTIMAL, Role.CLAIMS, optimal))
        found.append(Contender(PEER_BEAM, Role.HEURISTIC, beam))
    return found


_PEER_SEARCHES: tuple[PeerSearch, PeerSearch] = ("optimal", "beam")


def our_methods(question: BenchQuestion) -> dict[str, AbstractMethod]:
    """Our methods by name."""
    length, size, budget = question.length, question.beam_size, question.budget
    return {
        TIGHT: Optimal(length, time_limit=budget),
        PAPER: Optimal(length, bounds=PaperBounds(), time_limit=budget),
        GUIDED: Beam(length, size=size, guide=QuantityGuide()),
        MMESH: Beam(length, size=size, guide=MMESHGuide()),
        VANILLA: Beam(length, size=size, guide=None),
    }


def pair_table(table: ConceptTable, neuron: NeuronCounts) -> Int64[np.ndarray, "concepts concepts"]:
    """Active locations that each pair of concepts shares."""
    incidence = table.signatures.incidence
    weighted = incidence * neuron.inside[:, None]
    return (incidence.T @ weighted).toarray()


def _lower_limit(data: BenchData, unit: int) -> Work:
    """What no exact method can do without: to read the unit's counts and its pairs once."""
    counts = data.units[unit].counts
    pairs = pair_table(data.table, counts)

    def read() -> Finding:
        counts.inside.sum()
        pairs.max()
        return lambda: Outcome(None)

    return read


def _our_work(data: BenchData, method: AbstractMethod, unit: int) -> Work:
    neuron, patience = data.units[unit].neuron, Patience()

    def search() -> Finding:
        found = explain_in_time(data.table, neuron, method, patience)
        formula = None if found.formula is None else str(found.formula)
        return lambda: Outcome(found.score, found.status is Status.OPTIMAL, formula)

    return search


class Patience:
    """Tells searches that are too long from searches that spent their time on compilation.

    Stopped after the same time, a search that is compiled comes as far as it did before.
    """

    def __init__(self) -> None:
        self._furthest = 0

    def stopped(self, found: Explanation) -> OverBudgetError:
        """The error for a search that was stopped: whether it is worth to begin it again."""
        stats = found.stats
        further = stats.expanded > FURTHER * self._furthest
        self._furthest = max(self._furthest, stats.expanded)
        over = StillCompilingError if further or stats.compilations else OverBudgetError
        return over(f"stopped after {stats.seconds.total:.0f} s, gap {found.gap:.1%}")


def explain_in_time(
    table: ConceptTable, neuron: object, method: AbstractMethod, patience: Patience
) -> Explanation:
    """Explain a unit; OverBudgetError if the search was stopped before its proof."""
    found = explain(table, neuron, method)
    if found.stats.stopped_by is not None:
        raise patience.stopped(found)
    return found


def _enumeration(data: BenchData, question: BenchQuestion, unit: int) -> Work:
    neuron = data.units[unit].neuron

    def enumerate_all() -> Finding:
        counts = as_counts(data.table, neuron)
        best = enumerate_best(data.table, counts, question.length, question.budget)
        return lambda: Outcome(best, proved=True)

    return enumerate_all


def _peers_work(data: BenchData, peer: Peer, search: PeerSearch, budget: float, unit: int) -> Work:
    def run() -> Finding:
        formula = peer.run(unit, search, budget).formula
        return partial(_peers_outcome, data, unit, search, formula)

    return run


def _peers_outcome(
    data: BenchData, unit: int, search: PeerSearch, formula: PeerFormula | None
) -> Outcome:
    bitmap = data.units[unit].bitmap
    assert bitmap is not None  # or else the peer had refused
    score = score_peer(data.table, bitmap, formula)
    return Outcome(score, search == "optimal", name_peer(data.table, formula))
