"""A small example of the library: generated scenes, and neurons made to fire on known formulas.

Scenes are two planes of translucent shapes, annotated exactly. A neuron's response is the mask of
its formula, blurred, plus smooth noise; where it is above a threshold the neuron is active. So
edges are soft, some shapes are missed, and there are false hits.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.ndimage
from jaxtyping import Bool, Float64, Int64

from optexp_jax.concepts import ConceptTable, LabelLayer
from optexp_jax.explain import explain
from optexp_jax.explanation import Explanation
from optexp_jax.formula import Formula
from optexp_jax.methods import NetDissect, Optimal

N_SCENES = 48
SIZE = 32
SHAPES = ("circle", "square", "triangle", "ring", "cross")
COLOURS = ("red", "green", "blue", "yellow", "white")
SCENE_LABELS = ("indoor-s", "street-s", None)
BUILT_FROM = (
    "circle",
    "red AND ring",
    "square OR triangle",
    "circle OR square AND NOT blue",
    "red OR yellow AND left",
    "triangle AND NOT top AND street-s",
    "circle OR cross AND NOT white AND left",
)
"""What the neurons fire on; the last needs four concepts."""

EDGE_BLUR = 0.7
NOISE_BLUR = 2.0
NOISE = 0.22
THRESHOLD = 0.5
"""Of the response. Noise has a standard deviation of `NOISE`, the inside of a mask is 1."""


@dataclass(frozen=True, eq=False)
class DemoNeuron:
    """A generated neuron: the formula it was built from, and where it is active in the end."""

    name: str
    built_from: Formula
    bitmap: Bool[np.ndarray, "scenes size size"]


@dataclass(frozen=True, eq=False)
class Demo:
    """The annotated scenes and the neurons that looked at them."""

    table: ConceptTable
    neurons: tuple[DemoNeuron, ...]


@dataclass(frozen=True, eq=False)
class DemoResult:
    """A neuron's best single concept and best formula."""

    neuron: DemoNeuron
    single: Explanation
    best: Explanation


def make_demo(seed: int = 0) -> Demo:
    """Generate scenes and neurons; the same seed gives the same ones."""
    rng = np.random.default_rng(seed)
    table = _make_table(rng)
    formulas = [Formula.parse(text, table) for text in BUILT_FROM]
    return Demo(
        table,
        tuple(
            DemoNeuron(f"unit {k}", formula, _fire(rng, table.mask(formula)))
            for k, formula in enumerate(formulas)
        ),
    )


def explain_demo(demo: Demo, length: int = 3) -> Iterator[DemoResult]:
    """Explain each neuron by one concept and by at most `length`, with a proof."""
    single, best = NetDissect(), Optimal(length)
    for neuron in demo.neurons:
        counts = demo.table.count(neuron.bitmap)
        yield DemoResult(
            neuron, explain(demo.table, counts, single), explain(demo.table, counts, best)
        )


def _make_table(rng: np.random.Generator) -> ConceptTable:
    scenes = [[_draw_plane(rng) for _ in range(2)] for _ in range(N_SCENES)]
    back, front = np.stack(scenes, axis=1)  # each [scene, (shape, colour), row, column]
    rows, columns = np.broadcast_arrays(*np.ogrid[:SIZE, :SIZE])
    top, left = (np.broadcast_to(axis < SIZE // 2, back[:, 0].shape) for axis in (rows, columns))
    shapes = LabelLayer(dict(enumerate(SHAPES, start=1)), category="shape")
    colours = LabelLayer(dict(enumerate(COLOURS, start=1)), category="colour")
    return ConceptTable.from_label_maps(
        [back[:, 0], front[:, 0], back[:, 1], front[:, 1], top.astype(int), left.astype(int)],
        [
            shapes,  # The planes share their names: a circle is a circle in the back or in front.
            shapes,
            colours,
            colours,
            LabelLayer({1: "top"}, category="position"),
            LabelLayer({1: "left"}, category="position"),
        ],
        sample_labels=[SCENE_LABELS[k] for k in rng.integers(len(SCENE_LABELS), size=N_SCENES)],
    )


def _draw_plane(rng: np.random.Generator) -> Int64[np.ndarray, "two size size"]:
    """Labels of shapes and of their colours on one plane; later shapes cover earlier ones."""
    plane = np.zeros((2, SIZE, SIZE), np.int64)
    for _ in range(rng.integers(2, 5)):
        shape, colour = rng.integers(len(SHAPES)), rng.integers(len(COLOURS))
        plane[:, _outline(rng, SHAPES[shape])] = [[shape + 1], [colour + 1]]
    return plane


def _outline(rng: np.random.Generator, shape: str) -> Bool[np.ndarray, "size size"]:
    """Where a shape of random place and size lies."""
    radius = rng.uniform(4, 8)
    row, column = rng.uniform(radius, SIZE - radius, size=2)
    rows, columns = np.ogrid[:SIZE, :SIZE]
    down, across = rows - row, columns - column
    distance = np.hypot(down, across)
    match shape:
        case "circle":
            return distance <= radius
        case "ring":
            return (distance <= radius) & (distance >= 0.5 * radius)
        case "square":
            return np.maximum(abs(down), abs(across)) <= 0.9 * radius
        case "cross":
            arm = np.minimum(abs(down), abs(across)) <= 0.3 * radius
            return arm & (np.maximum(abs(down), abs(across)) <= radius)
        case _:  # a triangle, its tip up
            return (abs(down) <= radius) & (2 * abs(across) <= down + radius)


def _fire(
    rng: np.random.Generator, mask: Bool[np.ndarray, "scenes size size"]
) -> Bool[np.ndarray, "scenes size size"]:
    """Active locations of a neuron built from a mask."""
    noise = _blur(rng.normal(size=mask.shape), NOISE_BLUR)
    response = _blur(mask.astype(np.float64), EDGE_BLUR) + NOISE * noise / noise.std()
    return response > THRESHOLD


def _blur(
    scenes: Float64[np.ndarray, "scenes size size"], width: float
) -> Float64[np.ndarray, "scenes size size"]:
    return scipy.ndimage.gaussian_filter(scenes, (0, width, width))
