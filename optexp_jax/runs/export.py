"""Results for other programs: CSV, JSON, Parquet."""

import contextlib
import csv
import importlib.util
import json
import math
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

from optexp_jax.runs.columns import LISTS, columns
from optexp_jax.runs.run import Run

_FORMULA_STARTS = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    "\n",
    "'",
    "\uff1d",
    "\uff0b",
    "\uff0d",
    "\uff20",
)
"""What spreadsheets take for the beginning of a formula; the last four are wide = + - @."""


def write_csv(run: Run, path: Path, *, times: bool = True) -> None:
    """One line a unit; lists as JSON; text as `csv_text` writes it, for `text_of_csv` to read.

    Without `times`, here as in the other formats, equal runs give equal bytes.
    """
    rows, chosen = run.rows(), columns(times)
    with whole_or_not(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, chosen)
        writer.writeheader()
        for row in rows:
            writer.writerow({name: csv_text(_cell(row.get(name))) for name in chosen})


def csv_text(value: Any) -> Any:
    """A value for a cell. A spreadsheet would run text that begins as its formulas do, so that has
    an apostrophe in front, and so has text that begins with one."""
    runs = isinstance(value, str) and value.startswith(_FORMULA_STARTS)
    return f"'{value}" if runs else value


def text_of_csv(cell: str) -> str:
    """The text of a cell that `csv_text` wrote."""
    return cell.removeprefix("'")


def write_json(run: Run, path: Path, *, times: bool = True) -> None:
    """Configuration, versions and all units."""
    text = json.dumps(as_json(run, times=times), indent=2) + "\n"
    with whole_or_not(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_parquet(run: Run, path: Path, *, times: bool = True) -> None:
    """The data frame, by pyarrow; lists as JSON."""
    if importlib.util.find_spec("pyarrow") is None:
        raise ImportError('Parquet files need pandas and pyarrow: pip install "optexp-jax[table]".')
    frame = run.to_pandas(times=times)
    for name in LISTS:
        frame[name] = [_cell(value) for value in frame[name]]
    with whole_or_not(path) as partial:
        frame.to_parquet(partial, index=False)


@contextlib.contextmanager
def whole_or_not(path: Path) -> Generator[Path]:
    """Another name to write to; the file gets its own when all of it is on the disk."""
    target = path.resolve()
    if target.exists() and not target.is_file():  # a pipe, say
        yield target
        return
    partial = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield partial
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def as_json(run: Run, *, times: bool = True) -> dict[str, Any]:
    """Everything in a run as JSON; without `times` only what equal runs have in common."""
    told: dict[str, Any] = {"configuration": run.configuration, "origin": run.origin}
    if times:  # the paths of the inputs may lie in the folder of the run
        told |= {"inputs": run.inputs, "sessions": run.sessions}
    told["units"] = [
        {name: _finite(row.get(name)) for name in columns(times) if name in row}
        for row in run.rows()
    ]
    return told


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list) else value


def _finite(value: Any) -> Any:
    """JSON has no infinity: a gap above an IoU of 0 is null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
