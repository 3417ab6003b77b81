"""Bad input is refused with the right kind of error, which says what was wrong and what to pass."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from helpers.support import as_users_run_it

import optexp_jax as ox
from optexp_jax import ConceptTable, Formula, LabelLayer, NeuronCounts, TableBuilder
from optexp_jax.counts.quantities import concept_quantities, formula_quantities, neuron_quantities

MASKS = np.random.default_rng(0).random((3, 4, 5)) < 0.4
BITMAP = np.random.default_rng(1).random((4, 5)) < 0.4
SPARSE = [scipy.sparse.csr_array(mask) for mask in MASKS]
FLOATS = MASKS.astype(float)
NAN = np.full(MASKS.shape, np.nan)

Refused = tuple[Callable[[], Any], type[Exception], str]


@pytest.fixture(autouse=True)
def _without_type_checks() -> Iterator[None]:
    with as_users_run_it():
        yield


def table() -> ConceptTable:
    return ConceptTable.from_masks(MASKS, ["table", "chair", "traffic light"], ["x", None, "x"])


def counted() -> ConceptTable:
    return ConceptTable.from_signatures([[0], [0, 1], [0]], [5, 6, 7], n_locations=20)


def refused(*cases: Refused) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("call", "kind", "says"), cases)


def check(call: Callable[[], Any], kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says) as caught:
        call()
    assert type(caught.value) is kind


@refused(
    (lambda: ConceptTable.from_masks(FLOATS), TypeError, r"masks must be boolean; .*float64.*Pass"),
    (lambda: ConceptTable.from_masks(NAN), TypeError, r"masks must be boolean.*It holds NaN"),
    (lambda: ConceptTable.from_masks(MASKS.astype(np.uint8)), TypeError, "got dtype uint8"),
    (lambda: ConceptTable.from_masks(None), TypeError, "masks must be an array"),
    (lambda: ConceptTable.from_masks("masks"), TypeError, "masks must be boolean"),
    (lambda: ConceptTable.from_masks([[[True], [True, False]]]), ValueError, "differ in shape"),
    (lambda: ConceptTable.from_masks(np.array(True)), ValueError, r"\[concept, sample, \*location"),
    (lambda: ConceptTable.from_masks(MASKS[0, 0]), ValueError, r"got shape \(5,\)"),
    (lambda: ConceptTable.from_masks([]), ValueError, r"no concept"),
    (lambda: ConceptTable.from_masks(MASKS[:0]), ValueError, r"\(0, 4, 5\) hold no concept"),
    (lambda: ConceptTable.from_masks(MASKS[:, :0]), ValueError, r"\(3, 0, 5\) .* no sample"),
    (lambda: ConceptTable.from_masks(MASKS[:, :, :0]), ValueError, r"\(3, 4, 0\) .*no location"),
    (lambda: ConceptTable.from_masks(MASKS, ["a"]), ValueError, "3 concepts but 1 names"),
    (lambda: ConceptTable.from_masks(MASKS, "abc"), TypeError, "names must be a sequence"),
    (lambda: ConceptTable.from_masks(MASKS, ["a", "b", 3]), TypeError, "must be strings; got 3"),  # type: ignore[list-item]
    (lambda: ConceptTable.from_masks(MASKS, ["b", "a", "b"]), ValueError, "repeated: b"),
    (
        lambda: ConceptTable.from_masks(MASKS, None, ["a"]),
        ValueError,
        "3 concepts but 1 categories",
    ),
    (
        lambda: ConceptTable.from_masks(MASKS, None, "abc"),
        TypeError,
        "categories must be a sequence",
    ),
    (lambda: ConceptTable.from_masks(MASKS, None, [1, 2, 3]), TypeError, "strings or None; got 1"),  # type: ignore[list-item]
)
def test_masks(call: Callable[[], Any], kind: type[Exception], says: str):
    check(call, kind, says)


@refused(
    (lambda: ConceptTable.from_masks(SPARSE[0]), TypeError, "pass a list of them, one a concept"),
    (lambda: ConceptTable.from_masks([*SPARSE, MASKS[0]]), TypeError, "Mask 3 is ndarray"),
    (
        lambda: ConceptTable.from_masks([m.astype(int) for m in SPARSE]),
        TypeError,
        "0 must be boolean",
    ),
    (lambda: ConceptTable.from_masks([*SPARSE, SPARSE[0][:2]]), ValueError, r"mask 3 has \(2, 5\)"),
    (lambda: ConceptTable.from_masks([SPARSE[0][:0]]), ValueError, r"\(0, 5\) hold no sample"),
    (
        lambda: ConceptTable.from_masks([scipy.sparse.coo_array(MASKS[0, 0])]),
        ValueError,
        r"must be \[sample, location\]; its shape is \(5,\)",
    ),
    (lambda: ConceptTable.from_masks(SPARSE, ["a"]), ValueError, "3 concepts but 1 names"),
)
def test_sparse_masks(call: Callable[[], Any], kind: type[Exception], says: str):
    check(call, kind, says)


@refused(
    (lambda: ConceptTable.from_signatures([], []), ValueError, "There is no signature"),
    (lambda: ConceptTable.from_signatures([[]], [3]), ValueError, "There is no concept"),
    (lambda: ConceptTable.from_signatures([[0]], [0]), ValueError, "needs at least one"),
    (lambda: ConceptTable.from_signatures([[0]], [1, 2]), ValueError, "1 signatures but 2 sizes"),
    (lambda: ConceptTable.from_signatures([[0]], [-1]), ValueError, "sizes must not be negative"),
    (lambda: ConceptTable.from_signatures([[0]], [1.0]), TypeError, "sizes must be integers"),
    (lambda: ConceptTable.from_signatures([[0]], [np.nan]), TypeError, "It holds NaN"),
    (lambda: ConceptTable.from_signatures([[0]], [[1]]), ValueError, r"got shape \(1, 1\)"),
    (
        lambda: ConceptTable.from_signatures([[0], [1]], [2**52, 2**52]),
        ValueError,
        r"below 2\*\*53",
    ),
    (lambda: ConceptTable.from_signatures([[0]], [2**70]), TypeError, "sizes must be"),
    (lambda: ConceptTable.from_signatures([[0]], [1], n_locations=2**53), ValueError, r"2\*\*53"),
    (lambda: ConceptTable.from_signatures([[0]], [5], n_locations=4), ValueError, "add up to 5"),
    (lambda: ConceptTable.from_signatures([[0, -1]], [1]), ValueError, "not be negative; got -1"),
    (
        lambda: ConceptTable.from_signatures([[1], [2, 0, 2]], [1, 1]),
        ValueError,
        "1 lists concept 2",
    ),
    (lambda: ConceptTable.from_signatures([[[0, 1]]], [1]), ValueError, "list of concept ids"),
    (
        lambda: ConceptTable.from_signatures([0, 1], [1, 1]),
        ValueError,
        "list of concept ids; got 0",
    ),
    (lambda: ConceptTable.from_signatures([[0.5]], [1]), TypeError, "signature 0 must be integers"),
    (
        lambda: ConceptTable.from_signatures([[True]], [1]),
        TypeError,
        "signature 0 must be integers",
    ),
    (lambda: ConceptTable.from_signatures([[2]], [1], ["a", "b"]), ValueError, "2, but .* 2 names"),
    (lambda: ConceptTable.from_signatures(([0, 2], [0]), [1]), ValueError, "CSR pair is"),
    (lambda: ConceptTable.from_signatures(([1, 1], [0]), [1]), ValueError, "CSR pair is"),
    (lambda: ConceptTable.from_signatures(([0, 2, 1], [0]), [1, 1]), ValueError, "CSR pair is"),
    (lambda: ConceptTable.from_signatures(([0, 1], [[0]]), [1]), ValueError, "CSR pair is"),
)
def test_signatures(call: Callable[[], Any], kind: type[Exception], says: str):
    check(call, kind, says)


LAYER = LabelLayer({1: "a", 2: "b"}, category="object")
LABELS = np.array([[[0, 1, 2]]] * 2)


@refused(
    (lambda: ConceptTable.from_label_maps([], []), ValueError, "0 arrays, 0 layers"),
    (lambda: ConceptTable.from_label_maps([LABELS], []), ValueError, "1 arrays, 0 layers"),
    (
        lambda: ConceptTable.from_label_maps([LABELS * 1.0], [LAYER]),
        TypeError,
        r"maps\[0\] must be",
    ),
    (lambda: ConceptTable.from_label_maps([LABELS * np.nan], [LAYER]), TypeError, "It holds NaN"),
    (lambda: ConceptTable.from_label_maps([LABELS > 0], [LAYER]), TypeError, "got dtype bool"),
    (
        lambda: ConceptTable.from_label_maps([LABELS, LABELS[:1]], [LAYER, LAYER]),
        ValueError,
        r"maps\[0\] has shape \(2, 1, 3\), maps\[1\] \(1, 1, 3\)",
    ),
    (lambda: ConceptTable.from_label_maps([LABELS[:0]], [LAYER]), ValueError, r"\(0, 1, 3\)"),
    (lambda: ConceptTable.from_label_maps([3], [LAYER]), ValueError, r"\[sample, \*location\]"),
    (
        lambda: ConceptTable.from_label_maps([LABELS + 7], [LAYER]),
        ValueError,
        "layer 'object' hold values without a name: 7, 8, 9. Name them .*ignore",
    ),
    (
        lambda: ConceptTable.from_label_maps([np.full((1, 1), 2**63, np.uint64)], [LAYER]),
        ValueError,
        r"from 2\*\*63 on",
    ),
    (
        lambda: ConceptTable.from_label_maps([LABELS], [LabelLayer({1: "a"}, ignore=[1, 2])]),
        ValueError,
        r"values \[1\] have a name and stand in `ignore`",
    ),
    (lambda: LabelLayer("abc").items(), TypeError, "must map values to names"),
    (
        lambda: ConceptTable.from_label_maps([LABELS], [LabelLayer({1: "a", 2: 5})]),  # type: ignore[dict-item]
        TypeError,
        "must be strings; got 5",
    ),
    (
        lambda: ConceptTable.from_label_maps([LABELS], [LabelLayer({1: "a", 2: "b"}, 7)]),  # type: ignore[arg-type]
        TypeError,
        "Categories must be strings or None; got 7",
    ),
    (
        lambda: ConceptTable.from_label_maps([LABELS * 0], [LabelLayer({})]),
        ValueError,
        "no concept",
    ),
    (
        lambda: ConceptTable.from_label_maps([LABELS], [LAYER], ["kitchen"]),
        ValueError,
        "2 samples but 1 sample labels",
    ),
    (
        lambda: ConceptTable.from_label_maps([LABELS], [LAYER], "ab"),
        TypeError,
        "one entry a sample",
    ),
    (lambda: ConceptTable.from_label_maps([LABELS], [LAYER], [[1], None]), TypeError, "got 1"),  # type: ignore[list-item]
)
def test_label_maps(call: Callable[[], Any], kind: type[Exception], says: str):
    check(call, kind, says)


def labels_builder() -> TableBuilder:
    builder = TableBuilder.for_labels([LAYER])
    builder.add_labels([LABELS[0]])
    return builder


@refused(
    (lambda: TableBuilder().build(), ValueError, "There is no sample"),
    (lambda: TableBuilder(["a", "a"]), ValueError, "repeated: a"),
    (lambda: TableBuilder(["a"]).add_masks(MASKS[:, 0]), ValueError, "3 masks .* knows 1 concepts"),
    (lambda: TableBuilder(["a"]).add_masks(np.array(True)), ValueError, r"\[concept, \*location\]"),
    (lambda: TableBuilder().add_masks(MASKS[:0, 0]), ValueError, r"\[concept, \*location\]"),
    (lambda: TableBuilder(["a"]).add_masks(MASKS[:1, 0, :0]), ValueError, "at least one location"),
    (lambda: TableBuilder(["a"]).add_masks(FLOATS[:1, 0]), TypeError, "masks must be boolean"),
    (lambda: labels_builder().add_labels([]), ValueError, "1 layers but 0 label maps"),
    (
        lambda: labels_builder().add_labels([LABELS[0].T]),
        ValueError,
        r"Sample 1 .*\(3, 1\).*\(1, 3\)",
    ),
    (lambda: labels_builder().add_labels([LABELS[0]], "kitchen"), TypeError, "list of names"),
    (lambda: labels_builder().add_labels([LABELS[0] + 7]), ValueError, "values without a name"),
    (lambda: TableBuilder.for_labels([]).add_labels([]), ValueError, "locations .* are unknown"),
    (
        lambda: TableBuilder.for_labels([LAYER, LAYER]).add_labels([LABELS[0], LABELS[0].T]),
        ValueError,
        r"of one sample differ: \(1, 3\) and \(3, 1\)",
    ),
)
def test_builder(call: Callable[[], Any], kind: type[Exception], says: str):
    check(call, kind, says)


@refused(
    (lambda: table().concept("tabel"), ValueError, "unknown concept tabel; did you mean table"),
    (lambda: table().mask("trafic light"), ValueError, 'did you mean "traffic light"'),
    (lambda: table().concept(5), TypeError, "must be strings; got 5"),  # type: ignore[arg-type]
    (lambda: table().mask(5), TypeError, "Expected a Formula; got 5"),  # type: ignore[arg-type]
    (lambda: table().select(["lamp"]), ValueError, "unknown concept lamp"),
    (lambda: table().select("table"), TypeError, "collection of names; got the string 'table'"),
    (lambda: table().select(categories="x"), TypeError, "categories must be a collection"),
    (lambda: table().select(categories=["y"]), ValueError, "no category y; it has x"),
    (lambda: table().select([]), ValueError, "holds no concept"),
    (lambda: table().select(["chair"], categories=["x"]), ValueError, "holds no concept"),
    (lambda: table().select(samples=[]), ValueError, "select samples of 4"),
    (lambda: table().select(samples=slice(3, 3)), ValueError, "non-empty list of samples"),
    (lambda: table().select(samples=2), ValueError, "non-empty list of samples; got 2"),
    (lambda: table().select(samples=[4]), ValueError, "select samples of 4: .*out of bounds"),
    (lambda: table().select(samples=[True]), ValueError, "select samples of 4: boolean index"),
    (lambda: table().select(samples=[0.5]), ValueError, "select samples of 4: .*integer"),
    (lambda: table().with_concepts(table()), ValueError, "Both tables have .* chair, table"),
    (
        lambda: table().with_concepts(ConceptTable.from_masks(MASKS[:, :2])),
        ValueError,
        "different samples: 4 and 2",
    ),
    (
        lambda: table().with_concepts(ConceptTable.from_masks(MASKS[:, :, :2])),
        ValueError,
        r"different locations: \(5,\) and \(2,\)",
    ),
)
def test_table(call: Callable[[], Any], kind: type[Exception], says: str):
    check(call, kind, says)


@refused(
    (lambda: table().count(BITMAP[:3]), ValueError, r"= \(4, 5\), as the table; got \(3, 5\)"),
    (lambda: table().count(BITMAP.T), ValueError, r"got \(5, 4\)"),
    (lambda: table().count(BITMAP.reshape(-1)), ValueError, r"got \(20,\)"),
    (lambda: table().count(np.array(True)), ValueError, r"got \(\)"),
    (lambda: table().count(BITMAP * 0.5), TypeError, "bitmap must be boolean; got dtype float64"),
    (lambda: table().count(BITMAP * np.nan), TypeError, "It holds NaN"),
    (lambda: table().count(None), TypeError, "bitmap must be an array"),
    (lambda: table().count_many(BITMAP), ValueError, r"got \(5,\)"),
    (lambda: table().count_many([BITMAP, BITMAP[:2]]), ValueError, "bitmaps .* differ in shape"),
    (lambda: counted().count(BITMAP), ValueError, "made with from_signatures"),
    (lambda: NeuronCounts.from_signatures(table(), [1]), ValueError, "table.count"),
    (lambda: NeuronCounts.from_signatures(counted(), [1, 2]), ValueError, "2 counts; .* 3 sig"),
    (lambda: NeuronCounts.from_signatures(counted(), [1, 2, -1]), ValueError, "not be negative"),
    (lambda: NeuronCounts.from_signatures(counted(), [1, 2, 0.5]), TypeError, "must be integers"),
    (
        lambda: NeuronCounts.from_signatures(counted(), [6, 0, 7]),
        ValueError,
        r"Signature 1 \(\[0\]\) has 12 locations, but 13 active",
    ),
    (
        lambda: NeuronCounts.from_signatures(counted(), [0, 0, 0], uncovered=3),
        ValueError,
        r"Signature 0 \(\[\]\) has 2 locations, but 3 active",
    ),
    (
        lambda: NeuronCounts.from_signatures(counted(), [0, 0, 0], uncovered=-1),
        ValueError,
        "uncovered must not be negative; got -1",
    ),
)
def test_neurons(call: Callable[[], Any], kind: type[Exception], says: str):
    check(call, kind, says)


def batch(concepts: list[list[int]], operators: list[list[int]]) -> ox.FormulaBatch:
    return ox.FormulaBatch(
        np.array(concepts, np.int32), np.array(operators, np.int32), ox.DEFAULT_OPERATORS
    )


CHAIR = Formula.concept("chair")
OTHER_COUNTS = ConceptTable.from_masks(~MASKS).count(BITMAP)


@refused(
    (lambda: ox.iou(table(), BITMAP, Formula.concept("lamp")), ValueError, "unknown concept lamp"),
    (lambda: ox.iou(table(), BITMAP, "chair"), TypeError, "Expected a Formula; .*Formula.parse"),  # type: ignore[arg-type]
    (lambda: ox.iou(table(), BITMAP.T, CHAIR), ValueError, "bitmap must be"),
    (lambda: ox.iou(table(), OTHER_COUNTS, CHAIR), ValueError, "belong to another table"),
    (lambda: ox.iou_many(table(), OTHER_COUNTS, [CHAIR]), ValueError, "belong to another table"),
    (lambda: concept_quantities(table(), OTHER_COUNTS), ValueError, "belong to another table"),
    (lambda: neuron_quantities(table(), OTHER_COUNTS), ValueError, "belong to another table"),
    (lambda: formula_quantities(table(), OTHER_COUNTS, []), ValueError, "belong to another table"),
    (lambda: ox.iou_many(table(), BITMAP, batch([[0, 3]], [[-1, 0]])), ValueError, "row 0 .* 3"),
    (lambda: ox.iou_many(table(), BITMAP, batch([[0], [-2]], [[-1]] * 2)), ValueError, "row 1 "),
    (lambda: ox.iou_many(table(), BITMAP, batch([[-1, 0]], [[-1, 0]])), ValueError, "no first"),
    (lambda: ox.iou_many(table(), BITMAP, batch([[0, 1]], [[-1, 3]])), ValueError, "operator_set"),
    (lambda: ox.iou_many(table(), BITMAP, batch([[0, 1]], [[-1, -1]])), ValueError, "operator_set"),
)
def test_scores(call: Callable[[], Any], kind: type[Exception], says: str):
    check(call, kind, says)


EXHAUSTIVE = ox.Exhaustive(2)


@refused(
    (lambda: ox.explain(MASKS, BITMAP, EXHAUSTIVE), TypeError, "be a ConceptTable; got ndarray"),  # type: ignore[arg-type]
    (lambda: ox.explain(table(), BITMAP, "beam"), TypeError, "method must be .*got 'beam'"),  # type: ignore[arg-type]
    (lambda: ox.explain(table(), BITMAP, ox.NetDissect), TypeError, r"such as NetDissect\(\)"),  # type: ignore[arg-type]
    (lambda: ox.explain(table(), BITMAP & False, EXHAUSTIVE), ValueError, "The neuron never fires"),
    (lambda: ox.explain(table(), BITMAP & False, ox.NetDissect()), ValueError, "never fires"),
    (lambda: ox.explain(table(), OTHER_COUNTS, EXHAUSTIVE), ValueError, "belong to another table"),
    (lambda: ox.explain(table(), BITMAP.T, EXHAUSTIVE), ValueError, "A bitmap must be"),
    (
        lambda: list(ox.explain_many(table(), [BITMAP & False], EXHAUSTIVE)),
        ValueError,
        "never fires",
    ),
    (
        lambda: list(ox.explain_many(table(), [OTHER_COUNTS], EXHAUSTIVE)),
        ValueError,
        "another table",
    ),
    (lambda: ox.Exhaustive(0), ValueError, "length must be a whole number, at least 1; got 0"),
    (lambda: ox.Exhaustive(2.0), ValueError, "whole number"),  # type: ignore[arg-type]
    (lambda: ox.Exhaustive(True), ValueError, "whole number"),
    (lambda: ox.Exhaustive(2, operators=()), ValueError, "no operators"),
    (lambda: ox.Exhaustive(2, operators=(ox.OR, ox.OR)), ValueError, "two operators are named OR"),
)
def test_explain(call: Callable[[], Any], kind: type[Exception], says: str):
    check(call, kind, says)
