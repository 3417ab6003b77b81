"""Which formulas a node of the tight search stands for. The checker asks this, not the search."""

import jax
import numpy as np
from jaxtyping import Bool, Float64, Int32

from optexp_jax.bounds.tight.operator_set import (
    DIFFERENCE,
    INTERSECTION,
    OPERATORS,
    UNION,
)
from optexp_jax.bounds.tight.search.batch import SubproblemBatch
from optexp_jax.bounds.tight.search.labels import Labels, count_labels
from optexp_jax.bounds.tight.search.nodes import TightNodes
from optexp_jax.bounds.tight.search.space import TightSpace
from optexp_jax.bounds.tight.search.subproblem import (
    Prefix,
    Ranking,
    Step,
    Subproblem,
)
from optexp_jax.formulas.batch import FormulaBatch


def searched_there(
    space: TightSpace, nodes: TightNodes, formulas: FormulaBatch
) -> Bool[np.ndarray, "nodes formulas"]:
    """Chains with a node's outer steps, three or more concepts inside, in the order searched."""
    problem, subs, ranking = space.problem, space.subproblems, space.branching.ranking
    claimed = np.zeros((len(nodes), len(formulas)), bool)
    used = [k for k, operator in enumerate(OPERATORS) if operator in problem.operators]
    codes = {problem.operators.index(OPERATORS[k]): k for k in used}
    all_concepts, all_operators = np.asarray(formulas.concepts), np.asarray(formulas.operators)
    for row in range(len(nodes)):
        prefix, v = nodes.prefix(row), float(nodes.v[row])
        steps = prefix.steps
        for column, length in enumerate(np.asarray(formulas.lengths).tolist()):
            inner = length - len(steps)
            concepts = all_concepts[column, :length].tolist()
            ops = [codes[code] for code in all_operators[column, 1:length].tolist()]
            outer = [*zip(ops[inner - 1 :], concepts[inner:], strict=True)] if inner > 0 else []
            if inner < 3 or outer[::-1] != [(step.op, step.concept) for step in steps]:
                continue
            inside = concepts[:inner], ops[: inner - 1]
            labels = nodes.labels(np.array([row]))
            label, label_ops = labels.inner[0].tolist(), labels.ops[0].tolist()
            if not label:
                if not steps:
                    claimed[row, column] = True
                    continue
                around = subs.at(Prefix(steps[:-1]), v)
                plain = all(op == UNION for op in inside[1])
                claimed[row, column] = (plain or _any_meet(around)) and _in_order(
                    steps[-1], *inside, ranking.rank
                )
            elif (inside[0][: len(label)], inside[1][: len(label) - 1]) == (label, label_ops):
                sub = subs.at(prefix, v)
                claimed[row, column] = inner == len(label) + nodes.further[row] and (
                    _comes_third(sub, v, ranking, *inside)
                    if inner == 3
                    else _comes_later(sub, v, ranking, *inside, len(label))
                )
    return claimed


def _comes_third(
    sub: Subproblem, v: float, ranking: Ranking, concepts: list[int], ops: list[int]
) -> bool:
    """Whether `(a∘b)∘x` is bounded with the pair a, b rather than with another pair of it.

    Of three concepts in a union the one of the smallest share comes third; of two filters the one
    that leaves less; and AND stands before AND NOT.
    """
    if not _are_there(sub, concepts):
        return False
    a, b, x = sub.concepts.number[concepts].tolist()
    if ops == [UNION, UNION]:
        batch = SubproblemBatch.of([sub], v, ranking)
        with jax.enable_x64(True):
            share = np.asarray(batch.maxima.third_share(batch.inputs))[0]
        return bool(share[x] <= min(share[a], share[b]))
    if ops == [DIFFERENCE, DIFFERENCE]:
        both = _both(sub, v)
        return bool(both[a, x] >= both[a, b])
    return ops != [DIFFERENCE, INTERSECTION]


def _comes_later(
    sub: Subproblem,
    v: float,
    ranking: Ranking,
    concepts: list[int],
    ops: list[int],
    n_label: int,
) -> bool:
    """Whether `((a∘b)∘x)∘y` is bounded with the first concepts as they stand here.

    A chain that ends in OR is, if all concepts of that run of ORs are light. Of three filters of
    one concept the best comes first; of two last filters, and of two last ORs, the better one.
    """
    if not _are_there(sub, concepts):
        return False
    run, light = _last_run(concepts, ops), ranking.light(sub.unused)
    if ops[2] == INTERSECTION or ops[:2] == [DIFFERENCE, INTERSECTION]:
        return False
    if ops[1:] == [INTERSECTION, DIFFERENCE] or (ops[2] == UNION and not light[run].all()):
        return False
    labels = Labels(np.array([concepts[:2]], np.int32), np.array([ops[:1]], np.int32))
    counts = count_labels(sub, labels)
    removed = counts.shared_inside[0] - v * counts.shared_outside[0]
    a, b, x, y = sub.concepts.number[concepts].tolist()
    if n_label == 3 and ops[1:] == [DIFFERENCE, DIFFERENCE]:
        return bool(removed[x] <= removed[y])
    if n_label == 3 and ops[1:] == [UNION, UNION]:
        own = sub.counts.inside.diagonal() - v * sub.counts.outside.diagonal()
        outside = own - removed
        return bool(outside[x] >= outside[y])
    if n_label == 2 and ops == [DIFFERENCE] * 3:
        both = _both(sub, v)
        return bool(both[a, b] <= min(both[a, x], both[a, y]))
    return True


def _are_there(sub: Subproblem, concepts: list[int]) -> bool:
    """Whether none of the concepts is left out at a subproblem."""
    return bool(sub.of_use[concepts].all())


def _any_meet(sub: Subproblem) -> bool:
    """Whether any two concepts meet: elsewhere filters change nothing, and are left out."""
    overlap = (sub.counts.inside + sub.counts.outside)[np.ix_(sub.allowed, sub.allowed)]
    return bool((overlap - np.diag(overlap.diagonal())).any())


def _both(sub: Subproblem, v: float) -> Float64[np.ndarray, "concepts concepts"]:
    """W(a AND b) of all pairs."""
    return sub.counts.inside - v * sub.counts.outside


def _last_run(concepts: list[int], ops: list[int]) -> list[int]:
    """The concepts of the ORs that a chain ends in, and its first one if there is nothing else."""
    run: list[int] = []
    for op, concept in zip([*ops[::-1], UNION], concepts[::-1], strict=True):
        if op != UNION:
            break
        run.append(concept)
    return run


def _in_order(
    last: Step, concepts: list[int], ops: list[int], rank: Int32[np.ndarray, " concepts"]
) -> bool:
    """Whether the run of ORs next to an outer OR has lower ranks, up to and including the leaf."""
    if last.op != UNION:
        return True
    return all(rank[concept] < rank[last.concept] for concept in _last_run(concepts, ops))
