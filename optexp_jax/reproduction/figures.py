"""The appendix' figures: units whose beam and optimum differ, on the images they capture most of.

Activation that a formula captures is blue, what it misses yellow. One row of images a method, the
optimum above the beam; each has images of its own, those with the most captured locations.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

from optexp_jax.comparison import Comparison
from optexp_jax.explanation import Explanation
from optexp_jax.pictures import (
    OverlayStyle,
    SampleAreas,
    SampleImages,
    SampleOrder,
    choose_samples,
    overlays,
)
from optexp_jax.runs.run import Run
from optexp_jax.runs.sources import UnitSource

IMAGES = 4
SIDE = 168
PADDING = 2
LINE = 16
"""Height of a line of text, in pixels."""
STYLE = OverlayStyle(outline=0)
"""The paper does not mark what a formula covers beyond the activation."""


@dataclass(frozen=True)
class FigureRow:
    """One method's explanation of a unit."""

    method: str
    found: Explanation

    @property
    def text(self) -> str:
        formula = "no formula" if self.found.formula is None else str(self.found.formula)
        return f"{self.method}: {formula}, IoU {self.found.iou:.4f}"


def draw_differing(made: Comparison, run: Run, folder: Path) -> list[Path]:
    """A figure `UNIT.png` for each unit of a comparison of a beam, `a`, and the optimum, `b`.

    `run` is either of the two runs; its table says where the images are.
    """
    source, images = run.open_source(), SampleImages.of_run(run)
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for unit in made.differing:
        rows = (FigureRow("Optimal", unit.b), FigureRow("Beam", unit.a))
        path = folder / f"{unit.unit}.png"
        Image.fromarray(draw_unit(source, images, unit.unit, rows)).save(path)
        written.append(path)
    return written


def draw_unit(
    source: UnitSource, images: SampleImages, unit: int, rows: Iterable[FigureRow]
) -> UInt8[np.ndarray, "height width 3"]:
    """The figure of one unit."""
    width = IMAGES * SIDE + (IMAGES + 1) * PADDING
    parts = [_text(f"Unit {unit}", width)]
    for row in rows:
        strip = np.full((SIDE + 2 * PADDING, width, 3), 255, np.uint8)
        for place, picture in enumerate(_pictures(source, images, unit, row.found)):
            left = PADDING + place * (SIDE + PADDING)
            strip[PADDING : PADDING + SIDE, left : left + SIDE] = picture
        parts += [_text(row.text, width), strip]
    return np.concatenate(parts)


def _pictures(
    source: UnitSource, images: SampleImages, unit: int, found: Explanation
) -> Iterator[UInt8[np.ndarray, "side side 3"]]:
    """The images with the most captured locations, in that order."""
    (counts,) = source.counts([unit])
    areas = SampleAreas.of(source.table, counts, found.formula)
    shown = choose_samples(areas, SampleOrder.CAPTURED, IMAGES)
    drawn = {
        picture.sample: picture.overlay
        for picture in overlays(
            source, images, {unit: shown}, {unit: found.formula}, side=SIDE, style=STYLE
        )
    }
    for sample in shown:
        yield np.asarray(Image.fromarray(drawn[sample]).resize((SIDE, SIDE)))


def _text(text: str, width: int) -> UInt8[np.ndarray, "height width 3"]:
    """A line of text; a long one goes over several."""
    font = ImageFont.load_default()
    lines, current = [""], ""
    for word in text.split(" "):
        current = f"{lines[-1]} {word}".strip()
        if font.getlength(current) > width - 2 * PADDING and lines[-1]:
            lines.append(word)
        else:
            lines[-1] = current
    page = Image.new("RGB", (width, LINE * len(lines)), "white")
    ImageDraw.Draw(page).multiline_text((PADDING, 1), "\n".join(lines), fill="black", font=font)
    return np.asarray(page)
