"""The columns of results, and their types in a data frame."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

COLUMNS = (
    "unit",
    "formula",
    "iou",
    "intersection",
    "union",
    "upper_bound",
    "gap",
    "status",
    "objective",
    "active",
    "active_share",
    "precision",
    "recall",
    "f1",
    "cosine",
    "phi",
    "single_concept",
    "single_iou",
    "p_value",
    "null_mean",
    "null_highest",
    "p_family",
    "q_value",
    "folds",
    "held_out_iou",
    "held_out_spread",
    "in_sample_iou",
    "chosen_length",
    "held_out_by_length",
    "resamples",
    "resampling",
    "recurrence",
    "concept_shares",
    "interval_low",
    "interval_high",
    "out_of_bag_iou",
    "noise",
    "confidence_size",
    "confidence_complete",
    "in_all",
    "in_some",
    "simplest",
    "runners_up",
    "equivalents",
    "unverified",
    "by_length",
    "any_shape",
    "within_truncated",
    "visited",
    "expanded",
    "estimated",
    "updated",
    "speculative_visited",
    "speculative_expanded",
    "speculative_estimated",
    "compilations",
    "bounds",
    "way",
    "bounds_on",
    "float64_fault",
    "kernels",
    "stopped_by",
    "search_seconds",
    "seconds",
    "error",
)
CHANGING = frozenset(
    {"compilations", "bounds_on", "float64_fault", "kernels", "search_seconds", "seconds"}
)
"""Columns that tell when and where a unit was done; in all others equal runs are equal."""
_METRICS = ("precision", "recall", "f1", "cosine", "phi")
_EXACT = ("iou", "upper_bound", "any_shape", "gap", "active_share", *_METRICS, "single_iou")
_NULL = ("p_value", "null_mean", "null_highest", "p_family", "q_value")
_OTHER = (
    "held_out_iou",
    "held_out_spread",
    "in_sample_iou",
    "recurrence",
    "interval_low",
    "interval_high",
    "out_of_bag_iou",
    "noise",
)
LISTS = (
    "held_out_by_length",
    "concept_shares",
    "in_all",
    "in_some",
    "runners_up",
    "equivalents",
    "unverified",
    "by_length",
)
"""Columns that hold lists, which files of tables keep as JSON."""
_COUNTERS = ("visited", "expanded", "estimated", "updated", "compilations")
_WHOLE = (
    *("intersection", "union", "active"),
    *("folds", "chosen_length", "resamples", "confidence_size"),
    *_COUNTERS,
)


def columns(times: bool = True) -> tuple[str, ...]:
    """The columns, with or without those that equal runs may differ in."""
    return tuple(name for name in COLUMNS if times or name not in CHANGING)


def data_frame(rows: Sequence[Mapping[str, Any]], times: bool = True) -> "pandas.DataFrame":
    """One row a finished unit; counts of failed units are missing, not 0."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError('Data frames need pandas: pip install "optexp-jax[table]".') from error
    chosen = columns(times)
    frame = pandas.DataFrame({name: [row.get(name) for row in rows] for name in chosen})
    in_vain = [name for name in COLUMNS if name.startswith("speculative_")]
    whole = dict.fromkeys((*_WHOLE, *in_vain), "Int64")
    real = dict.fromkeys((*_EXACT, *_NULL, *_OTHER, "search_seconds"), "Float64")
    kinds = {"unit": "int64", **whole, **real}
    return frame.astype({name: kind for name, kind in kinds.items() if name in chosen})
