"""What `optexp explain` takes, in groups."""

from collections.abc import Mapping

from optexp_jax.cli.methods import METHOD, bounds_options, method_options
from optexp_jax.cli.options import Option, options_of

LAYER, UNITS, THE_METHOD, THE_BOUNDS, CHANCE, WORK = (
    "the layer",
    "the units",
    "the method",
    "the bounds of the optimal method",
    "is it above chance?",
    "doing the work",
)
NULL_NAMES = {"n": "null", "shift": "null_shift", "seed": "null_seed"}
GROUPS: Mapping[str, list[Option]] = {
    LAYER: options_of("optexp_jax.cli.inputs:LayerInputs"),
    UNITS: options_of("optexp_jax.runs.selection:UnitChoice"),
    THE_METHOD: [METHOD, *method_options()],
    THE_BOUNDS: bounds_options(),
    CHANCE: options_of("optexp_jax.runs.null:NullModel", rename=NULL_NAMES),
    WORK: options_of("optexp_jax.cli.explaining:Execution"),
}
OPTION_NAMES = tuple(option.name for group in GROUPS.values() for option in group)
