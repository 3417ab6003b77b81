"""Estimates of labels, each against what it estimates."""

import dataclasses
from itertools import product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.search_cases import as_chains, hold, random_chains, seeds, split, view_of
from helpers.strategies import ALL_OPERATORS, XOR
from helpers.support import examples
from hypothesis import given

import optexp_jax as ox
from optexp_jax.bounds.paper.chains import UNKNOWN, Chains, KnownPairs, disjoint_from, label_bounds
from optexp_jax.bounds.paper.exact_prefixes import ExactLabels, chain_keys
from optexp_jax.bounds.paper.label import Interval, LabelBounds, OperatorBits, join
from optexp_jax.counts.quantities import NeuronQuantities, Quantities, padded_formula_quantities
from optexp_jax.formulas.batch import FormulaBatch
from optexp_jax.formulas.operators import Operator
from optexp_jax.testing import Case, random_case

N_CONCEPTS, N_SAMPLES, DEPTH, N_ROWS = 5, 3, 4, 32

views = pytest.mark.parametrize("aggregated", [False, True], ids=["per sample", "aggregated"])
compiled_bounds = eqx.filter_jit(label_bounds)
compiled_join = jax.jit(join)


def bounds_of(
    case: Case,
    chains: Chains,
    aggregated: bool,
    known: ExactLabels | None = None,
    pairs: KnownPairs | None = None,
) -> LabelBounds:
    view = view_of(case, ALL_OPERATORS, DEPTH, aggregated=aggregated, known=known)
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, compiled_bounds(view, chains, pairs))


def a_case(rng: np.random.Generator) -> Case:
    return random_case(rng, N_CONCEPTS, N_SAMPLES)


def some_chains(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return random_chains(rng, N_CONCEPTS, N_ROWS, DEPTH, len(ALL_OPERATORS))


def assert_holds(bounds: LabelBounds, case: Case, held: np.ndarray) -> None:
    """Unique elements exact, common ones between the limits."""
    exact = split(case, held)
    if bounds.iu.shape[1] == 1:
        exact = exact.aggregate()
    np.testing.assert_array_equal(bounds.iu, exact.iu)
    np.testing.assert_array_equal(bounds.eu, exact.eu)
    for interval, true in ((bounds.ic, exact.ic), (bounds.ec, exact.ec)):
        assert (interval.low <= true).all()
        assert (true <= interval.high).all()


def assert_never_looser(tight: LabelBounds, loose: LabelBounds) -> None:
    for a, b in ((tight.ic, loose.ic), (tight.ec, loose.ec)):
        assert (a.low >= b.low).all()
        assert (a.high <= b.high).all()


def assert_exact(bounds: LabelBounds) -> None:
    np.testing.assert_array_equal(bounds.ic.low, bounds.ic.high)
    np.testing.assert_array_equal(bounds.ec.low, bounds.ec.high)


@views
@examples(15)
@given(seed=seeds)
def test_labels_lie_between_their_bounds(aggregated: bool, seed: int):
    rng = np.random.default_rng(seed)
    case = a_case(rng)
    chains = some_chains(rng)
    bounds = bounds_of(case, as_chains(*chains), aggregated)
    assert_holds(bounds, case, hold(case, *chains, ALL_OPERATORS))


@views
@examples(10)
@given(seed=seeds)
def test_known_prefixes_tighten(aggregated: bool, seed: int):
    rng = np.random.default_rng(seed)
    case = a_case(rng)
    concepts, operators = some_chains(rng)
    lengths = (concepts >= 0).sum(1)
    prefix = np.maximum(rng.integers(1, lengths + 1), 1).astype(np.int32)
    beyond = np.arange(DEPTH)[None, :] >= prefix[:, None]
    cut = FormulaBatch(
        np.where(beyond, -1, concepts).astype(np.int32),
        np.where(beyond, -1, operators).astype(np.int32),
        ALL_OPERATORS,
    )
    known = ExactLabels(N_SAMPLES, np.int32)
    keys = [b"%d" % row for row in range(N_ROWS)]
    known.store(keys, padded_formula_quantities(case.table, case.neuron, cut))
    plain = as_chains(concepts, operators)
    with jax.enable_x64(True):
        informed = dataclasses.replace(
            plain,
            known_slot=jnp.asarray(
                np.where(prefix > 1, known.slots(keys), UNKNOWN).astype(np.int32)
            ),
            known_length=jnp.asarray(prefix),
        )
    tight = bounds_of(case, informed, aggregated, known)
    assert_holds(tight, case, hold(case, concepts, operators, ALL_OPERATORS))
    assert_never_looser(tight, bounds_of(case, plain, aggregated))
    whole = prefix == lengths
    assert_exact(jax.tree.map(lambda part: part[whole], tight))


@views
@examples(10)
@given(seed=seeds)
def test_rewriting_is_sound_and_never_looser(aggregated: bool, seed: int):
    # Chains (A OR B)∘c, ∘ AND or AND NOT, with or without a fourth step; in half of the rows
    # the quantities of A∘c and of B∘c are known.
    rng = np.random.default_rng(seed)
    case = a_case(rng)
    concepts, operators = some_chains(rng)
    rows = range(N_ROWS)
    concepts[:, :3] = [rng.permutation(N_CONCEPTS)[:3] for _ in rows]
    used = [set(row[:3]) for row in concepts.tolist()]
    concepts[:, 3] = [min(set(range(N_CONCEPTS)) - used[row]) for row in rows]
    concepts[::2, 3] = -1
    operators[:, 1] = ALL_OPERATORS.index(ox.OR)
    operators[:, 2] = rng.choice([ALL_OPERATORS.index(o) for o in (ox.AND, ox.AND_NOT)], N_ROWS)
    operators[:, 3] = np.where(concepts[:, 3] >= 0, rng.integers(0, 5, N_ROWS), -1)
    known = ExactLabels(N_SAMPLES, np.int32)
    slots = np.full((2, N_ROWS), UNKNOWN, np.int32)
    for side in (0, 1):
        pair = FormulaBatch(
            np.ascontiguousarray(concepts[:, [side, 2]]),
            np.ascontiguousarray(operators[:, [0, 2]]),
            ALL_OPERATORS,
        )
        keys = [b"%d %d" % (side, row) for row in rows]
        known.store(keys, padded_formula_quantities(case.table, case.neuron, pair))
        slots[side] = np.where(rng.random(N_ROWS) < 0.5, known.slots(keys), UNKNOWN)
    chains = as_chains(concepts, operators)
    with jax.enable_x64(True):
        pairs = KnownPairs(jnp.asarray(slots[0]), jnp.asarray(slots[1]))
    tight = bounds_of(case, chains, aggregated, known, pairs)
    assert_holds(tight, case, hold(case, concepts, operators, ALL_OPERATORS))
    assert_never_looser(tight, bounds_of(case, chains, aggregated))


def test_rewriting_can_gain():
    # (a OR b) AND c, a and c disjoint: it is b AND c, which has 1 common location inside at most.
    # The label's own estimate only knows that a OR b has 3 of them and c has 2.
    sets = [[0, 3], [0, 3], [1, 2], [2, 3]]
    masks = np.array([[[k in s for s in sets]] for k in range(N_CONCEPTS)])
    inside = np.ones((N_SAMPLES, 4), np.int64)
    case = Case(np.repeat(masks, N_SAMPLES, 1), inside, 1 - inside)
    concepts = np.repeat(np.array([[0, 1, 2, -1]], np.int32), N_ROWS, 0)
    operators = np.repeat(np.array([[-1, 0, 1, -1]], np.int32), N_ROWS, 0)
    chains = as_chains(concepts, operators)
    with jax.enable_x64(True):
        pairs = KnownPairs(*[jnp.full(N_ROWS, UNKNOWN, jnp.int32)] * 2)
    assert (bounds_of(case, chains, False).ic.high == 2).all()
    assert (bounds_of(case, chains, False, pairs=pairs).ic.high == 1).all()


@views
@examples(10)
@given(seed=seeds)
def test_disjoint_concepts_are_exact(aggregated: bool, seed: int):
    # Every location has at most one of the first four concepts; the fifth lies anywhere.
    rng = np.random.default_rng(seed)
    case = a_case(rng)
    labels = rng.integers(0, N_CONCEPTS, case.masks.shape[1:])
    masks = case.masks.copy()
    masks[:4] = labels == np.arange(4)[:, None, None]
    case = Case(masks, case.inside, case.outside)
    concepts, _ = random_chains(rng, 4, N_ROWS, DEPTH, 1)
    # OR and XOR add up what is disjoint.
    codes = rng.choice([ALL_OPERATORS.index(o) for o in (ox.OR, XOR)], concepts.shape)
    operators = np.where(concepts >= 0, codes, -1).astype(np.int32)
    operators[:, 0] = -1
    bounds = bounds_of(case, as_chains(concepts, operators), aggregated)
    assert_exact(bounds)
    assert_holds(bounds, case, hold(case, concepts, operators, ALL_OPERATORS))


@examples(15)
@given(seed=seeds)
def test_what_is_called_disjoint_is(seed: int):
    rng = np.random.default_rng(seed)
    case = a_case(rng)
    chains = some_chains(rng)
    view = view_of(case, ALL_OPERATORS, DEPTH, aggregated=True)
    with jax.enable_x64(True):
        apart = np.asarray(disjoint_from(view, as_chains(*chains)))
    held = hold(case, *chains, ALL_OPERATORS)
    overlaps: np.ndarray = np.any(held[:, None] & case.masks[None], axis=(2, 3))
    assert not (apart & overlaps).any()
    single = np.flatnonzero((chains[0] >= 0).sum(1) == 1)
    np.testing.assert_array_equal(apart[single], np.logical_not(overlaps[single]))


def test_the_rules_of_disjoint_labels():
    # c is disjoint from a, not from b.
    sets = [[0, 1], [1, 2], [0], [2]]
    masks = np.array([[[k in s for s in sets]] for k in range(3)])
    inside = np.ones((1, 4), np.int64)
    case = Case(masks, inside, 1 - inside)
    view = view_of(case, ox.DEFAULT_OPERATORS, 2, aggregated=True)
    expected = {
        ("a OR b"): False,
        ("a AND b"): True,
        ("b AND a"): True,
        ("a AND NOT b"): True,
        ("b AND NOT a"): False,
    }
    for text, apart in expected.items():
        formula = ox.Formula.parse(text)
        concepts = np.array([["ab".index(name) for name in formula.concepts]], np.int32)
        code = ox.DEFAULT_OPERATORS.index(formula.operators[0])
        with jax.enable_x64(True):
            found = disjoint_from(view, as_chains(concepts, np.array([[-1, code]], np.int32)))
        assert bool(found[0, 2]) is apart, text


# The estimate of a single step, by itself.


def one_step(
    operator: Operator,
    low: np.ndarray,
    high: np.ndarray,
    c: np.ndarray,
    total: np.ndarray,
    disjoint: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Least and most common elements of `P∘c`; a column is an instance, and so is a sample."""
    with jax.enable_x64(True):
        least, most, right = (jnp.asarray(part[None, :]) for part in (low, high, c))
        there, none = jnp.asarray(total), jnp.zeros_like(least)
        p, q, r = (jnp.full((1, 1), int(bit)) for bit in (operator.p, operator.q, operator.r))
        found: list[tuple[np.ndarray, np.ndarray]] = []
        # With a monotone operator fewer corners are looked at; the result is the same.
        for monotone in (False, True) if operator.monotone else (False,):
            # Inside and outside are the same computation: give both the same numbers.
            grown = compiled_join(
                LabelBounds(none, none, Interval(least, most), Interval(least, most)),
                Quantities(none, right, none, right),
                OperatorBits(p, q, r, monotone),
                jnp.full(1, disjoint),
                NeuronQuantities(there, there, there, there, there),
            )
            for part in (grown.ic, grown.ec):
                found.append((np.asarray(part.low)[0], np.asarray(part.high)[0]))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)
    return found[0]


def all_instances(largest: int) -> np.ndarray:
    """Every (S, least P, most P, c) with S up to `largest`."""
    return np.array(
        [
            (total, low, high, c)
            for total in range(largest + 1)
            for low, high, c in product(range(total + 1), repeat=3)
            if low <= high
        ],
        np.int64,
    ).T


@pytest.mark.parametrize("operator", ALL_OPERATORS, ids=str)
def test_one_step_is_as_tight_as_can_be(operator: Operator):
    instances = all_instances(6)
    total, low, high, c = instances
    found = one_step(operator, low, high, c, total)
    for column, (s, least, most, k) in enumerate(instances.T.tolist()):
        values = [
            operator.p * (size - overlap) + operator.q * (k - overlap) + operator.r * overlap
            for size in range(least, most + 1)
            for overlap in range(max(0, size + k - s), min(size, k) + 1)
        ]
        assert (found[0][column], found[1][column]) == (min(values), max(values))


@pytest.mark.parametrize("operator", ALL_OPERATORS, ids=str)
def test_one_step_with_disjoint_sides(operator: Operator):
    instances = all_instances(6)
    total, low, high, c = instances
    found = one_step(operator, low, high, c, total, disjoint=True)
    for column, (s, least, most, k) in enumerate(instances.T.tolist()):
        values = [operator.p * size + operator.q * k for size in range(least, min(most, s - k) + 1)]
        if not values:
            continue  # More than there is room for: it cannot be.
        assert found[0][column] == min(values)
        if operator.q:
            assert found[1][column] == max(values)
        else:  # Sound; the search never asks, as disjoint AND and AND NOT are dropped.
            assert found[1][column] >= max(values)


def closed_form(
    operator: Operator, low: np.ndarray, high: np.ndarray, c: np.ndarray, total: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The published limits of `P∘c`."""
    if operator == ox.OR:
        return np.maximum(low, c), np.minimum(high + c, total)
    if operator == ox.AND:
        return np.maximum(low + c - total, 0), np.minimum(high, c)
    return np.maximum(low - c, 0), np.minimum(high, total - c)


@pytest.mark.parametrize("bits", [3, 24, 32, 51])
@pytest.mark.parametrize("operator", ox.DEFAULT_OPERATORS, ids=str)
def test_one_step_is_the_published_closed_form(operator: Operator, bits: int):
    rng = np.random.default_rng(bits)
    total = rng.integers(0, 2**bits, 1000)
    low, high = np.sort(rng.integers(0, total + 1, (2, 1000)), axis=0)
    c = rng.integers(0, total + 1)
    expected = closed_form(operator, low, high, c, total)
    np.testing.assert_array_equal(one_step(operator, low, high, c, total), expected)


def test_chain_keys_tell_chains_apart():
    concepts = np.array([[0, 1, 2], [1, 0, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2]], np.int32)
    operators = np.array([[-1, 0, 0], [-1, 0, 0], [-1, 1, 0], [-1, 0, 1], [-1, 0, 0]], np.int32)
    keys = {k: chain_keys(concepts, operators, k) for k in (1, 2, 3)}
    assert [len(set(keys[k])) for k in (1, 2, 3)] == [2, 3, 4]
    assert keys[3][0] == keys[3][4]
    assert not set(keys[2]) & set(keys[3])


def test_known_labels_forget_the_oldest(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("optexp_jax.bounds.paper.exact_prefixes.MEMORY", 0)
    case = a_case(np.random.default_rng(0))
    known = ExactLabels(N_SAMPLES, np.int32)
    assert known.capacity == 16
    concepts = np.arange(N_CONCEPTS, dtype=np.int32)[:, None]
    labels = FormulaBatch(concepts, np.full_like(concepts, -1), ALL_OPERATORS)
    exact = split(case, case.masks)

    def store(*numbers: int) -> None:
        rows = [number % N_CONCEPTS for number in numbers]
        chosen = FormulaBatch(labels.concepts[rows], labels.operators[rows], ALL_OPERATORS)
        quantities = padded_formula_quantities(case.table, case.neuron, chosen)
        known.store([b"%d" % number for number in numbers], quantities)

    store(*range(10))
    store(*range(10, 18))  # two more than there is room for
    slots = known.slots([b"%d" % number for number in range(18)])
    assert (slots[:2] == UNKNOWN).all()
    assert sorted(slots[2:].tolist()) == list(range(16))
    rows = np.arange(2, 18) % N_CONCEPTS
    np.testing.assert_array_equal(np.asarray(known.per_sample.ic)[slots[2:]], exact.ic[rows])
    np.testing.assert_array_equal(
        np.asarray(known.aggregated.eu)[slots[2:]], exact.aggregate().eu[rows]
    )
    store(*range(100, 140))  # more at once than there is room for at all
    slots = known.slots([b"%d" % number for number in range(100, 140)])
    held = np.flatnonzero(slots != UNKNOWN)
    assert len(held) == len(set(slots[held].tolist())) == 16
    np.testing.assert_array_equal(
        np.asarray(known.per_sample.iu)[slots[held]], exact.iu[(100 + held) % N_CONCEPTS]
    )
