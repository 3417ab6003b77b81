"""Text form of formulas: ``((table OR chair) AND NOT dining_room-s)``.

A name that could be misread stands in double quotes, with backslash escapes. The printer quotes
every word of two or more capital letters, because any such word may be part of an operator's name.
So what it prints is read back as it was, whatever other operators the reader knows.
"""

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn

from optexp_jax.formulas.operators import DEFAULT_OPERATORS, OPERATOR_WORD, Operator

_RESERVED_CHARACTERS = frozenset("()[]{},\"'`\\")
_SHORT_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNESCAPED = {escape[1]: character for character, escape in _SHORT_ESCAPES.items()}
# One character inside quotes: an escape, or anything but a quote or a backslash.
_QUOTED_CHARACTER = re.compile(
    r'\\(?P<short>[\\"nrt])|\\u(?P<four>[0-9a-fA-F]{4})|\\U(?P<eight>[0-9a-fA-F]{8})'
    r'|(?P<plain>[^"\\])',
    re.DOTALL,
)
_SYNONYMS = re.compile("[,;]")
_LARGEST_CODE_POINT = 0x10FFFF


@dataclass(frozen=True)
class Chain:
    """What a text says: the concepts, and the operator before each of them but the first."""

    concepts: tuple[str, ...]
    operators: tuple[Operator, ...]


@dataclass(frozen=True)
class _Token:
    kind: Literal["(", ")", "word", "quoted", "end"]
    value: str
    position: int
    end: int

    def __str__(self) -> str:
        return "the end of the text" if self.kind == "end" else repr(self.value)


def quote_name(name: str) -> str:
    """The name as it stands in a formula: bare where that is safe, otherwise quoted."""
    if name and all(map(_is_bare, name)) and not OPERATOR_WORD.fullmatch(name):
        return name
    return '"' + "".join(map(_escape, name)) + '"'


def format_chain(concepts: Sequence[str], operators: Sequence[Operator]) -> str:
    """The left-deep chain with all of its brackets; one concept stands bare."""
    steps = [
        f" {operator} {quote_name(concept)})"
        for operator, concept in zip(operators, concepts[1:], strict=True)
    ]
    return "(" * len(steps) + quote_name(concepts[0]) + "".join(steps)


def parse_chain(text: str, operators: Sequence[Operator]) -> Chain:
    """Read a left-deep chain. Brackets that only repeat the left-to-right order may be left out."""
    return _Parser(text, operators).chain()


def find_concept(name: str, names: Collection[str]) -> str:
    """The concept of this name, or the one whose first synonym it is, of `car, auto, automobile`.

    A first synonym that several concepts share is an error that lists them.
    """
    if name in names:
        return name
    found = [each for each in names if first_synonym(each) == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(
            f"several concepts are called {quote_name(name)}: "
            f"{', '.join(map(quote_name, found))}; write one of these names"
        )
    raise ValueError(unknown_concept(name, names))


def first_synonym(name: str) -> str:
    """What stands in front of the first comma or semicolon."""
    return _SYNONYMS.split(name, maxsplit=1)[0].strip()


def unknown_concept(name: str, names: Iterable[str]) -> str:
    """Message for a concept that is not among `names`, with the names nearest to it.

    A name is near if its first synonym is: `car, auto, automobile` is near `cra`.
    """
    spelt: dict[str, list[str]] = {}
    for known in names:
        for spelling in {known: None, first_synonym(known): None}:
            spelt.setdefault(spelling, []).append(known)
    found = difflib.get_close_matches(name, spelt, n=3)
    near = list(dict.fromkeys(known for spelling in found for known in spelt[spelling]))[:3]
    hint = f"; did you mean {' or '.join(map(quote_name, near))}?" if near else ""
    return f"unknown concept {quote_name(name)}{hint}"


def _is_bare(character: str) -> bool:
    # Of the characters that print, only the space is white space.
    return character.isprintable() and character != " " and character not in _RESERVED_CHARACTERS


def _escape(character: str) -> str:
    return _SHORT_ESCAPES.get(character) or escape_unprintable(character)


def escape_unprintable(character: str) -> str:
    """The character if it prints, or its escape."""
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


class _Parser:
    """One pass over the tokens. No recursion: a long chain has as many brackets as concepts."""

    def __init__(self, text: str, operators: Sequence[Operator]):
        self._text = text
        self._operators = operators
        # Longest name first, so that AND NOT is not read as AND.
        split = [(operator, operator.name.split(" ")) for operator in operators]
        self._spellings = sorted(split, key=lambda spelling: -len(spelling[1]))
        self._operator_words = {
            word for operator in (*DEFAULT_OPERATORS, *operators) for word in operator.name.split()
        }
        self._tokens = self._tokenize()
        self._next = 0

    def chain(self) -> Chain:
        open_brackets = self._skip("(")
        concepts = [self._concept()]
        operators: list[Operator] = []
        while True:
            for bracket in self._skip(")"):
                if not open_brackets:
                    self._fail("this bracket closes nothing", bracket)
                open_brackets.pop()
            if self._peek().kind == "end":
                break
            operators.append(self._operator())
            concepts.append(self._right_side(operators[-1]))
        if open_brackets:
            self._fail("this bracket is never closed", open_brackets[-1])
        return Chain(tuple(concepts), tuple(operators))

    def _right_side(self, operator: Operator) -> str:
        brackets = self._skip("(")
        concept = self._concept()
        for bracket in reversed(brackets):
            token = self._take()
            if token.kind == "end":
                self._fail("this bracket is never closed", bracket)
            if token.kind != ")":
                self._fail(
                    f"the right side of {operator} must be a single concept: formulas nest to the "
                    "left only, as in ((a OR b) AND c)",
                    bracket,
                )
        return concept

    def _concept(self) -> str:
        token = self._take()
        if token.kind == "quoted":
            return token.value
        if token.kind != "word":
            self._fail(f"expected a concept, found {token}", token)
        if token.value in self._operator_words:
            self._fail(
                f"expected a concept, found the operator word {token.value}; known operators are "
                f'{self._known}; a concept of this name is written "{token.value}"',
                token,
            )
        return token.value

    def _operator(self) -> Operator:
        for operator, words in self._spellings:
            found = self._tokens[self._next : self._next + len(words)]
            if [(token.kind, token.value) for token in found] == [("word", w) for w in words]:
                self._next += len(words)
                return operator
        token = self._peek()
        if token.kind == "word" and OPERATOR_WORD.fullmatch(token.value):
            self._fail(
                f"unknown operator {token.value}; known operators are {self._known}; "
                "pass operators= to use others",
                token,
            )
        self._fail(
            f"expected an operator ({self._known}), found {token}; "
            'a concept name with spaces is written in double quotes, as in "traffic light"',
            token,
        )

    @property
    def _known(self) -> str:
        return ", ".join(operator.name for operator in self._operators)

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        if token.kind != "end":  # the end can be taken again and again
            self._next += 1
        return token

    def _skip(self, kind: str) -> list[_Token]:
        taken: list[_Token] = []
        while self._peek().kind == kind:
            taken.append(self._take())
        return taken

    def _tokenize(self) -> list[_Token]:
        tokens: list[_Token] = []
        position = 0
        while position < len(self._text):
            character = self._text[position]
            if character.isspace():
                position += 1
                continue
            touching = tokens[-1] if tokens and tokens[-1].end == position else None
            if touching is not None and (touching.kind, character) == ("word", '"'):
                self._fail("put the whole name in quotes", touching)
            if touching is not None and touching.kind == "quoted" and character not in "()":
                self._fail("put the whole name in quotes", touching)
            if character == "(" or character == ")":
                token = _Token(character, character, position, position + 1)
            elif character == '"':
                token = self._quoted(position)
            else:
                token = self._word(position)
            tokens.append(token)
            position = token.end
        tokens.append(_Token("end", "", len(self._text), len(self._text)))
        return tokens

    def _word(self, start: int) -> _Token:
        end = start
        while end < len(self._text) and _is_bare(self._text[end]):
            end += 1
        if end == start:
            self._fail_at(
                f"unexpected character {self._text[start]!r}; a concept name that contains it is "
                "written in double quotes",
                start,
            )
        return _Token("word", self._text[start:end], start, end)

    def _quoted(self, start: int) -> _Token:
        characters: list[str] = []
        position = start + 1
        while match := _QUOTED_CHARACTER.match(self._text, position):
            code = int(match["four"] or match["eight"] or "0", 16)
            if code > _LARGEST_CODE_POINT:
                self._fail_at("no such character", position)
            plain = match["plain"] or _UNESCAPED.get(match["short"] or "")
            characters.append(chr(code) if plain is None else plain)
            position = match.end()
        if position == len(self._text):
            self._fail_at("this quote is never closed", start)
        if self._text[position] != '"':
            self._fail_at(
                'unknown escape; use \\\\, \\", \\n, \\r, \\t, \\uXXXX or \\UXXXXXXXX', position
            )
        return _Token("quoted", "".join(characters), start, position + 1)

    def _fail(self, problem: str, token: _Token) -> NoReturn:
        self._fail_at(problem, token.position)

    def _fail_at(self, problem: str, position: int) -> NoReturn:
        raise ValueError(f"{problem} (at position {position} of {self._text!r})")
