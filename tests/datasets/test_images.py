"""Images and label maps of every kind of pixel, and files that are broken."""

from pathlib import Path

import numpy as np
import pytest
from helpers.dataset_fixtures import blocks, picture, save, save_palette
from PIL import Image

from optexp_jax.datasets import BadSampleError
from optexp_jax.datasets.images import read_channels, read_image, read_labels

SHAPE = (6, 9)
RGB = picture(1, SHAPE)
GREY = RGB[:, :, 0]


def grey_rgb(grey: np.ndarray) -> np.ndarray:
    return np.stack([grey] * 3, axis=2)


def test_colour(tmp_path: Path):
    path = save(tmp_path / "a.png", RGB)
    np.testing.assert_array_equal(read_image(path, "a"), RGB)


def test_grey(tmp_path: Path):
    path = save(tmp_path / "a.png", GREY)
    np.testing.assert_array_equal(read_image(path, "a"), grey_rgb(GREY))


def test_grey_jpeg(tmp_path: Path):
    read = read_image(save(tmp_path / "a.jpg", GREY), "a")
    assert read.shape == (*SHAPE, 3)
    assert (read == read[:, :, :1]).all()


def test_grey_of_16_bits_keeps_its_high_byte(tmp_path: Path):
    values = np.arange(SHAPE[0] * SHAPE[1], dtype=np.uint16).reshape(SHAPE) * 1200
    read = read_image(save(tmp_path / "a.png", values), "a")
    np.testing.assert_array_equal(read, grey_rgb((values // 256).astype(np.uint8)))


def test_transparency_is_dropped(tmp_path: Path):
    rgba = np.concatenate([RGB, np.full((*SHAPE, 1), 7, np.uint8)], axis=2)
    np.testing.assert_array_equal(read_image(save(tmp_path / "a.png", rgba), "a"), RGB)
    grey_alpha = Image.fromarray(rgba).convert("LA")
    grey_alpha.save(tmp_path / "b.png")
    expected = grey_rgb(np.asarray(grey_alpha)[:, :, 0])
    np.testing.assert_array_equal(read_image(tmp_path / "b.png", "b"), expected)


@pytest.mark.parametrize("transparency", [None, bytes([0, 128, 255])])
def test_palettes_are_looked_up_in_images(tmp_path: Path, transparency: bytes | None):
    indices = blocks(0, SHAPE, [0, 1, 2])
    image = Image.fromarray(indices.astype(np.uint8))
    colours = np.array([[1, 2, 3], [40, 50, 60], [255, 0, 9]], np.uint8)
    image.putpalette(colours.tobytes())
    if transparency is not None:
        image.info["transparency"] = transparency
    image.save(tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as saved:
        assert ("transparency" in saved.info) == (transparency is not None)
    np.testing.assert_array_equal(read_image(tmp_path / "a.png", "a"), colours[indices])


def test_black_and_white(tmp_path: Path):
    bits = blocks(0, SHAPE, [0, 1]).astype(bool)
    path = save(tmp_path / "a.png", bits)
    np.testing.assert_array_equal(read_image(path, "a"), grey_rgb(np.where(bits, 255, 0)))
    np.testing.assert_array_equal(read_labels(path, "a"), bits)


@pytest.mark.parametrize("suffix", ["png", "tif"])
@pytest.mark.parametrize("values", [[0, 1, 255], [0, 254, 255, 256, 300, 846, 65535]])
def test_label_values(tmp_path: Path, suffix: str, values: list[int]):
    labels = blocks(2, SHAPE, values, n=30)
    labels[0, : len(values)] = values
    kind = np.uint8 if max(values) < 256 else np.uint16
    read = read_labels(save(tmp_path / f"a.{suffix}", labels.astype(kind)), "a")
    assert read.dtype == np.int32
    np.testing.assert_array_equal(read, labels)


def test_labels_of_32_bits(tmp_path: Path):
    labels = blocks(2, SHAPE, [0, 70_000, 2**31 - 1]).astype(np.int32)
    np.testing.assert_array_equal(read_labels(save(tmp_path / "a.tif", labels), "a"), labels)


def test_palettes_are_not_looked_up_in_label_maps(tmp_path: Path):
    labels = blocks(3, SHAPE, [0, 3, 200])
    np.testing.assert_array_equal(
        read_labels(save_palette(tmp_path / "a.png", labels), "a"), labels
    )


def test_label_maps_saved_as_grey_colour(tmp_path: Path):
    labels = blocks(3, SHAPE, [0, 3, 200]).astype(np.uint8)
    np.testing.assert_array_equal(
        read_labels(save(tmp_path / "a.png", grey_rgb(labels)), "a"), labels
    )


def test_colour_label_maps_are_refused(tmp_path: Path):
    path = save(tmp_path / "a.png", RGB)
    with pytest.raises(BadSampleError, match=r"a\.png: it is a colour image"):
        read_labels(path, "a")


def test_floating_point_is_refused(tmp_path: Path):
    path = save(tmp_path / "a.tif", GREY.astype(np.float32))
    for read in (read_image, read_labels):
        with pytest.raises(BadSampleError, match=r"a\.tif: it"):
            read(path, "a")


def test_channels_need_channels(tmp_path: Path):
    np.testing.assert_array_equal(read_channels(save(tmp_path / "a.png", RGB), "a"), RGB)
    path = save(tmp_path / "b.png", GREY)
    with pytest.raises(BadSampleError, match=r"b\.png: it is of mode 'L'"):
        read_channels(path, "b")


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def scrambled(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes(255 - byte for byte in content[middle:])


@pytest.mark.parametrize("suffix", ["png", "jpg", "tif"])
@pytest.mark.parametrize("damage", [cut, lambda content: b"", lambda content: b"not an image"])
def test_broken_files_are_named(tmp_path: Path, suffix: str, damage):
    path = save(tmp_path / f"broken.{suffix}", picture(0, (64, 64)))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(BadSampleError, match=rf"Sample 'the sample' .*broken\.{suffix}") as error:
        read_image(path, "the sample")
    assert error.value.name == "the sample"


def test_a_png_whose_middle_is_wrong(tmp_path: Path):
    path = save(tmp_path / "broken.png", picture(0, (64, 64)))
    path.write_bytes(scrambled(path.read_bytes()))
    with pytest.raises(BadSampleError, match=r"broken\.png"):
        read_image(path, "s")


def test_missing_files_and_folders_are_named(tmp_path: Path):
    with pytest.raises(BadSampleError, match=r"gone\.png does not exist"):
        read_image(tmp_path / "gone.png", "s")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(BadSampleError, match=r"folder\.png"):
        read_labels(tmp_path / "folder.png", "s")
