"""What a family of bounds is: it opens a search space for a problem."""

import abc
from collections.abc import Sequence
from typing import Any

import equinox as eqx

from optexp_jax.search.driver import AbstractSpace, InadmissibleBoundError
from optexp_jax.search.problem import Problem

__all__ = ["AbstractBounds", "InadmissibleBoundError", "Prepared"]


class Prepared:
    """What a family has computed together for several problems. It never changes."""


class AbstractBounds(eqx.Module):
    """A family of bounds for `Optimal(bounds=...)`."""

    def prepare(self, problems: Sequence[Problem]) -> Prepared | None:
        """Compute at once what searches for several neurons of one table begin with.

        What is returned is passed to `open` for each of them. None, as here, is passed to nobody:
        a family that prepares nothing need not take it.
        """
        return None

    @abc.abstractmethod
    def open(
        self, problem: Problem, batch_size: int | None = None, *, prepared: Prepared | None = None
    ) -> AbstractSpace[Any]:
        """A search space for one problem. The driver asks it for nodes, children and bounds.

        `batch_size` is how many nodes are expanded at once; None leaves it to the family.
        `prepared` is what `prepare` returned for this problem and others, if it was called.
        """
