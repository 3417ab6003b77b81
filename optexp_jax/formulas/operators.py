"""Logical operators that join a formula so far (left) to one more concept (right).

An operator is three bits: ``p = o(1, 0)``, ``q = o(0, 1)``, ``r = o(1, 1)``. ``o(0, 0)`` is always
0: a location without any concept is then outside every formula. Signature compression and every
bound of the search rest on that.
"""

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np
from jaxtyping import Bool

_Bits = TypeVar("_Bits")

# A word of two or more capital letters. One capital letter stays free for concept names.
OPERATOR_WORD = re.compile(r"[A-Z]{2,}")
_OPERATOR_NAME = re.compile(rf"{OPERATOR_WORD.pattern}(?: {OPERATOR_WORD.pattern})*")

# Truth tables as the bits pqr. Three of the eight make no use of one side or of both.
_IGNORES = {
    0b000: "it is 0 everywhere, so no formula that uses it holds anywhere",
    0b101: "it ignores its right side, so the concept it adds would change nothing",
    0b011: "it ignores its left side, so the formula before it would not matter",
}
# Names with a fixed meaning, in sorting order; other operators follow.
_RESERVED = {"OR": 0b111, "AND": 0b001, "AND NOT": 0b100}
_RANK = {name: rank for rank, name in enumerate(_RESERVED)}


@functools.total_ordering
@dataclass(frozen=True)
class Operator:
    """One operator: its name as printed between operands, and its three bits.

    Operators compare and hash by value, so they serve as dict keys and static `jax.jit` arguments.
    They sort OR, AND, AND NOT first, then others by bits and name.
    """

    name: str
    p: bool = field(kw_only=True)  # o(1, 0)
    q: bool = field(kw_only=True)  # o(0, 1)
    r: bool = field(kw_only=True)  # o(1, 1)

    def __post_init__(self) -> None:
        _check_name(self.name)
        for bit in ("p", "q", "r"):
            object.__setattr__(self, bit, _as_bit(getattr(self, bit), f"bit {bit} of {self.name}"))
        reason = _IGNORES.get(self.truth_table)
        if reason is not None:
            raise ValueError(f"operator {self.name} is refused: {reason}")
        if _RESERVED.get(self.name, self.truth_table) != self.truth_table:
            raise ValueError(
                f"the name {self.name} has a fixed meaning with other bits; "
                f"choose another name for the operator with bits {self.truth_table:03b}"
            )

    @classmethod
    def from_function(cls, name: str, function: Callable[[Any, Any], Any]) -> "Operator":
        """Operator from a function of two bits, tried on its four inputs.

        The inputs are the integers 0 and 1: logic, comparison, bitwise and arithmetic expressions
        all give what they say on those.
        """
        if function(0, 0):
            raise ValueError(
                f"operator {name} is refused: o(0, 0) is 1. Locations without any concept would "
                "become positive, which breaks signature compression and the bounds of the search"
            )
        p, q, r = (
            _as_bit(function(left, right), f"{name}({left}, {right})")
            for left, right in ((1, 0), (0, 1), (1, 1))
        )
        return cls(name, p=p, q=q, r=r)

    def __call__(self, left: _Bits, right: _Bits) -> _Bits:
        """Apply elementwise: bool arrays of NumPy or JAX, Python bools, packed unsigned words."""
        # `x ^ (x & y)` is `x & ~y` without a `~`, which Python bools do not have.
        x, y = cast(Any, left), cast(Any, right)
        match self.truth_table:
            case 0b111:
                return x | y
            case 0b110:
                return x ^ y
            case 0b100:
                return x ^ (x & y)
            case 0b010:
                return y ^ (x & y)
            case _:  # 0b001: __post_init__ refuses the other three
                return x & y

    def __str__(self) -> str:
        return self.name

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Operator):
            return NotImplemented
        return self.sort_key < other.sort_key

    @property
    def truth_table(self) -> int:
        """The bits as one small integer, p·4 + q·2 + r."""
        return self.p << 2 | self.q << 1 | self.r

    @property
    def symmetric(self) -> bool:
        """Whether the sides may be exchanged: o(x, c) = o(c, x)."""
        return self.p == self.q

    @property
    def monotone(self) -> bool:
        """Whether a larger left side never shrinks the result: o(1, c) >= o(0, c)."""
        return self.r or not self.q  # c = 1; for c = 0 it is p >= 0

    def commutes_with(self, other: "Operator") -> bool:
        """Whether two steps may swap: (x self a) other b = (x other b) self a for all bits."""
        return _commute(self, other)

    @property
    def sort_key(self) -> tuple[int, int, str]:
        """Key of the total order: OR, AND, AND NOT, then others by (bits, name)."""
        rank = _RANK.get(self.name, len(_RANK))
        return rank, self.truth_table, self.name


@functools.cache
def _commute(first: Operator, second: Operator) -> bool:
    # All eight values of (x, a, b) at once, one in each bit of a byte.
    x, a, b = 0b00001111, 0b00110011, 0b01010101
    return second(first(x, a), b) == first(second(x, b), a)


def _as_bit(value: Any, what: str) -> bool:
    # A Python number first: a JAX bool does not compare with an int under strict promotion.
    if np.asarray(value).tolist() not in (0, 1):
        raise ValueError(f"{what} must be 0 or 1 (or False or True), got {value!r}")
    return bool(value)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not _OPERATOR_NAME.fullmatch(name):
        raise ValueError(
            f"operator name {name!r} could be misread in a formula; use words of two or more "
            "capital letters A-Z with single spaces between them, such as 'XOR' or 'AND NOT'"
        )
    if name == "NOT":
        raise ValueError("an operator cannot be named 'NOT': it would be misread as a negation")


OR = Operator("OR", p=True, q=True, r=True)
AND = Operator("AND", p=False, q=False, r=True)
AND_NOT = Operator("AND NOT", p=True, q=False, r=False)

DEFAULT_OPERATORS = (OR, AND, AND_NOT)


def check_operators(operators: Iterable[Operator]) -> tuple[Operator, ...]:
    """The operators as a tuple, after a check that there are some and no two share a name."""
    checked: list[Operator] = []
    names: set[str] = set()
    for operator in cast(Iterable[object], operators):
        if not isinstance(operator, Operator):
            raise ValueError(f"expected an Operator such as optexp_jax.OR, got {operator!r}")
        if operator.name in names:
            raise ValueError(f"two operators are named {operator.name}; names must differ")
        names.add(operator.name)
        checked.append(operator)
    if not checked:
        raise ValueError("no operators given; pass at least one, such as optexp_jax.OR")
    return tuple(checked)


def operator_bits(operators: Iterable[Operator]) -> Bool[np.ndarray, "n_ops 3"]:
    """The bits p, q, r of each operator, one row each.

    With these, compiled code can apply another operator in every row:
    ``p & left & ~right | q & ~left & right | r & left & right``.
    """
    return np.array([(op.p, op.q, op.r) for op in operators], dtype=np.bool_).reshape(-1, 3)


def operator_to_json(operator: Operator) -> str | dict[str, Any]:
    """JSON-ready form: the bare name of a default operator, name and bits of any other."""
    if operator.name in _RESERVED:
        return operator.name
    return {"name": operator.name, "bits": [int(operator.p), int(operator.q), int(operator.r)]}


def operator_from_json(data: object) -> Operator:
    """Inverse of `operator_to_json`; refuses anything that it could not have written."""
    if isinstance(data, str):
        for operator in DEFAULT_OPERATORS:
            if operator.name == data:
                return operator
        raise ValueError(
            f"unknown operator {data!r}; by name alone: {', '.join(_RESERVED)}. "
            'Write others with their bits, such as {"name": "XOR", "bits": [1, 1, 0]}'
        )
    if isinstance(data, Mapping):
        record = cast(Mapping[object, object], data)
        name, bits = record.get("name"), record.get("bits")
        if set(record) == {"name", "bits"} and isinstance(name, str) and isinstance(bits, list):
            bit_list = cast(list[object], bits)
            if len(bit_list) == 3:
                p, q, r = (_as_bit(bit, f"a bit of operator {name}") for bit in bit_list)
                return Operator(name, p=p, q=q, r=r)
    raise ValueError(
        "an operator must be a name or have exactly a name and three bits, "
        f'such as {{"name": "XOR", "bits": [1, 1, 0]}}; got {data!r}'
    )
