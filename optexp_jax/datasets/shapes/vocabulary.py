"""The concepts of the generated scenes."""

from optexp_jax.datasets.colours import BASIC_COLOURS
from optexp_jax.datasets.protocol import ConceptInfo

SHAPES = (
    "circle",
    "ellipse",
    "square",
    "rectangle",
    "triangle",
    "diamond",
    "hexagon",
    "star",
    "cross",
    "ring",
    "heart",
    "crescent",
)
OBJECTS = ("house", "tree", "car", "boat", "flower", "fish", "robot", "mushroom", "lamp")
PARTS = (
    "rim",
    "core",
    "wall",
    "roof",
    "door",
    "window",
    "chimney",
    "crown",
    "trunk",
    "body",
    "cabin",
    "wheel",
    "hull",
    "mast",
    "sail",
    "petal",
    "stem",
    "leaf",
    "tail",
    "fin",
    "eye",
    "head",
    "arm",
    "leg",
    "cap",
    "spot",
    "shade",
    "pole",
)
MATERIALS = (
    "sky",
    "cloud",
    "night sky",
    "grass",
    "water",
    "sand",
    "road",
    "brick",
    "wallpaper",
    "floor",
    "rock",
    "snow",
)
TEXTURES = (
    "plain-t",
    "striped-t",
    "dotted-t",
    "checked-t",
    "grid-t",
    "wavy-t",
    "zigzag-t",
    "speckled-t",
)
SIZES = ("small", "medium", "large")
STATES = ("tilted", "occluded", "shadow")
SCENES = (
    "meadow-s",
    "beach-s",
    "street-s",
    "room-s",
    "night-s",
    "mountain-s",
    "desert-s",
    "underwater-s",
    "gallery-s",
)
COLOURS = tuple(f"{name}-c" for name in BASIC_COLOURS)

CONCEPTS = tuple(
    ConceptInfo(name, category)
    for category, names in (
        ("shape", SHAPES),
        ("object", OBJECTS),
        ("part", PARTS),
        ("colour", COLOURS),
        ("texture", TEXTURES),
        ("size", SIZES),
        ("material", MATERIALS),
        ("state", STATES),
        ("scene", SCENES),
    )
    for name in names
)

CONCEPT_IDS = {concept.name: place for place, concept in enumerate(CONCEPTS)}
