"""Plots: what the artists of each figure hold, and that nobody else's figures are touched."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from helpers.run_cases import memory_layer, shapes_layer, stored_layer

import optexp_jax as ox
from optexp_jax.counts.formula_steps import formula_steps
from optexp_jax.explanation import RunnerUp
from optexp_jax.pictures import NoPicturesError, SampleImages, draw_overlay, unit_masks
from optexp_jax.runs import NullModel, Run, UnitResult, explain_layer

matplotlib = pytest.importorskip("matplotlib")

from optexp_jax import plot  # noqa: E402


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("plot")
    return explain_layer(
        folder / "run", stored_layer(folder, 5), ox.Optimal(length=2), null=NullModel(3)
    )


def words(figure: Any) -> str:
    """All texts of a figure."""
    found = figure.findobj(matplotlib.text.Text)
    return "\n".join(text.get_text() for text in found)


def heights(patches: Any) -> list[float]:
    return [patch.get_height() for patch in patches]


def test_no_figure_of_others_is_touched(tmp_path: Path):
    code = (
        "import sys, optexp_jax as ox\n"
        "assert 'matplotlib' not in sys.modules\n"
        "figure = ox.plot.formula_diagram(ox.Formula.parse('a OR b'))\n"
        "figure.savefig('a.png')\n"
        "assert figure._repr_png_()[:4] == b'\\x89PNG'\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_without_matplotlib_plots_say_what_to_install():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import optexp_jax as ox\n"
        "assert 'overlay' in dir(ox.plot)\n"
        "try: ox.plot.overlay\n"
        "except ImportError as error: assert 'optexp-jax[plot]' in str(error)\n"
        "else: raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'pie'"):
        getattr(plot, "pie")  # noqa: B009
    for name in plot.__all__:
        assert getattr(plot, name).__name__ == name


def test_a_diagram_joins_concepts_in_their_order():
    figure = plot.formula_diagram(ox.Formula.parse('(b OR "$a$") AND NOT c'))
    texts = figure.axes[0].texts
    assert [text.get_text() for text in texts] == ["$a$", "b", "c", "OR", "AND NOT"]
    leaves, operators = texts[:3], texts[3:]
    assert [text.get_position()[1] for text in leaves] == [0, 1, 2]
    (one_x, one_y), (two_x, two_y) = (text.get_position() for text in operators)
    assert one_x < two_x
    assert 0 < one_y < 1 < two_y < 2
    assert not any(text.get_parse_math() for text in leaves), "a dollar is no formula of TeX"
    figure.savefig(Path("/dev/null"), format="png")


def test_unverified_steps_are_dashed():
    table = ox.ConceptTable.from_signatures(
        [[0], [1], [1, 2], [2]], [10, 10, 5, 10], ["ball_pit", "flower", "dining"]
    )
    neuron = ox.NeuronCounts.from_signatures(table, [9, 9, 0, 0])
    formula = ox.Formula.parse("(ball_pit OR flower) AND NOT dining")
    found = ox.explain(table, neuron, Fixed(formula))
    assert found.unverified
    figure = plot.formula_diagram(found)
    assert [line.get_linestyle() for line in figure.axes[0].lines] == ["-", "-", "-", "--", "-"]
    assert "no data can verify" in words(figure)
    assert "no data can verify" not in words(plot.formula_diagram(formula))
    nothing = ox.Explanation(None, 0, 4, 0.0, ox.Status.OPTIMAL)
    with pytest.raises(ValueError, match="no formula to draw"):
        plot.formula_diagram(nothing)


class Fixed(ox.AbstractMethod):
    """Always the same formula."""

    formula: ox.Formula

    def run(self, table: ox.ConceptTable, neuron: ox.NeuronCounts) -> ox.Explanation:
        score = ox.iou(table, neuron, self.formula)
        return ox.Explanation(
            self.formula, score.intersection, score.union, 1.0, ox.Status.FEASIBLE
        )


def test_a_histogram_counts_units(run: Run):
    figure = plot.iou_histogram(run, bins=7)
    chance, formulas = figure.axes[0].containers
    singles = cast(Any, figure.axes[0].patches[-1])
    results = run.results
    highest = max(
        iou
        for result in results
        if result.explanation and result.explanation.neuron and result.null
        for iou in (
            result.explanation.iou,
            result.explanation.neuron.single.iou,
            result.null.highest,
        )
    )
    edges = np.linspace(0, highest, 8)
    rows = run.rows()
    assert heights(formulas) == list(np.histogram([row["iou"] for row in rows], edges)[0])
    assert sum(heights(chance)) == pytest.approx(5), "each unit weighs one"
    assert singles.get_xy()[:, 1].max() == max(
        np.histogram([row["single_iou"] for row in rows], edges)[0]
    )
    assert "0.04" in words(figure)
    plain = plot.iou_histogram([UnitResult(0, FOUND)], threshold=None)
    assert [len(container) for container in plain.axes[0].containers] == [30]
    assert "0.04" not in words(plain).splitlines()
    with pytest.raises(ValueError, match="no explained unit"):
        plot.iou_histogram([UnitResult(0, error="ValueError: no")])


FOUND = ox.Explanation(
    ox.Formula.parse("a OR b"),
    3,
    4,
    0.75,
    ox.Status.OPTIMAL,
    runners_up=(RunnerUp(ox.Formula.parse("a"), 1, 4),),
)


def test_contributions_show_what_steps_change():
    layer = memory_layer(1)
    counts = layer.table.count(layer.bitmap(0))
    formula = ox.Formula.parse("(sky OR sea) AND NOT boat").canonical
    changes = [step.change for step in formula_steps(layer.table, counts, formula)]
    figure = plot.contributions(layer.table, counts, formula)
    inside, outside = figure.axes[:2]
    for axes, what in ((inside, "intersection"), (outside, "extras")):
        for bars, kind in zip(axes.containers, ("unique", "common"), strict=True):
            widths = [bar.get_width() for bar in bars]
            assert widths == [getattr(change, f"{kind}_{what}") for change in changes]
        # Both bars of a step together reach what the step changes.
        for unique, common in zip(*axes.containers, strict=True):
            if np.sign(unique.get_width()) == np.sign(common.get_width()):
                assert common.get_x() == unique.get_x() + unique.get_width()
    labels = [label.get_text() for label in inside.get_yticklabels()]
    assert labels[:2] == ["sea", "OR sky"]
    assert labels[2].startswith("AND NOT boat")
    assert f"IoU {ox.iou(layer.table, counts, formula).iou:.3f}" in words(figure)
    nothing = ox.Explanation(None, 0, 4, 0.0, ox.Status.OPTIMAL)
    with pytest.raises(ValueError, match="no steps"):
        plot.contributions(layer.table, counts, nothing)


def test_bounds_are_those_that_the_search_told():
    layer = memory_layer(1)
    counts = layer.table.count(layer.bitmap(0))
    trace = plot.ProgressTrace()
    method = ox.Optimal(length=3, bounds=ox.PaperBounds(), batch_size=4, callback=trace)
    found = ox.explain(layer.table, counts, method)
    assert len(trace.progress) > 1
    upper, lower = cast(Any, plot.bounds_over_time(trace, found).axes[0].lines)
    told = trace.progress
    assert list(upper.get_ydata()) == [*(each.upper_bound for each in told), found.upper_bound]
    assert list(lower.get_ydata())[-1] == found.iou == found.upper_bound
    assert list(upper.get_xdata())[:-1] == [each.seconds for each in told]
    assert "proved" in words(plot.bounds_over_time(told, found))
    early = ox.explain(
        layer.table, counts, ox.Optimal(length=3, bounds=ox.PaperBounds(), batch_size=1, gap=5.0)
    )
    if early.status == "feasible":
        assert "possible, gap reached" in words(plot.bounds_over_time([], early))
    with pytest.raises(ValueError, match="told nothing"):
        plot.bounds_over_time([])


def test_two_runs_are_points_and_gains(tmp_path: Path):
    layer = memory_layer(6)
    runs = [
        explain_layer(tmp_path / name, layer, method)
        for name, method in (("one", ox.NetDissect()), ("two", ox.Optimal(length=2)))
    ]
    comparison = ox.compare(*runs, common=True, table=layer.table)
    points, gains = plot.two_runs(comparison).axes[:2]
    shown = np.concatenate([np.asarray(each.get_offsets()) for each in points.collections])
    wanted = [(unit.a.iou, unit.b.iou) for unit in comparison.units]
    assert sorted(map(tuple, shown.tolist())) == sorted(wanted)
    differences = sorted((b - a for a, b in wanted if a != b), reverse=True)
    assert heights(gains.patches) == pytest.approx(differences)
    assert "NetDissect" in points.get_xlabel()


def test_an_overlay_shows_masks_on_images(tmp_path: Path):
    opener = shapes_layer(tmp_path, 1, n_scenes=6)
    source, images = opener.open(), SampleImages.of_table(opener.table)
    (counts,) = source.counts([0])
    found = ox.explain(source.table, counts, ox.Optimal(length=2))
    figure = plot.overlay(source, 0, found, images=images, samples=[4, 1], side=112)
    (mask,) = unit_masks(source, {0: [4]}, {0: found.formula})
    drawn = figure.axes[0].images[0].get_array()
    assert np.array_equal(np.asarray(drawn), draw_overlay(images.image(4), mask.active, mask.held))
    assert figure.axes[0].get_title() == images.name(4)
    assert figure.axes[1].get_title() == images.name(1)
    assert str(found.formula) in words(figure)
    blank = plot.overlay(source, 0, None, samples=[4]).axes[0].images[0].get_array()
    assert {tuple(pixel) for pixel in np.asarray(blank).reshape(-1, 3)} >= {(224, 224, 224)}
    with pytest.raises(ValueError, match="no sample to show"):
        plot.overlay(source, 0, None, order="captured")
    with pytest.raises(NoPicturesError, match="images of 6 samples"):
        plot.overlay(memory_layer(1), 0, "sky", images=cast(Any, images), samples=[0])


def test_a_trade_off_shows_the_hull_and_single_concepts():
    layer = memory_layer(1)
    table, bitmap = layer.table, layer.bitmap(0)
    curve = ox.trade_off(table, bitmap, ox.TradeOff(2))
    figure = plot.trade_off(curve, table, bitmap)
    (axes,) = figure.axes
    at = [np.asarray(each.get_offsets()) for each in axes.collections]
    assert any(len(points) == table.n_concepts for points in at)
    assert any(len(points) == len(curve.vertices) for points in at)
    assert "highest IoU and F1" in words(figure)
    assert "proved" in axes.get_title()
    stopped = ox.trade_off(table, bitmap, ox.TradeOff(2, time_limit=1e-9))
    if stopped.vertices and stopped.status != "optimal":
        assert "no formula is above" in words(plot.trade_off(stopped))
    with pytest.raises(ValueError, match="nothing to plot"):
        plot.trade_off(replace(curve, vertices=()))
