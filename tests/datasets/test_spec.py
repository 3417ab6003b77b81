"""How datasets are named, opened again and told apart; what a sample must be."""

import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.dataset_fixtures import blocks, picture, save, write_table
from helpers.support import as_users_run_it, examples
from hypothesis import given
from hypothesis import strategies as st

from optexp_jax.datasets import (
    BadSampleError,
    ConceptInfo,
    Dataset,
    DatasetSpec,
    Sample,
    check_sample,
    describe,
    image_of,
    register_kind,
)
from optexp_jax.datasets.protocol import files_of


class Three:
    """A dataset of one's own: the three methods and no more."""

    def __init__(self, n: int = 2):
        self.n = n

    def concepts(self) -> Sequence[ConceptInfo]:
        return [ConceptInfo("dark"), ConceptInfo("light", "tone")]

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> Sample:
        image = picture(index, (4, 6))
        return Sample(f"s{index}", image, ((image[:, :, 0] > 127).astype(np.int32),))


@register_kind
def open_three(n: int = 2, scale: float = 1.0, tag: str = "", deep: bool = False) -> Three:
    del scale, tag, deep
    return Three(n)


@register_kind
def open_rooted(root: Path) -> Three:
    return Three(len(list(root.iterdir())))


KIND = f"{__name__}:open_three"


def write_folder(root: Path) -> Path:
    save(root / "images" / "a.png", picture(0, (6, 8)))
    save(root / "labels" / "a.png", blocks(0, (6, 8), [1, 2]).astype(np.uint8))
    write_table(root / "labels.csv", ["value", "name"], [[1, "one"], [2, "two"]])
    return root


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("shapes", DatasetSpec("shapes")),
        ("shapes:n=200,seed=1", DatasetSpec("shapes", None, (("n", 200), ("seed", 1)))),
        ("broden:/data/broden1_224", DatasetSpec("broden", "/data/broden1_224")),
        (
            "broden:/d,subset=all,add=colour+position",
            DatasetSpec("broden", "/d", (("subset", "all"),), ("colour", "position")),
        ),
        ("folder:/a,b/c=1,x=true", DatasetSpec("folder", "/a,b/c=1", (("x", True),))),
        (
            "k:x=1.5,y=-2,z=1e3,w=007",
            DatasetSpec("k", None, (("w", "007"), ("x", 1.5), ("y", -2), ("z", 1000.0))),
        ),
        ("folder:C:/data", DatasetSpec("folder", "C:/data")),
        ("folder:data/x,names=a.csv", DatasetSpec("folder", "data/x", (("names", "a.csv"),))),
    ],
)
def test_text(text: str, spec: DatasetSpec):
    assert DatasetSpec.parse(text) == spec
    assert DatasetSpec.parse(str(spec)) == spec


def test_derived_concepts_are_named_once():
    spec = DatasetSpec.parse("shapes:add=colour", add=["position", "colour"])
    assert spec.add == ("position", "colour")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("/data/x", "'folder:/data/x'"),
        ("", "KIND:FOLDER"),
        ("shapes:n=1,seed", "'seed'"),
        ("shapes:n=1,n=2", "given twice: n"),
    ],
)
def test_text_that_is_refused(text: str, message: str):
    with pytest.raises(ValueError, match=message):
        DatasetSpec.parse(text)


names = st.text("abcxyz_", min_size=1).filter(lambda name: name != "add")
values = st.one_of(
    st.integers(),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text("abc /.-", min_size=1),
)


@examples(30)
@given(
    names,
    st.none() | st.text("abc/ ", min_size=1).map(lambda text: "/" + text),
    st.dictionaries(names, values),
    st.lists(st.sampled_from(["colour", "position"]), unique=True),
)
def test_there_and_back(kind: str, root: str | None, options: dict, add: list[str]):
    spec = DatasetSpec(kind, root, tuple(options.items()), tuple(add))
    assert DatasetSpec.from_json(spec.to_json()) == spec
    assert DatasetSpec.parse(str(spec)) == spec
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_json_that_is_none():
    with pytest.raises(ValueError, match="not a dataset spec"):
        DatasetSpec.from_json('{"kind": "shapes"}')
    for root in ("false", "0", "[]"):
        with pytest.raises(ValueError, match="not a dataset spec"):
            DatasetSpec.from_json(f'{{"kind": "k", "root": {root}, "options": {{}}, "add": []}}')


def test_kinds_of_ones_own():
    dataset = DatasetSpec.parse(f"{KIND}:n=5,scale=2,tag=3,deep=true").open()
    assert isinstance(dataset, Dataset)
    assert len(dataset) == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("shape", "Did you mean 'shapes'"),
        ("nosuch.module:thing", "there is no module nosuch,"),
        ("os.path:join:/x", "decorated with @register_kind"),
        ("os:system:command=true", "decorated with @register_kind"),
        (f"{KIND}:m=5", "no option 'm'"),
        (f"{KIND}:n=x", "'n' of datasets .* must be int; got 'x'"),
        (f"{KIND}:n=true", "must be int; got True"),
        (f"{KIND}:/folder", "have no folder; got '/folder'"),
        (f"{__name__}:open_rooted", "Say where the dataset is"),
    ],
)
def test_what_cannot_be_opened(text: str, message: str):
    with pytest.raises(ValueError, match=message):
        DatasetSpec.parse(text).open()


@pytest.mark.chaos("hostile files refused")
def test_a_file_does_not_have_modules_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    mark = tmp_path / "mark"
    (tmp_path / "sly_module.py").write_text(
        f"open({str(mark)!r}, 'w').close()\ndef photographs(): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "sly_module", raising=False)
    stored = DatasetSpec.parse("sly_module:photographs").to_json()
    with pytest.raises(ValueError, match=r"--allow sly_module:photographs"):
        DatasetSpec.from_json(stored).open()
    with pytest.raises(ValueError, match=r"--allow sly_module:photographs"):
        pickle.loads(pickle.dumps(replace(DatasetSpec.from_json(stored), add=("colour",)))).open()
    assert not mark.exists()
    # What is registered already, or named by the user, is opened.
    assert len(DatasetSpec.from_json(DatasetSpec.parse(f"{KIND}:n=5").to_json()).open()) == 5
    with pytest.raises(ValueError, match="decorated with @register_kind"):
        DatasetSpec.parse("sly_module:photographs").open()
    assert mark.exists()


def test_fingerprints(tmp_path: Path):
    first = write_folder(tmp_path / "first")
    moved = write_folder(tmp_path / "moved")
    base = DatasetSpec("folder", str(first))
    assert base.fingerprint == DatasetSpec("folder", str(moved)).fingerprint

    def differs(spec: DatasetSpec) -> bool:
        return spec.fingerprint != base.fingerprint

    assert differs(DatasetSpec("folder", str(first), (("scene_prefix", 1),)))
    assert differs(DatasetSpec("folder", str(first), add=("colour",)))
    (first / "notes.txt").write_text("not read by the dataset")
    assert not differs(DatasetSpec("folder", str(first)))
    save(first / "images" / "a.png", picture(0, (7, 8)))
    assert differs(DatasetSpec("folder", str(first)))
    save(moved / "images" / "b.png", picture(0, (6, 8)))
    assert differs(DatasetSpec("folder", str(moved)))


def test_a_dataset_that_does_not_tell_its_files_is_its_folder(tmp_path: Path):
    text = f"{__name__}:open_rooted:{tmp_path}"
    (tmp_path / "x.bin").write_bytes(b"abc")
    before = DatasetSpec.parse(text).fingerprint
    (tmp_path / "x.bin").write_bytes(b"abcd")
    after = DatasetSpec.parse(text).fingerprint
    assert before != after == DatasetSpec.parse(text).fingerprint


def test_a_dataset_of_three_methods():
    dataset = Three()
    assert isinstance(dataset, Dataset)
    np.testing.assert_array_equal(image_of(dataset, 1), dataset[1].image)
    assert files_of(dataset) == ()
    assert describe(dataset) == "Three: 2 samples, 2 concepts"
    assert not isinstance(object(), Dataset)


def test_only_the_image_is_read_where_that_is_possible(tmp_path: Path):
    dataset = DatasetSpec("folder", str(write_folder(tmp_path))).open()
    (tmp_path / "labels" / "a.png").write_bytes(b"broken")
    np.testing.assert_array_equal(image_of(dataset, 0), picture(0, (6, 8)))
    with pytest.raises(BadSampleError):
        dataset[0]


def test_errors_travel_between_processes():
    error = pickle.loads(pickle.dumps(BadSampleError("a/b.png", "it is broken.")))
    assert isinstance(error, BadSampleError)
    assert isinstance(error, ValueError)
    assert (error.name, error.reason) == ("a/b.png", "it is broken.")
    assert str(error) == "Sample 'a/b.png' cannot be read: it is broken."


IMAGE = picture(0, (4, 6))
IDS = np.zeros((2, 3), np.int32)


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        ((IMAGE[:, :, 0], ()), r"uint8 \[height, width, 3\]; got uint8 \[4, 6\]"),
        ((IMAGE.astype(np.float32), ()), "float32"),
        ((IMAGE[:0], ()), r"\[0, 6, 3\]"),
        ((IMAGE, (IDS.astype(np.int64),)), "map 0 must be int32"),
        ((IMAGE, (IDS, IDS[0])), "map 1 must be int32"),
        ((IMAGE, (IDS + 2,)), "map 0 holds 2; concept ids are 0 to 1"),
        ((IMAGE, (IDS - 2,)), "map 0 holds -2"),
        ((IMAGE, (IDS,), (2,)), "`everywhere` holds 2"),
        ((IMAGE, (), (-1,)), "`everywhere` holds -1"),
    ],
)
def test_samples_that_are_none(sample, message: str):
    with as_users_run_it(), pytest.raises(BadSampleError, match=message):
        check_sample(Sample("s", *sample), 2)


def test_a_sample_may_be_without_annotations():
    sample = Sample("s", IMAGE, ())
    assert check_sample(sample, 2) is sample


def test_nothing_of_the_extras_is_imported():
    code = (
        "import sys, optexp_jax.datasets, optexp_jax.datasets.arrays, optexp_jax.datasets.folder\n"
        "import optexp_jax.datasets.coco, optexp_jax.datasets.broden\n"
        "assert not {'torch', 'torchvision', 'pandas', 'pycocotools'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
