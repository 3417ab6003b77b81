"""Annotated datasets: images and the concepts in them."""

from optexp_jax.datasets.arrays import ArrayDataset
from optexp_jax.datasets.build import build_table
from optexp_jax.datasets.derived import with_derived
from optexp_jax.datasets.pairs import PairDataset, from_pairs
from optexp_jax.datasets.protocol import (
    BadSampleError,
    ConceptInfo,
    Dataset,
    LayoutError,
    Sample,
    check_sample,
    describe,
    image_of,
)
from optexp_jax.datasets.provenance import Provenance, read_provenance
from optexp_jax.datasets.registry import register_kind
from optexp_jax.datasets.shapes import Shapes
from optexp_jax.datasets.spec import DatasetSpec, open_dataset

__all__ = [
    "ArrayDataset",
    "BadSampleError",
    "ConceptInfo",
    "Dataset",
    "DatasetSpec",
    "LayoutError",
    "PairDataset",
    "Provenance",
    "Sample",
    "Shapes",
    "build_table",
    "check_sample",
    "describe",
    "from_pairs",
    "image_of",
    "open_dataset",
    "read_provenance",
    "register_kind",
    "with_derived",
]
