"""Guides of the beam search: which candidates may be worth an exact score."""

from optexp_jax.methods.beam.guides.base import AbstractEstimator, AbstractGuide, Members
from optexp_jax.methods.beam.guides.mmesh import MMESHGuide
from optexp_jax.methods.beam.guides.quantity import QuantityGuide

__all__ = ["AbstractEstimator", "AbstractGuide", "MMESHGuide", "Members", "QuantityGuide"]
