"""The paper's tables from our own runs, with the published figures beside them.

    report = make_tables(TableRequest("low", small=True))
    print(report.to_markdown())

Without data the tables are made on generated stand-ins, and every output says so.
"""

from optexp_jax.reproduction.measured import MeanAndStd, MeasuredWork
from optexp_jax.reproduction.published import (
    PublishedCategories,
    PublishedIoUs,
    PublishedMinutes,
    PublishedWork,
    published_categories,
    published_clusters,
    published_minutes,
    published_work,
)
from optexp_jax.reproduction.report import TablesReport
from optexp_jax.reproduction.reproduce import TableRuns, make_tables, run_rows
from optexp_jax.reproduction.request import TableRequest

__all__ = [
    "MeanAndStd",
    "MeasuredWork",
    "PublishedCategories",
    "PublishedIoUs",
    "PublishedMinutes",
    "PublishedWork",
    "TableRequest",
    "TableRuns",
    "TablesReport",
    "make_tables",
    "published_categories",
    "published_clusters",
    "published_minutes",
    "published_work",
    "run_rows",
]
