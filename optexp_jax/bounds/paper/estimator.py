"""What the published search asks of the device, in programs of fixed shape."""

import dataclasses

import jax
import numpy as np
from jaxtyping import Bool, Float64, Int, Int32, Int64

from optexp_jax.bounds.paper.chains import UNKNOWN, View, make_view
from optexp_jax.bounds.paper.children import expand_nodes
from optexp_jax.bounds.paper.chunk_sizes import LIVE, chunk_rows, expansion_chunk
from optexp_jax.bounds.paper.exact_prefixes import ExactLabels, ExactPrefixes, chain_keys
from optexp_jax.bounds.paper.nodes import AGGREGATED, SAMPLED, PaperNodes
from optexp_jax.bounds.paper.packing import FINAL, PATH, REWRITE, pack
from optexp_jax.bounds.paper.refine import Refined, estimate_all_paths, estimate_nodes
from optexp_jax.bounds.paper.survivors import survivors_of
from optexp_jax.bounds.paper.vectors import AbstractVectors
from optexp_jax.counts.quantities import NeuronQuantities, Quantities
from optexp_jax.formulas.batch import PADDING
from optexp_jax.formulas.operators import AND, AND_NOT, OR
from optexp_jax.search.clock import Clock
from optexp_jax.search.problem import Problem


@dataclasses.dataclass(frozen=True, eq=False)
class HostEstimates:
    """Bounds on the IoU, brought to the host; by kind of path, or of each node's own path."""

    upper: Float64[np.ndarray, "rows *kinds"]
    lower: float
    """The highest lower estimate."""


@dataclasses.dataclass(frozen=True, eq=False)
class HostChildren:
    """How many children nodes have, and those that reach the threshold, brought to the host."""

    counted: Int64[np.ndarray, " nodes"]
    parent: Int[np.ndarray, " children"]
    """By parent, then by concept, then by kind of path."""
    concept: Int[np.ndarray, " children"]
    kind: Int[np.ndarray, " children"]
    upper: Float64[np.ndarray, " children"]
    lower: float
    """The highest lower estimate of all children."""


@dataclasses.dataclass(frozen=True, eq=False)
class Rewritable:
    """Chains `(A OR B)∘c...`, ∘ AND or AND NOT, that may gain from being distributed."""

    possible: Bool[np.ndarray, " nodes"]
    slots: Int32[np.ndarray, "2 nodes"]
    """Where exact quantities of `A∘c` and of `B∘c` are, or UNKNOWN."""


class Estimator:
    """Estimates for one problem, from what is known of its concepts and of labels learned."""

    def __init__(
        self,
        problem: Problem,
        vectors: AbstractVectors,
        batch_size: int,
        clock: Clock,
        chunk_bytes: int,
    ):
        self._problem = problem
        self._final = len(problem.operators)
        self._clock = clock
        n_samples, n_concepts = problem.table.n_samples, problem.table.n_concepts
        # What is summed in one sample: a label, and one concept for every step of a path.
        fits = (problem.depth + 1) * problem.sample_size < 2**31
        self._known = ExactLabels(n_samples, np.int32 if fits else np.int64)
        with clock.phase("device"), jax.enable_x64(True):
            self._views = {
                AGGREGATED: self._view(vectors, self._known.aggregated, aggregated=True),
                SAMPLED: self._view(vectors, self._known.per_sample, aggregated=False),
            }
        itemsize = {AGGREGATED: 8, SAMPLED: 4 if fits else 8}
        self._chunk = chunk_rows(n_samples, batch_size, chunk_bytes, itemsize[SAMPLED])
        self._root_chunk = {
            AGGREGATED: min(n_concepts, max(1, chunk_bytes // (itemsize[AGGREGATED] * LIVE))),
            SAMPLED: self._chunk,
        }
        self._expand_chunk = {
            stage: expansion_chunk(n_concepts, width, batch_size, chunk_bytes, itemsize[stage])
            for stage, width in ((AGGREGATED, 1), (SAMPLED, n_samples))
        }
        self._batch_size = batch_size
        self._is_or, self._is_and, self._distributes = (
            np.array([operator in among for operator in problem.operators])
            for among in ((OR,), (AND,), (AND, AND_NOT))
        )

    def known(self, nodes: PaperNodes) -> ExactPrefixes:
        """What is known exactly of each label."""
        return self._known.prefixes(nodes.concepts, nodes.operators)

    def knows(self, key: bytes) -> bool:
        """Whether the label of a key (see `chain_keys`) is known exactly."""
        return key in self._known

    def learn(self, keys: list[bytes], quantities: Quantities) -> None:
        """Use the exact quantities of labels in all estimates from now on."""
        self._known.store(keys, quantities)
        for stage, known in (
            (AGGREGATED, self._known.aggregated),
            (SAMPLED, self._known.per_sample),
        ):
            self._views[stage] = dataclasses.replace(self._views[stage], known=known)

    def rewritable(self, nodes: PaperNodes) -> Rewritable:
        """Where rewriting can gain: a pair is known exactly, or disjoint."""
        slots = np.full((2, len(nodes)), UNKNOWN, np.int32)
        possible = np.zeros(len(nodes), bool)
        if nodes.concepts.shape[1] < 3:
            return Rewritable(possible, slots)
        inner, outer = nodes.operators[:, 1], nodes.operators[:, 2]
        long_enough = nodes.concepts[:, 2] != PADDING
        rows = np.flatnonzero(long_enough & self._is_or[inner] & self._distributes[outer])
        steps, c = nodes.operators[rows, 1:3], nodes.concepts[rows, 2]
        is_and = self._is_and[steps[:, 1]]
        for side in range(2):
            atom = nodes.concepts[rows, side]
            pair = np.stack([atom, c], axis=1)
            pair[is_and] = np.sort(pair[is_and], axis=1)
            slots[side, rows] = self._known.slots(chain_keys(pair, steps, 2))
            disjoint = self._problem.table.disjoint[atom, c]
            possible[rows] |= (slots[side, rows] != UNKNOWN) | disjoint
        return Rewritable(possible, slots)

    def discard(self, wanted: bool) -> None:
        """Leave out steps that cannot pay, or no longer do so."""
        for stage, view in self._views.items():
            if view.discards != wanted:
                self._views[stage] = dataclasses.replace(view, discards=wanted)

    def estimate(
        self, nodes: PaperNodes, known: ExactPrefixes, rewritten: Rewritable
    ) -> HostEstimates:
        """Per-sample estimates of each node's own path; at most as many nodes as a batch has."""
        task = np.where(nodes.kind == self._final, FINAL, PATH).astype(np.int32)
        task[rewritten.possible] += REWRITE
        # Rows of one task stand together, filled up to whole chunks with one of them.
        groups = [np.flatnonzero(task == each) for each in np.unique(task)]
        padded = [np.resize(rows, -(-len(rows) // self._chunk) * self._chunk) for rows in groups]
        order = np.concatenate(padded)
        row = np.empty(len(nodes), np.int32)
        row[order] = np.arange(len(order))
        n_tasks = 2 + (nodes.concepts.shape[1] > 2) + (nodes.concepts.shape[1] > 3)
        most_chunks = self._batch_size // self._chunk + (n_tasks if self._chunk > 1 else 0)
        packed = pack(nodes, known, rewritten.slots, task)[order]
        with self._clock.phase("device"), jax.enable_x64(True):
            estimates = estimate_nodes(
                self._views[SAMPLED],
                _fill(packed, most_chunks * self._chunk),
                _fill(row[:, None], self._batch_size)[:, 0],
                len(order) // self._chunk,
                chunk=self._chunk,
            )
            return _to_host(estimates, len(nodes))

    def estimate_all(self, nodes: PaperNodes, stage: int) -> HostEstimates:
        """Estimates of every path from labels of which nothing else is known."""
        chunk = self._root_chunk[stage]
        n_chunks = -(-len(nodes) // chunk)
        packed = self._pack_parents(nodes, self.known(nodes))
        with self._clock.phase("device"), jax.enable_x64(True):
            estimates = estimate_all_paths(
                self._views[stage], _fill(packed, n_chunks * chunk), n_chunks, chunk=chunk
            )
            return _to_host(estimates, len(nodes))

    def expand(
        self,
        nodes: PaperNodes,
        known: ExactPrefixes,
        stage: int,
        threshold: float,
        *,
        index_order: bool,
        final: bool,
        published_counters: bool,
    ) -> HostChildren:
        """Children of nodes that are not below the threshold; `final` if they have full length.

        There may be at most as many nodes as a batch has.
        """
        chunk = self._expand_chunk[stage]
        n = len(nodes)
        packed = self._pack_parents(nodes, known)
        with self._clock.phase("device"), jax.enable_x64(True):
            children = expand_nodes(
                self._views[stage],
                _fill(packed, -(-self._batch_size // chunk.nodes) * chunk.nodes),
                -(-n // chunk.nodes),
                chunk=chunk,
                index_order=index_order,
                final=final,
                published_counters=published_counters,
            )
            found = survivors_of(children.upper, n, threshold)
            counted, lower = jax.device_get((children.counted, children.lower))
        n_kinds = 1 if final else self._final + 1
        child, kind = np.divmod(found.position, n_kinds)
        parent, concept = np.divmod(child, self._problem.table.n_concepts)
        return HostChildren(counted[:n], parent, concept, kind, found.upper, float(lower[:n].max()))

    def totals(self) -> tuple[Quantities, NeuronQuantities]:
        """Quantities of concepts and neuron, summed over samples."""
        view = self._views[AGGREGATED]
        return view.concepts, view.neuron

    def _pack_parents(
        self, nodes: PaperNodes, known: ExactPrefixes
    ) -> Int32[np.ndarray, "nodes columns"]:
        none = np.full((2, len(nodes)), UNKNOWN, np.int32)
        return pack(nodes, known, none, np.zeros(len(nodes), np.int32))

    def _view(self, vectors: AbstractVectors, known: Quantities, aggregated: bool) -> View:
        return make_view(vectors, self._problem, known, aggregated=aggregated)


def _fill(packed: Int32[np.ndarray, "rows columns"], n_rows: int) -> Int32[np.ndarray, "n columns"]:
    """The rows, the last one repeated up to a fixed number."""
    return packed[np.minimum(np.arange(n_rows), len(packed) - 1)]


def _to_host(estimates: Refined, n: int) -> HostEstimates:
    """What was estimated of the first n rows."""
    upper, lower = jax.device_get((estimates.upper, estimates.lower))
    return HostEstimates(upper[:n], float(lower))
