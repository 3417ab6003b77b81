"""What the pages of a layer are made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from optexp_jax.comparison import Comparison
from optexp_jax.pictures import SampleImages
from optexp_jax.report.layers import ReportLayer
from optexp_jax.report.picture_data import Pictures, ShownSamples
from optexp_jax.report.summary import LayerSummary
from optexp_jax.report.whatif_files import WhatIfFiles


@dataclass(frozen=True, eq=False)
class LayerFacts:
    """All that the pages of a layer are made of."""

    layer: ReportLayer
    summary: LayerSummary
    shown: Mapping[int, ShownSamples]
    pictures: Pictures | None
    no_pictures: str | None
    """Why there are no pictures, where there are none."""
    images: SampleImages | None
    what_if: WhatIfFiles | None
    """The data of the editor on the pages of units, where counts are at hand."""
    comparisons: tuple[Comparison, ...]
    not_compared: tuple[str, ...]
    """Runs that have no explained unit in common with the main one."""
    links: Mapping[str, str]
    """Pages of concepts."""
    root: str
    """The way from the layer's folder to that of the whole report."""
    up: str | None
    """The index of layers, if there is one."""
    threshold: float
    folder: Path
