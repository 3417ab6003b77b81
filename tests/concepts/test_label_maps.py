"""Tables from label maps: what integers mean, layers, labels of whole samples."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from helpers.strategies import Case, cases
from helpers.support import as_users_run_it, examples
from hypothesis import given
from hypothesis import strategies as st

from optexp_jax.concepts import ConceptTable, LabelLayer


def names_and_masks(table: ConceptTable) -> dict[str, list[Any]]:
    return {name: table.mask(name).tolist() for name in table.names}


@st.composite
def label_data(draw: st.DrawFn) -> tuple[list[np.ndarray], list[LabelLayer], list[list[str]]]:
    """A few layers over few names, so that layers and whole samples often share a concept."""
    rng = np.random.default_rng(draw(st.integers(0, 2**16 - 1)))
    shape = draw(st.sampled_from([(1,), (3,), (2, 1), (2, 3), (3, 2, 2)]))
    maps: list[np.ndarray] = []
    layers: list[LabelLayer] = []
    for _ in range(draw(st.integers(1, 3))):
        values = rng.permutation([-3, 0, 1, 2, 5, 200])
        n_named, n_ignored = rng.integers(1, 4), rng.integers(0, 3)
        named = {int(v): f"n{rng.integers(5)}" for v in values[:n_named]}
        ignored = values[n_named : n_named + n_ignored].tolist()
        allowed = [*named, *ignored] if 0 in named or rng.random() < 0.5 else [*named, *ignored, 0]
        with as_users_run_it():  # The checks use `random`, which a strategy must not.
            layers.append(LabelLayer(named, f"layer{len(layers)}", ignored))
        maps.append(rng.choice(allowed, shape).astype(draw(st.sampled_from(["i2", "i4", "i8"]))))
    labels = [[f"n{k}" for k in rng.integers(0, 7, rng.integers(0, 3))] for _ in range(shape[0])]
    return maps, layers, labels


@given(label_data())
def test_every_concept_holds_where_a_layer_or_the_sample_says_so(
    data: tuple[list[np.ndarray], list[LabelLayer], list[list[str]]],
):
    maps, layers, labels = data
    table = ConceptTable.from_label_maps(maps, layers, labels)
    mentioned = {name for layer in layers for _, name in layer.items()}.union(*labels)
    assert set(table.names) == mentioned
    for name in table.names:
        expected = np.zeros(maps[0].shape, bool)
        for values, layer in zip(maps, layers, strict=True):
            for value, concept in layer.items():
                if concept == name:
                    expected |= values == value
        for sample, own in enumerate(labels):
            if name in own:
                expected[sample] = True
        found = table.mask(name)
        assert found.shape == maps[0].shape
        assert np.array_equal(found, expected)


@given(cases())
def test_masks_and_label_maps_of_the_same_data_give_the_same_table(case: Case):
    """A boolean mask is a label map of two values; the table must not show how it came about."""
    maps = [mask.astype(np.uint8) for mask in case.masks]
    layers = [LabelLayer({1: name}) for name in case.names]
    assert ConceptTable.from_label_maps(maps, layers).fingerprint == case.table.fingerprint


@given(st.integers(0, 2**16))
@examples(20)
def test_partition_as_one_layer(seed: int):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 5, (3, 4, 2))
    scenes = rng.integers(0, 2, 3)
    masks = [labels == k for k in range(1, 5)]
    masks += [np.broadcast_to((scenes == k)[:, None, None], labels.shape) for k in range(2)]
    names = ["d", "c", "b", "a", "s0", "s1"]
    from_masks = ConceptTable.from_masks(masks, names, [*["object"] * 4, "scene", "scene"])
    from_labels = ConceptTable.from_label_maps(
        [labels, np.broadcast_to(scenes[:, None, None], labels.shape)],
        [
            LabelLayer({1: "d", 2: "c", 3: "b", 4: "a"}, "object"),
            LabelLayer(["s0", "s1"], "scene"),
        ],
    )
    assert from_labels.fingerprint == from_masks.fingerprint
    first_met = [f"s{k}" for k in dict.fromkeys(scenes.tolist())]
    from_scenes = ConceptTable.from_label_maps(
        [labels],
        [LabelLayer({1: "d", 2: "c", 3: "b", 4: "a"}, "object")],
        [f"s{k}" for k in scenes],
    )
    assert from_scenes.names == ("d", "c", "b", "a", *first_met)
    selected = from_masks.select(from_scenes.names)
    assert names_and_masks(from_scenes) == names_and_masks(selected)


def test_values_and_names():
    layer = LabelLayer({7: "g", -1: "minus", 2: "b"})
    assert layer.items() == [(-1, "minus"), (2, "b"), (7, "g")]
    assert LabelLayer(["zero", "one"]).items() == [(0, "zero"), (1, "one")]
    table = ConceptTable.from_label_maps([np.array([[7, 0, -1, 2]])], [layer])
    assert names_and_masks(table) == {
        "minus": [[False, False, True, False]],
        "b": [[False, False, False, True]],
        "g": [[True, False, False, False]],
    }


def test_zero_is_background_unless_it_has_a_name():
    maps = np.array([[0, 1]])
    assert ConceptTable.from_label_maps([maps], [LabelLayer({1: "a"})]).names == ("a",)
    table = ConceptTable.from_label_maps([maps], [LabelLayer(["sky", "a"])])
    assert table.mask("sky").tolist() == [[True, False]]


def test_two_values_of_one_name_and_one_name_in_two_layers():
    maps = [np.array([[1, 2, 3, 0]]), np.array([[0, 0, 0, 9]])]
    layers = [LabelLayer({1: "car", 2: "car", 3: "bus"}, "object"), LabelLayer({9: "car"}, "part")]
    table = ConceptTable.from_label_maps(maps, layers)
    assert table.names == ("car", "bus")
    assert table.mask("car").tolist() == [[True, True, False, True]]
    assert table.concept("car").category == "object"
    # Different labels, the same concepts: one signature, and one patch.
    assert len(table.signatures) == 3
    assert len(table.patches) == 2


def test_labels_of_samples():
    maps = [np.zeros((4, 2), int)]
    labels = ["kitchen", ["street", "outdoor"], None, ("kitchen", "kitchen")]
    table = ConceptTable.from_label_maps(maps, [LabelLayer({1: "a"}, "object")], labels)
    assert table.names == ("a", "kitchen", "street", "outdoor")
    assert table.categories == ("object", "scene", "scene", "scene")
    assert table.mask("kitchen").tolist() == [[True] * 2, [False] * 2, [False] * 2, [True] * 2]
    other = ConceptTable.from_label_maps(maps, [LabelLayer({1: "a"})], labels, None)
    assert other.categories == (None,) * 4


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.int32, np.int64, np.uint64])
def test_integer_types(dtype: type):
    maps = np.array([[[0, 1], [120, 1]]], dtype)
    table = ConceptTable.from_label_maps([maps], [LabelLayer({1: "a", 120: "b"})])
    assert table.mask("b").tolist() == [[[False, False], [True, False]]]
    # A stack of layers in one array is a sequence of arrays.
    layers = [LabelLayer({1: "a", 120: "b"})] * 2
    stacked = ConceptTable.from_label_maps(np.stack([maps, maps]), layers)
    assert stacked.fingerprint == table.fingerprint


def test_large_unsigned_values_are_told_apart():
    """A search among floats could not tell 2**60 from 2**60 + 1."""
    maps = np.array([[2**60, 2**60 + 1, 2**60 + 2]], np.uint64)
    layer = LabelLayer({2**60: "a", 2**60 + 1: "b"}, ignore=[2**60 + 2])
    table = ConceptTable.from_label_maps([maps], [layer])
    assert names_and_masks(table) == {"a": [[True, False, False]], "b": [[False, True, False]]}


def test_jax_torch_and_numpy_strings():
    maps = np.array([[0, 1, 2]])
    layer = LabelLayer(dict(zip([1, 2], np.array(["a", "b"]), strict=True)), np.str_("object"))
    expected = ConceptTable.from_label_maps([maps], [LabelLayer({1: "a", 2: "b"}, "object")])
    table = ConceptTable.from_label_maps([jnp.asarray(maps)], [layer])
    assert table.fingerprint == expected.fingerprint
    assert {type(name) for name in table.names} == {str}
    torch = pytest.importorskip("torch")
    table = ConceptTable.from_label_maps([torch.from_numpy(maps)], [layer])
    assert table.fingerprint == expected.fingerprint


def test_one_location_a_sample():
    table = ConceptTable.from_label_maps([np.array([0, 1, 2, 1])], [LabelLayer(["x", "y", "z"])])
    assert table.mask("y").tolist() == [False, True, False, True]
    assert table.count(np.array([True, True, False, False])).size == 2
