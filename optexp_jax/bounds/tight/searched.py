"""Which formulas a node of the tight search answers for; asked by tests, not by the search."""

import jax
import numpy as np
from jaxtyping import Bool, Float64, Int32

from optexp_jax.bounds.tight.forms import (
    DIFFERENCE,
    INTERSECTION,
    OPERATORS,
    UNION,
)
from optexp_jax.bounds.tight.labels import Labels, count_labels
from optexp_jax.bounds.tight.nodes import TightNodes
from optexp_jax.bounds.tight.place import Place, Places, Spot, Step
from optexp_jax.bounds.tight.ranking import Ranking
from optexp_jax.bounds.tight.views import Views
from optexp_jax.formulas.batch import FormulaBatch
from optexp_jax.search.problem import Problem


def searched_there(
    nodes: TightNodes,
    formulas: FormulaBatch,
    problem: Problem,
    places: Places,
    ranking: Ranking,
) -> Bool[np.ndarray, "nodes formulas"]:
    """Chains with a node's outer steps, three or more concepts inside, in the order searched."""
    claimed = np.zeros((len(nodes), len(formulas)), bool)
    used = [k for k, operator in enumerate(OPERATORS) if operator in problem.operators]
    codes = {problem.operators.index(OPERATORS[k]): k for k in used}
    all_concepts, all_operators = np.asarray(formulas.concepts), np.asarray(formulas.operators)
    for row in range(len(nodes)):
        spot, v = nodes.spot(row), float(nodes.v[row])
        steps = spot.steps
        for column, length in enumerate(np.asarray(formulas.lengths).tolist()):
            inner = length - len(steps)
            concepts = all_concepts[column, :length].tolist()
            forms = [codes[code] for code in all_operators[column, 1:length].tolist()]
            outer = [*zip(forms[inner - 1 :], concepts[inner:], strict=True)] if inner > 0 else []
            if inner < 3 or outer[::-1] != [(step.form, step.concept) for step in steps]:
                continue
            inside = concepts[:inner], forms[: inner - 1]
            labels = nodes.labels(np.array([row]))
            label, label_forms = labels.inner[0].tolist(), labels.forms[0].tolist()
            if not label:
                if not steps:
                    claimed[row, column] = True
                    continue
                around = places.at(Spot(steps[:-1]), v)
                plain = all(form == UNION for form in inside[1])
                claimed[row, column] = (plain or _any_meet(around)) and _in_order(
                    steps[-1], *inside, ranking.rank
                )
            elif (inside[0][: len(label)], inside[1][: len(label) - 1]) == (label, label_forms):
                place = places.at(spot, v)
                claimed[row, column] = inner == len(label) + nodes.further[row] and (
                    _comes_third(place, v, ranking, *inside)
                    if inner == 3
                    else _comes_later(place, v, ranking, *inside, len(label))
                )
    return claimed


def _comes_third(
    place: Place, v: float, ranking: Ranking, concepts: list[int], forms: list[int]
) -> bool:
    """Whether `(a∘b)∘x` is bounded with the pair a, b rather than with another pair of it.

    Of three concepts in a union the one of the smallest share comes third; of two filters the one
    that leaves less; and AND stands before AND NOT.
    """
    if not _are_there(place, concepts):
        return False
    a, b, x = place.concepts.number[concepts].tolist()
    if forms == [UNION, UNION]:
        views = Views.of([place], v, ranking)
        with jax.enable_x64(True):
            share = np.asarray(views.rows.third_share(views.regions))[0]
        return bool(share[x] <= min(share[a], share[b]))
    if forms == [DIFFERENCE, DIFFERENCE]:
        both = _both(place, v)
        return bool(both[a, x] >= both[a, b])
    return forms != [DIFFERENCE, INTERSECTION]


def _comes_later(
    place: Place,
    v: float,
    ranking: Ranking,
    concepts: list[int],
    forms: list[int],
    n_label: int,
) -> bool:
    """Whether `((a∘b)∘x)∘y` is bounded with the first concepts as they stand here.

    A chain that ends in OR is, if all concepts of that run of ORs are light. Of three filters of
    one concept the best comes first; of two last filters, and of two last ORs, the better one.
    """
    if not _are_there(place, concepts):
        return False
    run, light = _last_run(concepts, forms), ranking.light(place.unused)
    if forms[2] == INTERSECTION or forms[:2] == [DIFFERENCE, INTERSECTION]:
        return False
    if forms[1:] == [INTERSECTION, DIFFERENCE] or (forms[2] == UNION and not light[run].all()):
        return False
    labels = Labels(np.array([concepts[:2]], np.int32), np.array([forms[:1]], np.int32))
    counts = count_labels(place, labels)
    removed = counts.shared_inside[0] - v * counts.shared_outside[0]
    a, b, x, y = place.concepts.number[concepts].tolist()
    if n_label == 3 and forms[1:] == [DIFFERENCE, DIFFERENCE]:
        return bool(removed[x] <= removed[y])
    if n_label == 3 and forms[1:] == [UNION, UNION]:
        own = place.counts.inside.diagonal() - v * place.counts.outside.diagonal()
        outside = own - removed
        return bool(outside[x] >= outside[y])
    if n_label == 2 and forms == [DIFFERENCE] * 3:
        both = _both(place, v)
        return bool(both[a, b] <= min(both[a, x], both[a, y]))
    return True


def _are_there(place: Place, concepts: list[int]) -> bool:
    """Whether none of the concepts is left out at a place."""
    return bool(place.of_use[concepts].all())


def _any_meet(place: Place) -> bool:
    """Whether any two concepts meet: elsewhere filters change nothing, and are left out."""
    overlap = (place.counts.inside + place.counts.outside)[np.ix_(place.allowed, place.allowed)]
    return bool((overlap - np.diag(overlap.diagonal())).any())


def _both(place: Place, v: float) -> Float64[np.ndarray, "concepts concepts"]:
    """W(a AND b) of all pairs."""
    return place.counts.inside - v * place.counts.outside


def _last_run(concepts: list[int], forms: list[int]) -> list[int]:
    """The concepts of the ORs that a chain ends in, and its first one if there is nothing else."""
    run: list[int] = []
    for form, concept in zip([*forms[::-1], UNION], concepts[::-1], strict=True):
        if form != UNION:
            break
        run.append(concept)
    return run


def _in_order(
    last: Step, concepts: list[int], forms: list[int], rank: Int32[np.ndarray, " concepts"]
) -> bool:
    """Whether the run of ORs next to an outer OR has lower ranks, up to and including the leaf."""
    if last.form != UNION:
        return True
    return all(rank[concept] < rank[last.concept] for concept in _last_run(concepts, forms))
