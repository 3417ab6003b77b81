"""Contact sheets: images in which a formula holds, with the place marked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.ndimage
from jaxtyping import Bool, Int64, UInt8
from PIL import Image, ImageDraw, ImageFont

from optexp_jax.concepts import ConceptTable
from optexp_jax.datasets.parts import resize_nearest
from optexp_jax.formulas.formula import Formula

BACKGROUND = (250, 250, 250)
INK = (30, 30, 30)
OUTLINE = (255, 230, 0)
PAD = 8
CAPTION = 16
"""Pixels of height for a line of text."""
REST_LIGHT = 0.55
"""What is left of the image's light where the formula does not hold."""


@dataclass(frozen=True)
class Holding:
    """A sample in which a formula holds somewhere."""

    sample: int
    n_locations: int


@dataclass(frozen=True)
class SheetSettings:
    """What a sheet looks like."""

    columns: int = 4
    tile: int = 224
    """Pixels of a tile's side; images keep their shape inside it."""


def samples_holding(table: ConceptTable, formula: Formula) -> list[Holding]:
    """The samples in which the formula holds, those with most locations first."""
    held = table.holds(formula)[table.patches.signature]
    areas = np.zeros(table.n_samples, np.int64)
    np.add.at(areas, table.patches.sample[held], table.patches.size[held])
    order = np.argsort(-areas, kind="stable")
    return [Holding(int(x), int(areas[x])) for x in order if areas[x]]


def spread_over(holding: Sequence[Holding], count: int) -> list[Holding]:
    """So many of them, from the largest to the smallest at equal steps."""
    places: Int64[np.ndarray, " _"] = np.unique(
        np.linspace(0, len(holding) - 1, min(count, len(holding))).round().astype(np.int64)
    )
    return [holding[place] for place in places.tolist()]


def contact_sheet(
    table: ConceptTable,
    formula: Formula,
    chosen: Sequence[Holding],
    image: Callable[[int], UInt8[np.ndarray, "h w 3"]],
    name: Callable[[int], str],
    settings: SheetSettings = SheetSettings(),
) -> Image.Image:
    """A sheet of samples; `image` and `name` give those of a sample of the table."""
    located = table.require_map("contact_sheet")
    holds = table.holds(formula)
    held = holds[table.patches.signature]
    tiles: list[Image.Image] = []
    for holding in chosen:
        mask = located.spread(table.patches, held, holding.sample, holding.sample + 1)[0]
        tiles.append(_tile(image(holding.sample), mask, settings.tile))
    columns = min(settings.columns, max(1, len(tiles)))
    rows = -(-len(tiles) // columns)
    wide = settings.tile + PAD
    high = max((tile.height for tile in tiles), default=0) + CAPTION + PAD
    sheet = Image.new("RGB", (columns * wide + PAD, rows * high + CAPTION + 2 * PAD), BACKGROUND)
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(12)
    share = int(table.sizes[holds].sum()) / table.n_locations
    n_samples = len(np.unique(table.patches.sample[held]))
    title = f"{formula}  -  {n_samples} of {table.n_samples} samples, {share:.2%} of all locations"
    draw.text((PAD, PAD), _fitted(title, sheet.width - 2 * PAD, font), INK, font)
    for place, (holding, tile) in enumerate(zip(chosen, tiles, strict=True)):
        left, top = PAD + place % columns * wide, 2 * PAD + CAPTION + place // columns * high
        sheet.paste(tile, (left + (settings.tile - tile.width) // 2, top))
        area = f"  {holding.n_locations / located.sample_size:.2%}"
        room = settings.tile - font.getlength(area)
        caption = _fitted(name(holding.sample), room, font) + area
        draw.text((left, top + high - CAPTION - PAD + 1), caption, INK, font)
    return sheet


def _tile(
    image: UInt8[np.ndarray, "h w 3"], mask: Bool[np.ndarray, "mh mw"], side: int
) -> Image.Image:
    """An image with the mask's place in full light and outlined, the rest dimmed."""
    height, width = image.shape[:2]
    scale = side / max(height, width)
    shape = max(1, round(height * scale)), max(1, round(width * scale))
    shown = Image.fromarray(image).resize((shape[1], shape[0]), _filter(scale))
    lit = resize_nearest(mask.astype(np.int32), shape).astype(bool)
    pixels = np.asarray(shown).astype(np.float32)
    grey = pixels.mean(axis=2, keepdims=True)
    pixels = np.where(lit[..., None], pixels, REST_LIGHT * (0.3 * pixels + 0.7 * grey))
    # A line on the mask's own side, and a dark one around it, seen on any ground.
    core: np.ndarray = scipy.ndimage.binary_erosion(lit, iterations=2, border_value=1)
    grown: np.ndarray = scipy.ndimage.binary_dilation(lit)
    inner, outer = lit & ~core, grown & ~lit
    pixels[inner] = OUTLINE
    pixels[outer] = 0
    return Image.fromarray(pixels.astype(np.uint8))


def _filter(scale: float) -> Image.Resampling:
    # Enlarged pixels are shown as they are; a smooth guess between them would mislead.
    return Image.Resampling.NEAREST if scale > 1 else Image.Resampling.LANCZOS


def _fitted(
    text: str, room: float | int, font: ImageFont.ImageFont | ImageFont.FreeTypeFont
) -> str:
    """The text, or its end after dots, in so many pixels: file names differ at the end."""
    if font.getlength(text) <= room:
        return text
    while text and font.getlength(f"...{text}") > room:
        text = text[1:]
    return f"...{text}"
