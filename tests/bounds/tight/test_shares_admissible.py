"""Shares, forced pairs, pieces and exact pairs against U of all sets that they must hold for."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from helpers.search_cases import seeds
from helpers.share_cases import (
    FEW,
    Looked,
    all_sets,
    crowded,
    highest_functions,
    look,
    plain_cells,
    slack,
    some_case,
)
from helpers.support import as_users_run_it, examples
from helpers.tight_cases import N, by_sets, some_v
from hypothesis import given

from optexp_jax.bounds.tight.shares.branching import next_concepts
from optexp_jax.bounds.tight.shares.last_pairs import (
    PairNumbers,
    cells_with_pairs,
    functions_of_pairs,
)
from optexp_jax.bounds.tight.shares.occurring import occurring_sets
from optexp_jax.bounds.tight.shares.pieces import sums_of_highest, third_concepts
from optexp_jax.bounds.tight.shares.shares import Shares, shares
from optexp_jax.testing import Case


def looked_at(rng: np.random.Generator, n: int) -> tuple[Case, np.ndarray, Looked]:
    case = some_case(rng)
    chosen = rng.permutation(FEW)[: int(rng.integers(0, n - 2))]
    most = None if rng.random() < 0.7 else int(rng.choice([0, 30, 200]))
    return case, chosen, look(rng, case, n, chosen, most)


def shares_of(looked: Looked, v: float, n: int, t: int) -> Shares:
    third = third_concepts(looked.levels, looked.case.neuron.inside, v, n)
    return shares(looked.counts, looked.pairs, third, v, t)


@examples(60)
@given(seed=seeds)
def test_shares_and_forced_pairs_hold_for_all_sets(seed: int):
    rng = np.random.default_rng(seed)
    n, v = int(rng.integers(3, 7)), some_v(rng)
    with as_users_run_it():
        case, chosen, looked = looked_at(rng, n)
        t = n - len(chosen)
        found = shares_of(looked, v, n, t)
    hold(case, chosen, looked, found, t, v)


def hold(case: Case, chosen: np.ndarray, looked: Looked, found: Shares, t: int, v: float) -> None:
    """Every bound of Propositions 22, 23 and 24 is at least U, for all sets."""
    with as_users_run_it():
        together = found.together(np.arange(len(looked.kept)))
    others = all_sets(np.flatnonzero(looked.kept), t)
    if not len(others):
        return
    sets = np.concatenate([np.tile(chosen, (len(others), 1)), others], axis=1)
    true = highest_functions(case, sets, v)
    room = slack(looked, v)
    added = found.alone[others].sum(1)
    assert (found.base + added + room >= true).all()
    mean = np.zeros(len(others))
    for x, y in combinations(range(t), 2):
        pair = together[others[:, x], others[:, y]]
        rest = added - found.alone[others[:, x]] - found.alone[others[:, y]]
        assert (found.base + pair + rest + room >= true).all()
        mean += pair / (t - 1)
    assert (found.base + mean + room >= true).all()


DIRECTED_SHARES = {
    # What x loses to y is not all of their overlap: z holds the good part of it.
    "a piece stays": ({"a": (100, 0), "ab": (0, 20), "abc": (10, 0)}, "", 3),
    # The rest of a cell of positive W is dropped: three share what that gains.
    "the rest is dropped": ({"d": (0, 40), "ad": (10, 0), "bd": (10, 0), "cd": (10, 0)}, "d", 4),
    # The rest of a cell of negative W is kept: three share what that costs.
    "the rest is kept": ({"d": (40, 0), "ad": (0, 30), "bd": (0, 30), "cd": (0, 30)}, "d", 4),
}


@pytest.mark.parametrize("name", DIRECTED_SHARES)
def test_shares_that_need_all_of_a_bound(name: str):
    rows, letters, n = DIRECTED_SHARES[name]
    case, v = by_sets(N, rows), 0.5
    chosen = np.array(["abcdef".index(letter) for letter in letters], np.int64)
    looked = look(np.random.default_rng(0), case, n, chosen)
    kept = np.ones(N, bool)
    kept[chosen] = False
    looked = replace(looked, kept=kept, pairs=looked.levels.pairs.directed.among(kept))
    t = n - len(chosen)
    hold(case, chosen, looked, shares_of(looked, v, n, t), t, v)


@examples(60)
@given(seed=seeds)
def test_every_set_that_reaches_the_threshold_is_in_one_child(seed: int):
    rng = np.random.default_rng(seed)
    n, v = int(rng.integers(3, 7)), some_v(rng)
    with as_users_run_it():
        case, chosen, looked = looked_at(rng, n)
        t = n - len(chosen)
        others = all_sets(np.flatnonzero(looked.kept), t)
        if not len(others):
            return
        sets = np.concatenate([np.tile(chosen, (len(others), 1)), others], axis=1)
        true = highest_functions(case, sets, v)
        needed = float(rng.choice(true))
        room = slack(looked, v)
        children = next_concepts(shares_of(looked, v, n, t), looked.kept, t, needed - room)
    for concepts, u in zip(others, true, strict=True):
        if u < needed:
            continue
        held = [
            child
            for child in children
            if child.concept in concepts
            and all(child.kept[c] for c in concepts if c != child.concept)
        ]
        assert len(held) == 1
        assert held[0].most + room >= u


@examples(40)
@given(seed=seeds)
def test_pieces_of_pairs_hold_for_all_unions_of_cells(seed: int):
    rng = np.random.default_rng(seed)
    n, v = int(rng.integers(3, 6)), some_v(rng)
    with as_users_run_it():
        case = some_case(rng)
        most = None if rng.random() < 0.7 else int(rng.choice([0, 30, 200]))
        levels = (
            occurring_sets(case.table, n) if most is None else occurring_sets(case.table, n, most)
        )
        third = third_concepts(levels, case.neuron.inside, v, n)
    number = {tuple(pair): k for k, pair in enumerate(levels.pairs.concepts.tolist())}
    sets = all_sets(np.arange(FEW), n)
    inside, outside = plain_cells(case, sets)
    w = inside - v * outside
    room = 2.0**-40 * float(case.inside.sum() + v * case.outside.sum())
    for row, concepts in enumerate(sets.tolist()):
        for i, j in combinations(range(n), 2):
            if (concepts[i], concepts[j]) not in number:
                continue
            k = number[concepts[i], concepts[j]]
            both = [c for c in range(2**n) if c >> i & 1 and c >> j & 1]
            more = [c for c in both if c != (1 << i | 1 << j)]
            # What the n − 2 others cut out of the overlap of a pair.
            assert np.maximum(w[row, more], 0).sum() <= third.gain[n - 2, k] + room
            assert np.maximum(-w[row, more], 0).sum() <= third.loss[n - 2, k] + room


@examples(60)
@given(seed=seeds)
def test_pairs_are_exact(seed: int):
    rng = np.random.default_rng(seed)
    n, v = int(rng.integers(3, 7)), some_v(rng)
    with as_users_run_it():
        case = some_case(rng)
        chosen = rng.permutation(FEW)[: n - 2]
        looked = look(rng, case, n, chosen)
        every = functions_of_pairs(looked.counts, looked.kept, looked.levels.pairs, v, -np.inf)
        ids, u = every.ids, every.u
        pairs = all_sets(np.arange(len(ids)), 2)
        if not len(pairs):
            return
        a, b = ids[pairs[:, 0]], ids[pairs[:, 1]]
        keys = looked.levels.pairs.concepts.astype(np.int64) @ [FEW, 1]
        cells = cells_with_pairs(looked.counts, PairNumbers(keys, FEW), a, b)
    sets = np.concatenate([np.tile(chosen, (len(a), 1)), a[:, None], b[:, None]], axis=1)
    inside, outside = plain_cells(case, sets)
    np.testing.assert_array_equal(cells.inside, inside.T)
    np.testing.assert_array_equal(cells.outside, outside.T)
    true = highest_functions(case, sets, v)
    room = slack(looked, v)
    assert np.abs(u[pairs[:, 0], pairs[:, 1]] - true).max() <= room
    # Whatever is needed, no concept of a pair that reaches it is left out.
    needed = float(rng.choice(true))
    with as_users_run_it():
        known = looked.counts, looked.kept, looked.levels.pairs
        some = functions_of_pairs(*known, v, needed - room)
    reached = pairs[true >= needed]
    assert np.isin(ids[reached], some.ids).all()


def test_a_large_overlap_is_not_a_share(fresh_seed: int):
    # A concept of many extras, of which others take nearly all away, adds no more than it has
    # active locations.
    rng = np.random.default_rng(fresh_seed)
    case = crowded(rng, FEW, 30)
    for n in (4, 5):
        looked = look(rng, case, n, np.empty(0, np.int64))
        found = shares_of(looked, 0.5, n, n)
        inside = case.columns @ case.inside.reshape(-1)
        assert (found.alone <= inside + slack(looked, 0.5)).all()


@pytest.mark.parametrize("k", [0, 1, 2, 4])
def test_sums_of_the_highest(k: int, fresh_seed: int):
    rng = np.random.default_rng(fresh_seed)
    row = np.sort(rng.integers(0, 6, 40))
    values = rng.integers(-3, 4, 40).astype(float)  # many are equal
    sums = sums_of_highest(values, row, 7, k)
    for r in range(7):
        highest = np.sort(np.maximum(values[row == r], 0))[::-1]
        for count in range(k + 1):
            assert sums[count, r] == highest[:count].sum()
