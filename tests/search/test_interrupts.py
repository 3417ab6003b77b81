"""Searches that an exception cuts short at any line go on to the right end."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest
from helpers.interrupting import Lines
from helpers.search_cases import XOR, seeds
from helpers.support import as_users_run_it, examples
from hypothesis import given
from hypothesis import strategies as st

import optexp_jax as ox
from optexp_jax.bounds.base import Prepared
from optexp_jax.bounds.paper import exact_prefixes as known
from optexp_jax.methods.optimal import Optimal
from optexp_jax.search import AbstractSpace, Progress
from optexp_jax.search.driver import Search
from optexp_jax.search.problem import Problem
from optexp_jax.testing import Case

SHAPE = (3, 40)
MOST_INTERRUPTS = 25


def crowded_case(seed: int, n_concepts: int = 6) -> Case:
    """Nodes wait after the first turn, and many sets are nearly as good as the best."""
    rng = np.random.default_rng(seed)
    masks = rng.random((n_concepts, *SHAPE)) < 0.4
    inside = (rng.random(SHAPE) < 0.4).astype(np.int64)
    inside[0, 0] = 1
    return Case(masks, inside, 1 - inside)


class Forgetful(ox.AbstractBounds):
    """A family of a user's own, which does not promise anything about turns cut short."""

    inner: ox.AbstractBounds = eqx.field(default=ox.PaperBounds())

    def open(
        self, problem: Problem, batch_size: int | None = None, *, prepared: Prepared | None = None
    ) -> AbstractSpace[Any]:
        space = self.inner.open(problem, batch_size)
        space.recover = lambda: False
        return space


@dataclass(frozen=True)
class Setting:
    """A family and what is asked of it."""

    method: Optimal
    n_concepts: int = 6

    def search(self, case: Case) -> Search[Any]:
        return self.method.search(case.table, case.neuron)


FAMILIES: dict[str, Setting] = {
    "tight": Setting(Optimal(3, bounds=ox.TightBounds(beam=0), batch_size=2)),
    "tight, longer": Setting(Optimal(4, bounds=ox.TightBounds(beam=2), batch_size=4), 5),
    "tight, several": Setting(Optimal(3, bounds=ox.TightBounds(beam=0), batch_size=4, top_k=5)),
    "published": Setting(Optimal(3, bounds=ox.PaperBounds(), batch_size=8)),
    "published, one by one": Setting(Optimal(3, bounds=ox.PaperBounds(), batch_size=1), 4),
    "published, several": Setting(Optimal(3, bounds=ox.PaperBounds(), batch_size=8, top_k=5)),
    "published, a share": Setting(
        Optimal(3, bounds=ox.PaperBounds(), batch_size=8, within=0.05, max_within=4)
    ),
    "of its own": Setting(Optimal(3, bounds=Forgetful(), batch_size=8)),
    "other operators": Setting(Optimal(3, operators=(ox.OR, XOR), batch_size=8)),
}


def told(found: ox.Explanation) -> tuple[object, ...]:
    """What an explanation says, without what it took."""
    return (
        found.status,
        found.formula,
        found.score,
        found.equivalents,
        found.runners_up,
        found.within_truncated,
        found.upper_bound,
    )


ERRORS: dict[str, Callable[[], BaseException]] = {
    "Ctrl-C": KeyboardInterrupt,
    "no memory": MemoryError,
    "no memory on the device": lambda: jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: no memory"),
}


@pytest.mark.parametrize("family", FAMILIES)
@examples(2, in_thorough=60)
@given(seed=seeds)
def test_cut_short_at_any_line(family: str, seed: int):
    setting, rng = FAMILIES[family], np.random.default_rng(seed)
    case, limits = crowded_case(seed, setting.n_concepts), setting.method.limits
    with as_users_run_it():
        whole = setting.search(case).run(limits)  # compiles what there is to compile
        with Lines().watch() as all_lines:
            assert told(setting.search(case).run(limits)) == told(whole)
        search = setting.search(case)
        # Most are cut short in a turn, some in the root or in what goes on after the one before.
        for _ in range(MOST_INTERRUPTS):
            raised = ERRORS[rng.choice(sorted(ERRORS))]()
            stop_at = 1 + rng.integers(all_lines.count // rng.choice([1, 4, 16]))
            try:
                with Lines(stop_at, raised).watch():
                    search.run(limits)
            except type(raised):
                continue
            break
        again = search.run(limits)
    assert told(again) == told(whole)


def exact_best(case: Case, method: Optimal) -> ox.Explanation:
    oracle = ox.Exhaustive(method.length, operators=method.operators)
    return ox.explain(case.table, case.neuron, oracle)


@pytest.mark.parametrize("bounds", [ox.PaperBounds(), ox.TightBounds(beam=0), Forgetful()], ids=str)
@examples(4)
@given(seed=seeds, turn=st.integers(0, 20))
def test_a_stopped_search_that_is_interrupted_goes_on(
    bounds: ox.AbstractBounds, seed: int, turn: int
):
    """As users do it: stop, go on, Ctrl-C from a callback, go on."""
    case = crowded_case(seed)
    method = Optimal(3, bounds=bounds, batch_size=2)
    stopped = ox.explain(case.table, case.neuron, replace(method, max_nodes=1))
    if stopped.status == "optimal":
        return
    seen: list[Progress] = []

    def interrupt(progress: Progress) -> None:
        seen.append(progress)
        if len(seen) > turn:
            raise KeyboardInterrupt

    interrupted = replace(method, callback=interrupt)
    try:
        found = ox.explain(case.table, case.neuron, interrupted, resume=stopped.state)
    except KeyboardInterrupt:
        found = ox.explain(case.table, case.neuron, method, resume=stopped.state)
    best = exact_best(case, method)
    assert (found.status, found.formula, found.score) == ("optimal", best.formula, best.score)


PUBLISHED = Optimal(3, bounds=ox.PaperBounds(), batch_size=8)


def fails_once(what: Callable[..., Any], when: Callable[..., bool]) -> Callable[..., Any]:
    """What raises instead of being done, the first time that its arguments are as they say."""
    waiting = [True]

    def failing(*arguments: Any) -> Any:
        if waiting and when(*arguments):
            waiting.clear()
            raise jax.errors.JaxRuntimeError("INTERNAL: a kernel failed")
        return what(*arguments)

    return failing


def goes_on_to_the_optimum(search: Search[Any], case: Case, method: Optimal) -> None:
    with pytest.raises(jax.errors.JaxRuntimeError):
        search.run(method.limits)
    found, best = search.run(method.limits), exact_best(case, method)
    assert (found.status, found.formula, found.score) == ("optimal", best.formula, best.score)


@pytest.mark.parametrize("seed", range(3))
def test_a_node_seen_and_not_evaluated_comes_again(seed: int):
    case, method = crowded_case(seed), replace(PUBLISHED, batch_size=1)
    search, best = method.search(case.table, case.neuron), exact_best(case, method).formula
    space: Any = search._space

    def has_the_best(batch: Any, incumbent: Any) -> bool:
        return any(space._formula(batch.nodes, row) == best for row in range(len(batch)))

    space._evaluate = fails_once(space._evaluate, has_the_best)
    goes_on_to_the_optimum(search, case, method)
    assert search._space is space


@pytest.mark.parametrize("seed", range(3))
def test_a_label_is_not_taken_for_known_before_it_is(seed: int, monkeypatch: pytest.MonkeyPatch):
    case, method = crowded_case(seed), PUBLISHED
    search = method.search(case.table, case.neuron)
    monkeypatch.setattr(known, "_put", fails_once(known._put, lambda *_: True))
    goes_on_to_the_optimum(search, case, method)


def test_a_family_that_promises_nothing_begins_again_with_its_incumbent():
    case = crowded_case(0)
    method = Optimal(3, bounds=Forgetful(), batch_size=1)
    search = method.search(case.table, case.neuron)
    first = search._space
    seen: list[Progress] = []

    def interrupt(progress: Progress) -> None:
        seen.append(progress)
        if len(seen) == 12:
            first.expand = stop

    def stop(batch: Any, incumbent: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search.run(replace(method.limits, callback=interrupt))
    before = seen[-1]
    seen.clear()
    found = search.run(replace(method.limits, callback=seen.append))
    assert search._space is not first
    assert seen[0].incumbent is not None
    assert before.incumbent is not None
    assert seen[0].incumbent.score.ratio >= before.incumbent.score.ratio
    assert seen[0].upper_bound <= before.upper_bound
    assert seen[0].seconds >= before.seconds
    best = exact_best(case, method)
    assert (found.status, found.formula, found.score) == ("optimal", best.formula, best.score)


def test_work_of_a_turn_cut_short_is_counted_once():
    case, method = crowded_case(0), Optimal(3, bounds=ox.TightBounds(beam=0), batch_size=2)
    with as_users_run_it():
        whole = method.search(case.table, case.neuron).run(method.limits).stats
        for share in (0.5, 0.7, 0.9):
            search = method.search(case.table, case.neuron)
            with Lines().watch() as lines:
                method.search(case.table, case.neuron).run(method.limits)
            with (
                pytest.raises(KeyboardInterrupt),
                Lines(int(share * lines.count)).watch(),
            ):
                search.run(method.limits)
            stats = search.run(method.limits).stats
            assert (stats.visited, stats.expanded) == (whole.visited, whole.expanded)
            assert stats.speculative == whole.speculative
