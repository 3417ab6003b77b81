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
    "p_value",
    "runners_up",
    "equivalents",
    "unverified",
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
    "bounds_on",
    "float64_fault",
    "kernels",
    "stopped_by",
    "search_seconds",
    "seconds",
    "error",
)
_WHOLE = ("intersection", "union", "visited", "expanded", "estimated", "updated", "compilations")


def data_frame(rows: Sequence[Mapping[str, Any]]) -> "pandas.DataFrame":
    """One row a finished unit; counts of failed units are missing, not 0."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError('Data frames need pandas: pip install "optexp-jax[table]".') from error
    columns: dict[str, Any] = {name: [row.get(name) for row in rows] for name in COLUMNS}
    frame = pandas.DataFrame(columns)
    in_vain = [name for name in COLUMNS if name.startswith("speculative_")]
    whole = dict.fromkeys((*_WHOLE, *in_vain), "Int64")
    exact = dict.fromkeys(("iou", "upper_bound", "gap", "p_value"), "Float64")
    return frame.astype({"unit": "int64", **whole, **exact, "search_seconds": "Float64"})
