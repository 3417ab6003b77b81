"""Datasets made of any sequence of (image, masks)."""

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.dataset_fixtures import (
    assert_explained,
    blocks,
    masks_of,
    picture,
    save,
    save_palette,
    write_cityscapes,
)
from helpers.turned_images import STORED, save_turned
from PIL import Image

import optexp_jax as ox
from optexp_jax import cli
from optexp_jax.activations.torch_import import import_torchvision
from optexp_jax.datasets import BadSampleError, ConceptInfo, Dataset, from_pairs

SHAPE = (14, 20)
LABELS = [blocks(k, SHAPE, [0, 1, 2, 255]) for k in range(3)]
PICTURES = [picture(k, SHAPE) for k in range(3)]
NAMES = ["sky", "road", "car"]


def pairs(convert: Any = lambda labels: labels) -> list[tuple[Any, Any]]:
    return [(Image.fromarray(p), convert(v)) for p, v in zip(PICTURES, LABELS, strict=True)]


def expected(x: int) -> np.ndarray:
    return np.stack([LABELS[x] == value for value in range(3)])


@pytest.mark.parametrize("convert", [
    lambda v: v,
    lambda v: v.astype(np.uint8)[None],
    lambda v: v.astype(np.int32)[:, :, None],
    lambda v: torch.from_numpy(v.astype(np.uint8))[None],
    lambda v: torch.from_numpy(v),
    lambda v: Image.fromarray(v.astype(np.uint8)),
    lambda v: [Image.fromarray(v.astype(np.uint16))],
    lambda v: np.stack([v == k for k in range(3)]),
    lambda v: [v == k for k in range(3)],
    lambda v: [Image.fromarray(v == k) for k in range(3)],
])  # fmt: skip
def test_masks_of_every_form(convert: Any):
    dataset = from_pairs(pairs(convert), NAMES)
    assert isinstance(dataset, Dataset)
    assert dataset.concepts() == tuple(map(ConceptInfo, NAMES))
    for x in range(3):
        np.testing.assert_array_equal(dataset[x].image, PICTURES[x])
        np.testing.assert_array_equal(dataset.image(x), PICTURES[x])
        np.testing.assert_array_equal(masks_of(dataset[x], 3, SHAPE), expected(x))
    assert dataset.sample_names() == ("sample0", "sample1", "sample2")
    assert len(pickle.loads(pickle.dumps(dataset))) == 3


def test_several_label_maps_and_categories():
    two = [(p, (v.astype(np.uint8), (v == 1).astype(np.uint8))) for p, v in pairs()]
    layers = [ox.LabelLayer(NAMES, "object", ignore=[255]), ox.LabelLayer({1: "grey"}, "tone")]
    dataset = from_pairs(two, layers)
    assert dataset.concepts()[-1] == ConceptInfo("grey", "tone")
    np.testing.assert_array_equal(
        masks_of(dataset[0], 4, SHAPE), [*expected(0), LABELS[0] == 1]
    )  # fmt: skip
    with pytest.raises(BadSampleError, match="2 label maps and names for 1; pass as names a Label"):
        from_pairs(two, NAMES)[0]


def test_items_that_are_dictionaries():
    items = [{"image": p, "annotation": v, "scene_category": 3} for p, v in pairs()]
    np.testing.assert_array_equal(
        masks_of(from_pairs(items, NAMES)[1], 3, SHAPE), expected(1)
    )  # fmt: skip
    odd = [{"photo": p, "mask": v, "label": 3} for p, v in pairs()]
    dataset = from_pairs(odd, NAMES, image="photo", mask="mask")
    np.testing.assert_array_equal(masks_of(dataset[1], 3, SHAPE), expected(1))
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "no key that is surely the image. Say image=KEY of from_pairs; its keys: 'photo'"),
        ({"image": "photo"}, "no key that is surely the mask"),
        ({"image": "foto"}, "no key 'foto'. Did you mean 'photo'"),
    ]
    for told, said in cases:
        with pytest.raises(BadSampleError, match=said.replace(".", r"\.")):
            from_pairs(odd, NAMES, **told)[0]


class HuggingFaceLike:
    """What `datasets.Dataset` gives: rows as dictionaries, with images decoded or stored arrays."""

    def __init__(self, column: str, decode: Any):
        self._rows = [{"image": decode(p), column: decode(v)} for p, v in pairs(np.uint8)]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, key: int | str) -> Any:
        return self._rows[key] if isinstance(key, int) else [row[key] for row in self._rows]


@pytest.mark.parametrize("decode", [
    lambda v: Image.fromarray(np.asarray(v)),  # features.Image
    lambda v: np.asarray(v).astype(np.int64),  # Array3D and Array2D, with_format("numpy")
    lambda v: torch.from_numpy(np.array(v)),  # with_format("torch")
    lambda v: np.asarray(v).tolist(),  # Array3D and Array2D without a format
])  # fmt: skip
@pytest.mark.parametrize("column", ["annotation", "segmentation_map"])
def test_rows_of_huggingface(decode: Any, column: str):
    dataset = from_pairs(HuggingFaceLike(column, decode), NAMES)
    for x in range(3):
        np.testing.assert_array_equal(dataset[x].image, PICTURES[x])
        np.testing.assert_array_equal(masks_of(dataset[x], 3, SHAPE), expected(x))


def test_lists_that_are_no_array():
    rows = [{"image": PICTURES[0], "mask": [[1, 2], [3]]}]
    with pytest.raises(BadSampleError, match="its parts differ in shape"):
        from_pairs(rows, NAMES)[0]
    with pytest.raises(BadSampleError, match="got int64 from 0 to 256"):
        from_pairs([([[0, 256]], [[0, 1]])], NAMES)[0]


class NoLength:
    def __iter__(self) -> Any:
        return iter(pairs())


def test_what_is_no_sequence():
    for given, said in (
        ((pair for pair in pairs()), r"got generator\. Pass list\(\.\.\.\) of it if that fits mem"),
        (NoLength(), "got NoLength"),
        ({"train": pairs(), "test": pairs()}, "with 'train', 'test'. Pass one of its splits"),
    ):
        with pytest.raises(TypeError, match=said):
            from_pairs(given, NAMES)
    loader = torch.utils.data.DataLoader(pairs())  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"got DataLoader\. Pass its \.dataset"):
        from_pairs(loader, NAMES)
    with pytest.raises(ValueError, match="pass at least one"):
        from_pairs([], NAMES)


@pytest.mark.parametrize(("mask", "said"), [
    (np.full(SHAPE, 9), "hold values without a name: 9"),
    (np.zeros(SHAPE, np.float32), "it holds floats. Label maps are integers"),
    (np.zeros((2, *SHAPE), int), r"a label map is \[height, width\]; got \[2, 14, 20\]"),
    (np.zeros(SHAPE[::-1], int), "one of them is turned, cropped or stretched"),
    (np.zeros((2, *SHAPE), bool), "there are 2 boolean masks and 3 names"),
    ({"boxes": 1}, "second part is a dictionary with 'boxes'"),
    (None, "it is None"),
    (Image.fromarray(picture(0, SHAPE)), "it is a colour image"),
])  # fmt: skip
def test_masks_that_are_refused(mask: Any, said: str):
    with pytest.raises(BadSampleError, match=said):
        from_pairs([(PICTURES[0], mask)], NAMES)[0]


def test_items_that_are_refused():
    for item in (PICTURES[0], (PICTURES[0], LABELS[0], 3), "x"):
        with pytest.raises(BadSampleError, match=r"must be \(image, mask\) or a dictionary"):
            from_pairs([item], NAMES)[0]
    with pytest.raises(BadSampleError, match=r"hold.* floats outside 0 to 1"):
        from_pairs([(PICTURES[0] / 9.0, LABELS[0])], NAMES)[0]
    with pytest.raises(ValueError, match="must be distinct"):
        from_pairs(pairs(), NAMES, sample_names=["a", "b", "a"])


class Failing:
    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Any:
        return {}["lost"]


def test_an_error_of_the_users_own_points_at_their_line():
    line = Failing.__getitem__.__code__.co_firstlineno + 1
    with pytest.raises(
        BadSampleError, match=rf"KeyError: 'lost' \(.*test_pairs\.py, line {line}\)"
    ):
        from_pairs(Failing(), NAMES)[0]


def test_turned_images(tmp_path: Path):
    path = save_turned(tmp_path / "a.png", STORED, 6)
    labels = (STORED[:, :, 0] > 99).astype(np.uint8)
    with Image.open(path) as image:
        with pytest.raises(BadSampleError, match="exif=apply"):
            from_pairs([(image, labels)], NAMES)[0]
        stored = from_pairs([(image, labels)], NAMES, exif="ignore")
        np.testing.assert_array_equal(stored[0].image, STORED)
        turned = from_pairs([(image, np.rot90(labels, -1))], NAMES, exif="apply")
        np.testing.assert_array_equal(turned[0].image, np.rot90(STORED, -1))


def test_a_table_and_another_order(tmp_path: Path):
    dataset = from_pairs(pairs(), NAMES)
    bitmap = np.stack([(v == 1) | (v == 2) for v in LABELS])
    assert_explained(dataset, bitmap, "road OR car", tmp_path)
    with pytest.raises(ValueError, match="not built from this dataset"):
        ox.activations.find_images(
            from_pairs(pairs()[::-1], NAMES), table=tmp_path / "table.zarr"
        )  # fmt: skip


# Torchvision's own datasets, of files in the layout in which they are distributed.


def vision_datasets() -> Any:
    return import_torchvision().datasets


def test_vocsegmentation(tmp_path: Path):
    root = tmp_path / "VOCdevkit" / "VOC2012"
    for x, labels in enumerate(LABELS):
        save(root / "JPEGImages" / f"2007_00000{x}.jpg", PICTURES[x])
        save_palette(root / "SegmentationClass" / f"2007_00000{x}.png", labels)
    listed = root / "ImageSets" / "Segmentation" / "val.txt"
    listed.parent.mkdir(parents=True)
    listed.write_text("2007_000000\n2007_000002\n")
    voc = vision_datasets().VOCSegmentation(str(tmp_path), "2012", "val")
    dataset = from_pairs(voc, NAMES)
    assert len(dataset) == 2
    np.testing.assert_array_equal(masks_of(dataset[1], 3, SHAPE), expected(2))


def test_oxford_pets_and_cityscapes(tmp_path: Path):
    root = tmp_path / "oxford-iiit-pet"
    (root / "annotations").mkdir(parents=True)
    (root / "annotations" / "trainval.txt").write_text(
        "".join(f"pet_{x} 1 1 1\n" for x in range(3))
    )
    for x, labels in enumerate(LABELS):
        save(root / "images" / f"pet_{x}.jpg", PICTURES[x])
        trimap = np.where(labels == 255, 3, labels + 1).astype(np.uint8)
        save(root / "annotations" / "trimaps" / f"pet_{x}.png", trimap)
    pets = vision_datasets().OxfordIIITPet(str(tmp_path), target_types="segmentation")
    dataset = from_pairs(pets, {1: "pet", 2: "ground", 3: "border"})
    for x in range(3):
        wanted = [LABELS[x] == 0, LABELS[x] == 1, (LABELS[x] == 2) | (LABELS[x] == 255)]
        np.testing.assert_array_equal(masks_of(dataset[x], 3, SHAPE), wanted)

    ids = {
        f"lindau/lindau_00000{x}_000019": np.where(v == 255, 0, v + 7) for x, v in enumerate(LABELS)
    }
    write_cityscapes(tmp_path / "city", ids, {}, "train")
    city = vision_datasets().Cityscapes(
        str(tmp_path / "city"), split="train", target_type="semantic"
    )
    dataset = from_pairs(city, {7: "road", 8: "sidewalk", 9: "parking"}, ignore=(0, 255))
    masks = {masks_of(dataset[x], 3, SHAPE).tobytes() for x in range(3)}  # It lists them unsorted.
    assert masks == {expected(x).tobytes() for x in range(3)}


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any):
    (tmp_path / "my_pairs.py").write_text(
        "import numpy as np\n"
        "from optexp_jax.datasets import from_pairs, register_kind\n"
        "@register_kind\n"
        "def halves(n: int = 3, backwards: bool = False):\n"
        "    labels = np.repeat([[0, 1]], 8, axis=0).repeat(4, axis=1)\n"
        "    step = -1 if backwards else 1\n"
        "    images = np.arange(n * 192, dtype=np.uint8).reshape(n, 8, 8, 3)[::step]\n"
        "    return from_pairs([(image, labels) for image in images], ['left', 'right'])\n"
    )
    monkeypatch.chdir(tmp_path)
    for how in ("", ",backwards=true"):
        out = f"t{len(how)}.zarr"
        assert cli.main(["data", "build", f"my_pairs:halves:n=4{how}", "--out", out]) == 0
    assert "pairs of list: 4 images, 2 concepts" in capsys.readouterr().out
    one, other = (ox.datasets.read_provenance(tmp_path / f"t{n}.zarr") for n in (0, 15))
    assert one.samples != other.samples  # Names are places, so that the pixels have to count.
    sys.modules.pop("my_pairs")


@pytest.mark.parametrize(("module", "body", "said"), [
    ("failing0", "return from_pairs((p for p in ITEMS), ['a'])", "got generator. Pass list(...)"),
    ("failing1", "return {}['lost']", "raised KeyError: 'lost'"),
    ("failing2", "return ITEMS", "must return a dataset, with concepts(), len and [index]; got"),
])  # fmt: skip
def test_functions_that_fail_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, module: str, body: str, said: str
):
    (tmp_path / f"{module}.py").write_text(
        "from optexp_jax.datasets import from_pairs, register_kind\n"
        f"ITEMS = [(1, 2)]\n@register_kind\ndef made():\n    {body}\n"
    )
    monkeypatch.chdir(tmp_path)
    assert cli.main(["data", "build", f"{module}:made", "--out", "t.zarr"]) == 1
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert (f"{module}.py, line 5)" in told) == ("raised" in told)
    sys.modules.pop(module)


def test_soft_masks():
    scores = [np.random.default_rng(x).random((2, *SHAPE), np.float32) for x in range(3)]
    dataset = from_pairs(list(zip(PICTURES, scores, strict=True)), ["dog", "cat"], thresholds=0.5)
    assert [concept.name for concept in dataset.concepts()] == ["dog", "cat"]
    np.testing.assert_array_equal(masks_of(dataset[1], 2, SHAPE), scores[1] > 0.5)
    lists = [
        (p, [torch.from_numpy(s) for s in score]) for p, score in zip(PICTURES, scores, strict=True)
    ]
    nested = from_pairs(lists, ["dog", "cat"], thresholds=[0.7, 0.25], category="soft")
    assert nested.concepts() == tuple(
        ConceptInfo(name, "soft") for name in ("dog>0.25", "dog>0.7", "cat>0.25", "cat>0.7")
    )
    np.testing.assert_array_equal(
        masks_of(nested[2], 4, SHAPE),
        [scores[2][k] > t for k in range(2) for t in (0.25, 0.7)],
    )


@pytest.mark.parametrize(("scores", "said"), [
    (np.zeros((3, *SHAPE), np.float32), "3 soft masks and 2 names"),
    (np.zeros((2, *SHAPE), np.uint8), "soft masks are floats; got uint8"),
    (np.full((2, *SHAPE), np.nan), "NaN"),
    (np.zeros((2, 1, *SHAPE)), r"masks are \[concept, height, width\]; got \[\[2, 1, 14, 20\]\]"),
])  # fmt: skip
def test_soft_masks_that_are_refused(scores: np.ndarray, said: str):
    with pytest.raises(BadSampleError, match=said):
        from_pairs([(PICTURES[0], scores)], ["dog", "cat"], thresholds=0.5)[0]


@pytest.mark.parametrize("thresholds", [[], [0.5, 0.5], [float("nan")], [0.1, 0.10000001]])
def test_thresholds_that_are_refused(thresholds: list[float]):
    with pytest.raises(ValueError, match="Thresholds"):
        from_pairs(pairs(), NAMES, thresholds=thresholds)
