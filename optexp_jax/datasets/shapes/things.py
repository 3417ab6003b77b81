"""Things: what the figures and objects of a scene are made of."""

from collections.abc import Callable

import numpy as np

from optexp_jax.datasets.colours import BASIC_COLOURS
from optexp_jax.datasets.shapes.canvas import ThingPart
from optexp_jax.datasets.shapes.outlines import (
    FIGURES,
    box,
    disc,
    petals,
    polygon,
    scaled,
    union,
    without,
)
from optexp_jax.datasets.shapes.paint import Painter

Parts = tuple[ThingPart, ...]
Maker = Callable[[np.random.Generator, Painter], Parts]

VIVID = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "white")
HOLLOW = ("ring", "crescent")
"""Shapes whose middle is not inside them."""


def figure(kind: str, rng: np.random.Generator, painter: Painter) -> Parts:
    """A simple shape, at times with a rim, at times with a core."""
    outline = FIGURES[kind]
    whole = ThingPart(None, outline, painter.mixed(BASIC_COLOURS))
    parts = [whole]
    if kind not in HOLLOW and rng.random() < 0.4:
        rim = painter.plain(*_except(BASIC_COLOURS, whole.paint.first.name))
        parts.append(ThingPart("rim", without(outline, scaled(outline, 0.8)), rim))
    if kind not in HOLLOW and rng.random() < 0.35:
        core = painter.plain(*_except(BASIC_COLOURS, whole.paint.first.name))
        parts.append(ThingPart("core", scaled(outline, 0.42), core))
    return tuple(parts)


def house(rng: np.random.Generator, painter: Painter) -> Parts:
    """Walls, a roof, a door and two windows, at times a chimney."""
    walls = painter.mixed(
        ("white", "yellow", "red", "brown", "pink", "grey"), textures=("striped-t", "grid-t")
    )
    glass = painter.plain("blue", "yellow", "black")
    roof = painter.mixed(("red", "brown", "grey", "black"), textures=("zigzag-t", "wavy-t"))
    chimney = [ThingPart("chimney", box(0.45, -0.95, 0.68, -0.3), painter.plain("red", "grey"))]
    return (
        *(chimney if rng.random() < 0.6 else []),
        ThingPart("wall", box(-0.8, -0.25, 0.8, 1), walls),
        ThingPart("roof", polygon((0, -1), (1, -0.2), (-1, -0.2)), roof),
        ThingPart("door", box(-0.2, 0.35, 0.2, 1), painter.plain("brown", "green", "red", "blue")),
        ThingPart("window", union(box(-0.65, 0, -0.32, 0.35), box(0.32, 0, 0.65, 0.35)), glass),
    )


def tree(rng: np.random.Generator, painter: Painter) -> Parts:
    """A trunk and a crown, round or pointed."""
    round_crown = union(
        disc(0, -0.5, 0.5), disc(-0.38, -0.12, 0.42), disc(0.38, -0.12, 0.42), disc(0, 0, 0.5)
    )
    pointed = union(
        polygon((0, -1), (0.5, -0.3), (-0.5, -0.3)),
        polygon((0, -0.65), (0.62, 0.1), (-0.62, 0.1)),
        polygon((0, -0.3), (0.75, 0.5), (-0.75, 0.5)),
    )
    crown = painter.mixed(
        ("green", "green", "green", "orange", "red"),
        ("yellow", "red", "green"),
        ("dotted-t", "speckled-t"),
    )
    return (
        ThingPart("trunk", box(-0.14, 0.1, 0.14, 1), painter.plain("brown")),
        ThingPart("crown", round_crown if rng.random() < 0.5 else pointed, crown),
    )


def car(rng: np.random.Generator, painter: Painter) -> Parts:
    """A body, a cabin with a window, two wheels."""
    body = painter.mixed(_except(BASIC_COLOURS, "brown"), plain=0.7)
    cabin = polygon((-0.4, -0.45), (0.3, -0.45), (0.6, 0.05), (-0.65, 0.05))
    wheels = union(disc(-0.55, 0.45, 0.26), disc(0.5, 0.45, 0.26))
    hubs = union(disc(-0.55, 0.45, 0.1), disc(0.5, 0.45, 0.1))
    glass = polygon((-0.33, -0.34), (0.24, -0.34), (0.43, 0), (-0.5, 0))
    return (
        ThingPart("cabin", cabin, body),
        ThingPart("window", glass, painter.plain("blue", "white", "grey")),
        ThingPart("body", union(box(-1, 0, 0.85, 0.45), disc(0.8, 0.23, 0.2, 0.22)), body),
        ThingPart("wheel", wheels, painter.plain("black")),
        ThingPart("core", hubs, painter.plain("grey")),
    )


def boat(rng: np.random.Generator, painter: Painter) -> Parts:
    """A hull, a mast and two sails."""
    sail = painter.mixed(VIVID, textures=("striped-t", "wavy-t", "checked-t"))
    sails = union(
        polygon((0.12, -0.9), (0.85, 0.3), (0.12, 0.3)),
        polygon((-0.1, -0.6), (-0.1, 0.3), (-0.65, 0.3)),
    )
    hull = painter.mixed(("brown", "red", "blue", "white", "black"), textures=("striped-t",))
    return (
        ThingPart("mast", box(-0.06, -1, 0.06, 0.5), painter.plain("brown")),
        ThingPart("sail", sails, sail),
        ThingPart("hull", polygon((-1, 0.4), (1, 0.4), (0.65, 0.95), (-0.65, 0.95)), hull),
    )


def flower(rng: np.random.Generator, painter: Painter) -> Parts:
    """Petals around a core, on a stem with two leaves."""
    blades = petals(int(rng.integers(5, 8)), 0.45, -0.4, 0.6)
    petal = painter.plain("red", "pink", "yellow", "purple", "white", "orange", "blue")
    leaves = union(disc(-0.27, 0.55, 0.3, 0.12), disc(0.27, 0.7, 0.3, 0.12))
    return (
        ThingPart("stem", box(-0.07, -0.3, 0.07, 1), painter.plain("green")),
        ThingPart("leaf", leaves, painter.plain("green")),
        ThingPart("petal", blades, petal),
        ThingPart(
            "core",
            disc(0, -0.4, 0.2),
            painter.plain(*_except(("yellow", "brown", "black"), petal.first.name)),
        ),
    )


def fish(rng: np.random.Generator, painter: Painter) -> Parts:
    """A body with a tail, a fin and an eye."""
    body = painter.mixed(VIVID, textures=("striped-t", "dotted-t", "zigzag-t", "wavy-t"))
    fins = painter.plain(*VIVID)
    tail = union(
        polygon((-0.4, 0), (-0.8, 0), (-1, -0.5)), polygon((-0.4, 0), (-1, 0.5), (-0.8, 0))
    )
    return (
        ThingPart("tail", tail, fins),
        ThingPart("fin", polygon((-0.2, -0.75), (0.35, -0.3), (-0.3, -0.3)), fins),
        ThingPart("body", disc(0.18, 0, 0.75, 0.45), body),
        ThingPart("eye", disc(0.6, -0.12, 0.11), painter.plain("black", "white")),
    )


def robot(rng: np.random.Generator, painter: Painter) -> Parts:
    """A head with eyes, a body, arms and legs."""
    metal = painter.mixed(("grey", "white", "blue", "orange", "red", "yellow"))
    limbs = painter.plain("grey", "black", "brown")
    arms = union(box(-0.72, -0.3, -0.5, 0.35), box(0.5, -0.3, 0.72, 0.35))
    legs = union(box(-0.36, 0.4, -0.12, 1), box(0.12, 0.4, 0.36, 1))
    eyes = union(disc(-0.17, -0.72, 0.1), disc(0.17, -0.72, 0.1))
    return (
        ThingPart("arm", arms, limbs),
        ThingPart("leg", legs, limbs),
        ThingPart("body", box(-0.5, -0.38, 0.5, 0.45), metal),
        ThingPart("head", box(-0.38, -1, 0.38, -0.42), painter.plain(metal.first.name)),
        ThingPart(
            "eye", eyes, painter.plain("yellow" if metal.first.name != "yellow" else "black")
        ),
    )


def mushroom(rng: np.random.Generator, painter: Painter) -> Parts:
    """A cap with spots on a stem."""
    cap = painter.plain("red", "brown", "orange", "purple")
    dome = without(disc(0, 0.05, 0.95, 0.9), box(-1, 0.05, 1, 1))
    spots = union(disc(-0.45, -0.3, 0.15), disc(0.08, -0.55, 0.17), disc(0.5, -0.22, 0.14))
    return (
        ThingPart("stem", box(-0.25, 0, 0.25, 1), painter.plain("white", "yellow")),
        ThingPart("cap", dome, cap),
        *([ThingPart("spot", spots, painter.plain("white"))] if rng.random() < 0.7 else []),
    )


def lamp(rng: np.random.Generator, painter: Painter) -> Parts:
    """A shade on a pole."""
    shade = painter.mixed(VIVID, textures=("striped-t", "dotted-t", "zigzag-t"))
    return (
        ThingPart(
            "pole",
            union(box(-0.07, -0.4, 0.07, 1), box(-0.35, 0.88, 0.35, 1)),
            painter.plain("black", "grey", "brown"),
        ),
        ThingPart("shade", polygon((-0.3, -1), (0.3, -1), (0.62, -0.3), (-0.62, -0.3)), shade),
    )


OBJECT_MAKERS: dict[str, Maker] = {
    "house": house,
    "tree": tree,
    "car": car,
    "boat": boat,
    "flower": flower,
    "fish": fish,
    "robot": robot,
    "mushroom": mushroom,
    "lamp": lamp,
}


def _except(names: tuple[str, ...], one: str) -> tuple[str, ...]:
    return tuple(name for name in names if name != one)
