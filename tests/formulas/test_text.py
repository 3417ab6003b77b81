"""Printing and parsing of formulas."""

import re
from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import AND, AND_NOT, DEFAULT_OPERATORS, OR, Operator
from optexp_jax.formulas.text import quote_name

# The run-time type checker looks at random elements of a tuple. Nothing drawn depends on that.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")

XOR = Operator("XOR", p=True, q=True, r=False)
XOR_THEN = Operator("XOR THEN", p=True, q=True, r=True)  # begins like XOR
ALL = (*DEFAULT_OPERATORS, XOR, XOR_THEN)

NASTY = [
    *("", " ", "\n", "\t", "\r\n", "\x00", "\x85", "\u2028", "\u200b", "\ufeff", "\U000e0001"),
    *('"', '""', "'", "`", "\\", "\\n", '\\"', "\\u0041", "a\\", "(", ")", "((", "[", "{", ","),
    *("OR", "AND", "NOT", "AND NOT", "XOR", "THEN", "XOR THEN", "TV", "or", "And", "A", "OR-s"),
    *("traffic light", " lead", "trail ", "a\u00a0b", "a OR b", "(a OR b)", "e\u0301", "ß", "日本"),
    *("\ud83d", "\ud83d\ude00", "😀", "dining_room-s", "a-b/c:d;e=f<g>h|i&j~k^l%m#n@o!p?q*r+s.t$u"),
]
# Any string of Python's, lone surrogates too.
any_text = st.text(st.characters(), max_size=4)
likely_to_be_misread = st.text("aA OR\"'\\(),\nNTX", max_size=6)
names = st.one_of(st.sampled_from(NASTY), any_text, likely_to_be_misread)


@st.composite
def formulas(draw: st.DrawFn, names: st.SearchStrategy[str] = names) -> Formula:
    concepts = draw(st.lists(names, min_size=1, max_size=5, unique=True))
    steps = len(concepts) - 1
    chosen = draw(st.lists(st.sampled_from(ALL), min_size=steps, max_size=steps))
    return Formula(tuple(concepts), tuple(chosen))


@dataclass(frozen=True)
class Named:
    """The part of a concept table that `parse` asks for."""

    names: tuple[str, ...]


def as_given(text: str) -> str:
    """The chain that the text was read as, before any reordering."""
    return repr(Formula.parse(text, operators=ALL)).removeprefix("<Formula ").removesuffix(">")


# --- round trip -----------------------------------------------------------------------------------


@given(formulas())
@example(Formula(("a", "THEN"), (XOR,)))
@example(Formula(("\ud83d\ude00", "😀"), (OR,)))
def test_parse_reads_what_str_prints(formula: Formula):
    assert Formula.parse(str(formula), operators=ALL) == formula
    printed = repr(formula).removeprefix("<Formula ").removesuffix(">")
    again = Formula.parse(printed, table=Named(formula.concepts), operators=ALL)
    assert (again.concepts, again.operators) == (formula.concepts, formula.operators)


@pytest.mark.parametrize("name", NASTY, ids=ascii)
def test_every_name_alone_and_on_both_sides(name: str):
    for formula in (
        Formula.concept(name),
        Formula(("x", name), (XOR,)),
        Formula((name, "x", "y"), (AND_NOT, OR)),
    ):
        again = Formula.parse(str(formula), operators=ALL)
        assert again == formula
        assert name in again.concepts


@given(names)
def test_a_name_prints_on_one_line(name: str):
    printed = quote_name(name)
    assert printed.isprintable()
    assert len(printed.splitlines()) == 1
    printed.encode()  # no lone surrogates


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("dining_room-s", "dining_room-s"),
        ("A", "A"),
        ("ORB-s", "ORB-s"),
        ("or", "or"),
        ("é日本😀", "é日本😀"),
        ("", '""'),
        ("traffic light", '"traffic light"'),
        ("a,b", '"a,b"'),
        ("f(x)", '"f(x)"'),
        ("child's", '"child\'s"'),
        ('say "a"', r'"say \"a\""'),
        ("a\\b", r'"a\\b"'),
        ("a\nb\tc\rd", r'"a\nb\tc\rd"'),
        ("\x00\u2028\U000e0001", r'"\u0000\u2028\U000e0001"'),
        ("OR", '"OR"'),
        ("NOT", '"NOT"'),
        ("TV", '"TV"'),
    ],
)
def test_printed_names(name: str, printed: str):
    assert quote_name(name) == printed
    assert str(Formula.concept(name)) == printed
    assert str(Formula((name, "x"), (AND_NOT,))) == f"({printed} AND NOT x)"


# --- what is accepted -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "((a OR b) AND NOT c)",
        "(a OR b) AND NOT c",
        "a OR b AND NOT c",
        "(a OR b AND NOT c)",
        "  ( (a\tOR\nb)AND  NOT c )  ",
        "(((a) OR (b)) AND NOT ((c)))",
        '"a" OR "b" AND NOT "c"',
        r'"\u0061" OR "\U00000062" AND NOT c',
    ],
)
def test_spellings_of_one_chain(text: str):
    assert as_given(text) == "((a OR b) AND NOT c)"


@given(formulas(st.text("abc", min_size=1, max_size=3)), st.data())
def test_left_deep_brackets_may_be_left_out(formula: Formula, data: st.DataObject):
    text = repr(formula).removeprefix("<Formula ").removesuffix(">")
    # The first bracket that opens and the last that closes belong together.
    for _ in range(len(formula) - 1):
        if data.draw(st.booleans()):
            text = text.replace("(", "", 1)[::-1].replace(")", "", 1)[::-1]
    again = Formula.parse(text, operators=ALL)
    assert (again.concepts, again.operators) == (formula.concepts, formula.operators)


def test_longest_operator_name_wins():
    assert as_given("a XOR THEN b") == "(a XOR THEN b)"
    assert Formula.parse("a XOR THEN b", operators=ALL).operators == (XOR_THEN,)
    assert Formula.parse('a XOR "THEN"', operators=ALL).operators == (XOR,)
    # Where XOR THEN is not known, THEN can only be a concept.
    assert Formula.parse("a XOR THEN", operators=(XOR,)).concepts == ("a", "THEN")
    assert Formula.parse("TV OR VCR").concepts == ("TV", "VCR")


def test_long_chains_need_no_recursion():
    formula = Formula(tuple(f"c{i}" for i in range(3000)), (AND_NOT, OR) * 1499 + (AND,))
    text = repr(formula).removeprefix("<Formula ").removesuffix(">")
    assert Formula.parse(text).concepts == formula.concepts


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("", "expected a concept, found the end of the text", 0),
        ("()", "expected a concept, found ')'", 1),
        ("a OR", "expected a concept, found the end of the text", 4),
        ("(a OR) b", "expected a concept, found ')'", 5),
        ("a OR (b AND c)", "side of OR must be a single concept: formulas nest to the left", 5),
        ("(a OR b) AND NOT (c OR d)", "right side of AND NOT must be a single concept", 17),
        ("a OR ((b AND c) OR d)", "right side of OR must be a single concept", 6),
        ("a OR ((b) AND c)", "right side of OR must be a single concept", 5),
        ("(a OR b", "this bracket is never closed", 0),
        ("((a) OR b", "this bracket is never closed", 0),
        ("a OR (b", "this bracket is never closed", 5),
        ("a OR b)", "this bracket closes nothing", 6),
        ("(a)) OR b", "this bracket closes nothing", 3),
        ("NOT a", "found the operator word NOT", 0),
        ("a OR AND", "found the operator word AND", 5),
        ("a OR NOT b", "found the operator word NOT", 5),
        ("a XOR b", "unknown operator XOR; known operators are OR, AND, AND NOT; pass oper", 2),
        ("a or b", "expected an operator (OR, AND, AND NOT), found 'or'", 2),
        ("traffic light OR b", "found 'light'; a concept name with spaces is written in double", 8),
        ('a "OR" b', "expected an operator (OR, AND, AND NOT), found 'OR'", 2),
        ("a (b)", "expected an operator (OR, AND, AND NOT), found '('", 2),
        ("a, b", "unexpected character ','", 1),
        ("a OR [b]", "unexpected character '['", 5),
        ("a OR 'b'", 'unexpected character "\'"', 5),
        ("a\\b", "unexpected character '\\\\'", 1),
        ("a\u200b OR b", "unexpected character '\\u200b'", 1),
        ('a OR "b', "this quote is never closed", 5),
        ('a OR "b\\"', "this quote is never closed", 5),
        (r'a OR "\x41"', "unknown escape", 6),
        (r'a OR "\u12"', "unknown escape", 6),
        (r'a OR "\U00110000"', "no such character", 6),
        ('a OR b"c"', "put the whole name in quotes", 5),
        ('a OR "b"c', "put the whole name in quotes", 5),
        ('"a""b"', "put the whole name in quotes", 0),
        ('"a"OR "b"', "put the whole name in quotes", 0),
        ('"a" OR"b"', "put the whole name in quotes", 4),
    ],
)
def test_malformed_text_is_refused(text: str, message: str, position: int):
    where = f" (at position {position} of {text!r})"
    with pytest.raises(ValueError, match=f"{re.escape(message)}.*{re.escape(where)}$"):
        Formula.parse(text)


@given(
    st.lists(st.sampled_from(["a", "b", " OR ", " AND ", "NOT ", "(", ")", '"', "\\", ",", " "]))
)
def test_parse_never_fails_otherwise(pieces: list[str]):
    text = "".join(pieces)
    try:
        formula = Formula.parse(text)
    except ValueError:
        return
    assert Formula.parse(str(formula)) == formula


def test_repeated_concept_is_refused():
    with pytest.raises(ValueError, match="must be distinct, 'a' stands there twice"):
        Formula.parse("a OR b OR a")


def test_unknown_operator_lists_those_that_were_given():
    with pytest.raises(ValueError, match="operator word NOT; known operators are OR, AND;"):
        Formula.parse("a AND NOT b", operators=(OR, AND))
    with pytest.raises(ValueError, match="unknown operator OR; known operators are XOR;"):
        Formula.parse("a OR b", operators=(XOR,))
    with pytest.raises(ValueError, match="two operators are named XOR"):
        Formula.parse("a XOR b", operators=(XOR, XOR))


def test_table_limits_the_names():
    table = Named(("chair", "armchair", "table", "traffic light", "OR"))
    assert Formula.parse('chair OR "OR"', table).concepts == ("chair", "OR")
    with pytest.raises(ValueError, match=r"unknown concept chairs; did you mean chair or arm.*\?"):
        Formula.parse("table OR chairs", table)
    with pytest.raises(ValueError, match=r'unknown concept traffic_light; did you mean "traffic l'):
        Formula.parse("traffic_light", table)
    with pytest.raises(ValueError, match=r"unknown concept zebra$"):
        Formula.parse("zebra", table)
