"""Annotated datasets as signature-compressed tables."""

from optexp_jax.concepts.builder import TableBuilder
from optexp_jax.concepts.labels import LabelLayer
from optexp_jax.concepts.storage import TableFileError
from optexp_jax.concepts.table import Concept, ConceptTable

__all__ = ["Concept", "ConceptTable", "LabelLayer", "TableBuilder", "TableFileError"]
