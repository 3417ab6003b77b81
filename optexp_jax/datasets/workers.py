"""Worker processes that make the parts of a build.

They are spawned, not forked: a fork copies the locks of JAX's threads in whatever state they are.
"""

import pickle
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from optexp_jax.datasets.parts import PART_SAMPLES, make_part, write_part
from optexp_jax.datasets.protocol import Dataset
from optexp_jax.datasets.provenance import SkippedSample
from optexp_jax.datasets.spec import DatasetSpec
from optexp_jax.internal.child_process import live_under_parent


@dataclass(frozen=True)
class PartJobs:
    """All parts of a build: how the samples are cut up and where the files go."""

    n_samples: int
    mask_shape: tuple[int, int]
    folder: Path
    build: str
    """A checksum of what the parts depend on."""

    def __len__(self) -> int:
        return -(-self.n_samples // PART_SAMPLES)

    def path(self, part: int) -> Path:
        return self.folder / f"part-{part:06d}.part"

    def place(self, part: int) -> str:
        """Which part of which build: what its file is bound to."""
        return f"{self.build} {part}"

    def bounds(self, part: int) -> tuple[int, int]:
        """The samples of a part."""
        return part * PART_SAMPLES, min((part + 1) * PART_SAMPLES, self.n_samples)

    def make(self, dataset: Dataset, part: int) -> "MadePart":
        """Make a part and its file."""
        made = make_part(dataset, *self.bounds(part), self.mask_shape)
        write_part(made, self.path(part), self.place(part))
        return MadePart(part, made.skipped)


@dataclass(frozen=True)
class MadePart:
    """A part whose file is there."""

    part: int
    skipped: tuple[SkippedSample, ...]


def make_parts(
    dataset: Dataset,
    spec: DatasetSpec | None,
    jobs: PartJobs,
    parts: Sequence[int],
    workers: int,
) -> Generator[MadePart]:
    """Make parts, in this process or by workers, and tell of each when its file is there.

    Workers may finish out of order. Parts that are being made when the caller stops listening are
    finished, the others are left.
    """
    n_workers = min(workers, len(parts))
    if n_workers <= 1:
        for part in parts:
            yield jobs.make(dataset, part)
        return
    pool = ProcessPoolExecutor(
        n_workers,
        mp_context=get_context("spawn"),
        initializer=_start,
        initargs=(_portable(dataset, spec), jobs),
    )
    try:
        waiting = list(reversed(parts))
        running: set[Future[MadePart]] = set()
        while waiting or running:
            # A few ahead, so that no worker waits, and few enough to stop soon after an error.
            while waiting and len(running) < 2 * n_workers:
                running.add(pool.submit(_make, waiting.pop()))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    except BrokenProcessPool as error:
        raise ChildProcessError(
            "A worker process died. If this is a script, call build_table under "
            '`if __name__ == "__main__":`, because workers import the script; if memory ran out, '
            "use fewer workers. The parts that are done are kept."
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _portable(dataset: Dataset, spec: DatasetSpec | None) -> bytes:
    """The dataset for another process; one that cannot be pickled goes as its spec."""
    try:
        return pickle.dumps(dataset)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        if spec is not None:
            return pickle.dumps(spec)
        raise TypeError(
            f"{type(dataset).__name__} cannot be sent to worker processes ({error}). Pass spec= "
            "as well, or workers=1."
        ) from error


@dataclass(frozen=True, eq=False)
class _Worker:
    """What a worker process holds."""

    dataset: Dataset
    jobs: PartJobs


_worker: _Worker | None = None


def _start(portable: bytes, jobs: PartJobs) -> None:
    global _worker
    live_under_parent()
    held = pickle.loads(portable)
    _worker = _Worker(held.open() if isinstance(held, DatasetSpec) else held, jobs)


def _make(part: int) -> MadePart:
    assert _worker is not None
    return _worker.jobs.make(_worker.dataset, part)
