"""Whole layers: many units, many processes, one folder of results."""

import logging

from optexp_jax.runs.database import RunStoreError
from optexp_jax.runs.devices import DeviceThreads
from optexp_jax.runs.family import CorrectedPValue, RunFamily
from optexp_jax.runs.inline import Inline
from optexp_jax.runs.null import NullModel, NullResult
from optexp_jax.runs.observer import Observer
from optexp_jax.runs.other_images import OtherImages, OtherImagesResult
from optexp_jax.runs.record import Counts
from optexp_jax.runs.results import UnitResult
from optexp_jax.runs.run import Run, explain_layer
from optexp_jax.runs.selection import UnitChoice, parse_units, sample_units
from optexp_jax.runs.sources import AbstractOpener, BitmapUnits, UnitSource
from optexp_jax.runs.summary import Averages, RunSummary
from optexp_jax.runs.workers import LocalWorkers, WorkerDiedError

# What a program that uses the library does with its log records is its own affair.
logging.getLogger("optexp_jax").addHandler(logging.NullHandler())

__all__ = [
    "AbstractOpener",
    "Averages",
    "BitmapUnits",
    "CorrectedPValue",
    "Counts",
    "DeviceThreads",
    "Inline",
    "LocalWorkers",
    "NullModel",
    "NullResult",
    "Observer",
    "OtherImages",
    "OtherImagesResult",
    "Run",
    "RunFamily",
    "RunStoreError",
    "RunSummary",
    "UnitChoice",
    "UnitResult",
    "UnitSource",
    "WorkerDiedError",
    "explain_layer",
    "parse_units",
    "sample_units",
]
