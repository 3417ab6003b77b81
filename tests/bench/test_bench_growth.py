"""Exponents of growth, and tables of exactly the size that was asked for."""

import math
from pathlib import Path

import numpy as np
import pytest

from optexp_jax.bench.fit import Growth, fitted_exponent
from optexp_jax.bench.suites.growth import grown_table
from optexp_jax.charts import growth_chart, save_chart


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.5])
def test_the_exponent_of_a_power_law(exponent: float):
    sizes = [10, 20, 50, 400]
    assert fitted_exponent(sizes, [3 * n**exponent for n in sizes]) == pytest.approx(exponent)


def test_one_size_has_no_exponent():
    with pytest.raises(ValueError, match="two sizes"):
        fitted_exponent([10], [1.0])
    assert Growth("concepts", "TightBounds", {10: (1.0,)}).exponent is None


def test_slow_turns_leave_the_exponent_alone():
    grown = Growth("concepts", "m", {10: (1.0, 7.0), 100: (10.0, 70.0)})
    spread = grown.exponent
    assert spread is not None
    assert math.isclose(spread.low, 1.0)
    assert math.isclose(spread.high, 1.0)
    assert grown.relative() == {10: 1.0, 100: 10.0}


def test_only_turns_that_all_sizes_took_part_in_count():
    grown = Growth("concepts", "m", {10: (1.0, 1.0), 100: (10.0,)})
    spread = grown.exponent
    assert spread is not None
    assert math.isclose(spread.median, 1.0)


def test_the_table_has_the_size_that_was_asked_for():
    table = grown_table(17, 60)
    # The empty signature stands for what no concept covers.
    assert len(table.signatures) == 61
    assert table.n_concepts == 17
    np.testing.assert_array_equal(table.sizes, grown_table(17, 60).sizes)


def test_the_chart_has_a_panel_for_each_thing_that_grows(tmp_path: Path):
    rows = [
        {"axis": axis, "method": "TightBounds", "size": size, "seconds": [0.1 * size]}
        for axis in ("concepts", "length")
        for size in (4, 2)
    ]
    path = tmp_path / "growth.svg"
    save_chart(growth_chart(rows), path)
    drawn = path.read_text()
    assert "concepts" in drawn
    assert "length" in drawn
    described = growth_chart(rows).to_dict()
    assert len(described["concat"]) == 2
    points = [point for values in described["datasets"].values() for point in values]
    assert {(point["size"], point["time"]) for point in points} == {(2, 1.0), (4, 2.0)}
