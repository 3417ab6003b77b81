"""Broden, written as it is distributed, with what is odd in it."""

import logging
from pathlib import Path

import numpy as np
import pytest
from helpers.dataset_fixtures import (
    BRODEN_CATEGORIES,
    BrodenImage,
    assert_explained,
    blocks,
    masks_of,
    save,
    stretched,
    write_broden,
    write_table,
)
from PIL import Image

from optexp_jax.datasets import BadSampleError, ConceptInfo, Dataset, DatasetSpec, LayoutError
from optexp_jax.datasets.broden import open_broden

SHAPE = (16, 16)
# Numbers above 255 need the second channel.
LABELS = [(f"label{k}", "object(12);part(3)") for k in range(1, 301)]
LABELS[0] = ("red-c", "color(9)")
LABELS[1] = ("blue-c", "color(9)")
LABELS[2] = ("sky", "object(12)")
LABELS[3] = ("wheel", "object(2);part(40)")
LABELS[4] = ("street-s", "scene(5)")
LABELS[5] = ("banded", "texture(5)")
LABELS[6] = ("wood", "material(36);object(3)")
LABELS[298] = ("car", "object(12)")

COLOURS = [blocks(k, SHAPE, [0, 1, 2]) for k in range(4)]
OBJECTS = [blocks(k + 10, SHAPE, [0, 3, 299, 300]) for k in range(3)]
OBJECTS.append(blocks(20, (26, 26), [0, 3, 299, 300]))  # of another resolution
PARTS = [blocks(30, SHAPE, [0, 4, 40], n=3), blocks(31, SHAPE, [0, 41, 4], n=3)]

IMAGES = [
    BrodenImage(
        "ade20k/ADE_train_00000001.jpg",
        "train",
        {"color": [COLOURS[0]], "object": [OBJECTS[0]], "part": PARTS, "scene": [5]},
    ),
    BrodenImage(  # a scene that was filtered out; grey-scale
        "ade20k/ADE_val_00000002.jpg",
        "val",
        {"color": [COLOURS[1]], "object": [OBJECTS[1]], "scene": [0]},
        mode="L",
    ),
    BrodenImage(  # an empty mask
        "ade20k/ADE_train_00000003.jpg",
        "train",
        {"color": [COLOURS[2]], "object": [np.zeros(SHAPE, np.int64)], "scene": [5]},
    ),
    BrodenImage(
        "ade20k/ADE_val_00000004.jpg", "val", {"color": [COLOURS[3]], "object": [OBJECTS[3]]}
    ),
    BrodenImage("dtd/banded_0002.jpg", "train", {"texture": [6, 7]}, size=(24, 20)),
    BrodenImage("opensurfaces/12.jpg", "val", {"material": [blocks(50, SHAPE, [0, 7])]}),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_broden(tmp_path / "broden1_224", LABELS, IMAGES)


def expected_masks(place: int, shape: tuple[int, int]) -> np.ndarray:
    masks = np.zeros((len(LABELS) + 1, *shape), bool)
    for items in IMAGES[place].cells.values():
        for item in items:
            at_shape = np.full(shape, item) if isinstance(item, int) else stretched(item, shape)
            for number in range(1, len(LABELS) + 1):
                masks[number] |= at_shape == number
    return masks


def test_the_ade20k_part(root: Path):
    dataset = open_broden(root)
    assert isinstance(dataset, Dataset)
    assert len(dataset) == 4
    for place in range(4):
        sample = dataset[place]
        assert sample.name == IMAGES[place].image
        with Image.open(root / "images" / sample.name) as image:
            np.testing.assert_array_equal(sample.image, np.asarray(image.convert("RGB")))
        found = masks_of(sample, 301, SHAPE)
        np.testing.assert_array_equal(found, expected_masks(place, SHAPE))
    assert [len(dataset[place].maps) for place in range(4)] == [4, 2, 2, 2]
    assert dataset[3].maps[1].shape == (26, 26)
    assert "its ade20k part: 4 images, 301 concepts" in dataset.describe()


def test_all_of_it(root: Path):
    dataset = open_broden(root, subset="all")
    assert [sample.name for sample in map(dataset.__getitem__, range(6))] == [
        entry.image for entry in IMAGES
    ]
    assert dataset[4].maps == ()
    assert dataset[4].everywhere == (6, 7)
    for place in range(6):
        found = masks_of(dataset[place], 301, SHAPE)
        np.testing.assert_array_equal(found, expected_masks(place, SHAPE))


def test_parts_and_splits(root: Path):
    assert len(open_broden(root, subset="dtd")) == 1
    assert len(open_broden(root, split="val")) == 2
    assert len(open_broden(root, subset="all", split="train")) == 3
    with pytest.raises(LayoutError, match=r"no subset 'pascal'; it has all, ade20k, dtd, opens"):
        open_broden(root, subset="pascal")
    with pytest.raises(LayoutError, match=r"no split 'test'; it has all, train, val"):
        open_broden(root, split="test")


def test_concepts_are_the_published_ones(tmp_path: Path):
    # 1197 labels, and the empty concept in front, whose id is the number 0.
    labels = [(f"label{k}", "object(1)") for k in range(1, 1198)]
    root = write_broden(tmp_path / "broden1_227", labels, [BrodenImage("ade20k/a.jpg")])
    concepts = open_broden(root).concepts()
    assert len(concepts) == 1198
    assert concepts[0] == ConceptInfo("", None)
    assert concepts[1197] == ConceptInfo("label1197", "object")


def test_categories(root: Path):
    stated = {c.name: c.category for c in open_broden(root).concepts()}
    assert stated["red-c"] == "color"
    assert stated["wheel"] == "part"
    assert stated["wood"] == "material"
    # The category in which a label covers most wins over the number of images.
    for category, coverage in (("object", 3.5), ("part", 0.5)):
        write_table(
            root / f"c_{category}.csv",
            ["code", "number", "name", "frequency", "coverage"],
            [[1, 4, "wheel", 10, coverage]],
        )
    covered = {c.name: c.category for c in open_broden(root).concepts()}
    assert covered == {**stated, "wheel": "object"}


def test_numbers_left_out_and_names_given_twice(tmp_path: Path):
    root = write_broden(tmp_path, [("bar", ""), ("bar", "")], [BrodenImage("ade20k/a.jpg")])
    with (root / "label.csv").open("a") as file:
        file.write("4,fox,,10,0.5,\n")
    names = [c.name for c in open_broden(root).concepts()]
    assert names == ["", "bar (1)", "bar (2)", "unused label", "fox"]
    assert open_broden(root).concepts()[1].category is None


def test_a_category_that_is_missing(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    kept = [name for name in BRODEN_CATEGORIES if name != "part"]
    root = write_broden(tmp_path, LABELS, IMAGES[:1], columns=kept)
    with caplog.at_level(logging.WARNING):
        dataset = open_broden(root)
    assert "no column part" in caplog.text
    assert len(dataset[0].maps) == 2
    assert dataset[0].everywhere == (5,)


@pytest.mark.parametrize(
    ("file", "column"), [("index.csv", "image"), ("label.csv", "number"), ("label.csv", "name")]
)
def test_a_column_that_must_be_there(root: Path, file: str, column: str):
    text = (root / file).read_text()
    (root / file).write_text(text.replace(column, "other", 1))
    with pytest.raises(LayoutError, match=rf"{file} lacks the column '{column}'"):
        open_broden(root)


def test_bad_samples_are_named(root: Path):
    folder = root / "images" / "ade20k"
    dataset = open_broden(root)
    (folder / "ADE_train_00000001_part_2.png").write_bytes(b"\x89PNG broken")
    with pytest.raises(BadSampleError, match=r"ADE_train_00000001_part_2\.png") as error:
        dataset[0]
    assert error.value.name == "ade20k/ADE_train_00000001.jpg"
    (folder / "ADE_val_00000002_object.png").unlink()
    with pytest.raises(BadSampleError, match=r"ADE_val_00000002_object\.png does not exist"):
        dataset[1]
    jpeg = (folder / "ADE_train_00000003.jpg").read_bytes()
    (folder / "ADE_train_00000003.jpg").write_bytes(jpeg[: len(jpeg) // 2])
    with pytest.raises(BadSampleError, match=r"ADE_train_00000003\.jpg: .*(?i:truncated)"):
        dataset.image(2)
    too_large = np.full((*SHAPE, 3), [45, 1, 0], np.uint8)  # 45 + 256 = 301
    save(folder / "ADE_val_00000004_color.png", too_large)
    with pytest.raises(BadSampleError, match=r"_color\.png holds values that label\.csv .*: 301\."):
        dataset[3]


def test_an_unknown_number_of_a_whole_image(tmp_path: Path):
    root = write_broden(tmp_path, LABELS, [BrodenImage("ade20k/a.jpg", cells={"scene": [301]})])
    with pytest.raises(BadSampleError, match=r"label 301, unknown"):
        open_broden(root)[0]


@pytest.mark.parametrize("wrong", [".", "broden1_224/images", "broden1_224/images/ade20k"])
def test_a_root_near_by_is_hinted_at(root: Path, wrong: str):
    with pytest.raises(LayoutError, match=r"expected index\.csv.*you meant .*broden1_224\."):
        open_broden(root.parent / wrong)


def test_no_root(root: Path):
    with pytest.raises(LayoutError, match=r"no folder .*broden1_223\. .* with broden1_224 there"):
        open_broden(root.parent / "broden1_223")
    archive = root.parent / "broden1_224.zip"
    archive.write_bytes(b"PK")
    with pytest.raises(LayoutError, match=r"is a file.* Unpack it first"):
        open_broden(archive)


def test_from_files_to_an_explanation(root: Path):
    masks = np.stack([expected_masks(place, SHAPE) for place in range(4)], axis=1)
    bitmap = (masks[299] | masks[4]) & ~masks[1]
    dataset = DatasetSpec.parse(f"broden:{root}").open()
    assert_explained(dataset, bitmap, "(car OR wheel) AND NOT red-c", root.parent)


def test_an_index_that_is_cut_off(root: Path):
    """Cells at its end would be missing annotations otherwise."""
    index = (root / "index.csv").read_bytes()
    (root / "index.csv").write_bytes(index.rstrip().rpartition(b",")[0].rpartition(b",")[0])
    with pytest.raises(LayoutError, match=r"row \d+ of .*index\.csv has fewer than 12 cells"):
        open_broden(root)
