"""The matrix form of formulas."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optexp_jax.formulas.batch import PADDING, FormulaBatch
from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import (
    AND,
    AND_NOT,
    DEFAULT_OPERATORS,
    OR,
    Operator,
    operator_bits,
)

# The run-time type checker looks at random elements of a tuple. Nothing drawn depends on that.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")

XOR = Operator("XOR", p=True, q=True, r=False)
ALL = (*DEFAULT_OPERATORS, XOR)
NAMES: tuple[str, ...] = ("sky", "tree", "car", "road", "grass")


@st.composite
def formulas(draw: st.DrawFn) -> Formula:
    concepts = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    steps = len(concepts) - 1
    chosen = draw(st.lists(st.sampled_from(ALL), min_size=steps, max_size=steps))
    return Formula(tuple(concepts), tuple(chosen))


def chains(formulas: list[Formula]) -> list[str]:
    return list(map(repr, formulas))


@given(st.lists(formulas(), max_size=6), st.integers(4, 6) | st.none(), st.booleans())
def test_round_trip(given_formulas: list[Formula], length: int | None, explicit: bool):
    operator_set = tuple(reversed(ALL)) if explicit else None
    batch = FormulaBatch.from_formulas(given_formulas, NAMES, operator_set, length=length)
    assert isinstance(batch.concepts, np.ndarray)
    assert isinstance(batch.operators, np.ndarray)
    assert batch.concepts.dtype == batch.operators.dtype == np.int32
    longest = max(map(len, given_formulas), default=1)
    expected_length = longest if length is None else length
    assert batch.concepts.shape == (len(given_formulas), expected_length)
    assert len(batch) == len(given_formulas)
    assert batch.lengths.tolist() == list(map(len, given_formulas))
    # Literally the same chains, not only equal formulas.
    assert chains(batch.to_formulas(NAMES)) == chains(given_formulas)
    on_device = jax.tree.map(jnp.asarray, batch)
    assert chains(on_device.to_formulas(NAMES)) == chains(given_formulas)


def test_layout():
    batch = FormulaBatch.from_formulas(
        [Formula.parse("tree OR sky AND NOT car"), Formula.concept("road")], NAMES
    )
    assert batch.operator_set == DEFAULT_OPERATORS
    assert batch.concepts.tolist() == [[1, 0, 2], [3, PADDING, PADDING]]
    assert batch.operators.tolist() == [[PADDING, 0, 2], [PADDING, PADDING, PADDING]]


def test_default_operator_set_does_not_depend_on_order():
    zeta = Operator("ZETA", p=False, q=True, r=False)
    one = Formula.parse("sky XOR tree ZETA car", operators=(XOR, zeta))
    two = Formula.parse("sky ZETA tree XOR car", operators=(XOR, zeta))
    for formulas in ([one, two], [two, one]):
        batch = FormulaBatch.from_formulas(formulas, NAMES)
        assert batch.operator_set == (*DEFAULT_OPERATORS, zeta, XOR)


@eqx.filter_jit
def evaluate(batch: FormulaBatch, masks: jax.Array) -> jax.Array:
    bits = jnp.asarray(operator_bits(batch.operator_set))
    held = masks[batch.concepts[:, 0]]
    for column in range(1, batch.concepts.shape[1]):
        right = masks[batch.concepts[:, column]]
        p, q, r = (bits[batch.operators[:, column], i][:, None] for i in range(3))
        joined = p & held & ~right | q & ~held & right | r & held & right
        used = batch.concepts[:, column, None] != PADDING
        held = jnp.where(used, joined, held)
    return held


# One batch size and one length, so one compilation.
@given(st.lists(formulas(), min_size=5, max_size=5), st.integers(0, 2**32 - 1))
def test_compiled_code_can_evaluate_a_batch(given_formulas: list[Formula], seed: int):
    """The batch goes into `jit` whole, and its rows use operators of their own."""
    masks = np.random.default_rng(seed).random((len(NAMES), 20)) < 0.5
    batch = FormulaBatch.from_formulas(given_formulas, NAMES, ALL, length=4)

    on_device = jax.tree.map(jnp.asarray, batch)
    by_name = dict(zip(NAMES, masks, strict=True))
    expected = np.stack([formula.evaluate(by_name) for formula in given_formulas])
    np.testing.assert_array_equal(evaluate(on_device, jnp.asarray(masks)), expected)


def test_unknown_names_and_operators_are_refused():
    with pytest.raises(ValueError, match="unknown concept trees; did you mean tree"):
        FormulaBatch.from_formulas([Formula.concept("trees")], NAMES)
    with pytest.raises(ValueError, match=r"operator AND is not in operator_set \(OR, AND NOT\)"):
        FormulaBatch.from_formulas([Formula.parse("sky AND car")], NAMES, (OR, AND_NOT))
    with pytest.raises(ValueError, match="two operators are named OR"):
        FormulaBatch.from_formulas([], NAMES, (OR, OR))
    with pytest.raises(ValueError, match="length=1 is too short for a formula of 2 concepts"):
        FormulaBatch.from_formulas([Formula.parse("sky AND car")], NAMES, length=1)


@pytest.mark.parametrize(
    ("concepts", "operators", "message"),
    [
        ([-1, -1, -1], [-1, -1, -1], "has no first concept"),
        ([0, -1, 1], [-1, -1, 0], "has padding between concepts"),
        ([0, 5, -1], [-1, 0, -1], "has a concept that `names` lacks"),
        ([0, -2, -1], [-1, 0, -1], "has a concept that `names` lacks"),
        ([0, 1, -1], [-1, 2, -1], "has an operator that is not in operator_set"),
        ([0, 1, -1], [-1, -1, -1], "has an operator that is not in operator_set"),
        ([0, 1, -1], [0, 0, -1], "where no operator belongs"),
        ([0, 1, -1], [-1, 0, 0], "where no operator belongs"),
    ],
)
def test_malformed_rows_are_refused(concepts: list[int], operators: list[int], message: str):
    batch = FormulaBatch(
        np.array([[0, 1, 2], concepts], np.int32),
        np.array([[-1, 0, 1], operators], np.int32),
        (OR, AND),
    )
    with pytest.raises(ValueError, match=f"row 1 of the formula batch .*{message}"):
        batch.to_formulas(NAMES)


def test_shapes_must_agree():
    # With run-time type checks on, jaxtyping sees it first.
    with pytest.raises((ValueError, TypeError)):
        FormulaBatch(np.zeros((2, 3), np.int32), np.zeros((2, 2), np.int32), (OR, AND))
