"""Checks at the border: arrays, names and categories as users pass them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool

MAX_LOCATIONS = 2**53
"""Counts are exact integers everywhere; a bound may pass through float64, exact to here."""


def to_numpy(array: Any, what: str) -> np.ndarray:
    """A numpy view or copy of a numpy, JAX or torch array."""
    if type(array).__module__.partition(".")[0] == "torch":
        array = array.detach().cpu().numpy()  # A tensor: the only kind numpy may not read itself.
    try:
        converted = np.asarray(array)
    except ValueError as error:  # numpy's word for a list of lists of different lengths
        raise ValueError(f"{what} must be an array; its parts differ in shape ({error})") from error
    if converted.dtype == object:
        raise TypeError(
            f"{what} must be an array of numbers or booleans; got {type(array).__name__}, which "
            "numpy reads as an array of objects."
        )
    return converted


def to_bool(array: Any, what: str) -> Bool[np.ndarray, "..."]:
    """A boolean array, refusing anything that would have to be thresholded first."""
    converted = to_numpy(array, what)
    if _is_empty_list(converted):
        return converted.astype(np.bool_)
    if converted.dtype != np.bool_:
        raise TypeError(
            f"{what} must be boolean; got dtype {converted.dtype}.{_nan_hint(converted)} Pass "
            "`array > threshold` or `array.astype(bool)` to say which values count."
        )
    return converted


def to_integers(array: Any, what: str) -> np.ndarray:
    """An integer array; floats are accepted never, not even whole ones, as NaN hides among them."""
    converted = to_numpy(array, what)
    if _is_empty_list(converted):
        return converted.astype(np.int64)
    if not np.issubdtype(converted.dtype, np.integer):
        raise TypeError(
            f"{what} must be integers; got dtype {converted.dtype}.{_nan_hint(converted)} Convert "
            "it with `.astype(int)` once you know that its values are whole."
        )
    return converted


def to_counts(array: Any, what: str) -> np.ndarray:
    """A vector of non-negative int64 counts."""
    counts = to_integers(array, what)
    if counts.ndim != 1:
        raise ValueError(f"{what} must have one dimension; got shape {counts.shape}.")
    if counts.size and int(counts.min()) < 0:
        raise ValueError(f"{what} must not be negative; the smallest value is {counts.min()}.")
    if sum(counts.tolist()) >= MAX_LOCATIONS:
        raise ValueError(f"{what} adds up to {sum(counts.tolist())}; it must stay below 2**53.")
    return counts.astype(np.int64)


def check_names(names: Sequence[str] | None, n_concepts: int) -> tuple[str, ...]:
    """Names as given, or `c00, c01, ...`, padded so that they sort as they are numbered."""
    if n_concepts < 1:
        raise ValueError("There is no concept: pass at least one concept mask or name.")
    if names is None:
        width = len(str(n_concepts - 1))
        return tuple(f"c{k:0{width}d}" for k in range(n_concepts))
    if isinstance(names, str):
        raise TypeError(f"names must be a sequence of strings, one a concept; got {names!r}.")
    checked = tuple(plain_name(name) for name in names)
    if len(checked) != n_concepts:
        raise ValueError(f"There are {n_concepts} concepts but {len(checked)} names.")
    if len(set(checked)) != n_concepts:
        repeated = sorted({name for name in checked if checked.count(name) > 1})
        raise ValueError(f"Concept names must be distinct; repeated: {', '.join(repeated)}.")
    return checked


def plain_name(name: object) -> str:
    """A name as a plain string: a numpy string prints, and so is checksummed, in another way."""
    if not isinstance(name, str):
        raise TypeError(f"Concept names must be strings; got {name!r}.")
    return str(name)


def check_categories(
    categories: Sequence[str | None] | None, n_concepts: int
) -> tuple[str | None, ...]:
    """One category a concept; None where there is none."""
    if categories is None:
        return (None,) * n_concepts
    if isinstance(categories, str):
        raise TypeError(f"categories must be a sequence, one a concept; got {categories!r}.")
    checked = tuple(plain_category(category) for category in categories)
    if len(checked) != n_concepts:
        raise ValueError(f"There are {n_concepts} concepts but {len(checked)} categories.")
    return checked


def plain_category(category: object) -> str | None:
    """A category as a plain string, or None."""
    if not (category is None or isinstance(category, str)):
        raise TypeError(f"Categories must be strings or None; got {category!r}.")
    return None if category is None else str(category)


def _is_empty_list(array: np.ndarray) -> bool:
    """Whether numpy took its default type only because there was nothing to tell another."""
    return array.size == 0 and array.dtype == np.float64


def _nan_hint(array: np.ndarray) -> str:
    inexact = np.issubdtype(array.dtype, np.inexact)
    return " It holds NaN." if inexact and bool(np.isnan(array).any()) else ""
