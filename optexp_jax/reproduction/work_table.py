"""Tables 2, 5, 6 and 7, and 8: what searches take, ours and published, and the ratio."""

from collections.abc import Sequence
from typing import Any

from optexp_jax.methods import Beam
from optexp_jax.reproduction.measured import MeanAndStd, MeasuredWork
from optexp_jax.reproduction.published import PublishedWork, published_minutes
from optexp_jax.reproduction.text_table import TextTable, as_printed, number

FIGURES = ("visited", "expanded", "estimated", "seconds")
WORK_COLUMNS = (
    "algorithm",
    "",
    "visited",
    "expanded",
    "estimated",
    "s/unit",
    "compiling s",
    "over budget",
)


def work_table(
    title: str, works: Sequence[MeasuredWork], published: Sequence[PublishedWork | None]
) -> TextTable:
    """Three rows an algorithm: ours, published, and ours over published."""
    rows: list[tuple[str, ...]] = []
    for work, paper in zip(works, published, strict=True):
        ours = [_spread(getattr(work, name), work.n_over > 0) for name in FIGURES]
        if work.timed_with_compilation:
            ours[-1] += "*"
        compiling = "*" if work.timed_with_compilation else number(work.compilation, 2)
        over = f"{work.n_over} of {work.n_units}"
        rows.append((work.row.title, "ours", *ours, compiling, over))
        if paper is None:
            continue
        rows.append(("", "published", *(as_printed(getattr(paper, f)) for f in FIGURES), "", ""))
        rows.append(("", "ratio", *(_ratio(work, paper, f) for f in FIGURES), "", ""))
    return TextTable(title, WORK_COLUMNS, tuple(rows), n_texts=2)


def work_records(
    works: Sequence[MeasuredWork], published: Sequence[PublishedWork | None]
) -> list[dict[str, Any]]:
    """The same as flat records, one an algorithm."""
    records: list[dict[str, Any]] = []
    for work, paper in zip(works, published, strict=True):
        record: dict[str, Any] = _common(work)
        for name in FIGURES:
            ours: MeanAndStd = getattr(work, name)
            told = None if paper is None else getattr(paper, name)
            record |= {
                f"{name}_mean": ours.mean,
                f"{name}_std": ours.std,
                f"{name}_published": told,
                f"{name}_ratio": _quotient(work, ours.mean, told, name),
            }
        records.append(record)
    return records


def minutes_table(title: str, works: Sequence[MeasuredWork], with_published: bool) -> TextTable:
    """Table 8: one row a length and size, one column an algorithm."""
    by_method = {_hyperparameters(work): work for work in works}
    rows: list[tuple[str, ...]] = []
    for paper in published_minutes():
        cells: list[str] = []
        for algorithm in ("quantities", "mmesh"):
            work = by_method[algorithm, paper.length, paper.size]
            minutes = MeanAndStd(work.seconds.mean / 60, work.seconds.std / 60)
            told = paper.of(algorithm) if with_published else None
            star = "*" if work.timed_with_compilation else ""
            cells += [_spread(minutes, work.n_over > 0) + star, as_printed(told)]
            cells.append("-" if told is None else number(minutes.mean / told, 2))
        rows.append((str(paper.length), str(paper.size), *cells))
    columns = ("length", "beam", "quantities", "published", "ratio", "MMESH", "published", "ratio")
    return TextTable(title, columns, tuple(rows), n_texts=2)


def minutes_records(works: Sequence[MeasuredWork], with_published: bool) -> list[dict[str, Any]]:
    """The same as flat records, one a beam."""
    by_method = {_hyperparameters(work): work for work in works}
    records: list[dict[str, Any]] = []
    for paper in published_minutes():
        for algorithm in ("quantities", "mmesh"):
            work = by_method[algorithm, paper.length, paper.size]
            told = paper.of(algorithm) if with_published else None
            mean = work.seconds.mean / 60
            records.append(
                _common(work)
                | {
                    "length": paper.length,
                    "size": paper.size,
                    "minutes_mean": mean,
                    "minutes_std": work.seconds.std / 60,
                    "minutes_published": told,
                    "minutes_ratio": None if told is None else mean / told,
                }
            )
    return records


def _hyperparameters(work: MeasuredWork) -> tuple[str, int, int]:
    method = work.row.method
    assert isinstance(method, Beam)
    return work.row.published, method.length, method.size


def _common(work: MeasuredWork) -> dict[str, Any]:
    return {
        "algorithm": work.row.title,
        "run": work.run,
        "units": work.n_units,
        "failed": work.n_failed,
        "over_budget": work.n_over,
        "iou_mean": work.iou.mean,
        "compilation_seconds": work.compilation,
        "seconds_with_compilation": work.timed_with_compilation,
        "counts_as_published": work.row.counts_as_published,
    }


def _spread(value: MeanAndStd, at_least: bool) -> str:
    return f"{'> ' if at_least else ''}{number(value.mean)} ± {number(value.std, 2)}"


def _ratio(work: MeasuredWork, paper: PublishedWork, name: str) -> str:
    found = _quotient(work, getattr(work, name).mean, getattr(paper, name), name)
    if found is None:
        return "-"
    return f"{'> ' if work.n_over else ''}{number(found, 2)}"


def _quotient(work: MeasuredWork, ours: float, published: float | None, name: str) -> float | None:
    """Counters that mean something else have no ratio; seconds always mean the same."""
    if published is None or (name != "seconds" and not work.row.counts_as_published):
        return None
    return ours / published
