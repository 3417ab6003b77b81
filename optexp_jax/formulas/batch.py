"""A batch of formulas as two integer matrices, the form that compiled code works on."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Array, Bool, Int, Int32

from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import DEFAULT_OPERATORS, Operator, check_operators
from optexp_jax.formulas.text import unknown_concept

PADDING = -1


@dataclass(frozen=True, eq=False)
class FormulaBatch:
    """Formulas of any lengths, one a row, filled up with `PADDING` on the right.

    `concepts[i, 0]` is the leaf of formula i. `operators[i, j]` joins `concepts[i, j]` to what
    stands left of it, as an index into `operator_set`; `operators[i, 0]` is `PADDING`. A batch is a
    pytree of its two matrices.
    """

    concepts: Int32[Array | np.ndarray, "batch length"]
    operators: Int32[Array | np.ndarray, "batch length"]
    operator_set: tuple[Operator, ...]

    def __post_init__(self) -> None:
        if self.concepts.ndim != 2 or self.concepts.shape != self.operators.shape:
            raise ValueError(
                "concepts and operators must be matrices of one shape [batch, length], got "
                f"{self.concepts.shape} and {self.operators.shape}"
            )

    def __len__(self) -> int:
        """Number of formulas."""
        return self.concepts.shape[0]

    @property
    def lengths(self) -> Int[Array | np.ndarray, " batch"]:
        """Number of concepts of each formula."""
        return (self.concepts != PADDING).sum(axis=1)

    @classmethod
    def from_formulas(
        cls,
        formulas: Iterable[Formula],
        names: Sequence[str],
        operator_set: Iterable[Operator] | None = None,
        *,
        length: int | None = None,
    ) -> "FormulaBatch":
        """Batch on the host. Concepts become their positions in `names`.

        `operator_set` defaults to OR, AND, AND NOT and whatever else the formulas use; `length` to
        that of the longest formula. Give both for batches of one shape and type.
        """
        formulas = list(formulas)
        if operator_set is None:
            used = {operator for formula in formulas for operator in formula.operators}
            operator_set = (*DEFAULT_OPERATORS, *sorted(used.difference(DEFAULT_OPERATORS)))
        operator_set = check_operators(operator_set)
        longest = max(map(len, formulas), default=1)
        length = longest if length is None else length
        if length < max(longest, 1):
            raise ValueError(f"length={length} is too short for a formula of {longest} concepts")

        concept_index = {name: index for index, name in enumerate(names)}
        operator_index = {operator: index for index, operator in enumerate(operator_set)}
        concepts = np.full((len(formulas), length), PADDING, np.int32)
        operators = np.full((len(formulas), length), PADDING, np.int32)
        for row, formula in enumerate(formulas):
            for column, name in enumerate(formula.concepts):
                if name not in concept_index:
                    raise ValueError(unknown_concept(name, names))
                concepts[row, column] = concept_index[name]
            for column, operator in enumerate(formula.operators, start=1):
                if operator not in operator_index:
                    known = ", ".join(operator.name for operator in operator_set)
                    raise ValueError(f"operator {operator} is not in operator_set ({known})")
                operators[row, column] = operator_index[operator]
        return cls(concepts, operators, operator_set)

    def part(self, start: int, stop: int) -> "FormulaBatch":
        """The batch of some of its rows."""
        rows = slice(start, stop)
        return FormulaBatch(self.concepts[rows], self.operators[rows], self.operator_set)

    def to_formulas(self, names: Sequence[str]) -> list[Formula]:
        """The formulas, with their concepts named; waits for arrays that are on a device."""
        concepts, operators = np.asarray(self.concepts), np.asarray(self.operators)
        used = concepts != PADDING
        steps = used.copy()
        steps[:, :1] = False
        _check_rows(used[:, :1].all(axis=1), "has no first concept")
        _check_rows((used[:, 1:] <= used[:, :-1]).all(axis=1), "has padding between concepts")
        _check_rows(_in_range(concepts, used, len(names)), "has a concept that `names` lacks")
        _check_rows(
            _in_range(operators, steps, len(self.operator_set)),
            "has an operator that is not in operator_set, or where no operator belongs",
        )
        return [
            Formula(
                tuple(names[int(index)] for index in concepts[row, used[row]]),
                tuple(self.operator_set[int(index)] for index in operators[row, steps[row]]),
            )
            for row in range(len(self))
        ]


def _flatten(batch: FormulaBatch) -> tuple[tuple[object, object], tuple[Operator, ...]]:
    return (batch.concepts, batch.operators), batch.operator_set


def _unflatten(operator_set: tuple[Operator, ...], leaves: Iterable[object]) -> FormulaBatch:
    # Leaves can be anything that a transformation puts in the place of arrays: nothing is checked.
    batch = object.__new__(FormulaBatch)
    for name, value in zip(("concepts", "operators"), leaves, strict=True):
        object.__setattr__(batch, name, value)
    object.__setattr__(batch, "operator_set", operator_set)
    return batch


jax.tree_util.register_pytree_node(FormulaBatch, _flatten, _unflatten)


def _in_range(
    indices: Int32[np.ndarray, "batch length"],
    used: Bool[np.ndarray, "batch length"],
    size: int,
) -> Bool[np.ndarray, " batch"]:
    inside = (indices >= 0) & (indices < size)
    return np.all(np.where(used, inside, indices == PADDING), axis=1)


def _check_rows(good: Bool[np.ndarray, " batch"], problem: str) -> None:
    if not good.all():
        raise ValueError(f"row {int(np.argmin(good))} of the formula batch {problem}")
