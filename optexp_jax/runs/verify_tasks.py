"""Checks of a run handed to several processes."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

from optexp_jax.internal.kernel_choice import Kernels, chosen_kernels, kernels
from optexp_jax.runs.configuration import Configuration
from optexp_jax.runs.raw_maps import RawMaps
from optexp_jax.runs.results import UnitResult
from optexp_jax.runs.sources import AbstractOpener, SourceIdentity
from optexp_jax.runs.task import open_source
from optexp_jax.runs.unit_check import UnitCheck
from optexp_jax.runs.verify import MOST_TOGETHER, Verification

TASKS_A_WORKER = 4
"""So that all end at about the same time."""


@dataclass(frozen=True)
class VerifyTask:
    """Some results to check."""

    opener: AbstractOpener
    identity: SourceIdentity
    asked: Configuration
    results: tuple[UnitResult, ...]
    time_limit: float
    labelled: str | None = None
    """The stored table whose dataset is read again, if that is asked for."""
    kernels: Kernels = field(default_factory=chosen_kernels)


def run_verify_task(task: VerifyTask) -> list[UnitCheck]:
    """Check the results of a task, in whatever process it is."""
    with kernels(task.kernels):
        source = open_source(task.opener)
        task.identity.check(source)
        raw = None if task.labelled is None else RawMaps.of_table(task.labelled)
        verification = Verification(source, task.asked, task.time_limit, raw)
        return list(verification.check(task.results))


def verify_on(
    executor: Executor, n_workers: int, task: VerifyTask, results: Sequence[UnitResult]
) -> Iterator[UnitCheck]:
    """Check results on an executor, in their order; `task` says how."""
    share = -(-len(results) // (TASKS_A_WORKER * n_workers))
    step = max(1, min(share, MOST_TOGETHER))
    futures = [
        executor.submit(
            run_verify_task,
            VerifyTask(
                task.opener,
                task.identity,
                task.asked,
                tuple(results[start : start + step]),
                task.time_limit,
                task.labelled,
                task.kernels,
            ),
        )
        for start in range(0, len(results), step)
    ]
    for future in futures:
        yield from future.result()
