"""The files that VGG Image Annotator (VIA) writes: projects, and annotations as JSON or CSV."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optexp_jax.datasets.layout import read_text, short
from optexp_jax.datasets.protocol import LayoutError

_METADATA = "_via_img_metadata"
_COLUMNS = (
    *("filename", "file_size", "file_attributes", "region_count", "region_id"),
    *("region_shape_attributes", "region_attributes"),
)


@dataclass(frozen=True, eq=False)
class ViaRegion:
    """A region: its shape, and what the user has written about it."""

    shape: Mapping[str, Any]
    attributes: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class ViaImage:
    """An image and its regions."""

    name: str
    n_bytes: int | None
    """Of its file, when it was annotated; None if that is not known."""
    regions: tuple[ViaRegion, ...]


@dataclass(frozen=True, eq=False)
class ViaFile:
    """The content of one file."""

    images: tuple[ViaImage, ...]
    folder: str
    """Where the project looked for images; empty if it does not say."""


def is_via(path: Path) -> bool:
    """Whether a file looks like one of VIA, of this or another release."""
    try:
        if path.suffix.lower() == ".csv":
            with path.open(encoding="utf-8-sig", errors="replace") as file:
                return _is_header(file.readline(2**12))
        content: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return _is_version_3(content) or _entries(content) is not None


def read_via(path: Path) -> ViaFile:
    """What a file says; LayoutErrors name it and the entry at fault."""
    if path.suffix.lower() == ".csv":
        return ViaFile(_read_csv(path), "")
    try:
        content: Any = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise LayoutError(f"VIA: there is no file {path}.") from None
    except (ValueError, RecursionError) as error:
        raise LayoutError(f"VIA: {path} is not JSON: {error}") from error
    if _is_version_3(content):
        raise LayoutError(
            f"VIA: {path} is a project of VIA 3, which is not read; convert its regions to COCO."
        )
    entries = _entries(content)
    if entries is None:
        raise LayoutError(
            f"VIA: {path} holds no annotations of VIA: neither {_METADATA} nor images with "
            "filename and regions."
        )
    images = tuple(_image(entry, f"{path}, {short(key)}") for key, entry in entries.items())
    return ViaFile(images, _default_folder(content))


def _entries(content: Any) -> Mapping[str, Any] | None:
    """The images by key, of a project or of annotations alone."""
    if not isinstance(content, dict):
        return None
    if isinstance(content.get(_METADATA), dict):
        return content[_METADATA]
    first = next(iter(content.values()), None)
    return content if isinstance(first, dict) and {"filename", "regions"} <= first.keys() else None


def _is_version_3(content: Any) -> bool:
    return isinstance(content, dict) and {"project", "file", "view", "metadata"} <= content.keys()


def _default_folder(content: Mapping[str, Any]) -> str:
    settings = content.get("_via_settings")
    core = settings.get("core") if isinstance(settings, dict) else None
    folder = core.get("default_filepath") if isinstance(core, dict) else None
    return folder if isinstance(folder, str) else ""


def _image(entry: Any, place: str) -> ViaImage:
    if not isinstance(entry, dict) or not {"filename", "regions"} <= entry.keys():
        raise LayoutError(f"VIA: {place} lacks filename or regions.")
    listed = entry["regions"]
    if isinstance(listed, dict):  # by number, as the first releases wrote them
        listed = list(listed.values())
    if not isinstance(listed, list):
        raise LayoutError(f"VIA: {place} has the regions {short(listed)}.")
    regions = [_region(one, f"{place}, region {number}") for number, one in enumerate(listed)]
    return ViaImage(_name(entry["filename"], place), _bytes(entry.get("size")), tuple(regions))


def _region(entry: Any, place: str) -> ViaRegion:
    shape = entry.get("shape_attributes") if isinstance(entry, dict) else None
    attributes = (entry.get("region_attributes") or {}) if isinstance(entry, dict) else None
    if not isinstance(shape, dict) or not isinstance(attributes, dict):
        raise LayoutError(f"VIA: {place} lacks shape_attributes or region_attributes.")
    return ViaRegion(shape, attributes)


def _name(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise LayoutError(f"VIA: {place} has the filename {short(value)}.")
    # Files are made on Windows too, and images of a web page are kept by its address.
    plain = value.replace("\\", "/")
    return plain.partition("?")[0].rpartition("/")[2] if "://" in plain else plain


def _bytes(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else None


def _is_header(line: str) -> bool:
    cells = [cell.strip().strip('"') for cell in line.strip().removeprefix("#").split(",")]
    return cells == list(_COLUMNS)


def _read_csv(path: Path) -> tuple[ViaImage, ...]:
    text = read_text(path, "VIA")
    if not _is_header(text.partition("\n")[0]):
        raise LayoutError(
            f"VIA: {path} must begin with the header {','.join(_COLUMNS)}; it begins with "
            f"{short(text[:40])}."
        )
    found: dict[str, list[ViaRegion]] = {}
    sizes: dict[str, int | None] = {}
    try:
        rows = csv.reader(io.StringIO(text))
        next(rows)
        for row in rows:
            place = f"{path}, line {rows.line_num}"
            if not row:
                continue
            if len(row) < len(_COLUMNS):
                raise LayoutError(f"VIA: {place} has {len(row)} cells; {len(_COLUMNS)} are needed.")
            # File names stand without quotes, so that one with commas fills several cells.
            cells = [",".join(row[: len(row) - len(_COLUMNS) + 1]), *row[-len(_COLUMNS) + 1 :]]
            name = _name(cells[0], place)
            sizes.setdefault(name, _bytes(cells[1]))
            regions = found.setdefault(name, [])
            shape = _cell(cells[5], place)
            if shape:  # An image without regions has a row with none.
                regions.append(ViaRegion(shape, _cell(cells[6], place)))
    except csv.Error as error:
        raise LayoutError(f"VIA: {path}: {error}.") from error
    return tuple(ViaImage(name, sizes[name], tuple(regions)) for name, regions in found.items())


def _cell(text: str, place: str) -> Mapping[str, Any]:
    try:
        value: Any = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise LayoutError(f"VIA: {place}: the cell {short(text)} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise LayoutError(f"VIA: {place}: the cell {short(text)} is not a JSON object.")
    return value


def region_values(value: Any) -> Sequence[str]:
    """What an attribute of a region says: text, a number, or the boxes that are ticked."""
    if isinstance(value, dict):
        return [str(name).strip() for name, ticked in value.items() if ticked is True]
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return [text] if (text := str(value).strip()) else []
    if value is None:
        return []
    raise ValueError(f"has the value {short(value)}, which is neither text nor boxes to tick.")
