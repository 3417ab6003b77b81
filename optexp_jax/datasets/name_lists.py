"""What values and colours of label maps mean, as lists of names in text files say it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from optexp_jax.datasets.layout import read_text, short, to_integer
from optexp_jax.datasets.protocol import LayoutError

LISTS = (
    *("class_names.txt", "classes.txt", "class_list.txt", "codes.txt", "names.txt", "labels.txt"),
    *("categories.txt", "label_colors.txt", "label_colours.txt", "labelmap.txt"),
)
"""Names that lists of names have."""
MAX_VALUE = 2**20
_MOST_LINES = 2**20
Colour = tuple[int, int, int]
"""Red, green and blue."""

_NUMBERED = re.compile(r"(?P<value>\d{1,9})(?:\s*[:,;]\s*|\s+)(?P<name>\S.*)")
_COLOURED = re.compile(r"(?P<r>\d{1,3})\s+(?P<g>\d{1,3})\s+(?P<b>\d{1,3})\s+(?P<name>\S.*)")
# CVAT writes label:color_rgb:parts:actions.
_LABELMAP = re.compile(r"(?P<name>[^:]*):(?P<r>\d{1,3}),(?P<g>\d{1,3}),(?P<b>\d{1,3}):[^:]*:[^:]*")


@dataclass(frozen=True)
class NamedValue:
    """A row of the table of names. Without a layer it holds for all of them."""

    value: int | None
    """None if only a colour is named."""
    name: str
    category: str | None = None
    layer: str | None = None
    colour: Colour | None = None


def read_name_list(path: Path) -> tuple[NamedValue, ...]:
    """A list of names, one a line: `sky` (numbered from 0 on), `0: sky`, `64 128 64 sky`, or the
    `labelmap.txt` of CVAT. All lines are of one form; those that begin with # are left out.
    """
    lines = [line.strip() for line in read_text(path, "Folder").splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    if not lines or len(lines) > _MOST_LINES:
        raise LayoutError(f"Folder: {path} is no list of names; it has {len(lines)} lines.")
    if found := _all_match(_LABELMAP, lines) or _all_match(_COLOURED, lines):
        return tuple(
            NamedValue(None, line["name"].strip(), colour=colour([line[c] for c in "rgb"], path))
            for line in found
        )
    if found := _all_match(_NUMBERED, lines):
        return tuple(NamedValue(label_value(line["value"], path), line["name"]) for line in found)
    return tuple(NamedValue(value, name) for value, name in enumerate(lines))


def label_value(text: str, path: Path) -> int:
    """The value of a label map that a table names."""
    value = to_integer(text, path, "value")
    if not 0 <= value <= MAX_VALUE:
        raise LayoutError(f"Folder: {path} names the value {value}; values are 0 to {MAX_VALUE}.")
    return value


def colour(cells: Sequence[str], path: Path) -> Colour:
    """The colour of a label map that a table names."""
    red, green, blue = (to_integer(cell, path, "r, g, b") for cell in cells)
    if not 0 <= min(red, green, blue) <= max(red, green, blue) <= 255:
        raise LayoutError(
            f"Folder: {path} names the colour {short(cells)}; red, green and blue are 0 to 255."
        )
    return red, green, blue


def _all_match(form: re.Pattern[str], lines: Sequence[str]) -> list[re.Match[str]]:
    """The matches, if all lines are of this form."""
    found = [match for line in lines if (match := form.fullmatch(line))]
    return found if len(found) == len(lines) else []
