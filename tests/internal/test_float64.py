"""The check of float64 on a device: what it refuses, and where the search goes then."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from helpers.search_cases import USUAL
from jaxtyping import Array

import optexp_jax as ox
from optexp_jax.bounds.paper.path import MARGIN
from optexp_jax.bounds.tight.rounding import NEAR_TIE, SHARE
from optexp_jax.internal import float64
from optexp_jax.internal.float64 import ROOM, find_fault, float64_fault, place_of_bounds


def as_float32(values: Array) -> Array:
    return values.astype(jnp.float32).astype(jnp.float64)


def with_bits(values: Array, bits: int) -> Array:
    """Rounded to numbers of so many bits."""
    mantissa, exponent = jnp.frexp(values)
    short = jnp.ldexp(jnp.round(jnp.ldexp(mantissa, bits)), exponent - bits)
    return jnp.where(jnp.isfinite(values), short, values)


def with_48_bits(values: Array) -> Array:
    return with_bits(values, 48)


def with_52_bits(values: Array) -> Array:
    return with_bits(values, 52)


def poor_fractions(values: Array) -> Array:
    """Integers are right, all other numbers are off by 2**-49."""
    return jnp.where(values == jnp.round(values), values, values * (1 + 2.0**-49))


def with_poor_range(values: Array) -> Array:
    """Infinities become large numbers."""
    return jnp.clip(values, -3e38, 3e38)


HERE = jax.local_devices(backend="cpu")[0]


def test_a_cpu_passes():
    assert find_fault(HERE) is None
    assert float64_fault(HERE) is None
    assert place_of_bounds().fault is None


@pytest.mark.parametrize("x64", [False, True])
def test_the_setting_of_the_process_does_not_matter(x64: bool):
    was = jax.config.read("jax_enable_x64")
    try:
        jax.config.update("jax_enable_x64", x64)
        assert find_fault(HERE) is None
    finally:
        jax.config.update("jax_enable_x64", was)


@pytest.mark.parametrize(
    ("rounded", "faults"),
    [
        (
            as_float32,
            ["integers below", "sums of integers", "products", "quotients", "on their way"],
        ),
        (with_48_bits, ["integers below", "products", "quotients", "sums are off", "nextafter"]),
        (with_52_bits, ["integers below", "differences", "neighbours are not told apart"]),
        (poor_fractions, ["products are off by 2**-4", "quotients are off by 2**-48.9"]),
        (with_poor_range, ["numbers change on their way"]),
    ],
)
def test_poor_devices_are_refused(rounded: Any, faults: list[str]):
    found = find_fault(HERE, rounded)
    assert found is not None
    assert str(HERE) in found
    for fault in faults:
        assert fault in found
    assert (rounded in (poor_fractions, with_poor_range)) == ("integers" not in found)


def test_what_is_allowed_is_what_the_margins_make_up_for():
    assert 48 * ROOM < SHARE
    assert (1 - ROOM) / (1 + ROOM) > NEAR_TIE
    with_margin = (1 + MARGIN) * (1 - ROOM) ** 2
    assert with_margin > 1


METHODS = {
    "paper": USUAL.method(),
    "tight": ox.Optimal(3),
    "beam": ox.Beam(3),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("rounded", [as_float32, with_48_bits])
def test_a_search_goes_to_the_host_and_says_so(
    name: str, rounded: Any, monkeypatch: pytest.MonkeyPatch
):
    case, method = USUAL.case(5), METHODS[name]
    expected = ox.explain(case.table, case.neuron, method)
    assert (expected.stats.bounds_on, expected.stats.float64_fault) == ("cpu", None)
    monkeypatch.setattr(float64, "float64_fault", lambda device: find_fault(device, rounded))
    found = ox.explain(case.table, case.neuron, method)
    assert (found.formula, found.score, found.status) == (
        expected.formula,
        expected.score,
        expected.status,
    )
    assert found.stats.bounds_on == "cpu"
    assert "quotients are off" in str(found.stats.float64_fault)


def test_without_a_host_there_is_an_error(monkeypatch: pytest.MonkeyPatch):
    def no_cpu(backend: str | None = None) -> list[Any]:
        if backend == "cpu":
            raise RuntimeError("Unknown backend: 'cpu'")
        return [HERE]

    monkeypatch.setattr(float64, "float64_fault", lambda device: "it has none")
    monkeypatch.setattr(jax, "local_devices", no_cpu)
    with pytest.raises(RuntimeError, match="JAX_PLATFORMS"):
        place_of_bounds()


SCRIPT = """
import jax, numpy as np
import optexp_jax as ox
from optexp_jax.internal import float64
from optexp_jax.bounds.paper import estimator

poor = jax.devices()[1]
float64.float64_fault = lambda device: "it is poor" if device == poor else None
places = set()

def note(program):
    def run(*args, **more):
        result = program(*args, **more)
        places.update(result.upper.devices())
        return result
    return run

for name in ("expand_nodes", "estimate_nodes", "estimate_all_paths"):
    setattr(estimator, name, note(getattr(estimator, name)))

rng = np.random.default_rng(1)
masks = rng.random((6, 3, 12)) < 0.4
table, unit = ox.ConceptTable.from_masks(masks), rng.random((3, 12)) < 0.4
method = ox.Optimal(3, bounds=ox.PaperBounds(), batch_size=8)
with jax.default_device(poor):
    counts = table.count(unit)
    ox.iou_many(table, counts, [ox.Formula.concept(table.names[0])])  # the table is there, now
    found = ox.explain(table, counts, method)
assert places == {jax.devices()[0]}, places
assert found.stats.float64_fault == "it is poor"
places.clear()
with jax.default_device(jax.devices()[0]):
    here = ox.explain(ox.ConceptTable.from_masks(masks), unit, method)
assert (here.formula, here.score) == (found.formula, found.score)
assert here.stats.float64_fault is None
"""


def test_bounds_are_computed_on_the_host():
    # Two devices, of which the second is taken for a poor accelerator.
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "XLA_FLAGS": flags},
        cwd=Path(__file__).parents[1],
        check=True,
    )
