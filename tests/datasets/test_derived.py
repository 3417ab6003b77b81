"""Concepts derived from the image: colour names and thirds."""

import pickle
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from helpers.support import examples
from hypothesis import given
from hypothesis import strategies as st

from optexp_jax.datasets import ConceptInfo, Dataset, Sample, check_sample, describe, image_of
from optexp_jax.datasets.colours import (
    BASIC_COLOURS,
    ColourNamer,
    Prototypes,
    default_namer,
    srgb_to_lab,
)
from optexp_jax.datasets.derived import with_derived
from optexp_jax.datasets.protocol import files_of
from optexp_jax.datasets.shapes import Shapes


@dataclass(frozen=True)
class Plain:
    """Two samples of one concept, on the upper left pixel."""

    names: tuple[str, ...] = ("spot",)
    side: int = 6

    def concepts(self) -> Sequence[ConceptInfo]:
        return [ConceptInfo(name) for name in self.names]

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Sample:
        spots = np.full((self.side, self.side), -1, np.int32)
        spots[0, 0] = 0
        return Sample(f"sample {index}", self.image(index), (spots,), (0,))

    def image(self, index: int) -> np.ndarray:
        image = np.full((self.side, self.side, 3), 250, np.uint8)
        image[:, : self.side // 2] = (200, 25, 30) if index else (25, 70, 200)
        return image

    def files(self) -> Sequence[Path]:
        return [Path("a.png")]


# CIELAB of sRGB colours under D65, as published in many places.
KNOWN = [
    ((255, 255, 255), (100.0, 0.0, 0.0)),
    ((0, 0, 0), (0.0, 0.0, 0.0)),
    ((255, 0, 0), (53.24, 80.09, 67.20)),
    ((0, 255, 0), (87.73, -86.18, 83.18)),
    ((0, 0, 255), (32.30, 79.19, -107.86)),
    ((255, 255, 0), (97.14, -21.55, 94.48)),
    ((128, 128, 128), (53.59, 0.0, 0.0)),
    ((5, 5, 5), (1.37, 0.0, 0.0)),
]


@pytest.mark.parametrize(("rgb", "lab"), KNOWN)
def test_lab_of_known_colours(rgb: tuple[int, int, int], lab: tuple[float, float, float]):
    found = srgb_to_lab(np.array(rgb, np.uint8))
    np.testing.assert_allclose(found, lab, atol=0.02)


def test_lab_is_increasing_in_grey_and_neutral():
    greys = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)
    lab = srgb_to_lab(greys)
    assert (np.diff(lab[:, 0]) > 0).all()
    np.testing.assert_allclose(lab[:, 1:], 0, atol=1e-10)


def test_prototypes_have_their_own_names():
    prototypes = Prototypes.read()
    assert prototypes.names == BASIC_COLOURS
    assert set(prototypes.owners.tolist()) == set(range(11))
    np.testing.assert_array_equal(prototypes.nearest(prototypes.colours), prototypes.owners)


@pytest.mark.parametrize(
    ("rgb", "name"),
    [
        ((255, 0, 0), "red"),
        ((0, 255, 0), "green"),
        ((0, 0, 255), "blue"),
        ((255, 255, 0), "yellow"),
        ((255, 165, 0), "orange"),
        ((128, 0, 128), "purple"),
        ((255, 192, 203), "pink"),
        ((139, 69, 19), "brown"),
        ((0, 0, 0), "black"),
        ((128, 128, 128), "grey"),
        ((255, 255, 255), "white"),
        ((0, 0, 128), "blue"),
        ((0, 100, 0), "green"),
        ((139, 0, 0), "red"),
        ((135, 206, 235), "blue"),
        ((34, 139, 34), "green"),
    ],
)
def test_colours_that_everybody_names_alike(rgb: tuple[int, int, int], name: str):
    found = default_namer()(np.array([[rgb]], np.uint8))
    assert BASIC_COLOURS[found.item()] == name


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 12))
@examples(10)
def test_namer_gives_the_nearest_prototype(seed: int, height: int, width: int):
    """Against distances taken one by one; twice, as colours met before are looked up."""
    image = np.random.default_rng(seed).integers(0, 256, (height, width, 3)).astype(np.uint8)
    prototypes = Prototypes.read()
    lab = srgb_to_lab(prototypes.colours)
    namer = default_namer()
    for found in (namer(image), namer(image)):
        for row, column in np.ndindex(height, width):
            distances = np.linalg.norm(lab - srgb_to_lab(image[row, column]), axis=1)
            near = prototypes.owners[distances <= distances.min() + 1e-9]
            assert found[row, column] in near


def test_a_photograph_of_a_million_colours_takes_little_memory():
    codes = np.arange(2**24, step=2**24 // 2**18)
    colours = np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=-1).astype(np.uint8)
    prototypes = Prototypes.read()
    tracemalloc.start()
    found = prototypes.nearest(colours)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * 2**20, "all distances at once are 300 MB"
    some = slice(None, None, 997)
    assert np.array_equal(prototypes.nearest(colours[some]), found[some])


def test_namer_starts_without_any_colour():
    fresh, used = ColourNamer(Prototypes.read()), default_namer()
    image = np.random.default_rng(0).integers(0, 256, (20, 20, 3)).astype(np.uint8)
    np.testing.assert_array_equal(fresh(image), used(image))


def test_derived_concepts_follow_the_datasets_own():
    dataset = with_derived(Plain(), ["colour", "position"])
    assert isinstance(dataset, Dataset)
    names = [concept.name for concept in dataset.concepts()]
    assert names[0] == "spot"
    assert names[1:12] == [f"{name}-c" for name in BASIC_COLOURS]
    assert names[12:] == ["top-p", "middle-p", "bottom-p", "left-p", "centre-p", "right-p"]
    assert [concept.category for concept in dataset.concepts()][11:13] == ["colour", "position"]

    for index, left in enumerate(("blue-c", "red-c")):
        sample = check_sample(dataset[index], len(names))
        own, colours, down, across = sample.maps
        assert sample.everywhere == (0,)
        assert (own == 0).sum() == 1
        assert [names[k] for k in colours[0].tolist()] == [left] * 3 + ["white-c"] * 3
        assert [names[k] for k in down[:, 0].tolist()] == ["top-p", "middle-p", "bottom-p"]
        assert [names[k] for k in across[0].tolist()] == ["left-p", "centre-p", "right-p"]
        np.testing.assert_array_equal(image_of(dataset, index), Plain().image(index))


def test_order_of_the_derivations_is_the_one_asked_for():
    dataset = with_derived(Plain(), ["position", "colour", "position"])
    names = [concept.name for concept in dataset.concepts()]
    assert (names[1], names[7]) == ("top-p", "black-c")
    down, across, colours = dataset[1].maps[1:]
    assert names[colours[0, 0]] == "red-c"
    assert (names[down[2, 0]], names[across[0, 1]]) == ("bottom-p", "centre-p")


def test_the_rest_of_the_dataset_is_passed_on():
    dataset = with_derived(Plain(), ["colour"])
    assert len(dataset) == 2
    assert files_of(dataset) == (Path("a.png"),)
    assert "11 derived (colour)" in describe(dataset)
    copy = pickle.loads(pickle.dumps(dataset))
    np.testing.assert_array_equal(copy[0].maps[1], dataset[0].maps[1])


def test_nothing_to_derive():
    dataset = Plain()
    assert with_derived(dataset, []) is dataset


def test_clashes_are_refused_by_name():
    with pytest.raises(ValueError, match=r"red-c.*'colour' cannot be added"):
        with_derived(Plain(("spot", "red-c")), ["colour"])
    with pytest.raises(ValueError, match="Leave 'colour' out"):
        with_derived(Shapes(1), ["position", "colour"])
    assert with_derived(Shapes(1, size=16), ["position"])[0].maps[-1].shape == (1, 3)


def test_unknown_derivations():
    with pytest.raises(ValueError, match="Did you mean 'colour'"):
        with_derived(Plain(), ["color"])
    with pytest.raises(TypeError, match="list"):
        with_derived(Plain(), "colour")
