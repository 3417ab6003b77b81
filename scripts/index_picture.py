"""Draws the picture of the documentation's first page: a unit, and the formula found for it.

    python scripts/index_picture.py docs/images/unit.png

The unit is one of the demo's network. Nothing about it was designed: what it responds to was
learned, and the formula is the best there is.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import optexp_jax as ox
from optexp_jax.demo import make_demo

UNIT, LENGTH = 18, 3
SCENES = 4
SIDE, GAP, LEFT, LINE = 168, 8, 150, 22
PAPER, INK = (255, 255, 255), (40, 40, 40)
BOTH, UNIT_ALONE, FORMULA_ALONE = (34, 160, 90), (225, 60, 50), (50, 110, 220)
REST_LIGHT = 0.35


def main(path: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        demo = make_demo(Path(folder))
        units, images = demo.units, demo.spec.open()
        (counts,) = units.counts([UNIT])
        best = ox.explain(units.table, counts, ox.Optimal(LENGTH))
        assert best.formula is not None
        active, holds = units.bitmap(UNIT), best.formula.mask(units.table)
        chosen = _scenes(active, holds)
        tiles = [_tiles(images[x].image, active[x], holds[x]) for x in chosen]
    _sheet(tiles, best).save(path, optimize=True)


def _scenes(active: np.ndarray, holds: np.ndarray) -> list[int]:
    """From where both agree most to where one is alone, in equal steps."""
    both, either = (active & holds).sum((1, 2)), (active | holds).sum((1, 2))
    with_some = np.flatnonzero(either > either.max() / 8)
    order = with_some[np.argsort(-both[with_some], kind="stable")]
    return order[np.unique(np.linspace(0, len(order) - 1, SCENES).round().astype(int))].tolist()


def _tiles(image: np.ndarray, active: np.ndarray, holds: np.ndarray) -> list[Image.Image]:
    dark = (image * REST_LIGHT).astype(np.uint8)
    unit = np.where(active[:, :, None], image, dark)
    formula = np.where(holds[:, :, None], image, dark)
    overlap = np.full_like(image, 235)
    for colour, where in (
        (BOTH, active & holds),
        (UNIT_ALONE, active & ~holds),
        (FORMULA_ALONE, holds & ~active),
    ):
        overlap[where] = colour
    return [
        Image.fromarray(pixels).resize((SIDE, SIDE), Image.Resampling.NEAREST)
        for pixels in (image, unit, formula, overlap)
    ]


def _sheet(tiles: list[list[Image.Image]], best: ox.Explanation) -> Image.Image:
    titles = ["image", f"where unit {UNIT}\nis active", "where the\nformula holds", "overlap"]
    high = len(titles) * (SIDE + GAP) + GAP + 4 * LINE
    sheet = Image.new("RGB", (LEFT + len(tiles) * (SIDE + GAP) + GAP, high), PAPER)
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(17)
    for column, parts in enumerate(tiles):
        for row, tile in enumerate(parts):
            sheet.paste(tile, (LEFT + column * (SIDE + GAP), GAP + row * (SIDE + GAP)))
    for row, title in enumerate(titles):
        draw.text((12, GAP + row * (SIDE + GAP) + 60), title, INK, font)
    below = GAP + len(titles) * (SIDE + GAP) + 4
    legend = (("both", BOTH), ("the unit alone", UNIT_ALONE), ("the formula alone", FORMULA_ALONE))
    left = LEFT
    for text, colour in legend:
        draw.rectangle((left, below + 3, left + 14, below + 17), colour)
        draw.text((left + 22, below), text, INK, font)
        left += 48 + int(draw.textlength(text, font))
    draw.text((LEFT, below + LINE + 6), f"{best.formula}", INK, font)
    draw.text(
        (LEFT, below + 2 * LINE + 6),
        f"IoU {best.intersection} / {best.union} = {best.iou:.3f}, {best.status}",
        INK,
        font,
    )
    return sheet.crop((0, 0, sheet.width, below + 3 * LINE + GAP))


if __name__ == "__main__":
    main(*sys.argv[1:])
