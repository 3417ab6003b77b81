"""Every bound of the tight search against all formulas that it must hold for, at any threshold."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_cases import SUBSETS, seeds
from tight_cases import (
    DIRECTED,
    Chains,
    N,
    Setting,
    assert_bounded,
    by_sets,
    forms_of,
    groups,
    is_new,
    some_setting,
)

import optexp_jax as ox
from optexp_jax.operators import Operator
from optexp_jax.tight.doubles import double_bounds, last_step_bounds
from optexp_jax.tight.largest import largest
from optexp_jax.tight.outer import outer_bounds
from optexp_jax.tight.pairs import (
    DIFFERENCE,
    INTERSECTION,
    UNION,
    pair_bounds,
    triple_bounds,
)
from optexp_jax.tight.space import TRIPLE_CHUNK
from support import examples, thorough

NOT_SUBSETS = tuple(subset for subset in SUBSETS if ox.AND_NOT in subset)

each_subset = pytest.mark.parametrize(
    "operators", SUBSETS, ids=lambda subset: "+".join(o.name for o in subset)
)
each_subset_with_not = pytest.mark.parametrize(
    "operators", NOT_SUBSETS, ids=lambda subset: "+".join(o.name for o in subset)
)


# The bounds as the library computes them, and the plain quantities that settle the order.


def of_pairs(setting: Setting, bound=pair_bounds) -> np.ndarray:
    with jax.enable_x64(True):
        found = bound(
            setting.place.gram,
            jnp.asarray(setting.place.allowed),
            jnp.float64(setting.v),
            forms=forms_of(setting.operators),
        )
        return np.asarray(found)


def of_triples(setting: Setting, chains: Chains) -> np.ndarray:
    """`triple_bounds` of the first two concepts of each chain."""
    codes, which = np.unique(
        np.column_stack([chains.forms[:, 0], chains.concepts[:, :2]]), axis=0, return_inverse=True
    )
    padded = np.zeros((TRIPLE_CHUNK, 3), np.int32)  # the shape that the search uses
    padded[: len(codes)] = codes
    with jax.enable_x64(True):
        found = triple_bounds(
            setting.place.gram,
            jnp.asarray(setting.place.allowed),
            jnp.float64(setting.v),
            *(jnp.asarray(column) for column in padded.T),
            forms=forms_of(setting.operators),
        )
        return np.asarray(found)[which.reshape(-1)]


def of_outer(setting: Setting, rank: np.ndarray, best: float, left: int) -> np.ndarray:
    with jax.enable_x64(True):
        found = outer_bounds(
            setting.place.gram,
            jnp.asarray(setting.place.allowed),
            jnp.asarray(rank.astype(np.int32)),
            jnp.float64(setting.v),
            jnp.float64(best),
            forms=forms_of(setting.operators),
            left=left,
        )
        return np.stack([found.union, found.intersection, found.difference])


def gram(setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    masks = setting.case.columns.astype(np.int64)
    inside, outside = setting.counts
    return (masks * inside) @ masks.T, (masks * outside) @ masks.T


def shares(setting: Setting, filtered: bool) -> np.ndarray:
    """How much each concept adds to a union of three, as the order of a union has it."""
    i, e = gram(setting)
    share = np.zeros(N)
    for x in setting.free:
        overlaps = np.sort([e[x, y] for y in setting.free if y != x])[::-1]
        first, two = overlaps[:1].sum(), overlaps[:2].sum()
        left = max(e[x, x] - first, 0) if filtered else e[x, x]
        share[x] = max(i[x, x] - setting.v * max(left / 3, left - two / 2), 0)
    return share


def pair_of(chains: Chains) -> tuple[np.ndarray, ...]:
    return chains.forms[:, 0], chains.concepts[:, 0], chains.concepts[:, 1]


def pairs_once(chains: Chains) -> np.ndarray:
    """Symmetric pairs in the one order that they are bounded in."""
    form, a, b = pair_of(chains)
    return (form == DIFFERENCE) | (a < b)


def answered(setting: Setting, chains: Chains) -> np.ndarray:
    """Which chains of three concepts the bound of their first two must hold for."""
    form, a, b = pair_of(chains)
    x, last = chains.concepts[:, 2], chains.forms[:, 1]
    share = shares(setting, filtered=False)
    i, e = gram(setting)
    both = i - setting.v * e
    smallest = share[x] <= np.minimum(share[a], share[b])
    return (
        pairs_once(chains)
        & (smallest | (form != UNION) | (last != UNION))
        & ((both[a, b] <= both[a, x]) | (form != DIFFERENCE) | (last != DIFFERENCE))
        & ((form != DIFFERENCE) | (last != INTERSECTION))
    )


def best_of_groups(number: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """For each chain the highest bound over all ways to write it."""
    highest = np.full(number.max() + 1, -np.inf)
    np.maximum.at(highest, number, bounds)
    return highest[number]


# Pairs and a third concept.


@each_subset
@examples(12)
@given(seed=seeds)
def test_pairs(operators: tuple[Operator, ...], seed: int):
    check_pairs(some_setting(np.random.default_rng(seed), operators))


@pytest.mark.parametrize("name", DIRECTED)
@pytest.mark.parametrize("v", [0.0, 0.25, 0.5, 1.0])
def test_pairs_directed(name: str, v: float):
    check_pairs(Setting(DIRECTED[name], ox.DEFAULT_OPERATORS, (), v))


def check_pairs(setting: Setting) -> None:
    chains = setting.chains(3)
    new = is_new(setting, chains)
    must = chains.take(answered(setting, chains) & new)
    bounds = of_pairs(setting)
    assert_bounded(must, bounds[pair_of(must)], setting, "pair_bounds")
    together = np.minimum(bounds[pair_of(must)], of_triples(setting, must))
    assert_bounded(must, together, setting, "pair_bounds and triple_bounds")
    # Whatever the order is meant to be: every formula is held by a pair of some way to write it.
    chains = chains.take(new)
    if len(chains):
        either = np.minimum(bounds[pair_of(chains)], of_triples(setting, chains))
        assert_bounded(chains, best_of_groups(groups(chains), either), setting, "all pairs")


@each_subset
@examples(8)
@given(seed=seeds)
def test_triples(operators: tuple[Operator, ...], seed: int):
    # These hold for every third concept, in any order, whether the pair is proper or not.
    setting = some_setting(np.random.default_rng(seed), operators)
    chains = setting.chains(3)
    chains = chains.take((chains.forms[:, 0] != DIFFERENCE) | (chains.forms[:, 1] != INTERSECTION))
    assert_bounded(chains, of_triples(setting, chains), setting, "triple_bounds")


def test_pair_bounds_do_bite():
    # With three concepts that overlap in pairs at most, the bounds of triples are what they attain.
    case = by_sets(N, {"a": (9, 0), "ab": (0, 4), "b": (6, 0), "c": (5, 1)})
    setting = Setting(case, ox.DEFAULT_OPERATORS, (), 0.5)
    chains = setting.chains(3)
    exact = chains.w(0.5).max()
    assert of_triples(setting, chains).max() == exact == 9 + 6 + 5 - 0.5 * 5
    assert of_pairs(setting).max() < 1.5 * exact


def test_pairs_without_a_third_concept():
    allowed = np.zeros(N, bool)
    setting = Setting(DIRECTED["nested"], ox.DEFAULT_OPERATORS, (), 0.5)
    for bound in (pair_bounds, double_bounds):
        with jax.enable_x64(True):
            found = bound(
                setting.place.gram,
                jnp.asarray(allowed),
                jnp.float64(0.5),
                forms=forms_of(setting.operators),
            )
        assert (np.asarray(found) == -np.inf).all()


# Two further steps.


def later(setting: Setting, chains: Chains) -> np.ndarray:
    """Which chains of four concepts `double_bounds` of their first two must hold for."""
    form, a, b = pair_of(chains)
    x, y = chains.concepts[:, 2], chains.concepts[:, 3]
    middle, last = chains.forms[:, 1], chains.forms[:, 2]
    share = shares(setting, filtered=True)
    i, e = gram(setting)
    both = i - setting.v * e
    union = (form == UNION) & (middle == UNION)
    filters = (form == DIFFERENCE) & (middle == DIFFERENCE)
    return (
        pairs_once(chains)
        & (last == DIFFERENCE)
        & (middle != INTERSECTION)
        & (~union | (share[x] <= np.minimum(share[a], share[b])))
        & (~filters | (both[a, b] <= np.minimum(both[a, x], both[a, y])))
    )


@each_subset_with_not
@examples(8)
@given(seed=seeds)
def test_doubles(operators: tuple[Operator, ...], seed: int):
    check_doubles(some_setting(np.random.default_rng(seed), operators))


@pytest.mark.parametrize("name", DIRECTED)
@pytest.mark.parametrize("v", [0.0, 0.25, 0.5, 1.0])
def test_doubles_directed(name: str, v: float):
    check_doubles(Setting(DIRECTED[name], ox.DEFAULT_OPERATORS, (), v))


def check_doubles(setting: Setting) -> None:
    chains = setting.chains(4)
    must = chains.take(later(setting, chains))
    must = must.take(is_new(setting, must))
    assert_bounded(must, of_pairs(setting, double_bounds)[pair_of(must)], setting, "double_bounds")


@each_subset_with_not
@examples(4)
@given(seed=seeds)
def test_last_steps(operators: tuple[Operator, ...], seed: int):
    rng = np.random.default_rng(seed)
    setting = some_setting(rng, operators)
    pairs, chains = setting.chains(2), setting.chains(4)
    i, e = setting.counts
    masks = setting.case.columns
    for row in rng.permutation(len(pairs))[:8].tolist():
        inner, held = pairs.concepts[row], pairs.masks[row]
        allowed = setting.place.allowed.copy()
        allowed[inner] = False
        shared = (masks & held) @ i, (masks & held) @ e
        with jax.enable_x64(True):
            found = last_step_bounds(
                setting.place.gram,
                jnp.asarray(allowed),
                jnp.float64(setting.v),
                *(jnp.int64(part) for part in (pairs.i[row], pairs.e[row])),
                *(jnp.asarray(part) for part in shared),
            )
        left = pairs.w(setting.v)[row] - (shared[0] - setting.v * shared[1])
        here = chains.take(
            (chains.concepts[:, :2] == inner).all(1) & (chains.forms[:, 0] == pairs.forms[row, 0])
        )
        x, y = here.concepts[:, 2], here.concepts[:, 3]
        ends_in_not = here.forms[:, 2] == DIFFERENCE
        union = here.take(ends_in_not & (here.forms[:, 1] == UNION))
        filters = here.take(ends_in_not & (here.forms[:, 1] == DIFFERENCE) & (left[y] <= left[x]))
        for way, kept in enumerate((union, filters)):
            bounds = np.asarray(found)[way, kept.concepts[:, 2]]
            assert_bounded(kept, bounds, setting, "last_step_bounds")


# Outer steps.


def in_order(chains: Chains, rank: np.ndarray) -> np.ndarray:
    """Chains that are searched at their outermost step: of ORs alone, its rank is the highest."""
    pure = (chains.forms == UNION).all(1)
    return ~pure | (rank[chains.concepts[:, -1]] == rank[chains.concepts].max(1))


def outer_of(chains: Chains, bounds: np.ndarray) -> np.ndarray:
    return bounds[chains.forms[:, -1], chains.concepts[:, -1]]


def most_w(setting: Setting, length: int) -> float:
    """The highest W of a formula of at most so many concepts: the tightest `best` there can be."""
    return max(
        float(part.w(setting.v).max(initial=0.0))
        for part in (setting.chains(k) for k in range(1, length + 1))
    )


def check_outer(setting: Setting, rank: np.ndarray, left: int) -> None:
    whole = float(setting.case.neuron.size)
    longest = left + 1
    setting.chains(longest)
    bounds = [
        of_outer(setting, rank, best, left) for best in (np.inf, whole, most_w(setting, left))
    ]
    for length in range(2, longest + 1):
        chains = setting.chains(length)
        chains = chains.take(in_order(chains, rank))
        for bound in bounds:
            assert_bounded(chains, outer_of(chains, bound), setting, f"outer_bounds, left={left}")


OUTER = [
    pytest.param(subset, left, id=f"{'+'.join(o.name for o in subset)}-{left}")
    for subset in SUBSETS
    for left in (2, 3, 4)
    if thorough() or left == 3 or len(subset) == 3
]


@pytest.mark.parametrize(("operators", "left"), OUTER)
@examples(5)
@given(seed=seeds)
def test_outer_steps(operators: tuple[Operator, ...], left: int, seed: int):
    rng = np.random.default_rng(seed)
    check_outer(some_setting(rng, operators), rng.permutation(N), left)


@pytest.mark.parametrize("name", DIRECTED)
@pytest.mark.parametrize("left", [2, 3])
def test_outer_steps_directed(name: str, left: int):
    for v in (0.0, 0.25, 0.5, 1.0):
        setting = Setting(DIRECTED[name], ox.DEFAULT_OPERATORS, (), v)
        check_outer(setting, np.arange(N), left)


def test_a_source_outside_the_filter_keeps_its_share():
    # Naive class bounds for `(a AND NOT d) OR b` are 17.5 at most, but its W is 20.
    setting = Setting(DIRECTED["outside the filter"], ox.DEFAULT_OPERATORS, (), 0.5)
    chains = setting.chains(3)
    row = [chains.text(k) for k in range(len(chains))].index("a AND NOT d OR b")
    assert chains.w(0.5)[row] == 20
    one = chains.take(np.array([row]))
    assert_bounded(one, of_pairs(setting)[pair_of(one)], setting, "pair_bounds")
    for left in (2, 3, 4):
        bounds = of_outer(setting, np.arange(N), np.inf, left)
        assert_bounded(one, outer_of(one, bounds), setting, "outer_bounds")


# The few largest of a row.


@given(
    rows=st.integers(1, 4),
    values=st.lists(st.sampled_from([-np.inf, -2.5, 0.0, 1.0, 1.5, 3.0]), min_size=12, max_size=12),
    k=st.integers(1, 3),
)
@examples(20)
def test_largest_is_top_k(rows: int, values: list[float], k: int):
    with jax.enable_x64(True):
        matrix = jnp.asarray(values).reshape(rows, -1)
        np.testing.assert_array_equal(largest(matrix, k), jax.lax.top_k(matrix, k)[0])
