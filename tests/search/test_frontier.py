"""The frontier against a plain sorted list."""

from dataclasses import dataclass, field

import equinox as eqx
import numpy as np
import pytest
from helpers.support import examples
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import Int64

from optexp_jax.search.frontier import Frontier, Queued, concatenate, take


class Ids(eqx.Module):
    """Nodes that are only told apart."""

    id: Int64[np.ndarray, " nodes"]


def queue(uppers: list[float], priorities: list[int], first_id: int) -> Queued[Ids]:
    ids = np.arange(first_id, first_id + len(uppers))
    return Queued(Ids(ids), np.array(uppers, float), np.array(priorities, np.int64))


@dataclass
class Model:
    """What waits, as (bound, priority, id)."""

    nodes: list[tuple[float, int, int]] = field(default_factory=list)

    def push(self, queued: Queued[Ids]) -> None:
        rows = zip(queued.upper, queued.priority, queued.nodes.id, strict=True)
        self.nodes += [(float(u), int(p), int(i)) for u, p, i in rows]

    def pop(self, most: int) -> list[tuple[float, int]]:
        """Bounds and priorities that must come next."""
        self.nodes.sort(key=lambda node: (-node[0], node[1]))
        return [node[:2] for node in self.nodes[:most]]

    def remove(self, ids: list[int]) -> None:
        self.nodes = [node for node in self.nodes if node[2] not in ids]

    def prune(self, threshold: float) -> int:
        before = len(self.nodes)
        self.nodes = [node for node in self.nodes if node[0] >= threshold]
        return before - len(self.nodes)


bounds = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.5000000000000001, 0.75, 1.0])
pushes = st.lists(st.tuples(bounds, st.integers(0, 3)), max_size=6)
steps = st.one_of(
    st.tuples(st.just("push"), pushes),
    st.tuples(st.just("pop"), st.integers(1, 5)),
    st.tuples(st.just("prune"), bounds),
)


@examples(100)
@given(st.lists(steps, max_size=20))
def test_like_a_sorted_list(script: list[tuple]):
    frontier: Frontier[Ids] = Frontier()
    model = Model()
    n_ids = 0
    for action, argument in script:
        if action == "push":
            queued = queue([u for u, _ in argument], [p for _, p in argument], n_ids)
            n_ids += len(argument)
            frontier.push(queued)
            model.push(queued)
        elif action == "prune":
            assert frontier.prune(argument) == model.prune(argument)
        elif len(frontier):
            expected = model.pop(argument)
            popped = frontier.pop(argument)
            found = list(zip(popped.upper.tolist(), popped.priority.tolist(), strict=True))
            assert found == expected
            ids = popped.nodes.id.tolist()
            assert len(set(ids)) == len(ids)
            # Among equals any may come, but each node keeps its own bound.
            held = {node[2]: node[:2] for node in model.nodes}
            assert [held[k] for k in ids] == expected
            model.remove(ids)
        assert len(frontier) == len(model.nodes)
        assert frontier.upper == max((node[0] for node in model.nodes), default=-np.inf)


def test_equals_come_in_the_order_they_were_pushed():
    frontier: Frontier[Ids] = Frontier()
    frontier.push(queue([0.5, 0.5], [1, 1], 0))
    frontier.push(queue([0.5, 0.5], [1, 0], 2))
    frontier.push(queue([0.5], [1], 4))
    assert [int(frontier.pop(1).nodes.id[0]) for _ in range(5)] == [3, 0, 1, 2, 4]


def test_prune_keeps_what_is_level():
    frontier: Frontier[Ids] = Frontier()
    frontier.push(queue([0.3, 0.2, np.nextafter(0.2, 0)], [0, 0, 0], 0))
    assert frontier.prune(0.2) == 1
    assert frontier.pop(9).nodes.id.tolist() == [0, 1]


def test_prune_after_some_were_popped():
    frontier: Frontier[Ids] = Frontier()
    frontier.push(queue([0.9, 0.8, 0.7, 0.1], [0, 0, 0, 0], 0))
    assert frontier.pop(2).nodes.id.tolist() == [0, 1]
    assert frontier.prune(0.5) == 1
    assert len(frontier) == 1
    assert frontier.pop(1).nodes.id.tolist() == [2]


def test_pushing_nothing_changes_nothing():
    frontier: Frontier[Ids] = Frontier()
    frontier.push(queue([], [], 0))
    assert len(frontier) == 0
    assert frontier.upper == -np.inf


@pytest.mark.parametrize("rows", [slice(1, 3), np.array([2, 0]), np.array([False, True, True])])
def test_take_and_concatenate(rows: slice | np.ndarray):
    nodes = queue([0.1, 0.2, 0.3], [3, 2, 1], 0)
    part = take(nodes, rows)
    np.testing.assert_array_equal(part.nodes.id, np.arange(3)[rows])
    np.testing.assert_array_equal(part.upper, nodes.upper[rows])
    both = concatenate([nodes, part])
    assert len(both) == 5
    np.testing.assert_array_equal(both.priority, [3, 2, 1, *nodes.priority[rows]])
