"""Overlays, pixel by pixel, on arrays small enough to write down."""

import io

import numpy as np
import pytest
from helpers.support import examples
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from optexp_jax.pictures import (
    OverlayStyle,
    draw_overlay,
    encode_image,
    fit_image,
    mask_layer,
    pack_sprite,
    stretch_mask,
)
from optexp_jax.pictures.overlay import outline_of

STYLE = OverlayStyle((0, 0, 200), (200, 200, 0), (255, 0, 0), strength=255, outline=1)
BLUE, YELLOW, RED, GREY = (0, 0, 200), (200, 200, 0), (255, 0, 0), (90, 90, 90)


def grey(rows: int, columns: int) -> np.ndarray:
    return np.full((rows, columns, 3), 90, np.uint8)


def mask(*rows: str) -> np.ndarray:
    return np.array([[cell == "#" for cell in row] for row in rows])


def test_captured_missed_and_extras_have_their_colours():
    active = mask("##....", "......")
    held = mask("#.....", "...#..")
    drawn = draw_overlay(grey(2, 6), active, held, STYLE)
    wanted = np.array(
        [[BLUE, YELLOW, GREY, GREY, GREY, GREY], [GREY, GREY, GREY, RED, GREY, GREY]], np.uint8
    )
    assert np.array_equal(drawn, wanted)


def test_extras_are_outlined_and_left_open_inside():
    drawn = draw_overlay(
        grey(5, 5),
        np.zeros((5, 5), bool),
        mask(".....", ".###.", ".###.", ".###.", "....."),
        STYLE,
    )
    red = (drawn == RED).all(axis=2)
    assert np.array_equal(red, mask(".....", ".###.", ".#.#.", ".###.", "....."))
    assert (drawn[~red] == GREY).all()


def test_a_formula_that_holds_everywhere_has_no_outline_at_the_edge():
    full, empty = np.ones((3, 4), bool), np.zeros((3, 4), bool)
    assert np.array_equal(draw_overlay(grey(3, 4), empty, full, STYLE), grey(3, 4))
    assert (draw_overlay(grey(3, 4), full, full, STYLE) == BLUE).all()
    assert np.array_equal(draw_overlay(grey(3, 4), empty, empty, STYLE), grey(3, 4))


def test_without_a_formula_all_activation_is_missed():
    active = mask("#.", ".#")
    drawn = draw_overlay(grey(2, 2), active, None, STYLE)
    assert np.array_equal((drawn == YELLOW).all(axis=2), active)
    assert np.array_equal(drawn, draw_overlay(grey(2, 2), active, ~active & active, STYLE))


def test_strength_mixes_in_whole_numbers_and_leaves_the_image_alone():
    image = np.array([[[0, 100, 255]]], np.uint8)
    style = OverlayStyle(captured=(255, 0, 0), strength=51)  # a fifth
    on = np.ones((1, 1), bool)
    assert draw_overlay(image, on, on, style).tolist() == [[[51, 80, 204]]]
    assert image.tolist() == [[[0, 100, 255]]]
    none = OverlayStyle(strength=0)
    assert np.array_equal(draw_overlay(image, on, on, none), image)
    with pytest.raises(ValueError, match="0 to 255"):
        draw_overlay(image, on, on, OverlayStyle(strength=256))


def test_masks_are_stretched_by_whole_cells():
    stretched = stretch_mask(mask("#.", ".#"), (4, 6))
    assert np.array_equal(stretched, mask("###...", "###...", "...###", "...###"))
    assert np.array_equal(stretch_mask(mask("##..", "##.."), (1, 2)), mask("#."))


@given(st.integers(0, 2**32), st.integers(0, 3))
@examples(40)
def test_outlines_against_their_definition(seed, width):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 9, 2))
    filled = rng.random(shape) < 0.8
    found = outline_of(filled, width)
    outside = np.argwhere(~filled)
    for place in np.argwhere(filled):
        # Steps along rows and columns to the nearest pixel that is not of the mask.
        near = len(outside) and np.abs(outside - place).sum(axis=1).min() <= width
        assert found[tuple(place)] == bool(near)
    assert not found[~filled].any()


@pytest.mark.parametrize(("side", "shape"), [(8, (4, 8, 3)), (4, (2, 4, 3)), (1, (1, 1, 3))])
def test_images_keep_their_shape(side, shape):
    image = np.arange(4 * 8 * 3, dtype=np.uint8).reshape(4, 8, 3)
    assert fit_image(image, side).shape == shape
    assert np.array_equal(fit_image(image, None), image)
    assert np.array_equal(fit_image(image, 16), image.repeat(2, axis=0).repeat(2, axis=1))
    with pytest.raises(ValueError, match="at least one pixel"):
        fit_image(image, 0)


def test_a_mask_as_a_layer():
    layer = mask_layer(mask("#."), (1, 2, 3), 99)
    assert layer.tolist() == [[[1, 2, 3, 99], [0, 0, 0, 0]]]
    shown = np.asarray(Image.open(io.BytesIO(encode_image(layer, "png"))))
    assert np.array_equal(shown, layer)
    with pytest.raises(ValueError, match="WEBP or PNG"):
        encode_image(layer, "JPEG")


def test_sprites_hold_their_pictures():
    rng = np.random.default_rng(0)
    pictures = [rng.integers(0, 256, (*size, 3)).astype(np.uint8) for size in [(2, 5), (4, 3)] * 2]
    sprite = pack_sprite(pictures, columns=3)
    assert sprite.pixels.shape == (8, 15, 3)
    for picture, tile in zip(pictures, sprite.tiles, strict=True):
        inside = sprite.pixels[
            tile.top : tile.top + tile.height, tile.left : tile.left + tile.width
        ]
        assert np.array_equal(inside, picture)
    shown = np.asarray(Image.open(io.BytesIO(encode_image(sprite.pixels, "PNG"))))
    assert np.array_equal(shown, sprite.pixels)
    for lossy in ("JPEG", "WebP"):
        assert Image.open(io.BytesIO(encode_image(sprite.pixels, lossy))).size == (15, 8)
    assert pack_sprite(pictures[:1]).pixels.shape == (2, 5, 3)
    for wrong in (lambda: pack_sprite([]), lambda: pack_sprite(pictures, 0)):
        with pytest.raises(ValueError, match="at least one"):
            wrong()
    with pytest.raises(ValueError, match="JPEG, WEBP, PNG"):
        encode_image(sprite.pixels, "gif")
