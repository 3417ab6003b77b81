"""A JSON file that is given to the wrong reader is named as what it is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.format_datasets import coco, labelme, panoptic, via_project

from optexp_jax.datasets import LayoutError, open_dataset


def instances(root: Path) -> None:
    coco(root, "instances_val2017.json", {1: "boat", 2: "sea"}, packed=False)
    (root / "annotations" / "captions_val2017.json").unlink()


FILES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "coco": (instances, "annotations/instances_val2017.json"),
    "panoptic": (panoptic, "annotations/panoptic_val2017.json"),
    "labelme": (labelme, "i0.json"),
    "via": (via_project, "via_project.json"),
}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("reader", FILES)
def test_readers(tmp_path: Path, kind: str, reader: str):
    write, file = FILES[kind]
    write(tmp_path)
    root = tmp_path if reader == "labelme" else tmp_path / file
    if kind == reader:
        assert len(open_dataset(f"{reader}:{root}")) == 2
        return
    with pytest.raises(LayoutError, match=f"(that is|Open it as) the kind {kind}"):
        open_dataset(f"{reader}:{root}")
