"""Files of VGG Image Annotator, in the layouts in which its releases write them."""

import csv
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.coco_cases import write
from helpers.dataset_fixtures import assert_explained, masks_of, picture, save
from helpers.turned_images import save_turned

from optexp_jax.datasets import BadSampleError, ConceptInfo, DatasetSpec, LayoutError
from optexp_jax.datasets.via import open_via

SHAPE = (20, 30)
HEADER = (
    "filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,"
    "region_attributes"
)
Region = dict[str, Any]


def polygon(points: list[tuple[float, float]], kind: str = "polygon") -> dict[str, Any]:
    return {
        "name": kind,
        "all_points_x": [x for x, _ in points],
        "all_points_y": [y for _, y in points],
    }


def corners(top: float, left: float, bottom: float, right: float) -> list[tuple[float, float]]:
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def region(shape: dict[str, Any], **attributes: Any) -> Region:
    return {"shape_attributes": shape, "region_attributes": attributes}


def box(top: int, left: int, bottom: int, right: int) -> np.ndarray:
    mask = np.zeros(SHAPE, bool)
    mask[top : bottom + 1, left : right + 1] = True  # The edge is part of a region.
    return mask


BOAT = region(polygon(corners(2, 3, 9, 12)), type="boat")
SAIL = region({"name": "rect", "x": 8, "y": 5, "width": 12, "height": 10}, type="sail")
SUN = region({"name": "circle", "cx": 20, "cy": 10, "r": 3}, type="sun")
MOON = region({"name": "ellipse", "cx": 15, "cy": 10, "rx": 8, "ry": 3}, type="moon")
POINT = region({"name": "point", "cx": 3, "cy": 4}, type="speck")
REGIONS = {"a.png": [BOAT, SAIL, POINT], "b.png": [SUN, MOON], "c.png": []}


def save_images(root: Path, folder: str = ".") -> dict[str, int]:
    """The images, and the size of each file."""
    paths = [save(root / folder / name, picture(x, SHAPE)) for x, name in enumerate(REGIONS)]
    return {path.name: path.stat().st_size for path in paths}


def metadata(sizes: dict[str, int], regions: dict[str, list[Region]]) -> dict[str, Any]:
    return {
        f"{name}{sizes[name]}": {
            "filename": name,
            "size": sizes[name],
            "regions": listed,
            "file_attributes": {"caption": "", "public_domain": "no", "image_url": ""},
        }
        for name, listed in regions.items()
    }


def project(found: dict[str, Any], folder: str = "") -> dict[str, Any]:
    """As `Save` writes it."""
    options = {"boat": "", "sail": ""}
    return {
        "_via_settings": {
            "ui": {"image_grid": {"img_height": 80}},
            "core": {"buffer_size": 18, "filepath": {}, "default_filepath": folder},
            "project": {"name": "harbour"},
        },
        "_via_img_metadata": found,
        "_via_attributes": {"region": {"type": {"type": "dropdown", "options": options}}},
        "_via_data_format_version": "2.0.10",
        "_via_image_id_list": list(found),
    }


def write_csv(path: Path, sizes: dict[str, int], regions: dict[str, list[Region]], mark: str):
    rows = [
        [name, sizes[name], '{"caption":""}', len(listed), number,
         *(json.dumps(one[f"{part}_attributes"]) for part in ("shape", "region"))]
        for name, listed in regions.items()
        for number, one in enumerate(listed or [region({})])
    ]  # fmt: skip
    with path.open("w", newline="") as file:
        file.write(f"{mark}{HEADER}\n")
        csv.writer(file).writerows(rows)


@pytest.mark.parametrize(
    "form", ["project", "project in a folder", "annotations", "first release", "csv", "first csv"]
)
def test_as_written(tmp_path: Path, form: str):
    root = tmp_path / "mine"
    sizes = save_images(root, "pics" if "folder" in form else ".")
    found = metadata(sizes, REGIONS)
    if form == "project":
        write(root / "via_project_1Jan2026.json", project(found))
    elif form == "project in a folder":
        write(root / "via_project.json", project(found, "./pics/"))
    elif form == "annotations":
        write(root / "via_export_json.json", found)
    elif form == "first release":  # regions by number, and an image in the file
        numbered = {
            key: {**entry, "fileref": "", "base64_img_data": "",
                  "regions": {str(k): one for k, one in enumerate(entry["regions"])}}
            for key, entry in found.items()
        }  # fmt: skip
        write(root / "via_region_data.json", numbered)
    else:
        write_csv(root / "via.csv", sizes, REGIONS, "#" if "first" in form else "")
    write(root / "other.json", {"images": []})  # is not VIA's
    dataset = DatasetSpec.parse(f"via:{root}").open()
    assert dataset.concepts() == tuple(map(ConceptInfo, ("boat", "sail", "sun", "moon")))
    assert [dataset[x].name for x in range(3)] == ["a.png", "b.png", "c.png"]
    boat, sail = box(2, 3, 9, 12), box(5, 8, 15, 20)
    empty = np.zeros(SHAPE, bool)
    np.testing.assert_array_equal(masks_of(dataset[0], 4, SHAPE), [boat, sail, empty, empty])
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    _, _, sun, moon = masks_of(dataset[1], 4, SHAPE)
    assert (sun >= (np.hypot(x - 20, y - 10) <= 2.4)).all()
    assert (sun <= (np.hypot(x - 20, y - 10) <= 3.6)).all()
    assert (moon >= (np.hypot((x - 15) / 7.4, (y - 10) / 2.4) <= 1)).all()
    assert (moon <= (np.hypot((x - 15) / 8.6, (y - 10) / 3.6) <= 1)).all()
    assert not dataset[2].maps
    bitmap = np.stack([boat & ~sail, empty, empty])
    assert_explained(dataset, bitmap, "boat AND NOT sail", tmp_path)


def test_an_ellipse_that_is_turned(tmp_path: Path):
    sizes = save_images(tmp_path)
    turned = {"name": "ellipse", "cx": 15, "cy": 10, "rx": 8, "ry": 2, "theta": np.pi / 2}
    found = metadata(sizes, {"a.png": [region(turned, type="moon")]})
    (moon,) = masks_of(open_via(write(tmp_path / "via.json", found))[0], 1, SHAPE)
    assert moon[3:18, 15].all()  # along the height, now
    assert not moon[:, :12].any()
    assert not moon[:, 19:].any()


def test_polylines(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    sizes = save_images(tmp_path)
    square = corners(2, 3, 9, 12)
    lines = [
        region(polygon(square, "polyline"), type="open"),
        region(polygon([*square, square[0]], "polyline"), type="closed"),
    ]
    path = write(tmp_path / "via.json", metadata(sizes, {"a.png": lines}))
    with caplog.at_level(logging.WARNING):
        assert [concept.name for concept in open_via(path).concepts()] == ["closed"]
    assert "1 regions are points or open lines" in caplog.text
    filled = open_via(path, polylines="fill")
    np.testing.assert_array_equal(masks_of(filled[0], 2, SHAPE), [box(2, 3, 9, 12)] * 2)
    with pytest.raises(ValueError, match="polylines is 'fill'"):
        open_via(path, polylines="yes")


def test_several_attributes(tmp_path: Path):
    sizes = save_images(tmp_path)
    regions = [
        region(polygon(corners(2, 3, 9, 12)), type="boat", look={"old": True, "red": True},
               near="yes", note=""),
        region(polygon(corners(1, 1, 4, 4)), type="bird", look={"old": False}, wet="yes", near=""),
    ]  # fmt: skip
    path = write(tmp_path / "via.json", metadata(sizes, {"a.png": regions}))
    with pytest.raises(
        LayoutError,
        match=r"several attributes.*attributes=NAME.*type: boat, bird; look: old, red; near: yes",
    ):
        open_via(path)
    dataset = DatasetSpec.parse(f"via:{path},attributes=type+look").open()
    assert dataset.concepts() == (
        ConceptInfo("boat", "type"), ConceptInfo("old", "look"), ConceptInfo("red", "look"),
        ConceptInfo("bird", "type"),
    )  # fmt: skip
    boat, bird = box(2, 3, 9, 12), box(1, 1, 4, 4)
    np.testing.assert_array_equal(masks_of(dataset[0], 4, SHAPE), [boat, boat, boat, bird])
    shared = open_via(path, attributes="near+wet")
    assert [concept.name for concept in shared.concepts()] == ["near yes", "wet yes"]
    with pytest.raises(LayoutError, match="no region has a value of the attribute 'kind'"):
        open_via(path, attributes="kind")
    with pytest.raises(LayoutError, match=r"a region of a\.png has no value of near.*unnamed=NAME"):
        open_via(path, attributes="near")
    far = open_via(path, attributes="near", unnamed="far")
    np.testing.assert_array_equal(masks_of(far[0], 2, SHAPE), [boat, bird])
    left_out = open_via(path, attributes="near", unnamed="void")
    np.testing.assert_array_equal(masks_of(left_out[0], 1, SHAPE), [boat])


def test_regions_without_attributes(tmp_path: Path):
    """As in the balloon dataset, in which all regions are balloons."""
    sizes = save_images(tmp_path)
    shape = polygon(corners(2, 3, 9, 12))
    path = write(tmp_path / "via_region_data.json", metadata(sizes, {"a.png": [region(shape)]}))
    with pytest.raises(LayoutError, match=r"no region says what it is.*unnamed=NAME"):
        open_via(path)
    dataset = DatasetSpec.parse(f"via:{tmp_path},unnamed=balloon").open()
    np.testing.assert_array_equal(masks_of(dataset[0], 1, SHAPE), [box(2, 3, 9, 12)])


def test_names_of_files(tmp_path: Path):
    """With commas, which CSV files do not quote, beyond ASCII, and as addresses of a web page."""
    for name in ("a, b.png", "Hafen ü.png", "c.png"):
        save(tmp_path / name, picture(0, SHAPE))
    cells = '1,"{}",1,0,"{""name"":""rect"",""x"":1,""y"":1,""width"":3,""height"":3}"'
    names = ("a, b.png", "Hafen ü.png", "https://x.org/pics/c.png?size=1")
    rows = "".join(f'{name},{cells},"{{""is"":""a \\""b\\""""}}"\n' for name in names)
    (tmp_path / "via.csv").write_text(f"{HEADER}\n{rows}\n", encoding="utf-8")
    dataset = open_via(tmp_path)
    assert [dataset[x].name for x in range(3)] == ["Hafen ü.png", "a, b.png", "c.png"]
    assert dataset.concepts() == (ConceptInfo('a "b"'),)


@pytest.mark.parametrize(("entry", "said"), [
    (region(polygon([(0, 0), (1, 1)]), type="x"), "is a polygon of 2 points"),
    (region({"name": "polygon", "all_points_x": [1], "all_points_y": []}, type="x"), "one length"),
    (region({"name": "polygon", "all_points_x": 1}, type="x"), "all_points_x and all_points_y"),
    (region(polygon([(0, 0), (1, float("nan")), (2, 2)]), type="x"), "or no number"),
    (region({"name": "rect", "x": 1, "y": 2, "width": "3"}, type="x"), "numbers x, y, width, heig"),
    (region({"name": "circle", "cx": 1, "cy": 1, "r": True}, type="x"), "the numbers cx, cy, r"),
    (region({"name": "cube"}, type="x"), "is a 'cube'; polygon, rect, circle, ellipse are read"),
    (region({"name": "rect", "x": 1, "y": 2, "width": 3, "height": 3}, type=[1]), "neither text"),
    ({"shape_attributes": 1, "region_attributes": {}}, "lacks shape_attributes or region_attr"),
    ("nonsense", "lacks shape_attributes or region_attributes"),
])  # fmt: skip
def test_regions_that_are_refused(tmp_path: Path, entry: Any, said: str):
    path = write(tmp_path / "via.json", metadata(save_images(tmp_path), {"a.png": [entry]}))
    with pytest.raises(LayoutError, match=rf"a\.png.*region 0 .*{said}"):
        open_via(path)


def test_files_that_are_refused(tmp_path: Path):
    sizes = save_images(tmp_path)
    path = tmp_path / "via.json"
    found = metadata(sizes, {"a.png": [BOAT]})
    for name in ("../x.png", "/etc/x.png", "..\\x.png", "a\0.png"):
        save(tmp_path.parent / "x.png", picture(0, SHAPE))
        write(path, {**found, "x": {"filename": name, "size": 1, "regions": []}})
        with pytest.raises(LayoutError, match="must not lead out"):
            open_via(path)
    for content, said in (
        ({**found, "b": {"filename": "a.png", "size": 3, "regions": []}}, "two entries annotate"),
        ({**found, "b": {"filename": 3, "regions": []}}, "has the filename 3"),
        ({**found, "b": {"filename": "b.png", "regions": 3}}, "has the regions 3"),
        ({**found, "b": {"filename": "b.png"}}, "lacks filename or regions"),
        ({"project": {}, "file": {}, "view": {}, "metadata": {}}, "a project of VIA 3"),
        ({"images": [], "annotations": []}, "holds no annotations of VIA"),
        (project({}), "holds no image"),
        (metadata(sizes, {"a.png": [POINT]}), "no region with an area"),
        (metadata({"lost.png": 1}, {"lost.png": [BOAT]}), "'lost.png' is in none of.*images=FOL"),
    ):
        write(path, content)
        with pytest.raises(LayoutError, match=said):
            open_via(path)
    path.write_text(json.dumps(found)[:-9])
    with pytest.raises(LayoutError, match=r"via\.json is not JSON"):
        open_via(path)
    with pytest.raises(LayoutError, match=r"expected a JSON or CSV file of VIA"):
        open_via(tmp_path)
    for name in ("one.json", "two.json"):
        write(tmp_path / name, found)
    with pytest.raises(LayoutError, match=r"one\.json, two\.json; choose with .*annotations=FILE"):
        open_via(tmp_path)
    write(tmp_path / "two.json", metadata(sizes, {"b.png": [SUN]}))
    assert len(open_via(tmp_path, annotations="one.json+two.json")) == 2
    with pytest.raises(LayoutError, match=r"there is no file .*three\.json"):
        open_via(tmp_path, annotations="three.json")


@pytest.mark.parametrize(("text", "said"), [
    ("name,size\n", "must begin with the header filename,"),
    (f"{HEADER}\na.png,1\n", "line 2 has 2 cells; 7 are needed"),
    (f'{HEADER}\na.png,1,"{{}}",1,0,"{{",x\n', "line 2: the cell .* is not JSON"),
    (f'{HEADER}\na.png,1,"{{}}",1,0,[1],x\n', "is not a JSON object"),
    (f"{HEADER}\n", "holds no image"),
])  # fmt: skip
def test_tables_that_are_refused(tmp_path: Path, text: str, said: str):
    save_images(tmp_path)
    (tmp_path / "via.csv").write_text(text)
    with pytest.raises(LayoutError, match=said):
        open_via(tmp_path / "via.csv")


def test_images_that_were_scaled_since(tmp_path: Path):
    path = write(tmp_path / "via.json", metadata(save_images(tmp_path), {"a.png": [SAIL]}))
    save(tmp_path / "a.png", picture(0, (10, 15)))
    with pytest.raises(BadSampleError, match=r"changed since it was annotated.* scaled or crop"):
        open_via(path)[0]
    save(tmp_path / "a.png", picture(9, SHAPE), "L")  # another file, of the same shape
    assert open_via(path)[0].maps


def test_turned_images(tmp_path: Path):
    save_images(tmp_path)
    path = save_turned(tmp_path / "a.png", picture(0, (SHAPE[1], SHAPE[0])), 6)
    sizes = {"a.png": path.stat().st_size}
    write(tmp_path / "via.json", metadata(sizes, {"a.png": [BOAT]}))
    with pytest.raises(BadSampleError, match="exif=apply"):
        open_via(tmp_path)[0]
    turned = open_via(tmp_path, exif="apply")
    np.testing.assert_array_equal(masks_of(turned[0], 1, SHAPE)[0], box(2, 3, 9, 12))
