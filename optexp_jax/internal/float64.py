"""Whether float64 on a device is as good as bounds need it, measured before the first search there.

Some accelerators have no float64 and emulate it with fewer bits. Bounds are rounded outward by a
share (`bounds.paper.path.MARGIN`, `bounds.tight.rounding.SHARE`), which makes up for errors up to a
certain size. What the proofs rely on, and what is measured here:

1. Integers below 2**53 are float64 numbers: conversion, sums and differences of them are exact. So
   are sums of 64-bit integers.
2. A product or quotient is off by at most ROOM of its value, and a sum of n terms by at most n·ROOM
   of their magnitudes. The tight bounds have room for 2**-49 in each term (48·2**-49 < SHARE), near
   ties for 2**-49 in each quotient (`NEAR_TIE` there), the published ones for 2**-46.
3. Numbers come to the device and back unchanged, and comparisons are right between neighbours.
4. `nextafter` goes to a neighbour. Infinities stay what they are.

Values are chosen to need all 53 bits, and each kind of fault is looked for in exact arithmetic. A
CPU has float64 in hardware and is trusted. Everywhere else the check runs once a device and
process; it takes one small program.
"""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float64, Int64

from optexp_jax.internal.kernel_choice import device_in_use

ROOM = 2.0**-50
"""Relative error that an operation may have: eight times that of IEEE 754."""

N_VALUES, N_TERMS = 64, 12
"""Random values of each kind; terms of the longest sum with rounded terms."""

Rounding = Callable[[Any], Array]
"""What a device does to every result: nothing, or in tests what a poor one does."""


@dataclass(frozen=True)
class BoundsDevice:
    """Where a search computes its bounds."""

    device: Any
    fault: str | None = None
    """Why it is not the device that was asked for, if it is not."""

    @property
    def platform(self) -> str:
        """The kind of device: "cpu", "gpu" or "tpu"."""
        return str(self.device.platform)

    def scope(self) -> AbstractContextManager[Any]:
        """All that is computed inside is computed there."""
        return nullcontext() if self.fault is None else jax.default_device(self.device)


def place_of_bounds() -> BoundsDevice:
    """The device in use, or the host if bounds could not be relied upon there."""
    device = device_in_use()
    fault = float64_fault(device)
    return BoundsDevice(device) if fault is None else BoundsDevice(_host(fault), fault)


@functools.cache
def float64_fault(device: Any) -> str | None:
    """What is wrong with float64 on a device, if anything is; found out once a process."""
    return None if device.platform == "cpu" else find_fault(device)


def find_fault(device: Any, rounded: Rounding = jnp.asarray) -> str | None:
    """The same, measured now. `rounded` stands for a poor device; it is applied to each result."""
    asked = _questions()
    with jax.enable_x64(True), jax.default_device(device):
        answers = jax.device_get(_compute(asked, rounded))
    faults = [*_wrong_integers(asked, answers), *_wrong_ratios(asked, answers)]
    faults += _wrong_neighbours(asked, answers)
    return f"float64 on {device}: {'; '.join(faults)}" if faults else None


class _Questions(eqx.Module):
    """What is to be computed."""

    counts: Int64[Array | np.ndarray, " values"]
    """Integers below 2**53, most of them odd."""
    halves: Int64[Array | np.ndarray, " values"]
    """Integers below 2**52, so that two add up to less than 2**53."""
    long: Int64[Array | np.ndarray, "rows terms"]
    """Large and small integers, each row below 2**53 in sum."""
    shares: Float64[Array | np.ndarray, " values"]
    """Numbers above 0, up to 1, like the IoU v that extras are paid with."""
    numbers: Float64[Array | np.ndarray, " numbers"]
    """Bounds as they are compared."""
    neighbours: Float64[Array | np.ndarray, " numbers"]
    """The next smaller numbers."""
    infinities: Float64[Array | np.ndarray, " two"]


class _Answers(eqx.Module):
    """What a device makes of them."""

    back: Int64[Array, " values"]
    sums: Float64[Array, " values"]
    differences: Float64[Array, " values"]
    long: Float64[Array, " rows"]
    long_integers: Int64[Array, " rows"]
    products: Float64[Array, " values"]
    quotients: Float64[Array, " values"]
    mixed: Float64[Array, " values"]
    numbers: Float64[Array, " numbers"]
    infinities: Float64[Array, " two"]
    steps: Float64[Array, " numbers"]
    greater: Bool[Array, " numbers"]
    at_least: Bool[Array, " numbers"]
    not_less: Bool[Array, " numbers"]


def _questions() -> _Questions:
    rng = np.random.default_rng(0)
    edges = [
        1,
        3,
        *(2**bits + step for bits in (24, 31, 32, 48, 52) for step in (-1, 1)),
        2**53 - 1,
    ]
    counts = np.array([*edges, *(rng.integers(2**52, 2**53, N_VALUES) | 1)])
    halves = np.array([*(edge // 2 + 1 for edge in edges), *(rng.integers(1, 2**52, N_VALUES))])
    halves = np.minimum(halves, 2**52 - 1)
    long = rng.integers(0, 4, (8, 256))
    long[:, 0] = 2**52 + rng.integers(1, 2**50, 8)
    shares = 1 / rng.uniform(1, 2.0 ** rng.integers(1, 50, len(counts)))
    shares[:4] = 1 - 2.0**-53, 1 / 3, 2.0**-40 * (1 - 2.0**-53), 1.0
    numbers = np.concatenate([shares, shares * counts])
    return _Questions(
        counts,
        halves,
        long,
        shares,
        numbers,
        np.nextafter(numbers, 0),
        np.array([-np.inf, np.inf]),
    )


# Values are arguments: constants would be computed by the compiler, on the host.
@functools.partial(jax.jit, static_argnums=1)
def _compute(asked: _Questions, rounded: Rounding) -> _Answers:
    counts, halves = (rounded(part.astype(jnp.float64)) for part in (asked.counts, asked.halves))
    shares, numbers, neighbours, infinities = (
        rounded(part) for part in (asked.shares, asked.numbers, asked.neighbours, asked.infinities)
    )
    products = rounded(shares * counts)
    return _Answers(
        back=counts.astype(jnp.int64),
        sums=rounded(halves + halves[::-1]),
        differences=rounded(counts - counts[::-1]),
        long=rounded(asked.long.astype(jnp.float64).sum(1)),
        long_integers=asked.long.sum(1),
        products=products,
        quotients=rounded(halves / counts),
        mixed=_mixed_sum(products, rounded),
        numbers=numbers,
        infinities=infinities,
        steps=rounded(jnp.nextafter(numbers, jnp.zeros_like(numbers))),
        greater=numbers > neighbours,
        at_least=neighbours >= numbers,
        not_less=numbers >= rounded(asked.numbers),
    )


def _mixed_sum(terms: Float64[Array, " values"], rounded: Rounding) -> Float64[Array, " values"]:
    """Of each term and those after it, added and taken away in turns."""
    total = terms
    for step in range(1, N_TERMS):
        term = jnp.roll(terms, -step)
        total = rounded(total - term if step % 2 else total + term)
    return total


def _wrong_integers(asked: _Questions, answers: _Answers) -> list[str]:
    """Where integers are not exact."""
    halves, counts = np.asarray(asked.halves), np.asarray(asked.counts)
    totals = np.asarray(asked.long).sum(1)
    exact = {
        "integers below 2**53 are not held exactly": (answers.back, counts),
        "sums of integers are not exact": (answers.sums, halves + halves[::-1]),
        "differences of integers are not exact": (answers.differences, counts - counts[::-1]),
        "long sums of integers are not exact": (answers.long, totals),
        "sums of 64-bit integers are not exact": (answers.long_integers, totals),
    }
    return [
        fault for fault, (found, true) in exact.items() if not np.array_equal(found, true)
    ]  # integers below 2**53: numpy compares them exactly


def _wrong_ratios(asked: _Questions, answers: _Answers) -> list[str]:
    """Where errors are larger than there is room for."""
    counts, halves = (np.asarray(part).tolist() for part in (asked.counts, asked.halves))
    shares = np.asarray(asked.shares).tolist()
    products = [Fraction(v) * count for v, count in zip(shares, counts, strict=True)]
    quotients = [Fraction(a, b) for a, b in zip(halves, counts, strict=True)]
    n = len(products)
    rolled = [[products[(k + step) % n] for step in range(N_TERMS)] for k in range(n)]
    mixed = [Fraction(sum(terms[::2]) - sum(terms[1::2])) for terms in rolled]
    scales = [Fraction(N_TERMS * sum(terms)) for terms in rolled]
    checks = {
        "products": (answers.products, products, products),
        "quotients": (answers.quotients, quotients, quotients),
        "sums": (answers.mixed, mixed, scales),
    }
    worst = {
        what: max(map(_error, np.asarray(found).tolist(), true, scale))
        for what, (found, true, scale) in checks.items()
    }
    return [
        f"{what} are off by 2**{np.log2(error):.1f}, and 2**{np.log2(ROOM):.0f} is allowed"
        for what, error in worst.items()
        if not error <= ROOM
    ]


def _error(found: float, true: Fraction, scale: Fraction) -> float:
    """The error as a share of a scale."""
    return float(abs(Fraction(found) - true) / scale) if np.isfinite(found) else np.inf


def _wrong_neighbours(asked: _Questions, answers: _Answers) -> list[str]:
    """Where numbers change on their way, or are compared wrongly."""
    numbers, neighbours = np.asarray(asked.numbers), np.asarray(asked.neighbours)
    kept = np.array_equal(answers.numbers, numbers)
    kept &= np.array_equal(answers.infinities, np.asarray(asked.infinities))
    compared = answers.greater.all() and not answers.at_least.any() and answers.not_less.all()
    right = {
        "numbers change on their way": bool(kept),
        "neighbours are not told apart": bool(compared),
        "nextafter does not go to a neighbour": np.array_equal(answers.steps, neighbours),
    }
    return [fault for fault, holds in right.items() if not holds]


def _host(fault: str) -> Any:
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError as error:
        raise RuntimeError(
            f"Bounds cannot be relied upon here, and JAX may not use the CPU instead ({fault}). "
            'Leave JAX_PLATFORMS unset, or add the CPU to it, as in JAX_PLATFORMS="tpu,cpu".'
        ) from error
