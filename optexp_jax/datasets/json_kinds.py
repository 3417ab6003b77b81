"""Which kind of dataset a JSON file is of, for errors of those that cannot read it."""

from typing import Any


def hint_at_kind(content: Any, own: str) -> str:
    """A sentence that names the kind that reads this content, with a space in front; or nothing.

    `own` is the kind that was asked for, which is no news.
    """
    kind = _kind_of(content)
    if kind is None or kind == own:
        return ""
    told = {
        "panoptic": "panoptic annotations of COCO",
        "coco": "instances of COCO",
        "labelme": "annotations of labelme",
        "via": "annotations of VIA",
    }
    return f" It holds {told[kind]}: that is the kind {kind}."


def _kind_of(content: Any) -> str | None:
    if not isinstance(content, dict):
        return None
    first = _first(content.get("annotations"))
    if "segments_info" in first:
        return "panoptic"
    if "segmentation" in first:
        return "coco"
    if {"shapes", "imagePath"} <= content.keys():
        return "labelme"
    images = content.get("_via_img_metadata", content)
    entry = _first(list(images.values())) if isinstance(images, dict) else {}
    return "via" if {"filename", "regions"} <= entry.keys() else None


def _first(entries: Any) -> dict[Any, Any]:
    """The first entry of a list, if it is a dictionary; or an empty one."""
    return entries[0] if isinstance(entries, list) and entries and type(entries[0]) is dict else {}
