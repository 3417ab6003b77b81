"""The published family of bounds and its search: chains grow from the inside."""

import dataclasses

import equinox as eqx
import numpy as np
from jaxtyping import Bool, Int64

from optexp_jax.bounds.base import AbstractBounds, InadmissibleBoundError, Prepared
from optexp_jax.bounds.paper.duplicates import DuplicateFilter
from optexp_jax.bounds.paper.estimator import Estimator, Rewritable
from optexp_jax.bounds.paper.exact_prefixes import ExactPrefixes, chain_keys
from optexp_jax.bounds.paper.nodes import AGGREGATED, REWRITTEN, SAMPLED, PaperNodes
from optexp_jax.bounds.paper.path import IMPOSSIBLE
from optexp_jax.bounds.paper.vectors import AbstractVectors, PublishedVectors
from optexp_jax.counts.quantities import diou, padded_formula_quantities
from optexp_jax.counts.scores import highest_rows, iou_many, pad_batch
from optexp_jax.formulas.batch import PADDING, FormulaBatch
from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.text import format_chain
from optexp_jax.internal.padding import round_up_by_fours
from optexp_jax.search.driver import AbstractSpace, Expansion
from optexp_jax.search.frontier import Queued, concatenate, take
from optexp_jax.search.incumbent import Candidate, Incumbent
from optexp_jax.search.problem import Problem

BATCH_SIZE = 512
"""Nodes handled at once unless told otherwise; a turn on the host costs about as much as these."""


class PaperBounds(AbstractBounds):
    """The published estimates and search. Each device can be switched off, for ablations.

    Whatever is switched off, the result is the optimum; only the work changes.
    """

    vectors: AbstractVectors = PublishedVectors()
    """Top and Bott vectors."""
    aggregated_first: bool = eqx.field(default=True, kw_only=True)
    """Estimate children from dataset totals, and per sample only those that come up."""
    rewriting: bool = eqx.field(default=True, kw_only=True)
    """Also bound `(A OR B) AND c` as `(A AND c) OR (B AND c)`, where that can gain."""
    recent_memory: bool = eqx.field(default=True, kw_only=True)
    """Skip a node that came up already with the same estimate."""
    propagation: bool = eqx.field(default=True, kw_only=True)
    """Use exact quantities of evaluated labels and their prefixes in other nodes."""
    min_iou: bool = eqx.field(default=True, kw_only=True)
    """Let lower estimates raise the threshold, not only exact scores."""
    index_order: bool = eqx.field(default=True, kw_only=True)
    """Make only one of the orders in which a run of the same operator can be written."""
    discards: bool = eqx.field(default=True, kw_only=True)
    """Leave out steps after which a shorter formula is at least as good, such as OR with a concept
    that misses the neuron.

    It is at work where the best formula alone is wanted and every operator is monotone in its left
    side.
    """
    published_counters: bool = eqx.field(default=False, kw_only=True)
    """Count as the paper does, for its tables: as estimated also children that are nothing new or
    cannot pay, and as visited only final nodes that came up, not their prefixes."""
    chunk_bytes: int = eqx.field(default=2**28, kw_only=True)
    """About how many bytes on the device the estimates of a chunk may take at a time. Nodes, and
    where one is too much its children, are handled in chunks of that size."""

    def __check_init__(self) -> None:
        if isinstance(self.chunk_bytes, bool) or self.chunk_bytes < 1:
            raise ValueError(
                f"chunk_bytes must be a number of bytes, at least 1; got {self.chunk_bytes!r}."
            )

    def open(
        self, problem: Problem, batch_size: int | None = None, *, prepared: Prepared | None = None
    ) -> "PaperSpace":
        if problem.base is not None:
            raise ValueError(
                "The published estimates are made for the IoU. For another objective, or a "
                "trade-off, use TightBounds() with OR, AND and AND NOT only."
            )
        return PaperSpace(problem, self, BATCH_SIZE if batch_size is None else batch_size)


@dataclasses.dataclass(frozen=True, eq=False)
class MadeChildren:
    """What comes of expanding nodes."""

    queued: Queued[PaperNodes]
    lower: float
    """The highest lower estimate."""
    counted: Int64[np.ndarray, " nodes"]
    """How many children of each node count as estimated."""


class PaperSpace(AbstractSpace[PaperNodes]):
    """The published best-first search, in batches."""

    family = "PaperBounds"

    def __init__(self, problem: Problem, settings: PaperBounds, batch_size: int):
        super().__init__(batch_size)
        self._problem = problem
        self._settings = settings
        self._first_stage = AGGREGATED if settings.aggregated_first else SAMPLED
        self._operators = problem.operators
        self._final = len(problem.operators)
        self._priority = _path_priority(problem)
        self._may_discard = settings.discards and all(op.monotone for op in problem.operators)
        self._forget()

    def _forget(self) -> None:
        """Begin without memory of recent nodes and of labels known exactly."""
        self._recent = DuplicateFilter(self._formula)
        settings = self._settings
        self._device = Estimator(
            self._problem, settings.vectors, self.batch_size, self.clock, settings.chunk_bytes
        )

    def recover(self) -> bool:
        # A node is noted as seen before it is evaluated, and a label as known before its quantities
        # are on the device. Without either, nodes are only bounded less tightly or met twice.
        self._forget()
        return True

    def shortest(self, nodes: PaperNodes) -> Int64[np.ndarray, " nodes"]:
        return nodes.lengths + (nodes.kind != self._final)

    def stands_for(
        self, nodes: PaperNodes, formulas: FormulaBatch
    ) -> Bool[np.ndarray, "nodes formulas"]:
        """Chains that begin with the node's label and go on with its operator, or end there."""
        wanted = np.where(nodes.kind == self._final, PADDING, nodes.kind)
        return nodes.begin(formulas) & (nodes.operator_after(formulas) == wanted[:, None])

    def describe(self, nodes: PaperNodes, row: int) -> str:
        chain, kind = self._formula(nodes, row), int(nodes.kind[row])
        label = format_chain(chain.concepts, chain.operators)
        if kind == self._final:
            return f"{label}, no further step"
        return f"{label}, next step {self._operators[kind]}"

    def root(self, incumbent: Incumbent) -> Expansion[PaperNodes]:
        """Estimates of all paths from every concept; the best concept is the first incumbent."""
        self._device.discard(self._may_discard and incumbent.keep.only_best)
        n_concepts, depth = self._problem.table.n_concepts, self._problem.depth
        atoms = PaperNodes(
            np.full((n_concepts, depth), PADDING, np.int32),
            np.full((n_concepts, depth), PADDING, np.int32),
            *(
                np.full(n_concepts, value, np.int32)
                for value in (self._final, self._first_stage, 1)
            ),
        )
        atoms.concepts[:, 0] = np.arange(n_concepts)
        estimates = self._device.estimate_all(atoms, self._first_stage)
        row, kind = np.nonzero(estimates.upper != IMPOSSIBLE)
        nodes = dataclasses.replace(take(atoms, row), kind=kind.astype(np.int32))
        return Expansion(
            self._queue(nodes, estimates.upper[row, kind]),
            [self._best_concept()],
            self._usable(estimates.lower),
        )

    def expand(self, batch: Queued[PaperNodes], incumbent: Incumbent) -> Expansion[PaperNodes]:
        """Refine, re-estimate, rewrite, evaluate or expand each node, whichever is its turn."""
        self._device.discard(self._may_discard and incumbent.keep.only_best)
        work = np.zeros((3, len(batch)), np.int64)
        visited, expanded, estimated = work
        queued, rows, lower = self._tighten(batch)
        if len(rows) and self._settings.recent_memory:
            rows = rows[self._recent.fresh(take(batch, rows))]
        nodes = take(batch.nodes, rows)
        final = nodes.kind == self._final
        candidates: list[Candidate] = []
        if final.any():
            candidates, visited[rows[final]] = self._evaluate(take(batch, rows[final]), incumbent)
        full = nodes.lengths == self._problem.depth - 1
        for chosen, children_final in ((~final & ~full, False), (~final & full, True)):
            if chosen.any():
                made = self._make_children(take(nodes, chosen), incumbent, children_final)
                queued.append(made.queued)
                lower = max(lower, made.lower)
                expanded[rows[chosen]] = 1
                estimated[rows[chosen]] = made.counted
        self.counters.visited += int(visited.sum())
        self.counters.expanded += int(expanded.sum())
        self.counters.estimated += int(estimated.sum())
        return Expansion(concatenate(queued) if queued else None, candidates, lower, work)

    def _tighten(
        self, batch: Queued[PaperNodes]
    ) -> tuple[list[Queued[PaperNodes]], Int64[np.ndarray, " ready"], float]:
        """Nodes to queue again with better bounds, rows whose turn it is, and a lower bound.

        A node is estimated per sample when it comes up first, and again when more of its label is
        known exactly. It goes back also if a better bound comes of an equivalent form.
        """
        nodes = batch.nodes
        known = self._device.known(nodes)
        coarse = nodes.stage == AGGREGATED
        stale = ~coarse & (known.length > nodes.known_length)
        self.counters.updated += int(stale.sum())
        refined = coarse | stale
        rewritten = self._device.rewritable(nodes)
        rewritten.possible[:] &= ~refined & (nodes.stage != REWRITTEN) & self._settings.rewriting
        wanted = np.flatnonzero(refined | rewritten.possible)
        if not len(wanted):
            return [], np.arange(len(batch)), 0.0
        estimates = self._device.estimate(
            take(nodes, wanted),
            ExactPrefixes(known.length[wanted], known.slot[wanted]),
            Rewritable(rewritten.possible[wanted], rewritten.slots[:, wanted]),
        )
        upper = batch.upper.copy()
        upper[wanted] = np.minimum(upper[wanted], estimates.upper)
        again = refined | (upper < batch.upper)
        stage = np.where(refined, SAMPLED, REWRITTEN).astype(np.int32)
        length = np.where(refined, known.length, nodes.known_length)
        better = dataclasses.replace(nodes, stage=stage, known_length=length)
        return (
            [self._queue(take(better, again), upper[again])],
            np.flatnonzero(~again),
            self._usable(estimates.lower),
        )

    def _evaluate(
        self, batch: Queued[PaperNodes], incumbent: Incumbent
    ) -> tuple[list[Candidate], Int64[np.ndarray, " nodes"]]:
        """Exact scores of final nodes, and exact quantities of their chains and prefixes.

        Returns candidates, and how many formulas were scored for each node.
        """
        with self.clock.phase("exact"):
            nodes = batch.nodes
            table = self._problem.table
            padded = pad_batch(self._labels(nodes), round_up_by_fours(len(nodes), 8))
            scores = iou_many(table, self._problem.neuron, padded).first(len(nodes))
            visited = np.ones(len(nodes), np.int64)
            above = np.flatnonzero(scores.iou > batch.upper)
            if len(above):
                row = int(above[0])
                raise InadmissibleBoundError(
                    f"{self._formula(nodes, row)} has IoU {scores.iou[row]}, above its bound "
                    f"{batch.upper[row]}. The bounds in use are not admissible; look for the "
                    "cause with optexp_jax.testing.check_admissible."
                )
            if self._settings.propagation:
                prefixes = self._propagate(nodes)
                visited += 0 if self._settings.published_counters else prefixes
            # Only those that may be kept are given names.
            if incumbent.keep.only_best:
                best = highest_rows(scores.intersections, scores.neuron_size + scores.extras)
            else:
                best = np.flatnonzero(scores.iou >= incumbent.threshold).tolist()
            return [Candidate(self._formula(nodes, row), scores[row]) for row in best], visited

    def _propagate(self, nodes: PaperNodes) -> Int64[np.ndarray, " nodes"]:
        """Learn the exact quantities of the chains and prefixes of two or more concepts.

        Chains of full length are left out: no other node grows from them. Returns how many prefixes
        each node made known.
        """
        n_prefixes = np.zeros(len(nodes), np.int64)
        rows: list[int] = []
        prefixes: list[int] = []
        keys: dict[bytes, None] = {}
        lengths = nodes.lengths
        for prefix in range(2, nodes.concepts.shape[1]):
            long_enough = np.flatnonzero(lengths >= prefix)
            chains = chain_keys(nodes.concepts[long_enough], nodes.operators[long_enough], prefix)
            for row, key in zip(long_enough.tolist(), chains, strict=True):
                if key not in keys and not self._device.knows(key):
                    keys[key] = None
                    rows.append(row)
                    prefixes.append(prefix)
                    n_prefixes[row] += int(prefix < lengths[row])
        if not keys:
            return n_prefixes
        labels = take(nodes, np.array(rows))
        beyond = np.arange(nodes.concepts.shape[1])[None, :] >= np.array(prefixes)[:, None]
        labels.concepts[beyond] = labels.operators[beyond] = PADDING
        table, neuron = self._problem.table, self._problem.neuron
        quantities = padded_formula_quantities(table, neuron, self._labels(labels))
        self._device.learn(list(keys), quantities)
        return n_prefixes

    def _make_children(
        self, nodes: PaperNodes, incumbent: Incumbent, final: bool
    ) -> "MadeChildren":
        """Children that may still hold the optimum; `final` where they have full length."""
        known = self._device.known(nodes)
        children = self._device.expand(
            nodes,
            known,
            self._first_stage,
            incumbent.min_iou,
            index_order=self._settings.index_order,
            final=final,
            published_counters=self._settings.published_counters,
        )
        lower = self._usable(children.lower)
        with self.clock.phase("heap"):
            parent, kind = children.parent, children.kind
            grown = take(nodes, parent)
            at, end = np.arange(len(parent)), grown.lengths
            grown.concepts[at, end] = children.concept
            grown.operators[at, end] = grown.kind
            grown = PaperNodes(
                grown.concepts,
                grown.operators,
                np.full(len(parent), self._final, np.int32) if final else kind.astype(np.int32),
                np.full(len(parent), self._first_stage, np.int32),
                known.length[parent],
            )
            queued = self._queue(grown, children.upper)
            return MadeChildren(queued, lower, children.counted)

    def _formula(self, nodes: PaperNodes, row: int) -> Formula:
        names, length = self._problem.table.names, int(nodes.lengths[row])
        return Formula(
            tuple(names[concept] for concept in nodes.concepts[row, :length].tolist()),
            tuple(self._operators[code] for code in nodes.operators[row, 1:length].tolist()),
        )

    def _labels(self, nodes: PaperNodes) -> FormulaBatch:
        return FormulaBatch(nodes.concepts, nodes.operators, self._operators)

    def _queue(self, nodes: PaperNodes, upper: np.ndarray) -> Queued[PaperNodes]:
        return Queued(nodes, upper.astype(np.float64), self._priority[nodes.kind])

    def _usable(self, lower: float) -> float:
        return float(lower) if self._settings.min_iou else 0.0

    def _best_concept(self) -> Candidate:
        scores = diou(*self._device.totals())
        names = self._problem.table.names
        rows = highest_rows(scores.intersections, scores.neuron_size + scores.extras)
        row = min(rows, key=lambda k: names[k])
        return Candidate(Formula.concept(names[row]), scores[row])


def _path_priority(problem: Problem) -> Int64[np.ndarray, " kinds"]:
    """Published order among equal estimates: by the path's name, "INDIVIDUAL" for final ones."""
    names = [op.name.removeprefix("AND ") for op in problem.operators] + ["INDIVIDUAL"]
    return np.array([sorted(names).index(name) for name in names])
