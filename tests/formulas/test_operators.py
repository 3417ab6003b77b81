"""Operators against their truth tables, written out by hand or by plain Python."""

import itertools
import json
import operator as python_operator
import pickle
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from optexp_jax.formulas.operators import (
    AND,
    AND_NOT,
    DEFAULT_OPERATORS,
    OR,
    Operator,
    check_operators,
    operator_bits,
    operator_from_json,
    operator_to_json,
)

XOR = Operator("XOR", p=True, q=True, r=False)
BUT = Operator("EXCEPT FROM", p=False, q=True, r=False)  # right without left
UNION = Operator("UNION", p=True, q=True, r=True)
ALL = (*DEFAULT_OPERATORS, XOR, BUT)

# What each operator means, in plain Python.
MEANING: dict[Operator, Callable[[bool, bool], bool]] = {
    OR: lambda left, right: left or right,
    AND: lambda left, right: left and right,
    AND_NOT: lambda left, right: left and not right,
    XOR: lambda left, right: left != right,
    BUT: lambda left, right: right and not left,
}
BIT = (False, True)

operators = st.sampled_from(ALL)
words = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ", min_size=2, max_size=6)
operator_names = st.lists(words, min_size=1, max_size=3).map(" ".join)


@pytest.mark.parametrize("op", ALL, ids=str)
def test_truth_table_on_python_bools(op: Operator):
    for left, right in itertools.product(BIT, BIT):
        assert op(left, right) is MEANING[op](left, right)


def test_published_bits():
    assert [f"{op.truth_table:03b}" for op in (OR, AND, AND_NOT, XOR)] == [
        "111",
        "001",
        "100",
        "110",
    ]


@given(
    op=operators,
    arrays=npst.array_shapes(min_dims=0).flatmap(
        lambda shape: st.tuples(npst.arrays(np.bool_, shape), npst.arrays(np.bool_, shape))
    ),
)
def test_elementwise_on_numpy_and_jax(op: Operator, arrays: tuple[np.ndarray, np.ndarray]):
    left, right = arrays
    expected = np.vectorize(MEANING[op], otypes=[np.bool_])(left, right)
    on_host = op(left, right)
    assert on_host.dtype == np.bool_
    np.testing.assert_array_equal(on_host, expected)
    on_device = op(jnp.asarray(left), jnp.asarray(right))
    assert isinstance(on_device, jax.Array)
    assert on_device.dtype == jnp.bool_
    np.testing.assert_array_equal(on_device, expected)


@given(op=operators, dtype=st.sampled_from([np.uint8, np.uint32, np.uint64]), data=st.data())
def test_packed_words_are_many_locations_at_once(op: Operator, dtype: Any, data: st.DataObject):
    left, right = (data.draw(npst.arrays(dtype, 3)) for _ in range(2))

    def unpack(words: np.ndarray) -> np.ndarray:
        return np.unpackbits(words.view(np.uint8)).astype(np.bool_)

    packed = op(left, right)
    assert packed.dtype == dtype
    np.testing.assert_array_equal(unpack(packed), op(unpack(left), unpack(right)))


@pytest.mark.parametrize("op", ALL, ids=str)
def test_static_argument_of_jit(op: Operator):
    traces: list[Operator] = []

    def apply(op: Operator, left: jax.Array, right: jax.Array) -> jax.Array:
        traces.append(op)
        return op(left, right)

    jitted = jax.jit(apply, static_argnums=0)
    left, right = jnp.array([False, False, True, True]), jnp.array([False, True, False, True])
    copy = pickle.loads(pickle.dumps(op))
    for static in (op, copy):  # equal by value, so traced once
        np.testing.assert_array_equal(
            jitted(static, left, right), [MEANING[op](x, y) for x in BIT for y in BIT]
        )
    assert len(traces) == 1


def test_equality_and_hash_are_by_value():
    assert Operator("XOR", p=True, q=True, r=False) == XOR
    assert {XOR: 1}[pickle.loads(pickle.dumps(XOR))] == 1
    assert UNION != OR  # same bits, another name
    with pytest.raises(AttributeError):
        XOR.p = False  # type: ignore[misc]


# --- construction ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda left, right: left != right,
        lambda left, right: left ^ right,
        lambda left, right: (left + right) % 2,
        lambda left, right: (left and not right) or (right and not left),
        lambda left, right: (left | right) & ~(left & right),
        np.logical_xor,
        jnp.logical_xor,
        python_operator.xor,
    ],
)
def test_from_function(function: Callable[[Any, Any], Any]):
    assert Operator.from_function("XOR", function) == XOR


@pytest.mark.parametrize("op", ALL, ids=str)
def test_from_function_recovers_every_operator(op: Operator):
    assert Operator.from_function(op.name, MEANING[op]) == op


@pytest.mark.parametrize(
    "function",
    [
        lambda left, right: not (left or right),
        lambda left, right: left == right,
        lambda left, right: not left or right,
        lambda left, right: ~(left & right),
    ],
)
def test_operator_true_without_concepts_is_refused(function: Callable[[Any, Any], Any]):
    with pytest.raises(ValueError, match=r"o\(0, 0\) is 1.*without any concept.*bounds"):
        Operator.from_function("NOR", function)


def test_from_function_refuses_other_values():
    with pytest.raises(ValueError, match=r"SUM\(1, 1\) must be 0 or 1.*2"):
        Operator.from_function("SUM", lambda left, right: left + right)


@pytest.mark.parametrize(
    ("bits", "reason"),
    [("000", "0 everywhere"), ("101", "ignores its right side"), ("011", "ignores its left side")],
)
def test_operator_that_ignores_a_side_is_refused(bits: str, reason: str):
    p, q, r = (bit == "1" for bit in bits)
    with pytest.raises(ValueError, match=f"operator IDLE is refused: .*{reason}"):
        Operator("IDLE", p=p, q=q, r=r)


def test_the_other_five_truth_tables_are_accepted():
    refused = {0b000, 0b101, 0b011}
    for code in set(range(8)) - refused:
        op = Operator("ANY", p=bool(code & 4), q=bool(code & 2), r=bool(code & 1))
        assert op.truth_table == code


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", "xor", "Xor", "X", "XOR2", "X_OR", "ÄND", "AND A", "a OR b"),
        *("XOR ", " XOR", "AND  NOT", "AND\tNOT", "XOR\n", "X(OR", '"XOR"', "[OR]", "AND,OR"),
    ],
)
def test_names_that_could_be_misread_are_refused(name: str):
    with pytest.raises(ValueError, match=r"could be misread.*capital letters"):
        Operator(name, p=True, q=True, r=False)


def test_reserved_names():
    with pytest.raises(ValueError, match="cannot be named 'NOT'"):
        Operator("NOT", p=True, q=True, r=False)
    for op in DEFAULT_OPERATORS:
        with pytest.raises(ValueError, match=f"{op.name} has a fixed meaning.*bits 110"):
            Operator(op.name, p=True, q=True, r=False)


# --- properties -----------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ALL, ids=str)
def test_symmetric_and_monotone(op: Operator):
    meaning = MEANING[op]
    assert op.symmetric == all(meaning(x, y) == meaning(y, x) for x in BIT for y in BIT)
    assert op.monotone == all(meaning(True, c) >= meaning(False, c) for c in BIT)


def test_known_properties():
    assert [op.name for op in ALL if op.symmetric] == ["OR", "AND", "XOR"]
    assert [op.name for op in ALL if op.monotone] == ["OR", "AND", "AND NOT"]


@pytest.mark.parametrize("one", ALL, ids=str)
@pytest.mark.parametrize("two", ALL, ids=str)
def test_commutes_with(one: Operator, two: Operator):
    first, second = MEANING[one], MEANING[two]
    assert one.commutes_with(two) == all(
        second(first(x, a), b) == first(second(x, b), a)
        for x, a, b in itertools.product(BIT, repeat=3)
    )


def test_known_commuting_pairs():
    pairs = {(a.name, b.name) for a in ALL for b in ALL if a <= b and a.commutes_with(b)}
    assert pairs == {
        ("OR", "OR"),
        ("AND", "AND"),
        ("AND NOT", "AND NOT"),
        ("AND", "AND NOT"),
        ("XOR", "XOR"),
    }
    assert UNION.commutes_with(OR)  # the bits decide, not the name


# --- order, bits, JSON ----------------------------------------------------------------------------


def test_order():
    others = [
        Operator("ZZ", p=False, q=True, r=False),
        Operator("XOR", p=True, q=True, r=False),
        Operator("AA", p=True, q=True, r=True),
        Operator("UNION", p=True, q=True, r=True),
    ]
    expected = [OR, AND, AND_NOT, *others]
    for order in itertools.islice(itertools.permutations(expected), 0, None, 97):
        assert sorted(order) == expected
    assert OR < AND <= AND_NOT
    with pytest.raises(TypeError):
        _ = OR < "AND"


@given(st.lists(operators, max_size=6), npst.arrays(np.bool_, 6), npst.arrays(np.bool_, 6))
def test_operator_bits_apply_another_operator_in_every_row(
    ops: list[Operator], left: np.ndarray, right: np.ndarray
):
    bits = operator_bits(ops)
    assert bits.dtype == np.bool_
    assert bits.shape == (len(ops), 3)
    left, right = left[: len(ops)], right[: len(ops)]
    p, q, r = bits.T
    rows = p & left & ~right | q & ~left & right | r & left & right
    assert rows.tolist() == [op(x, y) for op, x, y in zip(ops, left, right, strict=True)]


@given(name=operator_names.filter(lambda name: name not in ("NOT", "OR", "AND", "AND NOT")))
def test_json_round_trip(name: str):
    for bits in ((1, 1, 0), (0, 1, 0), (1, 1, 1)):
        op = Operator(name, p=bits[0] == 1, q=bits[1] == 1, r=bits[2] == 1)
        data = json.loads(json.dumps(operator_to_json(op)))
        assert data == {"name": name, "bits": list(bits)}
        assert operator_from_json(data) == op
    for op in DEFAULT_OPERATORS:
        assert operator_to_json(op) == op.name
        assert operator_from_json(op.name) == op


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("XOR", "unknown operator 'XOR'; by name alone: OR, AND, AND NOT"),
        ("or", "unknown operator 'or'"),
        ({"name": "XOR"}, "exactly a name and three bits"),
        ({"name": "XOR", "bits": [1, 1]}, "exactly a name and three bits"),
        ({"name": "XOR", "bits": "110"}, "exactly a name and three bits"),
        ({"name": 1, "bits": [1, 1, 0]}, "exactly a name and three bits"),
        ({"name": "XOR", "bits": [1, 1, 0], "more": 0}, "exactly a name and three bits"),
        ({"name": "XOR", "bits": [1, 1, 2]}, "must be 0 or 1"),
        ({"name": "XOR", "bits": [1, 1, "0"]}, "must be 0 or 1"),
        ({"name": "XOR", "bits": [1, 1, None]}, "must be 0 or 1"),
        ({"name": "xor", "bits": [1, 1, 0]}, "could be misread"),
        ({"name": "OR", "bits": [1, 1, 0]}, "fixed meaning"),
        ({"name": "XOR", "bits": [1, 0, 1]}, "ignores its right side"),
        (None, "exactly a name and three bits"),
        (["XOR", 1, 1, 0], "exactly a name and three bits"),
    ],
)
def test_json_is_validated(data: object, message: str):
    with pytest.raises(ValueError, match=message):
        operator_from_json(data)


def test_check_operators():
    assert check_operators(iter([AND, OR])) == (AND, OR)
    with pytest.raises(ValueError, match="no operators given"):
        check_operators(())
    with pytest.raises(ValueError, match="two operators are named XOR"):
        check_operators((XOR, Operator("XOR", p=True, q=True, r=True)))
    with pytest.raises(ValueError, match="expected an Operator"):
        check_operators(iter(["OR"]))  # type: ignore[arg-type]
