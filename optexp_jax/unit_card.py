"""The unit card: an explanation as a piece of HTML, for notebooks.

Styles are in line, so that nothing else on a page changes, and take the page's own text colour and
ground, so that light and dark pages both suit. All text comes escaped out of here.
"""

import base64
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

CAPTURED, MISSED, EXTRAS = "#1f63ff", "#ffd000", "#ff4081"
"""As in overlays: blue, yellow, and pink for the outline."""
LINE = "1px solid rgba(128,128,128,.45)"
CARD = f"border:{LINE};border-radius:8px;padding:12px 16px;max-width:44rem;line-height:1.45"
FAINT = "opacity:.7;font-size:.85em"


@dataclass(frozen=True)
class CardFact:
    """A figure and what it is."""

    label: str
    value: str


@dataclass(frozen=True)
class CardAreas:
    """Locations by whether the unit is active and the formula holds."""

    captured: int
    missed: int
    extras: int


@dataclass(frozen=True)
class UnitCard:
    """What a card says, as plain text."""

    formula: str
    claim: str
    facts: tuple[CardFact, ...]
    areas: CardAreas | None = None
    others: tuple[CardFact, ...] = ()
    """Further formulas, with what is to be said of each."""
    notes: tuple[str, ...] = ()

    def to_html(self, images: Sequence[Any] = ()) -> str:
        """The card; images are arrays `[row, column, colour]` of bytes."""
        escape = html.escape
        facts = "".join(
            f'<div><div style="{FAINT}">{escape(fact.label)}</div>'
            f'<div style="font-variant-numeric:tabular-nums">{escape(fact.value)}</div></div>'
            for fact in self.facts
        )
        parts = [
            f'<div style="font-weight:600;overflow-wrap:anywhere">{escape(self.formula)}</div>',
            f'<div style="{FAINT}">{escape(self.claim)}</div>',
            f'<div style="display:flex;flex-wrap:wrap;gap:4px 24px;margin:8px 0">{facts}</div>',
        ]
        if self.areas is not None:
            parts.append(_bar(self.areas))
        if images:
            shown = "".join(map(_image, images))
            parts.append(
                f'<div style="display:flex;flex-wrap:wrap;gap:6px;margin-top:8px">{shown}</div>'
            )
        if self.others:
            rows = "".join(
                f'<li>{escape(other.label)} <span style="{FAINT}">{escape(other.value)}</span></li>'
                for other in self.others
            )
            parts.append(f'<ol start="2" style="margin:8px 0 0">{rows}</ol>')
        parts += [
            f'<div style="{FAINT};margin-top:6px">{escape(note)}</div>' for note in self.notes
        ]
        return f'<div style="{CARD}">{"".join(parts)}</div>'


def _bar(areas: CardAreas) -> str:
    """The union as a bar, cut into its three parts, with a legend."""
    total = areas.captured + areas.missed + areas.extras
    parts = (
        ("captured", areas.captured, f"background:{CAPTURED}"),
        ("missed", areas.missed, f"background:{MISSED}"),
        ("extras", areas.extras, f"box-shadow:inset 0 0 0 2px {EXTRAS}"),
    )
    segments = "".join(
        f'<div style="{style};width:{100 * size / max(total, 1):.2f}%" '
        f'title="{name}: {size} locations"></div>'
        for name, size, style in parts
        if size
    )
    legend = "".join(
        f'<span style="margin-right:14px"><span style="{style};display:inline-block;width:.8em;'
        f'height:.8em;border-radius:2px"></span> {name} {size}</span>'
        for name, size, style in parts
    )
    said = ", ".join(f"{name} {size}" for name, size, _ in parts)
    return (
        f'<div role="img" aria-label="{said} locations" style="display:flex;height:12px;'
        f'border-radius:3px;overflow:hidden">{segments}</div><div style="{FAINT}">{legend}</div>'
    )


def _image(pixels: Any) -> str:
    """A picture inside the page, as PNG."""
    array = np.asarray(pixels)
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] not in (3, 4):
        raise ValueError(
            "images must be arrays of bytes [row, column, colour], such as the `overlay` of "
            f"pictures; got {array.dtype} of shape {array.shape}."
        )
    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG")
    text = base64.b64encode(file.getvalue()).decode("ascii")
    style = "max-width:160px;height:auto;border-radius:4px"
    return f'<img alt="the unit on a sample" style="{style}" src="data:image/png;base64,{text}">'
