"""What `objective` may be asked for together with, and what is refused."""

from typing import Any

import numpy as np
import pytest
from helpers.strategies import XOR
from helpers.tight_cases import by_sets

import optexp_jax as ox

CASE = by_sets(3, {"a": (10, 1), "ab": (2, 4), "b": (3, 3), "c": (1, 9), "": (4, 90)})


def explain(**settings: Any) -> ox.Explanation:
    return ox.explain(CASE.table, CASE.neuron, ox.Optimal(2, **settings))


def test_the_other_metrics_of_a_formula():
    found = explain()
    held = np.array([found.intersection, found.union - 20])
    tp, fp = held.tolist()
    fn, tn = 20 - tp, 107 - fp
    assert found.f1 == pytest.approx(2 * tp / (2 * tp + fp + fn))
    assert found.cosine == pytest.approx(tp / np.sqrt((tp + fp) * (tp + fn)))
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    assert found.phi == pytest.approx((tp * tn - fp * fn) / np.sqrt(product))
    assert found.precision == tp / (tp + fp)
    assert found.recall == tp / 20
    assert found.value == found.iou


def test_f1_has_the_formula_of_the_iou():
    by_iou, by_f1 = explain(), explain(objective="f1")
    assert by_f1.formula == by_iou.formula
    assert by_f1.value == by_f1.f1 == by_f1.upper_bound
    ranked = explain(objective="f1", top_k=3)
    assert [each.formula for each in ranked.runners_up] == [
        each.formula for each in explain(top_k=3).runners_up
    ]


def test_published_bounds_and_other_operators_go_with_iou_and_f1():
    assert explain(objective="f1", bounds=ox.PaperBounds()).formula == explain().formula
    assert explain(objective="f1", operators=(ox.OR, XOR)).status == "optimal"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"objective": "recall"}, "objective must be one of 'iou', 'f1', 'cosine', 'phi'"),
        ({"objective": "cosine", "top_k": 2}, "top_k lists formulas by IoU or F1"),
        ({"objective": "phi", "within": 0.1}, "within is a share of the IoU"),
        ({"objective": "f1", "within": 0.1}, "within is a share of the IoU"),
        ({"objective": "phi", "any_shape": True}, "any_shape bounds the IoU"),
        ({"objective": "cosine", "bounds": ox.PaperBounds()}, "is proved by TightBounds"),
        ({"objective": "phi", "operators": (ox.OR, XOR)}, "is proved by TightBounds"),
    ],
)
def test_refused(settings: dict[str, Any], said: str):
    with pytest.raises(ValueError, match=said):
        ox.Optimal(2, **settings)


def test_a_stopped_search_goes_on_for_its_own_objective():
    stopped = explain(objective="phi", time_limit=1e-9)
    if stopped.status == "optimal":
        pytest.skip("proved before the first look at the clock")
    with pytest.raises(ValueError, match="another objective"):
        ox.explain(CASE.table, CASE.neuron, ox.Optimal(2, objective="cosine"), resume=stopped.state)


def test_texts_say_what_is_optimal():
    found = explain(objective="cosine")
    assert str(found).startswith(f"{found.formula}  cosine {found.cosine:.4f} (optimal)  IoU ")
    assert "cosine" in found.to_html()
