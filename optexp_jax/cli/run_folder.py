"""The folder of a run that has to be there."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from optexp_jax.runs.run import Run
from optexp_jax.runs.store import FILE

MOST_NAMED = 5
"""Runs that are named to choose from."""


def open_run(folder: Path, allow: Iterable[type[Any]] = ()) -> Run:
    """The run in a folder, or an error that names those that there are."""
    if not (folder / FILE).exists():
        what = f"it has no {FILE}" if folder.is_dir() else "there is no such folder"
        near = sorted(
            {path.parent for root in (folder.parent, Path("runs")) for path in _runs_in(root)}
        )
        some = ", ".join(str(path) for path in near[:MOST_NAMED])
        more = ", ..." if len(near) > MOST_NAMED else ""
        hint = (
            f"There are runs at {some}{more}."
            if near
            else "Begin one: optexp explain --table TABLE --activations STORE --run FOLDER."
        )
        raise ValueError(f"There is no run at {folder}: {what}. {hint}")
    return Run(folder, allow=allow)


def _runs_in(folder: Path) -> list[Path]:
    try:
        return list(folder.glob(f"*/{FILE}"))
    except OSError:  # which may not be read
        return []
