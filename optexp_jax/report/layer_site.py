"""The pages of one layer: overview, units, concepts, comparisons."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optexp_jax.comparison import Comparison, compare
from optexp_jax.counts.neuron import NeuronCounts
from optexp_jax.datasets.protocol import BadSampleError
from optexp_jax.formulas.formula import Formula
from optexp_jax.pictures import NoPicturesError, SampleImages, SampleOrder
from optexp_jax.report.compare_page import write_comparison
from optexp_jax.report.concept_pages import concept_links, write_concepts
from optexp_jax.report.layer_facts import LayerFacts
from optexp_jax.report.layers import ReportLayer
from optexp_jax.report.overview_page import write_overview
from optexp_jax.report.picture_data import ShownSamples, choose_shown, write_pictures
from optexp_jax.report.summary import LayerSummary
from optexp_jax.report.unit_facts import UnitFacts, unit_facts
from optexp_jax.report.unit_page import UnitPages
from optexp_jax.report.whatif_files import WhatIfFiles
from optexp_jax.runs.results import UnitResult
from optexp_jax.runs.run import Run
from optexp_jax.runs.sources import UnitSource

CHUNK = 16
"""Units that are counted at once; their counts are let go with the chunk."""


@dataclass(frozen=True, eq=False)
class LayerEntry:
    """A layer as an index lists it."""

    title: str
    summary: LayerSummary


def write_layer(
    layer: ReportLayer,
    folder: Path,
    root: str,
    threshold: float,
    up: str | None,
    tell: Callable[[str, int, int], None],
) -> LayerEntry:
    """Write all pages of a layer into its folder."""
    results = layer.run.results
    images, no_pictures = _images(layer)
    what_if = None if layer.source is None else WhatIfFiles(layer.run, layer.source.table, folder)
    facts: list[UnitFacts] = []
    shown: dict[int, ShownSamples] = {}
    for place, (result, counts) in enumerate(_counted(layer.source, results)):
        table = None if layer.source is None else layer.source.table
        facts.append(unit_facts(result, table, counts))
        if images is not None and layer.source is not None and counts is not None and counts.size:
            shown[result.unit] = choose_shown(layer.source, result.unit, counts, facts[-1].formula)
        if what_if is not None and counts is not None and facts[-1].found is not None:
            what_if.write_unit(result.unit, counts, facts[-1].found)
        tell("Counting units", place + 1, len(results))
    pictures = None
    if images is not None and layer.source is not None:
        formulas: dict[int, Formula | None] = {unit.unit: unit.formula for unit in facts}
        say = functools.partial(tell, "Writing photographs")
        try:
            pictures = write_pictures(layer.source, images, shown, formulas, folder, say)
        except (NoPicturesError, BadSampleError, OSError) as error:
            no_pictures = str(error)
    if what_if is not None and pictures is not None:
        tops = [each.galleries[SampleOrder.PEAK] for each in shown.values()]
        what_if.write_samples(tops, functools.partial(tell, "Writing maps"))
    summary = LayerSummary(tuple(facts), len(layer.run.configuration["units"]), _categories(layer))
    compared = _compare_all(layer)
    site = LayerFacts(
        layer=layer,
        summary=summary,
        shown=shown,
        pictures=pictures,
        no_pictures=no_pictures,
        images=images,
        comparisons=compared.made,
        not_compared=compared.left_out,
        what_if=what_if,
        links=concept_links(summary),
        root=root,
        up=up,
        threshold=threshold,
        folder=folder,
    )
    _write_pages(site, tell)
    return LayerEntry(layer.title, summary)


def _write_pages(site: LayerFacts, tell: Callable[[str, int, int], None]) -> None:
    pages = UnitPages(site)
    (site.folder / "units").mkdir()
    n = len(site.summary.units)
    for place in range(n):
        pages.write(place)
        tell("Writing pages of units", place + 1, n)
    write_concepts(site)
    for place in range(len(site.comparisons)):
        write_comparison(site, place)
    write_overview(site)


def _counted(
    source: UnitSource | None, results: Sequence[UnitResult]
) -> Iterator[tuple[UnitResult, NeuronCounts | None]]:
    """Results with their counts, a chunk of units at a time."""
    for begin in range(0, len(results), CHUNK):
        chunk = results[begin : begin + CHUNK]
        if source is None:
            yield from ((result, None) for result in chunk)
        else:
            counts = source.counts([result.unit for result in chunk])
            yield from zip(chunk, counts, strict=True)


def _images(layer: ReportLayer) -> tuple[SampleImages | None, str | None]:
    """The photographs, or why there are none."""
    if layer.source is None:
        return None, layer.no_source
    try:
        return SampleImages.of_run(layer.run).require(layer.source.table.n_samples), None
    except NoPicturesError as error:
        return None, " ".join(str(error).split())


def _categories(layer: ReportLayer) -> Mapping[str, Any]:
    if layer.source is None:
        return {}
    table = layer.source.table
    return dict(zip(table.names, table.categories, strict=True))


@dataclass(frozen=True)
class _Comparisons:
    made: tuple[Comparison, ...]
    left_out: tuple[str, ...]
    """Runs that have no explained unit in common with the main one."""


def _compare_all(layer: ReportLayer) -> _Comparisons:
    """The other runs, each as `a`, with the main one as `b`: what the main one gains."""
    table = None if layer.source is None else layer.source.table
    made: list[Comparison] = []
    left_out: list[str] = []
    explained = _explained(layer.run)
    for other in layer.others:
        if explained & _explained(other):
            made.append(compare(other, layer.run, common=True, table=table))
        else:
            left_out.append(str(other.path))
    return _Comparisons(tuple(made), tuple(left_out))


def _explained(run: Run) -> set[int]:
    return {result.unit for result in run.results if result.explanation is not None}
