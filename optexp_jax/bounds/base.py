"""What a family of bounds is: it opens a search space for a problem."""

import abc
from collections.abc import Sequence
from typing import Any

import equinox as eqx

from optexp_jax.search.driver import AbstractSpace, InadmissibleBoundError
from optexp_jax.search.problem import Problem

__all__ = ["AbstractBounds", "InadmissibleBoundError"]


class AbstractBounds(eqx.Module):
    """A family of bounds for `Optimal(bounds=...)`."""

    def prepare(self, problems: Sequence[Problem]) -> None:
        """Do at once what searches for several neurons of a table need; they work without, too."""

    @abc.abstractmethod
    def open(self, problem: Problem, batch_size: int | None = None) -> AbstractSpace[Any]:
        """A search space for one problem. The driver asks it for nodes, children and bounds.

        `batch_size` is how many nodes are expanded at once; None leaves it to the family.
        """
