"""Who is told how a run goes: a display, a log, or nobody."""

from optexp_jax.runs.record import Counts
from optexp_jax.runs.results import UnitResult
from optexp_jax.runs.task import UnitProgress


class Observer:
    """Told of every step, in the thread of the run. This one does nothing; override what you need.

    Progress within a unit is known for methods that tell it (`with_callback`), as `Optimal` does,
    in this process and in `LocalWorkers`; other executors have no way to tell before a task is
    done.
    """

    def begin(self, counts: Counts) -> None:
        """The run begins, or goes on, with so many units done already."""

    def unit_started(self, unit: int) -> None:
        """A worker begins with a unit."""

    def unit_progress(self, progress: UnitProgress) -> None:
        """Where the search for a unit stands."""

    def unit_finished(self, result: UnitResult, counts: Counts) -> None:
        """A unit is stored."""

    def waiting(self, counts: Counts) -> None:
        """All that is left is being done by other processes."""

    def end(self, counts: Counts) -> None:
        """Every unit is stored, or the run was stopped."""
