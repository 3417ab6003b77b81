"""Results for other programs: data frames, CSV, JSON, Parquet."""

import csv
import importlib.util
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

    from optexp_jax.runs.run import Run

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
    "limit_hit",
    "visited",
    "expanded",
    "estimated",
    "updated",
    "speculative",
    "compilations",
    "bounds",
    "stopped_by",
    "search_seconds",
    "seconds",
    "error",
)
_WHOLE = ("intersection", "union", "visited", "expanded", "estimated", "updated")


def to_pandas(run: "Run") -> "pandas.DataFrame":
    """One row a finished unit; counts of failed units are missing, not 0."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError('Data frames need pandas: pip install "optexp-jax[table]".') from error
    rows = run.rows()
    columns: dict[str, Any] = {name: [row.get(name) for row in rows] for name in COLUMNS}
    frame = pandas.DataFrame(columns)
    whole = dict.fromkeys((*_WHOLE, "speculative", "compilations"), "Int64")
    exact = dict.fromkeys(("iou", "upper_bound", "gap", "p_value"), "Float64")
    return frame.astype({"unit": "int64", **whole, **exact, "search_seconds": "Float64"})


def write_csv(run: "Run", path: Path) -> None:
    """One line a unit; lists as JSON."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for row in run.rows():
            writer.writerow({name: _cell(row.get(name)) for name in COLUMNS})


def write_json(run: "Run", path: Path) -> None:
    """Configuration, versions and all units."""
    path.write_text(json.dumps(as_json(run), indent=2) + "\n", encoding="utf-8")


def write_parquet(run: "Run", path: Path) -> None:
    """The data frame, by pyarrow; lists as JSON."""
    if importlib.util.find_spec("pyarrow") is None:
        raise ImportError('Parquet files need pandas and pyarrow: pip install "optexp-jax[table]".')
    frame = to_pandas(run)
    for name in ("runners_up", "equivalents"):
        frame[name] = [_cell(value) for value in frame[name]]
    frame.to_parquet(path, index=False)


def as_json(run: "Run") -> dict[str, Any]:
    """Everything in a run as JSON."""
    return {
        "configuration": run.configuration,
        "inputs": run.inputs,
        "origin": run.origin,
        "sessions": run.sessions,
        "units": [
            {name: _finite(row.get(name)) for name in COLUMNS if name in row} for row in run.rows()
        ],
    }


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list) else value


def _finite(value: Any) -> Any:
    """JSON has no infinity: a gap above an IoU of 0 is null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
