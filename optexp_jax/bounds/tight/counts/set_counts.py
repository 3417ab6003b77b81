"""Counts of sets from counts of smaller ones: of `P∘x`, and limits of what three sets share."""

from typing import Any

from jaxtyping import Shaped

from optexp_jax.bounds.tight.operator_set import INTERSECTION, UNION


def joined(op: Shaped[Any, "*#shape"], first: Any, second: Any, common: Any, numpy: Any) -> Any:
    """How many locations `first∘second` has (Proposition 2); arrays of numpy or jax.numpy."""
    wider = first - common + numpy.where(op == UNION, second, 0)
    return numpy.where(op == INTERSECTION, common, wider)


def joined_by_all(first: Any, second: Any, common: Any, numpy: Any, axis: int) -> Any:
    """The same for OR, AND and AND NOT, along a further axis."""
    left = first - common
    return numpy.stack([left + second, common, left], axis=axis)


def common_to_three(
    a: Any, b: Any, x: Any, ab: Any, ax: Any, bx: Any, numpy: Any
) -> tuple[Any, Any]:
    """The least and the most that |a ∩ b ∩ x| can be, from what each two share (Proposition 4)."""
    low = numpy.maximum(ab + ax - a, ab + bx - b)
    low = numpy.maximum(numpy.maximum(low, ax + bx - x), 0)
    return low, numpy.minimum(numpy.minimum(ax, bx), ab)
