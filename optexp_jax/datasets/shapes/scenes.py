"""Scenes: a background by scene type, and which things stand where."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32

from optexp_jax.datasets.shapes.canvas import Canvas, Thing
from optexp_jax.datasets.shapes.noise import smooth_noise
from optexp_jax.datasets.shapes.paint import Paint, Painter
from optexp_jax.datasets.shapes.things import OBJECT_MAKERS, figure
from optexp_jax.datasets.shapes.vocabulary import SHAPES

SMALL, LARGE = 0.095, 0.165
"""Radii, in shorter sides: below the first a thing is small, from the second on it is large."""


@dataclass(frozen=True)
class Ground:
    """A material of a background and the paints that it comes in."""

    material: str
    colours: tuple[str, ...]
    textures: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    roughness: float = 0.08
    """Strength of the blotches of light on it."""
    fading: float = 0.0
    """How much brighter it is at its upper end."""
    speckles: float = 0.2


@dataclass(frozen=True)
class SceneType:
    """What a scene of a type is made of."""

    upper: Ground
    lower: Ground
    horizon: tuple[float, float]
    """Between which heights (0 top, 1 bottom) the lower ground may begin."""
    objects: tuple[str, ...]
    """Kinds that stand on the ground, or swim."""
    hills: Ground | None = None
    """Ground that rises from the horizon."""
    clouds: bool = False
    floating: bool = False
    """Whether objects keep to the ground or lie anywhere."""
    n_objects: tuple[int, int] = (1, 4)
    n_figures: tuple[int, int] = (1, 4)


SKY = Ground("sky", ("blue", "blue", "white", "grey"), fading=-0.15)
DUSK = Ground("sky", ("orange", "pink", "purple", "yellow"), fading=-0.2)
NIGHT = Ground("night sky", ("black", "blue"), ("speckled-t",), ("white",), 0.1, -0.1, 0.04)
CLOUD = Ground("cloud", ("white",))
GRASS = Ground("grass", ("green",), ("speckled-t", "wavy-t"), ("green", "green", "yellow"), 0.14)
SAND = Ground("sand", ("yellow", "brown", "orange"), ("wavy-t", "speckled-t"), ("brown",), 0.1)
WATER = Ground("water", ("blue", "green"), ("wavy-t",), ("blue",), 0.1, 0.15)
DEEP = Ground("water", ("blue", "blue", "green", "purple"), roughness=0.12, fading=0.5)
ROAD = Ground("road", ("grey", "black"), ("speckled-t",), ("grey",), 0.1)
BRICK = Ground("brick", ("red", "brown", "grey"), ("grid-t", "checked-t"), ("white", "brown"))
PAPER = Ground(
    "wallpaper",
    ("white", "yellow", "pink", "green", "blue", "purple"),
    ("striped-t", "dotted-t", "zigzag-t", "grid-t"),
    roughness=0.05,
)
BARE = Ground("wallpaper", ("white", "grey", "white", "black"), roughness=0.04)
FLOOR = Ground("floor", ("brown", "grey", "white"), ("checked-t", "striped-t"), ("brown", "black"))
ROCK = Ground("rock", ("grey", "brown", "purple"), ("zigzag-t", "speckled-t"), ("black",), 0.2)
SNOW = Ground("snow", ("white",), ("speckled-t", "wavy-t"), ("white", "grey"), 0.06)

SCENE_TYPES: dict[str, SceneType] = {
    "meadow-s": SceneType(
        SKY, GRASS, (0.35, 0.65), ("tree", "flower", "mushroom", "house"), clouds=True
    ),
    "beach-s": SceneType(
        SKY, SAND, (0.6, 0.8), ("boat", "boat", "flower", "fish"), hills=WATER, clouds=True
    ),
    "street-s": SceneType(
        BRICK, ROAD, (0.5, 0.7), ("car", "car", "lamp", "robot", "house"), n_figures=(0, 3)
    ),
    "room-s": SceneType(PAPER, FLOOR, (0.6, 0.8), ("lamp", "robot", "flower"), n_figures=(2, 5)),
    "night-s": SceneType(NIGHT, GRASS, (0.5, 0.75), ("house", "tree", "lamp", "car")),
    "mountain-s": SceneType(
        SKY, SNOW, (0.55, 0.75), ("tree", "house"), hills=ROCK, clouds=True, n_figures=(0, 3)
    ),
    "desert-s": SceneType(DUSK, SAND, (0.45, 0.7), ("car", "robot", "mushroom"), hills=ROCK),
    "underwater-s": SceneType(
        DEEP, SAND, (0.75, 0.92), ("fish",), floating=True, n_objects=(2, 6), n_figures=(0, 3)
    ),
    "gallery-s": SceneType(
        BARE, FLOOR, (0.75, 0.9), ("robot", "lamp"), n_objects=(0, 2), n_figures=(4, 9)
    ),
}


@dataclass(frozen=True)
class Placed:
    """A thing, and how near it is: nearer things cover farther ones."""

    depth: float
    thing: Thing


class SceneMaker:
    """Draws one scene. What is where does not depend on the canvas's resolution."""

    def __init__(self, rng: np.random.Generator, scene: str):
        self._rng = rng
        self._painter = Painter(rng)
        self._type = SCENE_TYPES[scene]

    def draw(self, canvas: Canvas) -> None:
        horizon = self._rng.uniform(*self._type.horizon)
        self._background(canvas, horizon)
        height, width = (side / canvas.unit for side in canvas.shape)
        things = [
            *self._figures(height, width),
            *self._objects(height, width, horizon * height),
        ]
        shadow = self._rng.uniform(-0.35, 0.35), self._rng.uniform(0.1, 0.3)
        for placed in sorted(things, key=lambda placed: placed.depth):
            canvas.paint(placed.thing, shadow)

    def _background(self, canvas: Canvas, horizon: float) -> None:
        height, width = canvas.shape
        y = (np.arange(height, dtype=np.float32)[:, None] + 0.5) / height
        y = np.broadcast_to(y, canvas.shape)
        upper, lower, hills = self._type.upper, self._type.lower, self._type.hills
        self._cover(canvas, upper, y < 2, y, 0.0, horizon)
        if self._type.clouds:
            self._cover(canvas, CLOUD, self._clouds(canvas, horizon), y, 0.0, horizon)
        if hills is not None:
            rise = self._rng.uniform(0.05, 0.3)
            bumps = self._ridge(width, 0.0 if hills.material == "water" else rise)
            self._cover(canvas, hills, y > horizon - rise / 2 - bumps, y, horizon - rise, horizon)
        wobble = self._ridge(width, self._rng.uniform(0, 0.05))
        self._cover(canvas, lower, y > horizon + wobble, y, horizon, 1.0)

    def _cover(
        self,
        canvas: Canvas,
        ground: Ground,
        where: Bool[np.ndarray, "h w"],
        y: Float32[np.ndarray, "h w"],
        top: float,
        bottom: float,
    ) -> None:
        paint = self._paint(ground)
        height, width = canvas.shape
        along = np.clip((y - top) / (bottom - top), 0, 1)
        blotches = smooth_noise(self._rng, height, width, 9)
        light = 1 + ground.roughness * blotches - ground.fading * (along - 0.5)
        canvas.cover(ground.material, where, paint, light.astype(np.float32))

    def _paint(self, ground: Ground) -> Paint:
        if not ground.textures:
            return self._painter.plain(*ground.colours)
        return self._painter.mixed(
            ground.colours, ground.others or None, ground.textures, 0.5, ground.speckles
        )

    def _ridge(self, width: int, height: float) -> Float32[np.ndarray, " w"]:
        """A wavy line across the picture, between 0 and `height`."""
        line = smooth_noise(self._rng, 1, width, 7)[0]
        return (height * (0.5 + 0.5 * np.clip(line, -1, 1))).astype(np.float32)

    def _clouds(self, canvas: Canvas, horizon: float) -> Bool[np.ndarray, "h w"]:
        height, width = canvas.shape
        down, across = np.ogrid[0.5 / height : 1 : 1 / height, 0.5 / width : 1 : 1 / width]
        cloudy = np.zeros(canvas.shape, bool)
        for _ in range(self._rng.integers(0, 4)):
            x, y = self._rng.uniform(), self._rng.uniform(0.05, 0.7) * horizon
            wide, high = self._rng.uniform(0.1, 0.2), self._rng.uniform(0.03, 0.08)
            for shift, size in ((-0.5, 0.7), (0.0, 1.0), (0.55, 0.75)):  # three puffs
                u, v = (across - x - shift * wide) / wide, (down - y) / high
                cloudy |= u**2 + v**2 < size**2
        return cloudy

    def _figures(self, height: float, width: float) -> list[Placed]:
        """Simple shapes, anywhere."""
        rng = self._rng
        low, high = self._type.n_figures
        figures: list[Placed] = []
        for _ in range(rng.integers(low, high + 1)):
            kind = SHAPES[rng.integers(len(SHAPES))]
            x, y = rng.uniform(0.02, width - 0.02), rng.uniform(0.05, height - 0.05)
            radius, depth = rng.uniform(0.06, 0.22), rng.uniform(-0.5, 1)
            angle = self._tilt(0.4)
            if kind in ("circle", "ring"):  # It would not show.
                angle = 0.0
            figures.append(Placed(depth, self._thing(kind, x, y, radius, angle)))
        return figures

    def _objects(self, height: float, width: float, ground: float) -> list[Placed]:
        """Objects on the ground: far ones stand higher up and are smaller than near ones."""
        rng = self._rng
        low, high = self._type.n_objects
        objects: list[Placed] = []
        for _ in range(rng.integers(low, high + 1)):
            kind = self._type.objects[rng.integers(len(self._type.objects))]
            depth = rng.uniform()
            radius = (0.09 + 0.14 * depth) * rng.uniform(0.75, 1.25)
            foot = ground + (height - ground) * (0.1 + 0.8 * depth)
            anywhere = rng.uniform(0.1, height - 0.15)
            y = anywhere if self._type.floating else foot - 0.9 * radius
            x = rng.uniform(0.05, width - 0.05)
            objects.append(Placed(depth, self._thing(kind, x, y, radius, self._tilt(0.15))))
        return objects

    def _tilt(self, chance: float) -> float:
        """An angle that can be seen, or none."""
        angle = self._rng.uniform(0.25, 0.8) * int(self._rng.choice([-1, 1]))
        return angle if self._rng.random() < chance else 0.0

    def _thing(self, kind: str, x: float, y: float, radius: float, angle: float) -> Thing:
        size = "small" if radius < SMALL else "medium" if radius < LARGE else "large"
        if kind in OBJECT_MAKERS:
            parts = OBJECT_MAKERS[kind](self._rng, self._painter)
        else:
            parts = figure(kind, self._rng, self._painter)
        return Thing(kind, parts, x, y, radius, angle, size, angle != 0)
