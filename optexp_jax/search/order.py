"""The order in which nodes are expanded. The result and its proof are the same in every order.

A search ends when nothing waits that can beat the incumbent. Which node comes first decides how
soon that is, how much waits meanwhile, and what an early stop has found and proved.
"""

import abc

import equinox as eqx
import numpy as np
from jaxtyping import Float64, Int64


class AbstractOrder(eqx.Module):
    """An order of nodes for `Optimal(order=...)`. One of your own has `keys`."""

    @abc.abstractmethod
    def keys(
        self,
        upper: Float64[np.ndarray, " nodes"],
        shortest: Int64[np.ndarray, " nodes"],
        pushed: int,
    ) -> Float64[np.ndarray, " nodes"]:
        """A number for each of the nodes that a turn has made: lower ones are expanded first.

        Of equal numbers, the node with the higher upper bound comes first. `shortest` is the length
        of the shortest formula that a node stands for, and `pushed` how many turns made nodes
        before.
        """


class BestFirst(AbstractOrder):
    """The node with the highest upper bound: the fewest nodes are expanded until the proof."""

    def keys(
        self,
        upper: Float64[np.ndarray, " nodes"],
        shortest: Int64[np.ndarray, " nodes"],
        pushed: int,
    ) -> Float64[np.ndarray, " nodes"]:
        return np.zeros(len(upper))


class DepthFirst(AbstractOrder):
    """The nodes that were made last, the best of them first: the fewest nodes wait."""

    def keys(
        self,
        upper: Float64[np.ndarray, " nodes"],
        shortest: Int64[np.ndarray, " nodes"],
        pushed: int,
    ) -> Float64[np.ndarray, " nodes"]:
        return np.full(len(upper), -float(pushed))


class BreadthFirst(AbstractOrder):
    """The nodes that were made first, the best of them first: one step after another."""

    def keys(
        self,
        upper: Float64[np.ndarray, " nodes"],
        shortest: Int64[np.ndarray, " nodes"],
        pushed: int,
    ) -> Float64[np.ndarray, " nodes"]:
        return np.full(len(upper), float(pushed))
