"""Ways to explain a neuron, all run by `optexp_jax.explain`."""

from optexp_jax.methods.base import AbstractMethod
from optexp_jax.methods.beam.beam import Beam
from optexp_jax.methods.claim import FormulaSpace, Proof
from optexp_jax.methods.exhaustive import Exhaustive
from optexp_jax.methods.netdissect import NetDissect
from optexp_jax.methods.optimal import Optimal
from optexp_jax.methods.trade_off import TradeOff

__all__ = [
    "AbstractMethod",
    "Beam",
    "Exhaustive",
    "FormulaSpace",
    "NetDissect",
    "Optimal",
    "Proof",
    "TradeOff",
]
