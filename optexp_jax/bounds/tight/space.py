"""The tight search: exact pairs at every place, and bounds on what is built around them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int64

from optexp_jax.bounds.tight.children import TightChildren
from optexp_jax.bounds.tight.expanded import Expanded, LabelsAt, expand
from optexp_jax.bounds.tight.forms import Forms
from optexp_jax.bounds.tight.grams import Counted
from optexp_jax.bounds.tight.labels import Labels
from optexp_jax.bounds.tight.node_text import node_text
from optexp_jax.bounds.tight.nodes import TightNodes
from optexp_jax.bounds.tight.place import Place, Places, Spot
from optexp_jax.bounds.tight.ranking import Ranking
from optexp_jax.bounds.tight.rehearsal import rehearse
from optexp_jax.bounds.tight.root import (
    CountedRoot,
    FusedRoot,
    RootScores,
    fused_alone,
)
from optexp_jax.bounds.tight.rounding import near_tie, v_below
from optexp_jax.bounds.tight.searched import searched_there
from optexp_jax.bounds.tight.sparse_table import Sizes
from optexp_jax.bounds.tight.tuning import STACKED_PLACES, Tuning
from optexp_jax.bounds.tight.views import together
from optexp_jax.formulas.batch import FormulaBatch
from optexp_jax.search.driver import AbstractSpace, Expansion
from optexp_jax.search.frontier import Queued, concatenate, take
from optexp_jax.search.incumbent import Candidate, Incumbent
from optexp_jax.search.problem import Problem


class TightSpace(AbstractSpace[TightNodes]):
    """The search of `TightBounds`: see `docs/explanation/tight_bounds.md`."""

    family = "TightBounds"

    def __init__(
        self,
        problem: Problem,
        batch_size: int | None,
        beam: int | None,
        *,
        tuning: Tuning | None = None,
        sizes: Sizes | None = None,
        counted: CountedRoot | None = None,
    ):
        """`sizes` fills up lists on the device to those of another table.

        `counted` is what was computed together with other neurons.
        """
        self._tuning = tuning = Tuning.of(problem.table.n_concepts) if tuning is None else tuning
        super().__init__(tuning.first_batch if batch_size is None else batch_size)
        self._grows = batch_size is None
        self._problem = problem
        self._length = problem.depth
        if beam is None:
            beam = tuning.short_beam if problem.depth <= 3 else tuning.beam
        self._beam = beam
        self._sizes = sizes
        self._counted = counted
        self._known = Counted() if counted is None else counted.counted
        self._places = self._open_places()
        self._forms = Forms.of_problem(problem)
        self._ranking: Ranking | None = None

    def recover(self) -> bool:
        # All that is remembered are places and their bounds, which are made again as needed. The
        # ranking stays: it settles which of equal chains are searched.
        self._places = self._open_places()
        vars(self).pop("_children", None)
        return True

    def _open_places(self) -> Places:
        return Places(self._problem, self._tuning, self._sizes, self._known)

    def shortest(self, nodes: TightNodes) -> Int64[np.ndarray, " nodes"]:
        # What has one or two concepts inside the outer steps was scored at the place before.
        return nodes.depth + 3

    def stands_for(
        self, nodes: TightNodes, formulas: FormulaBatch
    ) -> Bool[np.ndarray, "nodes formulas"]:
        return searched_there(nodes, formulas, self._problem, self._places, self._children.ranking)

    def describe(self, nodes: TightNodes, row: int) -> str:
        return node_text(nodes, row, self._problem.table.names)

    def root(self, incumbent: Incumbent) -> Expansion[TightNodes] | None:
        if self._tuning.warms_up:
            rehearse(self._problem, self.clock, self._rehearsals)
        fused = self._fused_root()
        if fused is not None:
            self._known = Counted(gram=fused.regions.gram)
            self._places = self._open_places()
        place = self._places.at(Spot())
        scores = self._score_pairs(place, fused)
        if scores is None:
            self._offer(self._best_concept(place), incumbent)
            return None
        with self.clock.phase("exact"):
            found = self._best_pairs(place, scores, incumbent)
            self._offer(found, incumbent)
        found += self._exact_beam(place, scores, incumbent)
        worth = place.own.inside - incumbent.iou * place.own.outside
        self._ranking = Ranking.by_worth(worth, self._tuning.most_heavy)
        large = place.table.n_concepts > self._tuning.rows_at_once
        if self._length >= 3 and self.clock.expired and large:
            everything = TightNodes.everything(self._length, incumbent.threshold)
            return Expansion(Queued(everything, np.ones(1), np.zeros(1, np.int64)), found)
        return Expansion(self._children.inside([place], np.ones(1), incumbent, fused), found)

    def _fused_root(self) -> FusedRoot | None:
        """All that is asked first, where concepts are few."""
        if not self._tuning.fused_root:
            return None
        with self.clock.phase("device"):
            prepared = None if self._counted is None else self._counted.fused
            return fused_alone(self._problem, self._forms) if prepared is None else prepared

    def _rehearsals(self, problem: Problem, sizes: Sizes | None) -> list[AbstractSpace[TightNodes]]:
        """Searches in which places have all concepts, and those of use."""
        once = self._tuning.without_warm_up()
        return [
            TightSpace(problem, None, self._beam, tuning=tuning, sizes=sizes)
            for tuning in (replace(once, few_concepts=0.0), once)
        ]

    @cached_property
    def _children(self) -> TightChildren:
        assert self._ranking is not None, "concepts are ranked at the root"
        known = self._problem, self._places, self._ranking, self._tuning
        return TightChildren(*known, self.clock, self.counters)

    def expand(self, batch: Queued[TightNodes], incumbent: Incumbent) -> Expansion[TightNodes]:
        turns: list[Expansion[TightNodes]] = []
        for rows in batch.nodes.groups():
            part = take(batch, rows)
            if part.nodes.further[0]:
                turns.append(self._expand_labels(part, incumbent))
            else:
                for start in range(0, len(part), STACKED_PLACES):
                    some = take(part, slice(start, start + STACKED_PLACES))
                    turns += self._expand_places(some, incumbent)
        if self._grows:
            self.batch_size = min(2 * self.batch_size, self._tuning.most_at_once)
        queued = [turn.children for turn in turns if turn.children is not None]
        found = [candidate for turn in turns for candidate in turn.candidates]
        return Expansion(concatenate(queued) if queued else None, found)

    def _still_of_interest(
        self, part: Queued[TightNodes], incumbent: Incumbent
    ) -> Queued[TightNodes]:
        return take(part, incumbent.may_improve(part.upper, self.shortest(part.nodes)))

    def _expand_places(
        self, part: Queued[TightNodes], incumbent: Incumbent
    ) -> Iterator[Expansion[TightNodes]]:
        """Bound what is longer at some places, those of one size together."""
        part = self._still_of_interest(part, incumbent)
        if self.clock.expired or not len(part):  # what takes long has to wait
            yield Expansion(part)
            return
        with self.clock.phase("device"):
            places = [self._place(part, row, incumbent) for row in range(len(part))]
        for group in together(places):
            some = take(part, np.array(group))
            if self.clock.expired:
                yield Expansion(some)
                continue
            self.counters.expanded += len(group)
            chosen = [places[k] for k in group]
            yield Expansion(self._children.inside(chosen, some.upper, incumbent))

    def _place(self, part: Queued[TightNodes], row: int, incumbent: Incumbent) -> Place:
        return self._places.at(part.nodes.spot(row), v_below(incumbent.threshold))

    def _expand_labels(
        self, part: Queued[TightNodes], incumbent: Incumbent
    ) -> Expansion[TightNodes]:
        """Score all children of labels, and bound those that may take one more step."""
        part = self._still_of_interest(part, incumbent)
        if self.clock.expired or not len(part):
            return Expansion(part)
        self.counters.expanded += len(part)
        found: list[Candidate] = []
        queued: list[Queued[TightNodes]] = []
        waiting = [self._labels(part, rows, incumbent) for rows in part.nodes.by_spot()]
        for expanded in self._expanded(waiting):
            with self.clock.phase("exact"):
                best = self._best_children(expanded, incumbent)
                self._offer(best, incumbent)
            found += best
            if part.nodes.further[0] == 2:
                queued.append(self._children.longer(expanded, incumbent))
        return Expansion(concatenate(queued) if queued else None, found)

    def _labels(
        self, part: Queued[TightNodes], rows: Int64[np.ndarray, " rows"], incumbent: Incumbent
    ) -> LabelsAt:
        """Labels of one place; but those with a concept that is of no use there any more."""
        place, labels = self._place(part, int(rows[0]), incumbent), part.nodes.labels(rows)
        of_use = place.of_use[labels.inner].all(1)
        return LabelsAt(place, labels.take(np.flatnonzero(of_use)))

    def _expanded(self, waiting: Sequence[LabelsAt]) -> Iterator[Expanded]:
        """Labels joined with every concept, a chunk at a time."""
        chunks = expand(waiting, self._forms)
        while True:
            with self.clock.phase("exact"):
                expanded = next(chunks, None)
            if expanded is None:
                return
            self.counters.visited += expanded.n_children
            yield expanded

    def _best_concept(self, place: Place) -> list[Candidate]:
        """The best single concept, which is quickly found where there is no time for pairs."""
        of_concepts = place.table.signatures.incidence.T
        inside, outside = of_concepts @ place.neuron.inside, of_concepts @ place.neuron.outside
        best = int((inside / (outside + place.decided_union)).argmax())
        score = place.score(int(inside[best]), int(outside[best]))
        return [place.candidate([best], [], score)] if score.intersection else []

    def _score_pairs(self, place: Place, fused: FusedRoot | None) -> RootScores | None:
        """IoUs of all formulas with one or two concepts, unless the time is over before."""
        with self.clock.phase("device"):
            if fused is not None:
                scores = RootScores.of_fused(fused)
            else:
                scores = RootScores.of(place, self._forms, self.clock, self._tuning)
        if scores is not None:
            self.counters.visited += len(place.allowed) ** 2
        return scores

    def _best_pairs(
        self, place: Place, scores: RootScores, incumbent: Incumbent
    ) -> list[Candidate]:
        """Candidates among the formulas with one or two concepts, ties included."""
        self._seed(place, scores, incumbent)
        reached = self._reached(scores.best, incumbent)
        return [] if scores.best < reached else self._pairs_from(place, scores, reached)

    def _seed(self, place: Place, scores: RootScores, incumbent: Incumbent) -> None:
        """When several formulas are wanted, find as many first: without them nothing is ruled out.

        Equal sets count once, so more are tried until there are enough, or no more.
        """
        if incumbent.keep.only_best or incumbent.threshold > 0:
            return
        tiny = np.finfo(float).tiny
        values = np.concatenate([scores.single[scores.single > 0], scores.pairs_from(tiny).value])
        n = min(4 * incumbent.keep.top_k, len(values))
        while n and incumbent.threshold == 0:
            reached = float(np.partition(values, -n)[-n])
            self._offer(self._pairs_from(place, scores, reached), incumbent)
            if n == len(values):
                return
            n = min(4 * n, len(values))

    def _reached(self, highest: float, incumbent: Incumbent) -> float:
        """The IoU from which candidates are of interest: all that may be kept, ties included."""
        wanted = incumbent.threshold
        if incumbent.keep.only_best:
            wanted = max(wanted, highest)
        return max(near_tie(wanted), np.finfo(float).tiny)

    def _pairs_from(self, place: Place, scores: RootScores, reached: float) -> list[Candidate]:
        found = [
            place.candidate([k], [], place.concept_score(k))
            for k in np.flatnonzero(scores.single >= reached).tolist()
        ]
        pairs = scores.pairs_from(reached)
        at = pairs.form, pairs.a, pairs.b
        columns = (part.tolist() for part in at)
        for form, a, b, score in zip(*columns, place.pair_scores(*at), strict=True):
            found.append(place.candidate([a, b], [form], score))
        return found

    def _best_children(self, expanded: Expanded, incumbent: Incumbent) -> list[Candidate]:
        """Candidates among the children of labels, ties included."""
        reached = self._reached(expanded.best, incumbent)
        return [] if expanded.best < reached else expanded.candidates(reached)

    def _exact_beam(
        self, place: Place, scores: RootScores, incumbent: Incumbent
    ) -> list[Candidate]:
        """A beam with exact children. Its incumbent, nearly always the best, makes bounds bite."""
        found: list[Candidate] = []
        if self._length < 3 or not self._beam:
            return found
        beam = scores.highest_pairs(self._beam).labels(place.concepts.ids)
        for _ in range(3, self._length + 1):
            grown: list[Labels] = []
            iou: list[np.ndarray] = []
            for expanded in self._expanded([LabelsAt(place, beam)]):
                best = self._best_children(expanded, incumbent)
                self._offer(best, incumbent)
                found += best
                highest = expanded.highest(self._beam)
                row, form, x = highest.at
                grown.append(expanded.labels.take(row).joined(form, x))
                iou.append(highest.value)
            if not grown:
                break
            order = np.argsort(-np.concatenate(iou), kind="stable")[: self._beam]
            beam = Labels.concatenate(grown).take(order)
        return found

    def _offer(self, candidates: list[Candidate], incumbent: Incumbent) -> None:
        for candidate in candidates:
            incumbent.offer(candidate)
