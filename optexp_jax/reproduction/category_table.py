"""Tables 3, 4 and 9: how often a beam is not optimal, by category, and the IoUs."""

from typing import Any

from optexp_jax.comparison import Category, Comparison
from optexp_jax.reproduction.published import PublishedCategories
from optexp_jax.reproduction.text_table import TextTable, as_printed, number

NUMBERED: tuple[Category, ...] = (Category.CONCEPTS_AND_IOU, Category.IOU, Category.CONNECTION)
IOU_KINDS = ("total", "category_1", "category_2")


def share_table(
    title: str, model: str, made: Comparison, published: PublishedCategories | None
) -> TextTable:
    """Table 3. Other concepts at the same IoU are no category of the paper, but in its shares."""
    ours = ("ours", _percent(made.share_differing), *(_percent(made.share(c)) for c in NUMBERED))
    tie = _percent(made.share(Category.TIE))
    rows: list[tuple[str, ...]] = [
        (model, *ours, tie, str(len(made.differing)), str(len(made.units)))
    ]
    if published is not None:
        told = [f"{share:g} %" for share in (published.non_optimal, *published.shares)]
        rows.append(("", "published", *told, "-", "", ""))
    columns = (
        "model",
        "",
        "non-optimal",
        "category 1",
        "category 2",
        "category 3",
        "same IoU",
        "differing",
        "units",
    )
    return TextTable(title, columns, tuple(rows), n_texts=2)


def iou_table(
    title: str, model: str, made: Comparison, published: PublishedCategories | None
) -> TextTable:
    """Table 4: mean IoUs of the units that differ."""
    rows: list[tuple[str, ...]] = []
    for method in ("beam", "optimal"):
        ours = [_iou(made, method, category) for category in (None, *NUMBERED[:2])]
        rows.append((f"{model}, {method}", "ours", *ours))
        told = None if published is None else getattr(published, method)
        if told is not None:
            rows.append(("", "published", *(as_printed(getattr(told, kind)) for kind in IOU_KINDS)))
    columns = ("model, method", "", "all differing", "category 1", "category 2")
    return TextTable(title, columns, tuple(rows), n_texts=2)


def category_records(
    model: str, made: Comparison, published: PublishedCategories | None
) -> list[dict[str, Any]]:
    """Both as flat records: all units that differ, then each category."""
    told: dict[Category, float] = dict(
        zip(NUMBERED, () if published is None else published.shares, strict=False)
    )
    total = made.ious()
    first: dict[str, Any] = {
        "model": model,
        "category": "all differing",
        "units": len(made.units),
        "count": total.n,
        "share": made.share_differing,
        "share_published": None if published is None else published.non_optimal / 100,
        "beam_iou_mean": total.mean_a,
        "beam_iou_std": total.std_a,
        "optimal_iou_mean": total.mean_b,
        "optimal_iou_std": total.std_b,
    }
    records = [first]
    for summary in made.categories():
        share = told.get(summary.category)
        records.append(
            {
                "model": model,
                "category": summary.category.title,
                "units": len(made.units),
                "count": summary.n,
                "share": summary.share,
                "share_published": None if share is None else share / 100,
                "beam_iou_mean": summary.ious.mean_a,
                "beam_iou_std": summary.ious.std_a,
                "optimal_iou_mean": summary.ious.mean_b,
                "optimal_iou_std": summary.ious.std_b,
            }
        )
    return records


def _iou(made: Comparison, method: str, category: Category | None) -> str:
    found = made.ious(category)
    mean, std = (found.mean_a, found.std_a) if method == "beam" else (found.mean_b, found.std_b)
    return "-" if mean is None else f"{number(mean)} ± {number(std, 2)}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
