"""Plain enumeration over signatures: every formula's exact IoU, in numpy, without any bound.

The strongest simple way there is, as a mark for the others. A formula P gives the scores of all its
children at once: what P shares with every concept is one product with the incidence of the table,
and `P ∘ c` has counts that follow from |P|, |c| and |P ∩ c|. All counts are integers.
"""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from optexp_jax.bench.turns import OverBudgetError
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.counts.scores import Score

BLOCK_BYTES = 2**25
"""Memory for the prefixes of one block, at eight bytes a signature."""

SURE = 0.2
"""Share of the budget after which the pace so far is believed."""

Held = Bool[np.ndarray, " signatures"]


@dataclass(frozen=True, eq=False)
class _Prefix:
    """A formula that children are made of: its concepts, and where it holds."""

    concepts: tuple[int, ...]
    held: Held


@dataclass(frozen=True)
class _Pace:
    """When the enumeration began, and what it may take."""

    start: float
    budget: float

    def check(self, done: int, total: int) -> None:
        """OverBudgetError if all of it, at the pace so far, would not end in time."""
        taken = time.perf_counter() - self.start
        whole = taken * total / done
        if taken > SURE * self.budget and whole > self.budget:  # the first blocks are slower
            raise OverBudgetError(f"about {whole:,.0f} s at the pace of its first formulas")


def enumerate_best(
    table: ConceptTable, neuron: NeuronCounts, length: int, budget: float = float("inf")
) -> Score:
    """The highest IoU of all formulas of at most `length` concepts, with OR, AND and AND NOT."""
    pace = _Pace(time.perf_counter(), budget)
    incidence = table.signatures.incidence
    weights = np.stack([neuron.inside, neuron.outside])
    concepts = weights @ incidence  # [inside or outside, concept]
    best = _best_of(concepts[0], concepts[1], neuron.size)
    lengths = range(1, min(length, table.n_concepts))
    total = sum(_count_prefixes(table.n_concepts, each) for each in lengths)
    prefixes = itertools.chain.from_iterable(_prefixes(table, each) for each in lengths)
    step = max(1, BLOCK_BYTES // (8 * len(table.signatures)))
    done = 0
    while block := list(itertools.islice(prefixes, step)):
        held = np.stack([prefix.held for prefix in block])
        shared = np.stack([(held * weight) @ incidence for weight in weights])
        own = np.stack([held @ weight for weight in weights])[:, :, None]
        rows = np.repeat(np.arange(len(block)), [len(prefix.concepts) for prefix in block])
        used = np.concatenate([prefix.concepts for prefix in block])
        # OR, AND and AND NOT.
        for children in (own + concepts[:, None, :] - shared, shared, own - shared):
            children[0][rows, used] = 0  # a formula has distinct concepts
            found = _best_of(children[0].ravel(), children[1].ravel(), neuron.size)
            best = max(best, found, key=lambda score: score.ratio)
        done += len(block)
        pace.check(done, total)
    return best


def _prefixes(table: ConceptTable, length: int) -> Iterator[_Prefix]:
    """Every formula of `length` concepts; `a OR b` and `a AND b` come once."""
    holds = [table.signatures.membership(k) for k in range(table.n_concepts)]
    if length == 1:
        yield from (_Prefix((concept,), held) for concept, held in enumerate(holds))
        return
    for a, b in itertools.combinations(range(table.n_concepts), 2):
        one, other = holds[a], holds[b]
        for held in (one | other, one & other, one & ~other, other & ~one):
            yield from _longer(holds, _Prefix((a, b), held), length)


def _longer(holds: list[Held], prefix: _Prefix, length: int) -> Iterator[_Prefix]:
    if len(prefix.concepts) == length:
        yield prefix
        return
    for concept, other in enumerate(holds):
        if concept not in prefix.concepts:
            for held in (prefix.held | other, prefix.held & other, prefix.held & ~other):
                grown = _Prefix((*prefix.concepts, concept), held)
                yield from _longer(holds, grown, length)


def _count_prefixes(n_concepts: int, length: int) -> int:
    if length == 1:
        return n_concepts
    count = 2 * n_concepts * (n_concepts - 1)
    for used in range(2, length):
        count *= 3 * (n_concepts - used)
    return count


def _best_of(
    inside: Int64[np.ndarray, " formulas"], outside: Int64[np.ndarray, " formulas"], size: int
) -> Score:
    """The best of some formulas, decided in integers where floats are too close to call."""
    iou = inside / (size + outside)
    near = np.flatnonzero(iou >= iou.max() * (1 - 1e-12))
    pairs = np.unique(np.stack([inside[near], outside[near]]), axis=1).T
    return max((Score(int(i), size + int(o)) for i, o in pairs), key=lambda score: score.ratio)
