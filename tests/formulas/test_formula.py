"""Formulas: canonical form, equality, order, evaluation, records."""

import copy
import itertools
import json
import pickle
import random
from collections.abc import Callable, Iterator

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import AND, AND_NOT, DEFAULT_OPERATORS, OR, Operator

# The run-time type checker looks at random elements of a tuple. Nothing drawn depends on that.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")

XOR = Operator("XOR", p=True, q=True, r=False)
BUT = Operator("EXCEPT FROM", p=False, q=True, r=False)  # right without left
UNION = Operator("UNION", p=True, q=True, r=True)  # commutes with OR, but is not OR
ALL = (*DEFAULT_OPERATORS, XOR, BUT, UNION)

MEANING: dict[Operator, Callable[[bool, bool], bool]] = {
    OR: lambda left, right: left or right,
    AND: lambda left, right: left and right,
    AND_NOT: lambda left, right: left and not right,
    XOR: lambda left, right: left != right,
    BUT: lambda left, right: right and not left,
    UNION: lambda left, right: left or right,
}
BIT = (False, True)

Word = tuple[tuple[str, ...], tuple[Operator, ...]]


@st.composite
def formulas(draw: st.DrawFn, max_length: int = 6) -> Formula:
    name = st.text("abAB", max_size=2)
    concepts = draw(st.lists(name, min_size=1, max_size=max_length, unique=True))
    steps = len(concepts) - 1
    operators = draw(st.lists(st.sampled_from(ALL), min_size=steps, max_size=steps))
    return Formula(tuple(concepts), tuple(operators))


def word(formula: Formula) -> Word:
    """The chain as it stands, compared literally."""
    return formula.concepts, formula.operators


def truth_table(formula: Formula) -> dict[frozenset[str], bool]:
    """By the set of concepts that hold; plain Python, no code of the package."""
    table: dict[frozenset[str], bool] = {}
    for bits in itertools.product(BIT, repeat=len(formula.concepts)):
        value = bits[0]
        for operator, bit in zip(formula.operators, bits[1:], strict=True):
            value = MEANING[operator](value, bit)
        present = itertools.compress(formula.concepts, bits)
        table[frozenset(present)] = value
    return table


def neighbours(formula: Formula) -> Iterator[Formula]:
    """All chains one allowed swap away."""
    concepts, operators = list(formula.concepts), list(formula.operators)
    if operators and all(
        MEANING[operators[0]](x, y) == MEANING[operators[0]](y, x) for x in BIT for y in BIT
    ):
        yield Formula((concepts[1], concepts[0], *concepts[2:]), tuple(operators))
    for i in range(len(operators) - 1):
        one, two = MEANING[operators[i]], MEANING[operators[i + 1]]
        if all(
            two(one(x, a), b) == one(two(x, b), a) for x, a, b in itertools.product(BIT, repeat=3)
        ):
            new_concepts, new_operators = concepts.copy(), operators.copy()
            new_concepts[i + 1 : i + 3] = reversed(concepts[i + 1 : i + 3])
            new_operators[i : i + 2] = reversed(operators[i : i + 2])
            yield Formula(tuple(new_concepts), tuple(new_operators))


def equivalence_class(formula: Formula) -> dict[Word, Formula]:
    """Everything that swaps can reach."""
    found = {word(formula): formula}
    todo = [formula]
    while todo:
        for neighbour in neighbours(todo.pop()):
            if word(neighbour) not in found:
                found[word(neighbour)] = neighbour
                todo.append(neighbour)
    return found


def every_formula(names: str, operators: tuple[Operator, ...]) -> Iterator[Formula]:
    for concepts in itertools.permutations(names):
        for chosen in itertools.product(operators, repeat=len(names) - 1):
            yield Formula(concepts, chosen)


# --- construction ---------------------------------------------------------------------------------


def test_construction():
    formula = Formula.concept("table").then(OR, "chair").then(AND_NOT, "dining_room-s")
    assert formula.concepts == ("table", "chair", "dining_room-s")
    assert formula.operators == (OR, AND_NOT)
    assert len(formula) == 3
    assert str(formula) == "((chair OR table) AND NOT dining_room-s)"
    assert repr(formula) == "<Formula ((table OR chair) AND NOT dining_room-s)>"
    with pytest.raises(AttributeError):
        formula.concepts = ("a",)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Formula((), ()), "at least one concept"),
        (lambda: Formula(("a", "b"), ()), "2 concepts has 1 operators, got 0"),
        (lambda: Formula(("a",), (OR,)), "1 concepts has 0 operators, got 1"),
        (lambda: Formula(("a", "b", "a"), (OR, OR)), "distinct, 'a' stands there twice"),
        (lambda: Formula.concept("a").then(AND, "a"), "distinct, 'a' stands there twice"),
    ],
)
def test_malformed_chains_are_refused(make: Callable[[], Formula], message: str):
    with pytest.raises(ValueError, match=message):
        make()


def test_wrong_types_are_refused():
    # With run-time type checks on, those may see it first.
    for concepts, operators in [("ab", (OR,)), ((1, 2), (OR,)), (("a", "b"), ("OR",))]:
        with pytest.raises((ValueError, TypeError)):
            Formula(concepts, operators)  # type: ignore[arg-type]


# --- canonical form -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("A AND NOT B AND C", "((A AND C) AND NOT B)"),
        ("C AND NOT B AND A", "((A AND C) AND NOT B)"),
        ("C AND NOT B AND NOT A", "((C AND NOT A) AND NOT B)"),
        ("C OR B OR A", "((A OR B) OR C)"),
        ("C AND B OR A", "((B AND C) OR A)"),
        ("B OR C AND NOT D AND A", "(((B OR C) AND A) AND NOT D)"),
        ("D XOR C XOR B AND A", "(((B XOR C) XOR D) AND A)"),
        ("B AND NOT A OR C", "((B AND NOT A) OR C)"),
        ("C UNION B OR A", "((A OR B) UNION C)"),
        ("A OR C UNION B", "((A OR B) UNION C)"),
        ("B EXCEPT FROM A", "(B EXCEPT FROM A)"),
    ],
)
def test_canonical_examples(text: str, canonical: str):
    formula = Formula.parse(text, operators=ALL)
    assert str(formula) == canonical
    assert repr(formula.canonical) == f"<Formula {canonical}>"


@given(formulas())
def test_canonical_form_is_equivalent_and_settled(formula: Formula):
    assert truth_table(formula.canonical) == truth_table(formula)
    assert word(formula.canonical.canonical) == word(formula.canonical)


@given(formulas(max_length=8), st.integers(1, 30), st.randoms())
def test_swaps_do_not_change_the_canonical_form(formula: Formula, n: int, rng: random.Random):
    swapped = formula
    for _ in range(n):
        swapped = rng.choice([swapped, *neighbours(swapped)])
    assert truth_table(swapped) == truth_table(formula)
    assert word(swapped.canonical) == word(formula.canonical)
    assert swapped == formula
    assert hash(swapped) == hash(formula)
    assert str(swapped) == str(formula)
    assert swapped.sort_key == formula.sort_key


@given(formulas(max_length=5))
def test_canonical_form_of_a_whole_class(formula: Formula):
    members = equivalence_class(formula)
    assert {word(member.canonical) for member in members.values()} == {word(formula.canonical)}
    assert word(formula.canonical) in members
    # The leaf is the smallest name that can be one; then each step is the smallest that can follow.
    assert word(formula.canonical) == min(
        members,
        key=lambda member: (
            member[0][0],
            [(o.sort_key, c) for o, c in zip(member[1], member[0][1:], strict=True)],
        ),
    )


@pytest.mark.parametrize(
    "names", ["abc", "abcd", pytest.param("abcde", marks=pytest.mark.slow)], ids=len
)
def test_equal_exactly_when_equivalent(names: str):
    """Over OR, AND, AND NOT and XOR the swaps find every equivalence there is."""
    by_truth: dict[frozenset[frozenset[str]], Word] = {}
    by_word: dict[Word, frozenset[frozenset[str]]] = {}
    for formula in every_formula(names, (*DEFAULT_OPERATORS, XOR)):
        holds = frozenset(key for key, value in truth_table(formula).items() if value)
        canonical = word(formula.canonical)
        assert by_truth.setdefault(holds, canonical) == canonical
        assert by_word.setdefault(canonical, holds) == holds


# --- equality and order ---------------------------------------------------------------------------


@given(formulas(max_length=3), formulas(max_length=3))
def test_equality_hash_and_order_agree(one: Formula, two: Formula):
    assert (one == two) == (word(one.canonical) == word(two.canonical))
    assert (one == two) == (one.sort_key == two.sort_key)
    assert (one == two) <= (hash(one) == hash(two))
    assert (one == two) == (str(one) == str(two))
    assert [one < two, one == two, one > two].count(True) == 1
    assert (one <= two) == (one < two or one == two)
    assert (one >= two) == (two <= one)


def test_order_breaks_ties_by_length_then_names_then_operators():
    texts = [
        "B",
        "(A OR Z)",
        "(B OR C)",
        "(B AND C)",
        "(B AND NOT C)",
        "(B XOR C)",
        "(C AND NOT B)",
        "((A OR B) OR C)",
        "((A AND NOT B) OR C)",
        "((A OR C) AND B)",
    ]
    expected = [Formula.parse(text, operators=ALL) for text in texts]
    shuffled = expected.copy()
    random.Random(0).shuffle(shuffled)
    assert list(map(str, sorted(shuffled))) == texts
    # A chain given in another order has the rank of its canonical form.
    assert Formula.parse("Z OR A") < Formula.parse("C OR B")


def test_other_types():
    formula = Formula.concept("a")
    assert formula != "a"
    assert formula != ("a",)
    with pytest.raises(TypeError):
        _ = formula < "b"


@given(formulas())
def test_pickle_and_copy(formula: Formula):
    fresh = pickle.dumps(formula)
    hash(formula)  # fills the cache, which must not travel: hashes differ between processes
    assert pickle.dumps(formula) == fresh
    for twin in (pickle.loads(fresh), copy.copy(formula), copy.deepcopy(formula)):
        assert word(twin) == word(formula)
        assert {formula: 1}[twin] == 1


# --- evaluation -----------------------------------------------------------------------------------


@given(formulas())
def test_evaluate(formula: Formula):
    table = truth_table(formula)
    masks = {name: np.array([name in key for key in table]) for name in formula.concepts}
    expected = list(table.values())
    assert formula.evaluate(masks).tolist() == expected
    assert formula.evaluate(masks.__getitem__).tolist() == expected
    on_device = formula.evaluate(lambda name: jnp.asarray(masks[name]))
    assert on_device.dtype == jnp.bool_
    assert on_device.tolist() == expected

    packed = formula.evaluate({name: np.packbits(mask) for name, mask in masks.items()})
    assert np.unpackbits(packed, count=len(expected)).astype(bool).tolist() == expected


def test_evaluate_without_a_mask():
    formula = Formula.parse("table OR chair")
    with pytest.raises(ValueError, match="unknown concept chair; did you mean chairs"):
        formula.evaluate({"table": True, "chairs": False})


def test_mask_is_the_tables():
    class Table:
        def mask(self, formula: Formula, /) -> np.ndarray:
            self.asked = formula
            return np.array([[True, False]])

    table = Table()
    formula = Formula.parse("a OR b")
    assert formula.mask(table).tolist() == [[True, False]]
    assert table.asked is formula


# --- records --------------------------------------------------------------------------------------


@given(formulas())
def test_dict_round_trip(formula: Formula):
    data = json.loads(json.dumps(formula.to_dict()))
    assert Formula.from_dict(data) == formula
    assert formula.canonical.to_dict() == formula.to_dict()


def test_dict_form():
    formula = Formula.parse("b OR a XOR c AND NOT d", operators=ALL)
    assert formula.to_dict() == {
        "concepts": ["a", "b", "c", "d"],
        "operators": ["OR", {"name": "XOR", "bits": [1, 1, 0]}, "AND NOT"],
    }


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"concepts": ["a"]}, "exactly 'concepts' and 'operators'"),
        ({"concepts": ["a"], "operators": [], "iou": 1}, "exactly 'concepts' and 'operators'"),
        (["a"], "exactly 'concepts' and 'operators'"),
        (None, "exactly 'concepts' and 'operators'"),
        ({"concepts": "a", "operators": []}, "'concepts' of a formula must be a list"),
        ({"concepts": ["a"], "operators": "OR"}, "'operators' of a formula must be a list"),
        ({"concepts": [], "operators": []}, "at least one concept"),
        ({"concepts": ["a", 3], "operators": ["OR"]}, "must be strings, got 3"),
        ({"concepts": ["a", ["b"]], "operators": ["OR"]}, "must be strings"),
        ({"concepts": ["a", "b"], "operators": ["XOR"]}, "unknown operator 'XOR'"),
        ({"concepts": ["a", "b"], "operators": []}, "2 concepts has 1 operators"),
        ({"concepts": ["a", "a"], "operators": ["OR"]}, "distinct"),
    ],
)
def test_dict_is_validated(data: object, message: str):
    with pytest.raises(ValueError, match=message):
        Formula.from_dict(data)
