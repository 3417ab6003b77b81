"""Which stopped searches go on: bounds are the same by their fields and arrays, not their repr."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.search_cases import Bucket
from jaxtyping import Array, PyTree

import optexp_jax as ox
from optexp_jax.bounds import LabelBatch, ProblemView, TopBott
from optexp_jax.internal.structural_equality import structurally_equal


@dataclass(frozen=True)
class Plain:
    """Anything, in a dataclass that is no Equinox module."""

    value: Any


class Raised(ox.AbstractVectors):
    """The published vectors, raised by an array: looser, but admissible."""

    by: Array | np.ndarray
    scale: Any = eqx.field(static=True, default=1)

    def prepare(self, view: ProblemView) -> PyTree[Array]:
        return ox.PublishedVectors().prepare(view)

    def of_labels(self, prepared: PyTree[Array], labels: LabelBatch) -> TopBott:
        made = ox.PublishedVectors().of_labels(prepared, labels)
        top = jax.tree.map(lambda part: part + self.by.sum().astype(part.dtype), made.top)
        return TopBott(top, made.top_one, made.bottom)


def vectors(last: int, scale: Any = 1) -> Raised:
    """The last of many entries, which a repr leaves out."""
    return Raised(jnp.zeros(40, jnp.int32).at[-1].set(last), scale)


def stopped_under(bounds: ox.AbstractBounds) -> ox.Explanation:
    case = Bucket(6, 3, 3).case(1)
    method = ox.Optimal(3, bounds=bounds, batch_size=1, max_nodes=1)
    found = ox.explain(case.table, case.neuron, method)
    assert found.stats.stopped_by is ox.StoppedBy.MAX_NODES
    return found


def go_on(stopped: ox.Explanation, bounds: ox.AbstractBounds) -> ox.Explanation:
    case = Bucket(6, 3, 3).case(1)
    method = ox.Optimal(3, bounds=bounds, batch_size=1)
    return ox.explain(case.table, case.neuron, method, resume=stopped.state)


def test_other_arrays_of_the_same_repr_do_not_go_on():
    first, second = (ox.PaperBounds(vectors(last)) for last in (0, 1))
    assert repr(first) == repr(second)
    stopped = stopped_under(first)
    with pytest.raises(ValueError, match=r"for another bounds\. Only its limits"):
        go_on(stopped, second)
    found = go_on(stopped, ox.PaperBounds(vectors(0)))
    assert found.status == "optimal"
    case = Bucket(6, 3, 3).case(1)
    best = ox.explain(case.table, case.neuron, ox.Exhaustive(3))
    assert (found.formula, found.score) == (best.formula, best.score)


def test_other_settings_do_not_go_on():
    case = Bucket(6, 3, 3).case(1)
    stopped = stopped_under(ox.PaperBounds())
    same = ox.Optimal(3, bounds=ox.PaperBounds(), batch_size=1)
    other = Bucket(6, 3, 3).case(2)
    for named, method in {
        "length": replace(same, length=2),
        "operators": replace(same, operators=(ox.OR,)),
        "bounds": replace(same, bounds=ox.PaperBounds(rewriting=False)),
        "batch_size": replace(same, batch_size=2),
        "top_k": replace(same, top_k=2),
        "within, max_within": replace(same, within=0.1, max_within=5),
    }.items():
        with pytest.raises(ValueError, match=rf"for another {named}\. Only its limits"):
            ox.explain(case.table, case.neuron, method, resume=stopped.state)
    with pytest.raises(ValueError, match=r"for another table, neuron\. Only its limits"):
        ox.explain(other.table, other.neuron, same, resume=stopped.state)
    changed = replace(same, gap=0.001, time_limit=60.0, max_nodes=10**6, frontier_reduction=False)
    assert ox.explain(case.table, case.neuron, changed, resume=stopped.state).gap <= 0.001


def test_a_class_of_the_same_name_is_another():
    def made() -> ox.AbstractBounds:
        class Mine(ox.PaperBounds):
            pass

        return Mine()

    first, second = made(), made()
    assert repr(first) == repr(second)
    stopped = stopped_under(first)
    with pytest.raises(ValueError, match="for another bounds"):
        go_on(stopped, second)
    assert go_on(stopped, first).status == "optimal"


# --- structural equality --------------------------------------------------------------------------


class Incomparable:
    """Two of these cannot be told to be the same."""

    def __eq__(self, other: object) -> bool:
        raise TypeError("no")

    __hash__ = None  # type: ignore[assignment]


def key(seed: int) -> Any:
    return jax.random.key(seed)


SAME: list[Callable[[], object]] = [
    lambda: vectors(3),
    lambda: vectors(3, scale=Plain(np.arange(50))),
    lambda: Plain((1, [2.5, {"a": np.ones(3)}], "text", None)),
    lambda: np.array([np.nan, -0.0]),
    lambda: float("nan"),
    lambda: np.float32(1.5),
    lambda: np.array([None, "a"], object),
    lambda: frozenset([1, 2]),
    lambda: jnp.arange(5),
    lambda: key(1),
    lambda: jnp.arange(3, dtype=jnp.bfloat16),
    ox.TightBounds,
    ox.PaperBounds,
]


@pytest.mark.parametrize("make", SAME)
def test_equal_parts_are_equal(make: Callable[[], object]):
    assert structurally_equal(make(), make())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (vectors(3), vectors(4)),
        (vectors(3, Plain(np.arange(50))), vectors(3, Plain(np.arange(1, 51)))),
        (Plain(0.0), Plain(-0.0)),
        (Plain(1), Plain(1.0)),
        (Plain(1), Plain(True)),
        (Plain((1,)), Plain([1])),
        (Plain((1,)), Plain((1, 2))),
        (Plain({"a": 1}), Plain({"b": 1})),
        (np.zeros(2), np.array([0.0, -0.0])),
        (np.zeros(2, np.int32), np.zeros(2, np.int64)),
        (np.zeros(2), np.zeros((2, 1))),
        (np.zeros(2), jnp.zeros(2)),
        (np.array([None, "a"], object), np.array([None, "b"], object)),
        (key(1), key(2)),
        (lambda: 1, lambda: 1),
        (object(), object()),
        (Incomparable(), Incomparable()),
        (Plain(Incomparable()), Plain(Incomparable())),
        (ox.TightBounds(), ox.PaperBounds()),
        (None, 0),
    ],
)
def test_anything_else_differs(one: object, other: object):
    assert not structurally_equal(one, other)
    assert structurally_equal(one, one)
    assert structurally_equal(Plain(one), Plain(one))
