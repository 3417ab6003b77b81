"""Formulas: left-deep chains of distinct concepts, such as ``((table OR chair) AND NOT bed)``.

A formula is a *leaf* concept followed by steps (operator, concept). It is kept over concept names,
so equality, order and printing need no concept table.

Many chains say the same. Two adjacent steps may swap when their operators commute, and the leaf
may swap with the first step's concept when that operator is symmetric. Formulas equal up to such
swaps are equal, and `canonical` is the one that stands for all of them. With OR, AND, AND NOT and
XOR nothing is missed: two chains that hold at the same places whatever the masks are equal.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import numpy as np
from jaxtyping import Bool

from optexp_jax.formulas.operators import (
    DEFAULT_OPERATORS,
    Operator,
    check_operators,
    operator_from_json,
    operator_to_json,
)
from optexp_jax.formulas.text import (
    Chain,
    find_concept,
    format_chain,
    parse_chain,
    unknown_concept,
)

_Mask = TypeVar("_Mask")


@runtime_checkable
class HasNames(Protocol):
    """Anything that knows the names of its concepts, such as a `ConceptTable`."""

    @property
    def names(self) -> tuple[str, ...]: ...


@runtime_checkable
class HasMasks(Protocol):
    """Anything that can compute a formula's mask, such as a `ConceptTable`."""

    def mask(self, formula: "Formula", /) -> Bool[np.ndarray, "sample *location"]: ...


@functools.total_ordering
@dataclass(frozen=True, eq=False, repr=False)
class Formula:
    """A left-deep chain: the first concept, then one more concept for each operator.

    Immutable. Equality, hash, order, `str` and `to_dict` go by the canonical form; `concepts`,
    `operators` and `repr` show the chain as it was given.
    """

    concepts: tuple[str, ...]
    operators: tuple[Operator, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.concepts, str):
            raise ValueError(
                f"concepts must be a tuple of names; for one concept use "
                f"Formula.concept({self.concepts!r})"
            )
        object.__setattr__(self, "concepts", tuple(self.concepts))
        object.__setattr__(self, "operators", tuple(self.operators))
        _check_chain(self.concepts, self.operators)

    @classmethod
    def concept(cls, name: str) -> "Formula":
        """The formula that is one concept."""
        return cls((name,))

    def then(self, operator: Operator, name: str) -> "Formula":
        """This formula with one more step: ``(self operator name)``."""
        return Formula((*self.concepts, name), (*self.operators, operator))

    @classmethod
    def parse(
        cls,
        text: str,
        table: HasNames | None = None,
        operators: Sequence[Operator] = DEFAULT_OPERATORS,
    ) -> "Formula":
        """Read a formula such as ``a OR b AND NOT "traffic light"``.

        Without brackets it is read from left to right, ``((a OR b) AND NOT "traffic light")``; no
        operator binds tighter than another. With a `table`, only its concepts are accepted;
        `car` is then the one called `car, auto, automobile`, if no other one begins so.
        """
        chain = parse_chain(text, check_operators(operators))
        if table is not None:
            known = dict.fromkeys(table.names)
            found = tuple(find_concept(name, known) for name in chain.concepts)
            return cls(found, chain.operators)
        return cls(chain.concepts, chain.operators)

    @property
    def canonical(self) -> "Formula":
        """The chain that stands for every chain equal to this one.

        The leaf is the smallest name that swaps can bring there. Each next step is the smallest, by
        operator and then by name, of those that swaps can bring next.
        """
        return Formula(self._normal.concepts, self._normal.operators)

    @functools.cached_property
    def _normal(self) -> Chain:
        return _normal_form(self.concepts, self.operators)

    @property
    def sort_key(self) -> tuple[int, tuple[str, ...], tuple[tuple[int, int, str], ...]]:
        """Key of the total order, which settles ties of IoU: shorter first, then by names."""
        keys = tuple(operator.sort_key for operator in self._normal.operators)
        return len(self), self._normal.concepts, keys

    def __len__(self) -> int:
        """Number of concepts."""
        return len(self.concepts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Formula):
            return NotImplemented
        return self._normal == other._normal

    def __hash__(self) -> int:
        return hash(self._normal)

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Formula):
            return NotImplemented
        return self.sort_key < other.sort_key

    def __str__(self) -> str:
        return format_chain(self._normal.concepts, self._normal.operators)

    def __repr__(self) -> str:
        return f"<Formula {format_chain(self.concepts, self.operators)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        # Without the cached normal form, so that the bytes do not depend on what was asked before.
        return Formula, (self.concepts, self.operators)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form of the canonical chain. Operators of the user's carry their bits."""
        return {
            "concepts": list(self._normal.concepts),
            "operators": [operator_to_json(operator) for operator in self._normal.operators],
        }

    @classmethod
    def from_dict(cls, data: object) -> "Formula":
        """Inverse of `to_dict`; refuses anything that it could not have written."""
        fields = dict(cast(Mapping[str, Any], data)) if isinstance(data, Mapping) else {}
        if fields.keys() != {"concepts", "operators"}:
            raise ValueError(
                f"a formula must have exactly 'concepts' and 'operators', got {data!r}"
            )
        for key, value in fields.items():
            if not isinstance(value, list):
                raise ValueError(f"'{key}' of a formula must be a list, got {value!r}")
        _check_names(fields["concepts"])
        return cls(tuple(fields["concepts"]), tuple(map(operator_from_json, fields["operators"])))

    def evaluate(self, masks: Callable[[str], _Mask] | Mapping[str, _Mask]) -> _Mask:
        """Apply the chain to the concepts' masks: bool arrays or packed words, by name."""
        if isinstance(masks, Mapping):
            known = cast(Mapping[str, _Mask], masks)
            for name in self.concepts:
                if name not in known:
                    raise ValueError(unknown_concept(name, known))
            get = known.__getitem__
        else:
            get = masks
        value = get(self.concepts[0])
        for operator, name in zip(self.operators, self.concepts[1:], strict=True):
            value = operator(value, get(name))
        return value

    def mask(self, table: HasMasks) -> Bool[np.ndarray, "sample *location"]:
        """Where the formula holds, as a bool map over the table's samples and locations."""
        return table.mask(self)


def _check_names(concepts: Iterable[object]) -> None:
    for name in concepts:
        if not isinstance(name, str):
            raise ValueError(f"concept names must be strings, got {name!r}")


def _check_chain(concepts: tuple[object, ...], operators: tuple[object, ...]) -> None:
    _check_names(concepts)
    for operator in operators:
        if not isinstance(operator, Operator):
            raise ValueError(f"expected an Operator such as optexp_jax.OR, got {operator!r}")
    if not concepts:
        raise ValueError("a formula has at least one concept, got none")
    if len(operators) != len(concepts) - 1:
        raise ValueError(
            f"a formula of {len(concepts)} concepts has {len(concepts) - 1} operators, "
            f"got {len(operators)}"
        )
    if len(set(concepts)) != len(concepts):
        twice = next(name for name in concepts if concepts.count(name) > 1)
        raise ValueError(f"concepts of a formula must be distinct, {twice!r} stands there twice")


@dataclass(frozen=True)
class _Step:
    operator: Operator
    concept: str

    @property
    def sort_key(self) -> tuple[tuple[int, int, str], str]:
        return self.operator.sort_key, self.concept


def _normal_form(concepts: tuple[str, ...], operators: tuple[Operator, ...]) -> Chain:
    steps = [_Step(*step) for step in zip(operators, concepts[1:], strict=True)]
    # A step that can move to the front may exchange its concept with the leaf if its operator is
    # symmetric. Through the leaf, all such steps can exchange their concepts with one another.
    # Which steps these are depends on the operators alone, so exchanges do not change it.
    exchangeable = [step for step in _movable_to_front(steps) if step.operator.symmetric]
    leaf, *names = sorted([concepts[0], *(step.concept for step in exchangeable)])
    front = map(_Step, sorted(step.operator for step in exchangeable), names)
    steps = [*front, *(step for step in steps if step not in exchangeable)]

    # Then the lexicographic normal form of a word some of whose letters commute: always take the
    # smallest letter that can move to the front. Words that differ by swaps offer the same choice.
    ordered: list[_Step] = []
    while steps:
        smallest = min(_movable_to_front(steps), key=lambda step: step.sort_key)
        steps.remove(smallest)
        ordered.append(smallest)
    return Chain(
        (leaf, *(step.concept for step in ordered)), tuple(step.operator for step in ordered)
    )


def _movable_to_front(steps: Sequence[_Step]) -> Iterable[_Step]:
    for index, step in enumerate(steps):
        if all(step.operator.commutes_with(before.operator) for before in steps[:index]):
            yield step
