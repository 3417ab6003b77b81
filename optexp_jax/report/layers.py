"""The runs of a report, put together by what they explain: one layer under one range."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from optexp_jax.runs.layers import StoredLayer
from optexp_jax.runs.run import Run
from optexp_jax.runs.sources import UnitSource

OPTIMAL = "optexp_jax:Optimal"


@dataclass(frozen=True)
class LayerOrigin:
    """Where the units of a layer come from, as far as the run tells."""

    model: str | None = None
    weights: str | None = None
    layer: str | None = None
    dataset: str | None = None
    preprocessing: str | None = None
    range: str | None = None
    """Which activations count as active."""

    @classmethod
    def of(cls, run: Run) -> "LayerOrigin":
        """From the record of a run; units in memory have none."""
        origin = cast(dict[str, Any], run.origin or {})
        key = cast(dict[str, Any], origin.get("key") or {})
        inputs = cast(dict[str, Any], run.inputs or {})
        return cls(
            model=key.get("model"),
            weights=key.get("weights"),
            layer=key.get("layer"),
            dataset=origin.get("dataset_spec"),
            preprocessing=key.get("preprocessing") or None,
            range=inputs.get("range"),
        )


@dataclass(frozen=True, eq=False)
class ReportLayer:
    """Runs over the same units: one that the pages are about, and others to compare it with."""

    run: Run
    others: tuple[Run, ...]
    origin: LayerOrigin
    source: UnitSource | None
    no_source: str | None
    """Why the source cannot be opened, where it cannot."""

    @property
    def title(self) -> str:
        """The layer by its name, or the folder of the run."""
        if self.origin.layer is None:
            return self.run.path.resolve().name
        if self.origin.model in (None, "array"):
            return f"Layer {self.origin.layer}"
        return f"Layer {self.origin.layer} of {self.origin.model}"


def report_layers(
    runs: Sequence[Run], sources: Mapping[Path, UnitSource] | None = None
) -> list[ReportLayer]:
    """The layers of some runs, in the order in which they are first named.

    Runs belong together if table and source have the same checksums. The pages are about the first
    run of the optimal search, or else about the first one.
    """
    groups: dict[tuple[str, str], list[Run]] = {}
    seen: set[Path] = set()
    for run in runs:
        if run.path.resolve() in seen:
            raise ValueError(f"{run.path} is named twice. Name each run once.")
        seen.add(run.path.resolve())
        asked = run.configuration
        groups.setdefault((asked["table"], asked["source"]), []).append(run)
    return [_layer(group, sources or {}) for group in groups.values()]


def _layer(group: Sequence[Run], sources: Mapping[Path, UnitSource]) -> ReportLayer:
    main = next((run for run in group if _method_class(run) == OPTIMAL), group[0])
    others = tuple(run for run in group if run is not main)
    given = next((sources[run.path] for run in (main, *others) if run.path in sources), None)
    no_source = None
    if given is not None:
        given = main.check_source(given)
    else:
        try:
            given = main.open_source()
        except (ValueError, OSError) as error:
            no_source = " ".join(str(error).split())
    return ReportLayer(main, others, LayerOrigin.of(main), given, no_source)


def stored_table(run: Run) -> str | None:
    """The path of the table that a run was made with, where the run tells."""
    try:
        opener = run.opener
    except ValueError:
        return None
    return opener.table if isinstance(opener, StoredLayer) else None


def _method_class(run: Run) -> str:
    return str(run.configuration["method"].get("class", ""))


def slug(text: str) -> str:
    """A name for a folder: letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "layer"
