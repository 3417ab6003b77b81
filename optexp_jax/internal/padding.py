"""Padding to a few fixed sizes, so that XLA compiles a handful of programs and keeps them."""

import numpy as np
from jaxtyping import Shaped


def round_up_to_power_of_two(size: int, smallest: int = 1) -> int:
    """The next power of two, at least `smallest`."""
    return max(smallest, 1 << max(size - 1, 0).bit_length())


def round_up_in_eighths(size: int, smallest: int = 1) -> int:
    """The next of eight sizes between powers of two: few shapes, and an eighth of waste at most."""
    power = round_up_to_power_of_two(size, smallest)
    step = max(power // 16, smallest)
    return -(-max(size, 1) // step) * step


def round_up_by_fours(size: int, smallest: int) -> int:
    """The next of `smallest`, 4 and 16 times it, and so on: for programs slow to compile."""
    while smallest < size:
        smallest *= 4
    return smallest


def fill_up(array: Shaped[np.ndarray, "n ..."], size: int) -> Shaped[np.ndarray, "size ..."]:
    """The array with zeros after it."""
    filled = np.zeros((size, *array.shape[1:]), array.dtype)
    filled[: len(array)] = array
    return filled
