"""Folders as datasets are spread: colour-coded maps, lists of names, arrays, suffixes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.dataset_fixtures import blocks, masks_of, picture, save, save_palette, write_table
from PIL import Image

from optexp_jax import cli
from optexp_jax.datasets import BadSampleError, LayoutError, build_table
from optexp_jax.datasets.folder import open_folder

SHAPE = (14, 20)
LABELS = [blocks(k, SHAPE, [0, 1, 2], n=12) for k in range(3)]
# Of CamVid; two of them share red and green.
COLOURS = np.array([[64, 128, 64], [192, 0, 128], [0, 0, 0]], np.uint8)
NAMES = ["Animal", "Archway", "Void"]


def write_images(root: Path, suffix: str = "") -> Path:
    for x in range(3):
        save(root / "images" / f"i{x}{suffix}.png", picture(x, SHAPE))
    return root


def write_coloured(root: Path, mode: str | None = None) -> Path:
    for x, labels in enumerate(LABELS):
        path = save(root / "labels" / f"i{x}_L.png", COLOURS[labels], None if mode == "P" else mode)
        if mode == "P":
            image = Image.fromarray(labels.astype(np.uint8))
            image.putpalette(COLOURS.reshape(-1).tolist())
            image.save(path)
    return write_images(root)


def assert_read(root: Path, values: tuple[int, ...] = (0, 1), **options: Any) -> None:
    dataset = open_folder(root, **options)
    assert len(dataset.concepts()) == len(values)
    for x, labels in enumerate(LABELS):
        wanted = [labels == value for value in values]
        np.testing.assert_array_equal(masks_of(dataset[x], len(values), SHAPE), wanted)


@pytest.mark.parametrize("mode", [None, "RGBA", "P"])
def test_colour_coded_maps_with_a_table(tmp_path: Path, mode: str | None):
    root = write_coloured(tmp_path, mode)
    rows = [[name, *map(int, shade)] for name, shade in zip(NAMES, COLOURS, strict=True)]
    write_table(root / "class_dict.csv", ["name", " r", " g", " b"], rows)
    assert_read(root)
    assert [c.name for c in open_folder(root).concepts()] == ["Animal", "Archway"]


@pytest.mark.parametrize(("file", "line"), [
    ("label_colors.txt", "{r} {g} {b}\t\t{name}\n"),
    ("labelmap.txt", "{name}:{r},{g},{b}::\n"),
])  # fmt: skip
def test_colour_coded_maps_with_a_list(tmp_path: Path, file: str, line: str):
    root = write_coloured(tmp_path)
    text = "# label:color_rgb:parts:actions\n"
    for name, (r, g, b) in zip(NAMES, COLOURS.tolist(), strict=True):
        text += line.format(name=name, r=r, g=g, b=b)
    (root / file).write_text(text)
    assert_read(root)


def test_a_table_with_values_and_colours(tmp_path: Path):
    root = write_images(tmp_path)
    save(root / "labels" / "i0.png", COLOURS[LABELS[0]])
    save_palette(root / "labels" / "i1.png", LABELS[1])
    save(root / "labels" / "i2.png", LABELS[2].astype(np.uint8))
    columns = ["id", "name", "red", "green", "blue"]
    rows = [[k, NAMES[k], *map(int, COLOURS[k])] for k in range(3)]
    write_table(root / "names.csv", columns, rows)
    assert_read(root)


def test_grey_maps_may_be_colours(tmp_path: Path):
    root = write_images(tmp_path)
    for x, labels in enumerate(LABELS):
        save(root / "masks" / f"i{x}.png", np.array([0, 255, 7], np.uint8)[labels])
    rows = [["a", 0, 0, 0], ["b", 255, 255, 255], ["c", 7, 7, 7]]
    write_table(root / "names.csv", ["name", "r", "g", "b"], rows)
    assert_read(root, (0, 1, 2))


@pytest.mark.parametrize(("file", "text"), [
    ("class_names.txt", "one\n two \n\nthree\n"),
    ("codes.txt", "one\ntwo\nthree"),
    ("labels.txt", "0: one\n1: two\n2: three\n"),
    ("names.txt", "2\tthree\n0\tone\n1\ttwo\n"),
    ("classes.txt", "value,name\n0,one\n1,two\n2,three\n"),
])  # fmt: skip
def test_lists_of_names(tmp_path: Path, file: str, text: str):
    root = write_images(tmp_path)
    for x, labels in enumerate(LABELS):
        save(root / "labels" / f"i{x}.png", labels.astype(np.uint8))
    (root / file).write_text(text)
    found = {concept.name for concept in open_folder(root).concepts()}
    assert found == {"one", "two", "three"}
    if file != "names.txt":
        assert_read(root, (0, 1, 2))
    (root / file).rename(root / "other.txt")
    assert len(open_folder(root, names="other.txt").concepts()) == 3
    with pytest.raises(LayoutError, match=r"has no table of names.*a list of names in a \.txt"):
        open_folder(root)


def test_maps_one_below_their_list(tmp_path: Path):
    """As stuff-thing maps of COCO-Stuff: its list begins with `0: unlabeled`, its maps do not."""
    root = write_images(tmp_path)
    for x, labels in enumerate(LABELS):
        save(root / "labels" / f"i{x}.png", np.array([0, 1, 255], np.uint8)[labels])
    (root / "labels.txt").write_text("0: unlabeled\n1: person\n2: bicycle\n")
    assert_read(root, (0, 1), offset=1)


def test_arrays_and_an_image_suffix(tmp_path: Path):
    root = write_images(tmp_path, "_leftImg8bit")
    save(root / "images" / "i0_rightImg8bit.png", picture(9, SHAPE))
    (root / "labels").mkdir()
    for x, kind in enumerate((np.uint8, np.int64, np.uint16)):
        np.save(root / "labels" / f"i{x}_gt.npy", LABELS[x].astype(kind))
    (root / "classes.txt").write_text("one\ntwo\nthree\n")
    assert_read(root, (0, 1, 2), image_suffix="_leftImg8bit", suffix="_gt")
    with pytest.raises(LayoutError, match="no images whose names end in '_x'"):
        open_folder(root, image_suffix="_x")


@pytest.mark.parametrize(("array", "said"), [
    (np.zeros(SHAPE), "holds float64; label maps are whole numbers. Soft masks"),
    (np.zeros((1, *SHAPE), int), r"a label map is \[height, width\]; it is \[1, 14, 20\]"),
    (np.full(SHAPE, 2**40), "values must fit 32 bits"),
    (np.array([[{}]]), "Python objects in dtype"),
    (np.zeros((0, 3), int), "a label map is"),
])  # fmt: skip
def test_arrays_that_are_refused(tmp_path: Path, array: np.ndarray, said: str):
    root = write_images(tmp_path)
    (root / "labels").mkdir()
    np.save(root / "labels" / "i0.npy", array)
    (root / "classes.txt").write_text("one\n")
    with pytest.raises(BadSampleError, match=said):
        open_folder(root)[0]


def test_arrays_that_claim_too_much(tmp_path: Path):
    root = write_images(tmp_path)
    (root / "labels").mkdir()
    (root / "classes.txt").write_text("one\n")
    path = root / "labels" / "i0.npy"
    np.save(path, np.zeros((4, 4), np.uint8))
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"(4, 4), }", b"(9999999, 99999), }"))
    with pytest.raises(BadSampleError, match=r"i0\.npy"):
        open_folder(root)[0]
    path.write_bytes(whole[:-3])
    with pytest.raises(BadSampleError, match=r"i0\.npy"):
        open_folder(root)[0]


def test_jpeg_label_maps(tmp_path: Path):
    root = write_images(tmp_path)
    (root / "classes.txt").write_text("one\ntwo\nthree\n")
    save(root / "labels" / "i0.jpg", LABELS[0].astype(np.uint8))
    for labels in (None, "labels"):
        with pytest.raises(LayoutError, match=r"are JPEG images .*without loss, as PNG"):
            open_folder(root, labels=labels)
    Image.fromarray(LABELS[0].astype(np.uint8)).save(root / "labels" / "i0.png", format="JPEG")
    with pytest.raises(BadSampleError, match="it is a JPEG image"):
        open_folder(root)[0]


def test_all_missing_values_are_named(tmp_path: Path, capsys: Any):
    root = write_images(tmp_path)
    for x, value in enumerate((8, 9, 8)):
        save(root / "labels" / f"i{x}.png", np.where(LABELS[x] == 0, value, 1).astype(np.uint8))
    write_table(root / "names.csv", ["value", "name"], [[1, "one"]])
    for workers in (1, 2):
        with pytest.raises(LayoutError) as raised:
            build_table(open_folder(root), tmp_path / "t.zarr", workers=workers)
        said = str(raised.value)
        assert "names.csv lacks values of 3 label maps" in said
        assert "8 (2), 9 (1). Add a row for each, or pass --option ignore=8+9." in said
    args = ["data", "build", "folder", "--root", str(root), "--out", str(tmp_path / "t.zarr")]
    assert cli.main(args) != 0
    assert "--option ignore=8+9" in capsys.readouterr().err
    assert cli.main([*args, "--option", "ignore=8+9"]) == 0


def test_all_missing_colours_are_named(tmp_path: Path):
    root = write_coloured(tmp_path)
    write_table(root / "names.csv", ["name", "r", "g", "b"], [["a", 64, 128, 64]])
    with pytest.raises(BadSampleError, match=r"holds colours that names\.csv does not: 0 0 0, 192"):
        open_folder(root)[0]
    with pytest.raises(LayoutError, match=r"lacks colours of 3 label maps.*192 0 128 \(.\)"):
        build_table(open_folder(root), tmp_path / "t.zarr")


@pytest.mark.parametrize(("rows", "said"), [
    ([["a", 1, 2, 300]], "the colour .*red, green and blue are 0 to 255"),
    ([["a", 1, 2, "x"]], "not a number"),
    ([["a", 1, 2, 3], ["b", 1, 2, 3]], "gives two names to the colour 1 2 3"),
])  # fmt: skip
def test_tables_of_colours_that_are_refused(tmp_path: Path, rows: list[list[Any]], said: str):
    root = write_coloured(tmp_path)
    write_table(root / "names.csv", ["name", "r", "g", "b"], rows)
    with pytest.raises(LayoutError, match=said):
        open_folder(root)


def test_a_list_of_images(tmp_path: Path):
    root = write_images(tmp_path)
    save(root / "images" / "i0_2.png", picture(9, SHAPE))  # another image, and not a map of i0
    for x, labels in enumerate(LABELS):
        save(root / "labels" / f"i{x}.png", labels.astype(np.uint8))
    save(root / "labels" / "i0_2.png", LABELS[1].astype(np.uint8))
    (root / "classes.txt").write_text("one\ntwo\nthree\n")
    for text in ("i0\n\ni2\n", "images/i2.png labels/i2.png\n/x/images/i0.png", "i0.png\ni2.png\n"):
        (root / "val.txt").write_text(text)
        dataset = open_folder(root, names="classes.txt", only="val.txt")
        assert dataset.sample_names() == ("i0.png", "i2.png")
        for place, x in enumerate((0, 2)):
            wanted = [LABELS[x] == value for value in range(3)]
            np.testing.assert_array_equal(masks_of(dataset[place], 3, SHAPE), wanted)
    for text, said in (
        ("i0\ni9\ni8\n", "lists 2 images that do not exist, i9, i8; images are named like i0"),
        ("\n", "lists 0 images that do not exist, and no others"),
    ):
        (root / "val.txt").write_text(text)
        with pytest.raises(LayoutError, match=said):
            open_folder(root, names="classes.txt", only="val.txt")
    save(root / "images" / "more" / "i0.png", picture(0, SHAPE))
    (root / "val.txt").write_text("i1\nx/i0\n")
    with pytest.raises(LayoutError, match=r"which may be i0\.png, more/i0\.png: add folders"):
        open_folder(root, names="classes.txt", only="val.txt")
