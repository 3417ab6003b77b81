"""The report of some runs: a folder of pages that opens from disk."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from optexp_jax.report.layer_site import LayerEntry, write_layer
from optexp_jax.report.layers import report_layers, slug
from optexp_jax.report.overview_charts import layers_figure
from optexp_jax.report.pages import write_page
from optexp_jax.runs.run import Run
from optexp_jax.runs.sources import UnitSource

MARK = "optexp-report.txt"
"""A file that tells a report from other folders, so that only a report is ever replaced."""

Tell = Callable[[str, int, int], None]
"""Told what is done, how much of it, and of how much."""


@dataclass(frozen=True)
class ReportSettings:
    """What a report marks, and what it is called."""

    threshold: float = 0.04
    """Units with a lower IoU are marked; 0.04 is the usual threshold of the field."""
    title: str = "Explained units"

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"The threshold of an IoU lies in 0 to 1; got {self.threshold}.")


def build_report(
    runs: Sequence[Run | str | Path],
    out: str | Path,
    settings: ReportSettings = ReportSettings(),
    *,
    sources: Mapping[Path, UnitSource] | None = None,
    tell: Tell | None = None,
) -> Path:
    """Write the report of some runs into the folder `out`, and return its first page.

    Runs over the same units are compared, those over others get an overview each. `sources` gives
    the units of runs that were only in memory, by the path of the run; without it, the report of
    such a run has no pictures. A report that is there is replaced; a folder with anything else in
    it is refused.
    """
    opened = [run if isinstance(run, Run) else Run(run) for run in runs]
    if not opened:
        raise ValueError("A report needs at least one run.")
    layers = report_layers(opened, sources)
    folder = Path(out)
    _make_empty(folder)
    _copy_static(folder / "static")
    say = tell or _say_nothing
    if len(layers) == 1:
        write_layer(layers[0], folder, "", settings.threshold, None, say)
        return folder / "index.html"
    entries: list[LayerEntry] = []
    for place, layer in enumerate(layers):
        name = f"{place + 1}-{slug(layer.title)}"
        (folder / name).mkdir()
        entries.append(
            write_layer(layer, folder / name, "../", settings.threshold, "../index.html", say)
        )
    named = [(f"{place + 1}-{slug(layer.title)}", layer) for place, layer in enumerate(layers)]
    write_page(
        folder / "index.html",
        "layers.html",
        title=settings.title,
        root="",
        up=None,
        entries=[
            {"link": f"{name}/index.html", "entry": entry}
            for (name, _), entry in zip(named, entries, strict=True)
        ],
        figure=layers_figure({entry.title: entry.summary for entry in entries}),
        threshold=settings.threshold,
    )
    return folder / "index.html"


def _say_nothing(what: str, done: int, total: int) -> None:
    del what, done, total


def _make_empty(folder: Path) -> None:
    """The folder, empty but for the mark; a former report is removed."""
    if folder.exists():
        if not folder.is_dir():
            raise ValueError(f"{folder} is a file. Choose a folder for the report.")
        if any(folder.iterdir()) and not (folder / MARK).exists():
            raise ValueError(
                f"{folder} holds something other than a report. Choose another folder, or empty it."
            )
        for entry in folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    text = "A report of optexp. Open index.html. `optexp report` may replace this folder.\n"
    (folder / MARK).write_text(text)


def _copy_static(folder: Path) -> None:
    with as_file(files("optexp_jax.report") / "static") as source:
        shutil.copytree(source, folder)
