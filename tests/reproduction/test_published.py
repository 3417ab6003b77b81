"""The published figures are as printed, and there is one for each row of a table."""

import pytest

from optexp_jax.reproduction import (
    PublishedWork,
    published_categories,
    published_clusters,
    published_minutes,
    published_work,
)
from optexp_jax.reproduction.request import MODELS
from optexp_jax.reproduction.rows import hyperparameter_rows, runtime_rows


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("setting", ["low", "intermediate", "high"])
def test_every_row_has_figures(setting: str, model: str):
    for row in runtime_rows(1.0):
        told = published_work(setting, row.published, model)
        assert told is not None
        assert told.seconds is not None
        assert (told.estimated is None) == (row.published == "vanilla")


def test_some_as_printed():
    assert published_work("low", "optimal", "resnet18") == PublishedWork(1.0, 100.55, 778.14, 0.08)
    vanilla = published_work("high", "vanilla", "alexnet")
    assert vanilla == PublishedWork(53751.0, 15.0, None, 6672.82)
    densenet = published_categories("densenet161")
    assert densenet is not None
    assert densenet.non_optimal == 39
    assert densenet.shares == (73, 0, 27)
    assert densenet.optimal is not None
    assert densenet.optimal.category_2 == 0.057
    clusters = published_clusters("densenet161")
    assert clusters is not None
    assert clusters.beam is None
    assert published_clusters("resnet18") is None


def test_minutes_have_rows():
    assert [each.mmesh for each in published_minutes()] == [
        0.62,
        1.28,
        3.43,
        26.63,
        0.62,
        1.24,
        2.84,
    ]
    # Length 3 with beam 5 is printed twice and run once.
    assert len(hyperparameter_rows()) == 2 * 6
    assert len({row.key for row in hyperparameter_rows()}) == 2 * 6
