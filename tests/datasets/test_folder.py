"""A folder of images, label maps and tables: what is found, and what is refused."""

import logging
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.dataset_fixtures import (
    assert_explained,
    blocks,
    masks_of,
    picture,
    save,
    save_palette,
    stretched,
    write_table,
)

from optexp_jax.datasets import BadSampleError, ConceptInfo, Dataset, DatasetSpec, LayoutError
from optexp_jax.datasets.folder import open_folder

SHAPE = (14, 20)
STEMS = ["a", "b_1", "b_2", "sub/c"]
OBJECTS = {stem: blocks(k, SHAPE, [0, 1, 2, 300]) for k, stem in enumerate(STEMS)}
OBJECTS["b_2"] = blocks(7, (21, 30), [0, 1, 2, 300])  # of another resolution
COLOURS = {stem: blocks(k + 20, SHAPE, [1, 2, 255]) for k, stem in enumerate(STEMS)}
NAMES = [
    [1, "car", "thing", "objects"],
    [2, "sky", "thing", "objects"],
    [300, "road", "", "objects"],
    [1, "red", "tone", "colours"],
    [2, "car", "tone", "colours"],  # The same name: one concept.
]


def write_folder(root: Path) -> Path:
    for k, stem in enumerate(STEMS):
        save(root / "images" / f"{stem}.png", picture(k, SHAPE))
        save(root / "objects" / f"{stem}.png", OBJECTS[stem].astype(np.uint16))
        save_palette(root / "colours" / f"{stem}.png", COLOURS[stem])
    write_table(root / "labels.csv", ["value", "name", "category", "layer"], NAMES)
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "mine")


def expected_masks(stem: str, shape: tuple[int, int]) -> np.ndarray:
    objects, colours = stretched(OBJECTS[stem], shape), stretched(COLOURS[stem], shape)
    return np.stack([(objects == 1) | (colours == 2), objects == 2, objects == 300, colours == 1])


def simple(root: Path, maps: dict[str, Any], names: list[list[Any]], **files: Any) -> Path:
    """One image for each map, in `labels`, or for each file given."""
    for k, name in enumerate({**maps, **files}):
        save(root / "images" / f"{name}.png", picture(k, SHAPE))
    for name, values in maps.items():
        save(root / "labels" / f"{name}.png", np.asarray(values, np.uint8))
    write_table(root / "names.csv", ["value", "name"], names)
    return root


def test_what_is_found(root: Path):
    dataset = open_folder(root)
    assert isinstance(dataset, Dataset)
    assert dataset.concepts() == (
        ConceptInfo("car", "thing"),
        ConceptInfo("sky", "thing"),
        ConceptInfo("road", "objects"),  # Without a category, that of its layer.
        ConceptInfo("red", "tone"),
    )
    assert [dataset[x].name for x in range(4)] == [f"{stem}.png" for stem in STEMS]
    for x, stem in enumerate(STEMS):
        np.testing.assert_array_equal(dataset[x].image, picture(x, SHAPE))
        np.testing.assert_array_equal(masks_of(dataset[x], 4, SHAPE), expected_masks(stem, SHAPE))
    assert dataset.describe() == "mine: 4 images, 4 concepts (label maps: colours, objects)"


def test_what_is_given(root: Path):
    (root / "images").rename(root / "pictures")
    write_table(root / "other.csv", ["id", "class"], [[1, "one"], [2, "two"], [300, "three"]])
    dataset = open_folder(root, images="pictures", labels="objects", names="other.csv")
    assert [concept.name for concept in dataset.concepts()] == ["one", "two", "three"]
    both = open_folder(root, images="pictures", labels="objects+colours", names="other.csv")
    assert len(both[0].maps) == 2
    np.testing.assert_array_equal(
        both[0].maps[1], [[{1: 0, 2: 1, 255: -1}[v] for v in row] for row in COLOURS["a"].tolist()]
    )


def test_which_folders_are_label_maps(tmp_path: Path):
    root = simple(tmp_path, {"a": np.ones(SHAPE)}, [[1, "one"]])
    for folder in ("masks", "overlays"):
        save(root / folder / "a.png", np.ones(SHAPE, np.uint8))

    def found(**options: Any) -> list[str]:
        return [layer.folder.name for layer in open_folder(root, **options).layers]

    assert found() == ["labels", "masks"]
    assert found(labels="overlays") == ["overlays"]
    write_table(root / "names.csv", ["value", "name", "layer"], [[1, "one", "overlays"]])
    assert found() == ["overlays"]


def test_it_can_go_to_another_process(root: Path):
    dataset = pickle.loads(pickle.dumps(open_folder(root)))
    np.testing.assert_array_equal(masks_of(dataset[0], 4, SHAPE), expected_masks("a", SHAPE))


@pytest.mark.parametrize("text", [
    "value,name\n0,sky\n1,unlabelled\n",
    "\ufeffValue;Name\n0;sky\n1;Void\n",
    "id, label\n0, sky\n1, \n",
    "value\tname\n0\tsky\n1\tvoid\n",
])  # fmt: skip
def test_zero_may_have_a_name_and_no_label_is_no_concept(tmp_path: Path, text: str):
    values = blocks(0, SHAPE, [0, 1])
    root = simple(tmp_path, {"a": values}, [])
    (root / "names.csv").write_text(text, encoding="utf-8")
    dataset = open_folder(root)
    assert dataset.concepts() == (ConceptInfo("sky"),)
    np.testing.assert_array_equal(dataset[0].maps[0], np.where(values == 0, 0, -1))


def test_what_is_to_be_ignored(tmp_path: Path):
    values = blocks(0, SHAPE, [1, 2, 3, 77], n=20)
    root = simple(tmp_path, {"a": values}, [[1, "one"], [2, "two"], [3, "three"]])
    with pytest.raises(BadSampleError, match=r"a\.png holds values that names\.csv does not: 77\."):
        open_folder(root)[0]
    dataset = DatasetSpec.parse(f"folder:{root},ignore=one+3+77").open()
    assert [concept.name for concept in dataset.concepts()] == ["two"]
    np.testing.assert_array_equal(dataset[0].maps[0], np.where(values == 2, 0, -1))
    assert len(DatasetSpec.parse(f"folder:{root},ignore=77").open()[0].maps) == 1


def test_labels_of_images(root: Path):
    write_table(
        root / "tags.csv",
        ["image", "label", "category"],
        [["a.png", "street; night", "scene"], ["sub/c", "street", "scene"], ["a", "car", ""]],
    )
    dataset = open_folder(root)
    assert dataset.concepts()[4:] == (ConceptInfo("street", "scene"), ConceptInfo("night", "scene"))
    assert [dataset[x].everywhere for x in range(4)] == [(4, 5, 0), (), (), (4,)]


def test_labels_of_images_one_column_a_category(tmp_path: Path):
    for k in range(2):
        save(tmp_path / "images" / f"{k}.jpg", picture(k, SHAPE))
    rows = [["0.jpg", "street", ""], ["1.jpg", "park", "rain;fog"]]
    write_table(tmp_path / "labels.csv", ["file", "scene", "weather"], rows)
    dataset = open_folder(tmp_path)
    assert dataset.concepts() == (
        ConceptInfo("street", "scene"),
        ConceptInfo("park", "scene"),
        ConceptInfo("rain", "weather"),
        ConceptInfo("fog", "weather"),
    )
    assert dataset[1].maps == ()
    assert dataset[1].everywhere == (1, 2, 3)


def test_scenes_in_names(root: Path):
    dataset = open_folder(root, scene_prefix=1)
    assert dataset.concepts()[4:] == tuple(ConceptInfo(name, "scene") for name in "abc")
    assert [dataset[x].everywhere for x in range(4)] == [(4,), (5,), (5,), (6,)]


def test_label_maps_of_longer_names(tmp_path: Path):
    # Two maps of x; y has its own, beside which y_colour is a picture; x_1 is an image itself.
    maps = {
        k: blocks(place, SHAPE, [0, 1, 2]) for place, k in enumerate(["x_L", "x_R", "y", "x_1_L"])
    }
    for place, name in enumerate(["x", "x_1", "y"]):
        save(tmp_path / "images" / f"{name}.jpg", picture(place, SHAPE))
    for name, values in maps.items():
        save(tmp_path / "labels" / f"{name}.png", values.astype(np.uint8))
    save(tmp_path / "labels" / "y_colour.png", picture(9, SHAPE))
    write_table(tmp_path / "names.csv", ["value", "name"], [[1, "one"], [2, "two"]])
    dataset = open_folder(tmp_path)
    for x, names in enumerate([["x_L", "x_R"], ["x_1_L"], ["y"]]):
        found = dataset[x].maps
        assert len(found) == len(names)
        for values, name in zip(found, names, strict=True):
            np.testing.assert_array_equal(values, maps[name] - 1)
    only = open_folder(tmp_path, suffix="_L")
    assert [len(entry.maps) for entry in only.entries] == [1, 1, 0]


def test_odd_files(tmp_path: Path):
    empty = np.zeros(SHAPE, np.int64)
    root = simple(tmp_path, {"a": empty, "b": empty + 1}, [[1, "one"]], lost=None)
    save(root / "images" / "a.png", picture(0, SHAPE)[:, :, 0])
    save(root / "images" / "b.png", picture(0, SHAPE), "RGBA")
    (root / "images" / ".hidden.png").write_bytes(b"")
    dataset = open_folder(root)
    assert len(dataset) == 3
    assert not masks_of(dataset[0], 1, SHAPE).any()
    assert dataset[0].image.shape == dataset[1].image.shape == (*SHAPE, 3)
    with pytest.raises(BadSampleError, match=r"'lost\.png' .*no label map; looked in .*labels"):
        dataset[2]
    (root / "labels" / "b.png").write_bytes(b"broken")
    with pytest.raises(BadSampleError, match=r"labels/b\.png is not an image"):
        dataset[1]


def test_strays_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    root = simple(tmp_path, {"a": np.ones(SHAPE)}, [[1, "one"]])
    save(root / "labels" / "zzz.png", np.ones(SHAPE, np.uint8))
    write_table(root / "tags.csv", ["image", "label"], [["a", "x"], ["nosuch", "x"]])
    with caplog.at_level(logging.WARNING):
        open_folder(root)
    assert "1 label maps have no image: zzz.png" in caplog.text
    assert "names 1 images that do not exist: nosuch" in caplog.text


def change_nothing(root: Path) -> None:
    del root


def two_tables(root: Path) -> None:
    write_table(root / "classes.csv", ["id", "name"], [[1, "x"]])


def odd_header(root: Path) -> None:
    write_table(root / "names.csv", ["Pixel", "Klasse"], [[1, "one"]])


def no_names(root: Path) -> None:
    (root / "names.csv").unlink()


def two_names(root: Path) -> None:
    write_table(root / "names.csv", ["value", "name"], [[1, "x"], [1, "y"]])


def unknown_layer(root: Path) -> None:
    write_table(root / "names.csv", ["value", "name", "layer"], [[1, "x", "parts"]])


def not_a_number(root: Path) -> None:
    write_table(root / "names.csv", ["value", "name"], [["one", "x"]])


def negative(root: Path) -> None:
    write_table(root / "names.csv", ["value", "name"], [[-1, "x"]])


def twins(root: Path) -> None:
    save(root / "images" / "a.jpg", picture(0, SHAPE))


def strangers(root: Path) -> None:
    (root / "labels" / "a.png").rename(root / "labels" / "zzz.png")


def strange_tags(root: Path) -> None:
    write_table(root / "tags.csv", ["image", "label"], [["zzz.png", "x"]])


def no_images(root: Path) -> None:
    (root / "images" / "a.png").unlink()


def no_annotations(root: Path) -> None:
    (root / "labels" / "a.png").unlink()


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (two_tables, {}, r"both classes\.csv and names\.csv could be meant.* names=FILE"),
        (no_names, {}, r"no table of names\. Write labels\.csv with the columns value, name"),
        (odd_header, {}, r"names\.csv has the columns pixel, klasse\. Write labels\.csv"),
        (two_names, {}, r"two names to the value 1"),
        (unknown_layer, {}, r"the layer 'parts'; the folders of label maps: labels"),
        (not_a_number, {}, r"column 'value' holds 'one'"),
        (negative, {}, r"names the value -1"),
        (twins, {}, r"a\.jpg and a\.png in .*images differ only in their"),
        (strangers, {}, r"none of the label maps .* like a, label maps like zzz\.png"),
        (strange_tags, {}, r"none of the images that .*tags\.csv names exists"),
        (no_images, {}, r"no images in .*images"),
        (no_annotations, {}, r"neither a folder of label maps"),
        (change_nothing, {"labels": "parts"}, r"no folder of label maps .*parts"),
        (change_nothing, {"names": "lost.csv"}, r"no file .*lost\.csv"),
        (change_nothing, {"names": "names.csv", "image_labels": "names.csv"}, r"lacks .* 'image'"),
        (change_nothing, {"images": "photos"}, r"expected photos/ in"),
        (change_nothing, {"suffix": "_gt"}, r"an image followed by '_gt'"),
    ],
)  # fmt: skip
def test_folders_that_are_refused(tmp_path: Path, change, options: dict, message: str):
    root = simple(tmp_path, {"a": np.ones(SHAPE)}, [[1, "one"]])
    change(root)
    with pytest.raises(LayoutError, match=message):
        open_folder(root, **options)


@pytest.mark.parametrize("wrong", [".", "mine/images", "mine/images/sub"])
def test_a_root_near_by_is_hinted_at(root: Path, wrong: str):
    with pytest.raises(LayoutError, match=r"expected images/ .*you meant .*/mine\."):
        open_folder(root.parent / wrong)


def test_from_files_to_an_explanation(root: Path):
    masks = np.stack([expected_masks(stem, SHAPE) for stem in STEMS], axis=1)
    bitmap = (masks[0] | masks[1]) & ~masks[3]
    dataset = DatasetSpec.parse(f"folder:{root}").open()
    assert_explained(dataset, bitmap, "(car OR sky) AND NOT red", root.parent)
