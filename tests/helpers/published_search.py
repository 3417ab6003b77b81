"""The published search in plain Python, for tests: one node at a time, no arrays, no device.

It has the estimates by their closed forms, refinement by sample, MinIoU, the memory of recent
nodes, index ordering and discards; not rewriting and not propagation. OR, AND and AND NOT only.
"""

import heapq
import itertools
import math
from dataclasses import dataclass, field
from itertools import combinations

import optexp_jax as ox
from helpers.tie_order import tie_key
from optexp_jax.testing import Case

MARGIN = 2.0**-44
ORDER = {"AND": 0, "FINAL": 1, "NOT": 2, "OR": 3}  # of names, among equal estimates
OPERATOR = {"OR": ox.OR, "AND": ox.AND, "NOT": ox.AND_NOT}
PATHS = ("OR", "AND", "NOT", "FINAL")


@dataclass(frozen=True)
class Totals:
    """Counts of one sample, or of all together: |N|, N^U, N^C, SE^U, SE^C."""

    n: int
    nu: int
    nc: int
    seu: int
    sec: int


@dataclass(frozen=True)
class Label:
    """I^U, E^U and the limits of I^C and E^C, in one sample or in all together."""

    iu: int
    eu: int
    ic: tuple[int, int]
    ec: tuple[int, int]


@dataclass(frozen=True)
class Chain:
    """A leaf and steps (operator name, concept)."""

    leaf: int
    steps: tuple[tuple[str, int], ...] = ()

    @property
    def concepts(self) -> tuple[int, ...]:
        return (self.leaf, *(concept for _, concept in self.steps))

    def __len__(self) -> int:
        return 1 + len(self.steps)


def join(left: Label, name: str, right: Label, disjoint: bool, at: Totals) -> Label:
    """The published limits of `P∘c`."""

    def common(p: tuple[int, int], c: int, s: int) -> tuple[int, int]:
        low, high = p
        if name == "OR":
            if disjoint:
                return min(low + c, s), min(high + c, s)
            return max(low, c), min(high + c, s)
        if name == "AND":
            return max(low + c - s, 0), min(high, c)
        return max(low - c, 0), min(high, s - c)

    keep, add = (name != "AND"), (name == "OR")
    return Label(
        keep * left.iu + add * right.iu,
        keep * left.eu + add * right.eu,
        common(left.ic, right.ic[0], at.nc),
        common(left.ec, right.ec[0], at.sec),
    )


@dataclass(frozen=True)
class Reach:
    """Limits of intersection and extras."""

    i_min: int
    i_max: int
    e_min: int
    e_max: int


class Computation:
    """One of the two computations: over samples, or over their sum."""

    def __init__(self, atoms: list[list[Label]], totals: list[Totals]):
        self.atoms = atoms  # [concept][column]
        self.totals = totals
        self.size = sum(at.n for at in totals)

    def top(self, column: int, k: int, part: str) -> int:
        return sum(sorted((_value(a[column], part) for a in self.atoms), reverse=True)[:k])

    def bottom(self, column: int, part: str) -> int:
        return min(_value(a[column], part) for a in self.atoms)

    def label(self, chain: Chain, disjoint: list[bool]) -> list[Label]:
        """The label's limits in each column; `disjoint[k]` tells about step k."""
        found = self.atoms[chain.leaf]
        for (name, concept), apart in zip(chain.steps, disjoint, strict=True):
            right = self.atoms[concept]
            found = [
                join(p, name, c, apart, at)
                for p, c, at in zip(found, right, self.totals, strict=True)
            ]
        return found

    def path(self, label: Label, column: int, name: str, t: int) -> Reach:
        at = self.totals[column]

        def top(part: str, k: int = t) -> int:
            return self.top(column, k, part)

        def bottom(part: str) -> int:
            return self.bottom(column, part)

        if name == "FINAL":
            (a, b), (c, d) = label.ic, label.ec
            return Reach(label.iu + a, label.iu + b, label.eu + c, label.eu + d)
        if name == "OR":
            return Reach(
                max(label.ic[0] + label.iu, bottom("ic") + bottom("iu")),
                min(label.ic[1] + top("ic"), at.nc) + min(label.iu + top("iu"), at.nu),
                max(label.ec[0] + label.eu, bottom("ec") + bottom("eu")),
                min(label.ec[1] + top("ec"), at.sec) + min(label.eu + top("eu"), at.seu),
            )
        if name == "AND":
            return Reach(0, min(label.ic[1], top("ic", 1)), 0, min(label.ec[1], top("ec", 1)))
        return Reach(
            label.iu,
            label.iu + min(label.ic[1], at.nc - bottom("ic")),
            label.eu,
            label.eu + min(label.ec[1], at.sec - bottom("ec")),
        )

    def estimate(
        self, label: list[Label], path: str, t: int, names: tuple[str, ...]
    ) -> tuple[float, float]:
        """The upper and lower estimate of a path; t further concepts use t operators at most."""
        if path == "FINAL":
            mixes: list[tuple[str, ...]] = [("FINAL",)]
        else:
            others = [name for name in names if name != path]
            sizes = range(min(t, len(names)))
            mixes = [(path, *mix) for n in sizes for mix in combinations(others, n)]
        upper, lower = [], []
        for mix in mixes:
            i_min = i_max = e_min = e_max = 0
            for column, part in enumerate(label):
                reaches = [self.path(part, column, name, t) for name in mix]
                i_min += min(reach.i_min for reach in reaches)
                i_max += max(reach.i_max for reach in reaches)
                e_min += min(reach.e_min for reach in reaches)
                e_max += max(reach.e_max for reach in reaches)
            upper.append(i_max / (self.size + e_min) * (1 + MARGIN))
            lower.append(i_min / (self.size + e_max) * (1 - MARGIN))
        return max(upper), min(lower)


def _value(label: Label, part: str) -> int:
    value = getattr(label, part)
    return value if isinstance(value, int) else value[0]


@dataclass
class Counters:
    visited: int = 0
    expanded: int = 0
    estimated: int = 0


@dataclass(frozen=True)
class Waiting:
    """A node of the frontier."""

    chain: Chain
    path: str
    upper: float
    refined: bool


@dataclass
class PublishedSearch:
    """The search for the best formula of at most `length` concepts."""

    case: Case
    length: int
    discards: bool = True
    counters: Counters = field(default_factory=Counters)
    trace: list[tuple[int, float]] = field(default_factory=list)
    """Before each turn: how many nodes wait, and the lowest upper bound so far."""

    def run(self) -> ox.Formula | None:
        self._prepare()
        self._heap: list[tuple] = []
        self._batches = itertools.count()
        self._best: ox.Formula | None = None
        self._best_score = (0, 1)
        self._min_iou = 0.0
        proved = 1.0
        memory: set[tuple[ox.Formula, str]] = set()
        memory_estimate = math.inf

        n_concepts = len(self.case.masks)
        atoms = [Chain(k) for k in range(n_concepts)]
        for atom in atoms:
            self._offer(atom)
        self._add(
            [node for atom in atoms for node in self._nodes(atom)],
            max(self._lower(atom) for atom in atoms),
        )
        while self._heap:
            best = self._best_score[0] / self._best_score[1]
            proved = min(proved, max(self._heap[0][-1].upper, best))
            self.trace.append((len(self._heap), proved))
            node: Waiting = heapq.heappop(self._heap)[-1]
            if not self._worth(node):
                continue
            if not node.refined:
                if self._useless(node.chain, node.path, self._sampled):
                    continue
                upper, lower = self._estimate(node.chain, node.path, self._sampled)
                better = Waiting(node.chain, node.path, min(node.upper, upper), True)
                self._add([better], lower)
                continue
            key = self._formula(node.chain), node.path
            if node.upper != memory_estimate:
                memory, memory_estimate = {key}, node.upper
            elif key in memory:
                continue
            else:
                memory.add(key)
            if node.path == "FINAL":
                self.counters.visited += 1
                self._offer(node.chain)
                self._prune()
            else:
                self._expand(node)
        return self._best

    def _expand(self, node: Waiting) -> None:
        self.counters.expanded += 1
        children = [
            Chain(node.chain.leaf, (*node.chain.steps, (node.path, concept)))
            for concept in range(len(self.case.masks))
            if self._allowed(node, concept)
        ]
        self.counters.estimated += len(children)
        lower = max((self._lower(child) for child in children), default=0.0)
        self._add([part for child in children for part in self._nodes(child)], lower)

    def _allowed(self, node: Waiting, concept: int) -> bool:
        chain = node.chain
        if concept in chain.concepts:
            return False
        if node.path != "OR" and self._apart(chain, concept):
            return False
        if self.discards and node.path == "OR" and self._adds_nothing(chain, concept):
            return False
        if not chain.steps:
            return node.path == "NOT" or concept > chain.leaf
        name, last = chain.steps[-1]
        ordered = name == node.path or (name, node.path) == ("NOT", "AND")
        return not ordered or concept > last

    def _adds_nothing(self, chain: Chain, concept: int) -> bool:
        """Whether one side of `L OR c` has nothing inside the neuron that the other lacks."""
        (left,), (right,) = self._label(chain, self._summed), self._summed.atoms[concept]
        everything = self._summed.totals[0].nc
        return (right.iu == 0 and (right.ic[0] == 0 or left.ic[0] == everything)) or (
            left.iu == 0 and (left.ic[1] == 0 or right.ic[0] == everything)
        )

    def _useless(self, chain: Chain, path: str, by: Computation) -> bool:
        """Whether a shorter formula is at least as good as any on the path."""
        if not self.discards or path == "FINAL":
            return False
        label = self._label(chain, by)
        common_inside = sum(part.ic[1] for part in label)
        inside = common_inside + sum(part.iu for part in label)
        common_extras = sum(part.ec[1] for part in label)
        extras = common_extras + sum(part.eu for part in label)
        return {
            "OR": inside == 0,
            "AND": common_inside == 0 or extras == 0,
            "NOT": inside == 0 or common_extras == 0,
        }[path]

    def _paths(self, chain: Chain) -> list[str]:
        paths = PATHS if len(chain) < self._depth else ("FINAL",)
        return [path for path in paths if not self._useless(chain, path, self._summed)]

    def _nodes(self, chain: Chain) -> list[Waiting]:
        paths = self._paths(chain)
        uppers = [self._estimate(chain, path, self._summed)[0] for path in paths]
        return [Waiting(chain, path, u, False) for path, u in zip(paths, uppers, strict=True)]

    def _lower(self, chain: Chain) -> float:
        return max(self._estimate(chain, path, self._summed)[1] for path in self._paths(chain))

    def _label(self, chain: Chain, by: Computation) -> list[Label]:
        apart = [
            self._apart(Chain(chain.leaf, chain.steps[:k]), concept)
            for k, (_, concept) in enumerate(chain.steps)
        ]
        return by.label(chain, apart)

    def _estimate(self, chain: Chain, path: str, by: Computation) -> tuple[float, float]:
        label = self._label(chain, by)
        return by.estimate(label, path, self._depth - len(chain), ("OR", "AND", "NOT"))

    def _apart(self, chain: Chain, concept: int) -> bool:
        """Whether a label is known to be disjoint from a concept."""
        apart = self._disjoint[chain.leaf][concept]
        for name, other in chain.steps:
            right = self._disjoint[other][concept]
            apart = {"OR": apart and right, "AND": apart or right, "NOT": apart}[name]
        return apart

    def _worth(self, node: Waiting) -> bool:
        if node.upper < self._min_iou or node.upper <= 0:
            return False
        if self._best is None:
            return True
        i, u = self._best_score
        longer = len(node.chain) + (node.path != "FINAL") > len(self._best)
        reached = 1.0 if i == u else math.nextafter(i / u, 0.0)
        return not longer or min(node.upper, 1.0) > reached

    def _add(self, nodes: list[Waiting], lower: float) -> None:
        self._min_iou = max(self._min_iou, lower)
        batch = next(self._batches)
        for position, node in enumerate(nodes):
            if self._worth(node):
                key = (-node.upper, ORDER[node.path], batch, position, node)
                heapq.heappush(self._heap, key)
        self._prune()

    def _prune(self) -> None:
        self._heap = [entry for entry in self._heap if entry[-1].upper >= self._min_iou]
        heapq.heapify(self._heap)

    def _offer(self, chain: Chain) -> None:
        formula = self._formula(chain)
        held = formula.evaluate(dict(zip(self.case.names, self.case.masks, strict=True)))
        i = int((held * self.case.inside).sum())
        u = int(self.case.inside.sum() + (held * self.case.outside).sum())
        ahead = i * self._best_score[1] - self._best_score[0] * u
        if i and (ahead > 0 or (ahead == 0 and self._comes_first(formula))):
            self._best, self._best_score = formula, (i, u)
            self._min_iou = max(self._min_iou, math.nextafter(i / u, 0.0))

    def _comes_first(self, formula: ox.Formula) -> bool:
        """Whether a formula that is level with the best one is preferred to it."""
        if self._best is None:
            return False
        there = (self.case.inside + self.case.outside).reshape(-1) > 0
        locations = [
            dict(zip(self.case.names, column.tolist(), strict=True))
            for column in self.case.columns.T[there]
        ]
        return tie_key(formula, locations) < tie_key(self._best, locations)

    def _formula(self, chain: Chain) -> ox.Formula:
        names = self.case.names
        return ox.Formula(
            tuple(names[k] for k in chain.concepts),
            tuple(OPERATOR[name] for name, _ in chain.steps),
        )

    def _prepare(self) -> None:
        case = self.case
        self._depth = min(self.length, len(case.masks))
        here = case.masks.sum(0)

        def count(where, weight, sample: int) -> int:
            return int((where[sample] * weight[sample]).sum())

        samples = range(case.masks.shape[1])
        unique, common = here == 1, here > 1
        totals = [
            Totals(
                int(case.inside[x].sum()),
                count(unique, case.inside, x),
                count(common, case.inside, x),
                count(unique, case.outside, x),
                count(common, case.outside, x),
            )
            for x in samples
        ]
        atoms = [
            [
                _exact(
                    count(mask & unique, case.inside, x),
                    count(mask & unique, case.outside, x),
                    count(mask & common, case.inside, x),
                    count(mask & common, case.outside, x),
                )
                for x in samples
            ]
            for mask in case.masks
        ]
        whole = Totals(*(sum(getattr(at, part) for at in totals) for part in vars(totals[0])))
        summed = [
            _exact(
                sum(part.iu for part in atom),
                sum(part.eu for part in atom),
                sum(part.ic[0] for part in atom),
                sum(part.ec[0] for part in atom),
            )
            for atom in atoms
        ]
        self._sampled = Computation(atoms, totals)
        self._summed = Computation([[atom] for atom in summed], [whole])
        self._disjoint = [[not (a & b).any() for b in case.masks] for a in case.masks]


def _exact(iu: int, eu: int, ic: int, ec: int) -> Label:
    return Label(iu, eu, (ic, ic), (ec, ec))
