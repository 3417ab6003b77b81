"""What `optexp explain` takes, in groups."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from optexp_jax.cli.methods import METHOD, bounds_options, method_options
from optexp_jax.cli.options import Option, options_of
from optexp_jax.cli.values import parse_int

LAYER, UNITS, THE_METHOD, THE_BOUNDS, OTHERS, CHANCE, WORK = (
    "the layer",
    "the units",
    "the method",
    "the bounds of the optimal method",
    "does it hold on other images?",
    "is it above chance?",
    "doing the work",
)
NULL_NAMES = {"n": "null", "shift": "null_shift", "seed": "null_seed", "stop": "null_stop"}
AUTO, NOISE = "auto", "noise"
LONGEST, FOLDS, RESAMPLES = 4, 5, 100
"""Where --length auto, and --within noise, are given without them."""


def _or_word(word: str, convert: Callable[[str], Any]) -> Callable[[str], Any]:
    """A converter that lets one word through."""
    return lambda text: word if text == word else convert(text)


def _with_words(option: Option) -> Option:
    """The option of a method, with a word that only a run of several searches understands."""
    words = {
        "length": (AUTO, "auto: each unit's own, as its folds tell, up to --max-length"),
        "within": (NOISE, "noise: those that resamples cannot tell from the best"),
    }
    if option.name not in words:
        return option
    word, meaning = words[option.name]
    return dataclasses.replace(
        option,
        convert=_or_word(word, option.convert),
        metavar=f"{option.metavar}|{word}",
        help=f"{option.help}; {meaning}",
    )


def _other_images() -> list[Option]:
    found = options_of(
        "optexp_jax.runs.other_images:OtherImages",
        rename={"seed": "resample_seed"},
        skip=("within", "length"),
    )
    groups = Option(
        "groups",
        str,
        "samples that belong together (video, patient, scene) and are never split: a CSV of "
        "sample,group, or prefix, what stands before the first _ or - of their file names",
        "FILE|prefix",
    )
    longest = Option(
        "max_length",
        parse_int,
        f"with --length auto: most concepts in a formula (default: {LONGEST})",
        "N",
    )
    return [*found, groups, longest]


GROUPS: Mapping[str, list[Option]] = {
    LAYER: options_of("optexp_jax.cli.inputs:LayerInputs"),
    UNITS: options_of("optexp_jax.runs.selection:UnitChoice"),
    THE_METHOD: [METHOD, *map(_with_words, method_options())],
    THE_BOUNDS: bounds_options(),
    OTHERS: _other_images(),
    CHANCE: options_of("optexp_jax.runs.null:NullModel", rename=NULL_NAMES),
    WORK: options_of("optexp_jax.cli.explaining:Execution"),
}
OPTION_NAMES = tuple(option.name for group in GROUPS.values() for option in group)
