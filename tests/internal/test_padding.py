"""The generated scenes: what they hold and depend on, and that their annotations are exact."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from helpers.support import as_users_run_it, examples
from hypothesis import given
from hypothesis import strategies as st

from optexp_jax.datasets import Dataset, DatasetSpec, check_sample
from optexp_jax.datasets.colours import default_namer, srgb_to_lab
from optexp_jax.datasets.shapes import Shapes
from optexp_jax.datasets.shapes.canvas import Canvas, Thing, ThingPart
from optexp_jax.datasets.shapes.outlines import FIGURES, Outline, box, disc, polygon
from optexp_jax.datasets.shapes.paint import Paint, Painter, Shade
from optexp_jax.datasets.shapes.scenes import SCENE_TYPES
from optexp_jax.datasets.shapes.things import OBJECT_MAKERS
from optexp_jax.datasets.shapes.vocabulary import (
    CONCEPT_IDS,
    CONCEPTS,
    MATERIALS,
    OBJECTS,
    SCENES,
    SHAPES,
)
from optexp_jax.datasets.shapes.vocabulary import (
    TEXTURES as TEXTURE_NAMES,
)

with as_users_run_it():
    FIRST = [Shapes(150, size=40)[k] for k in range(150)]
KINDS, PARTS, COLOURS, TEXTURES, SIZES, TILTS, SHADOWS, OCCLUDED = range(8)


def ids(names: tuple[str, ...]) -> list[int]:
    return [CONCEPT_IDS[name] for name in names]


def test_is_a_dataset():
    dataset = Shapes(3)
    assert isinstance(dataset, Dataset)
    assert len(dataset) == 3
    assert len({concept.name for concept in dataset.concepts()}) == len(dataset.concepts()) >= 60
    assert all(concept.category for concept in dataset.concepts())
    assert pickle.loads(pickle.dumps(dataset)) == dataset
    assert "3 generated" in dataset.describe()


def test_every_concept_occurs_and_every_sample_is_sound():
    met: set[int] = set()
    for sample in FIRST:
        check_sample(sample, len(CONCEPTS))
        met.update(sample.everywhere)
        for values in sample.maps:
            met.update(np.unique(values).tolist())
    assert [CONCEPTS[k].name for k in range(len(CONCEPTS)) if k not in met] == []
    assert len({sample.name for sample in FIRST}) == len(FIRST)


def test_vocabulary_is_complete():
    assert set(SCENE_TYPES) == set(SCENES)
    assert set(FIGURES) == set(SHAPES)
    assert set(OBJECT_MAKERS) == set(OBJECTS)


@given(st.integers(0, 2**40), st.integers(0, 500), st.integers(8, 40), st.integers(8, 40))
@examples(10)
def test_a_sample_depends_on_seed_index_and_size_alone(seed: int, k: int, height: int, width: int):
    sample = Shapes(k + 1, seed, (height, width))[k]
    again = Shapes(k + 100, seed, (height, width))[k]
    assert sample.name == again.name
    assert sample.everywhere == again.everywhere
    np.testing.assert_array_equal(sample.image, again.image)
    for ours, theirs in zip(sample.maps, again.maps, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert sample.image.shape == (height, width, 3)
    assert {values.shape for values in sample.maps} == {(height, width)}


def test_seeds_and_samples_differ():
    images = [Shapes(2, seed, 32)[k].image for seed in (0, 1) for k in (0, 1)]
    assert not any((a == b).all() for a, b in pairwise(images))


def test_the_scene_is_the_same_at_any_resolution():
    for k in range(10):
        coarse, fine = Shapes(10, size=32)[k], Shapes(10, size=96)[k]
        assert coarse.everywhere == fine.everywhere
        # The centre of a coarse pixel is the centre of the middle one of nine fine pixels.
        shrunk = fine.maps[KINDS][1::3, 1::3]
        assert np.mean(shrunk == coarse.maps[KINDS]) > 0.97


@pytest.mark.parametrize("place", range(0, 150, 7))
def test_layers_agree(place: int):
    """What holds together in every scene: no pixel has half an annotation."""
    maps = FIRST[place].maps
    kinds = maps[KINDS]
    things = np.isin(kinds, ids(SHAPES + OBJECTS))
    np.testing.assert_array_equal(things, ~np.isin(kinds, ids(MATERIALS)))
    np.testing.assert_array_equal(things, maps[SIZES] >= 0)
    assert (maps[COLOURS] >= 0).all()
    assert (maps[TEXTURES] >= 0).all()
    for layer in (PARTS, TILTS, OCCLUDED):
        assert not (maps[layer][~things] >= 0).any()
    assert (maps[PARTS][np.isin(kinds, ids(OBJECTS))] >= 0).all(), "objects are made of parts"


def test_scene_types_hold_what_they_are_made_of():
    for sample in FIRST:
        scene = SCENE_TYPES[CONCEPTS[sample.everywhere[0]].name]
        allowed = {scene.upper.material, scene.lower.material, "cloud" if scene.clouds else ""}
        allowed |= {scene.hills.material} if scene.hills else set()
        shown = {CONCEPTS[k].name for k in np.unique(sample.maps[KINDS]).tolist()}
        assert shown <= allowed | set(scene.objects) | set(SHAPES)


def solid(name: str, *rgb: float) -> Paint:
    colour = Shade(name, np.array(rgb, np.float32))
    return Paint("plain-t", colour, colour, 0.1, np.zeros((16, 16), bool))


def place(kind: str, outline: Outline, paint: Paint, x: float, y: float) -> Thing:
    return Thing(kind, (ThingPart(None, outline, paint),), x, y, 0.25, 0.0, "large", False)


def test_what_is_painted_is_what_is_annotated():
    """Two squares on a plain ground, by hand: pixels, shadow and what is covered."""
    canvas = Canvas(40, 40)
    everywhere = np.ones((40, 40), bool)
    canvas.cover("sky", everywhere, solid("blue", 0, 0, 1), np.ones((40, 40), np.float32))
    whole = box(-1, -1, 1, 1)
    canvas.paint(place("square", whole, solid("red", 1, 0, 0), 0.375, 0.5), (0.0, 0.0))
    assert not (canvas.occluded() >= 0).any()
    canvas.paint(place("rectangle", whole, solid("green", 0, 1, 0), 0.5, 0.5), (0.0, 0.2))

    rectangle, square = np.zeros((2, 40, 40), bool)
    rectangle[10:30, 10:30] = True
    square[10:30, 5:10] = True  # what the rectangle leaves of it
    shadow = np.zeros((40, 40), bool)
    shadow[30:32, 10:30] = True  # a fifth of the radius of ten pixels
    kinds, _, colours, _, sizes, tilts, shadows, occluded = canvas.maps()
    np.testing.assert_array_equal(kinds == CONCEPT_IDS["rectangle"], rectangle)
    np.testing.assert_array_equal(kinds == CONCEPT_IDS["square"], square)
    np.testing.assert_array_equal(kinds == CONCEPT_IDS["sky"], ~square & ~rectangle)
    np.testing.assert_array_equal(colours == CONCEPT_IDS["green-c"], rectangle)
    np.testing.assert_array_equal(sizes == CONCEPT_IDS["large"], square | rectangle)
    np.testing.assert_array_equal(shadows == CONCEPT_IDS["shadow"], shadow)
    np.testing.assert_array_equal(occluded == CONCEPT_IDS["occluded"], square)
    assert not (tilts >= 0).any()
    np.testing.assert_array_equal(canvas.image.argmax(axis=2) == 1, rectangle)
    np.testing.assert_array_equal(canvas.image.argmax(axis=2) == 0, square)
    assert (canvas.image[shadow, 2] < 0.6).all()


@pytest.mark.parametrize("texture", TEXTURE_NAMES[1:])
def test_both_colours_of_a_texture_are_annotated(texture: str):
    painter = Painter(np.random.default_rng(0))
    paint = painter.mixed(["red"], ["white"], [texture], plain=0.0)
    x, y = np.meshgrid(*[np.linspace(0, 1, 64, dtype=np.float32)] * 2)
    rgb, concepts = paint.lay(x, y)
    white = concepts == CONCEPT_IDS["white-c"]
    assert 0.1 < white.mean() < 0.9
    np.testing.assert_array_equal(white, (rgb == paint.second.rgb).all(axis=-1))
    np.testing.assert_array_equal(concepts == CONCEPT_IDS["red-c"], ~white)


def test_paints_look_like_their_names():
    painter = Painter(np.random.default_rng(0))
    namer = default_namer()
    for name in namer.prototypes.names:
        shades = np.stack([painter.colour([name]).rgb for _ in range(40)])
        image = np.rint(shades * 255).astype(np.uint8)[None]
        assert np.mean(namer(image) == namer.prototypes.names.index(name)) > 0.8, name


def test_photographs_show_the_annotated_colours():
    """Light, blur and noise leave the colours recognisable: a network has something to learn."""
    red = np.concatenate(
        [s.image[s.maps[COLOURS] == CONCEPT_IDS["red-c"]] for s in FIRST[:60]], axis=0
    )
    blue = np.concatenate(
        [s.image[s.maps[COLOURS] == CONCEPT_IDS["blue-c"]] for s in FIRST[:60]], axis=0
    )
    red_lab, blue_lab = (np.median(srgb_to_lab(pixels), axis=0) for pixels in (red, blue))
    assert red_lab[1] > 25
    assert blue_lab[2] < -15


def test_outlines():
    u, v = np.meshgrid(*[np.linspace(-1.2, 1.2, 121, dtype=np.float32)] * 2)
    area = 2.4**2 / u.size
    assert np.count_nonzero(disc(0, 0, 0.5)(u, v)) * area == pytest.approx(np.pi / 4, rel=0.02)
    assert np.count_nonzero(box(-1, -0.5, 1, 0.5)(u, v)) * area == pytest.approx(2, rel=0.05)
    triangle = polygon((0, -1), (1, 1), (-1, 1))(u, v)
    assert np.count_nonzero(triangle) * area == pytest.approx(2, rel=0.03)
    for name, outline in FIGURES.items():
        filled = outline(u, v)
        assert filled.any(), name
        assert not filled[np.maximum(abs(u), abs(v)) > 1.02].any(), f"{name} leaves its square"


@pytest.mark.parametrize(
    ("settings", "named"),
    [({"n": 0}, "n is 0"), ({"seed": -1}, "-1"), ({"size": 7}, "7"), ({"size": (64, 3)}, "3")],
)
def test_bad_settings(settings: dict, named: str):
    with pytest.raises(ValueError, match=named):
        Shapes(**settings)


@pytest.mark.parametrize("index", [-1, 5, 100])
def test_no_such_sample(index: int):
    with pytest.raises(IndexError, match=str(index)):
        Shapes(5)[index]


def test_opens_by_spec():
    assert DatasetSpec.parse("shapes:n=7,seed=3,size=16").open() == Shapes(7, 3, 16)
    assert DatasetSpec.parse("shapes:size=16,width=24").open() == Shapes(size=(16, 24))
