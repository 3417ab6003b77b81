"""Many neurons of one table, here or on any executor, in their order."""

import functools
import itertools
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.explain import check_question, described, explain_counts, firing
from optexp_jax.explanation import Explanation
from optexp_jax.internal.kernel_choice import Kernels, chosen_kernels, kernels
from optexp_jax.methods.base import AbstractMethod
from optexp_jax.methods.optimal import Optimal
from optexp_jax.methods.together import neurons_together
from optexp_jax.runs.shared import open_shared_table, share_table

IN_FLIGHT = 2
"""Tasks a worker, so that none waits for the next."""


def explain_many(
    table: ConceptTable,
    neurons: Iterable[Any],
    method: AbstractMethod | None = None,
    *,
    executor: Executor | None = None,
) -> Iterator[Explanation]:
    """Explain neurons in their order, each yielded when it and those before it are done.

    They are explained here, one after another, or on any `concurrent.futures.Executor`. What
    several of them need is computed together, so a few are taken in before the first is explained.
    """
    method = Optimal() if method is None else method
    check_question(table, method)
    if executor is not None:
        yield from explain_on(executor, table, (firing(table, each) for each in neurons), method)
        return
    waiting, at_once = iter(neurons), neurons_together(table)
    while group := [firing(table, each) for each in itertools.islice(waiting, at_once)]:
        together = method.run_together(table, group)
        for counts, found in zip(group, together, strict=True):
            yield described(table, counts, found)


def explain_on(
    executor: Executor,
    table: ConceptTable,
    neurons: Iterable[NeuronCounts],
    method: AbstractMethod,
) -> Iterator[Explanation]:
    """Explanations in the order of the neurons, each as soon as it and those before are done.

    Only as many neurons are taken ahead as keep the workers busy. A worker in another process
    maps the table's arrays from a temporary folder, which must be on a disk that it can see.
    """
    workers = int(getattr(executor, "n", getattr(executor, "_max_workers", 4)))
    pending: deque[Future[Explanation]] = deque()
    with tempfile.TemporaryDirectory(prefix="optexp-") as folder:
        shared = _Travelling(table, Path(folder))
        try:
            for neuron in neurons:
                pending.append(
                    executor.submit(_explain_one, shared, neuron, method, chosen_kernels())
                )
                if len(pending) >= IN_FLIGHT * workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


class _Travelling:
    """A table that goes to other processes as a folder of arrays, written when it first does."""

    def __init__(self, table: ConceptTable, folder: Path):
        self.table = table
        self._folder = folder

    def __reduce__(self) -> "tuple[Callable[[str], _Travelling], tuple[str]]":
        return _arrive, (str(share_table(self.table, self._folder)),)


@functools.lru_cache(maxsize=1)
def _arrive(folder: str) -> _Travelling:
    return _Travelling(open_shared_table(Path(folder)), Path(folder).parent)


def _explain_one(
    shared: _Travelling, neuron: NeuronCounts, method: AbstractMethod, choice: Kernels
) -> Explanation:
    with kernels(choice):
        return explain_counts(shared.table, neuron, method)
