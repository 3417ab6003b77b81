"""Bounds as the library computes them, and the plain quantities that settle the order."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from search_cases import SUBSETS
from tight_cases import (
    Chains,
    N,
    Setting,
    forms_of,
)

from optexp_jax.tight.forms import DIFFERENCE
from optexp_jax.tight.pair_bounds import highest_pair_bounds, pair_bounds
from optexp_jax.tight.region import Region
from optexp_jax.tight.rows import rows_of
from optexp_jax.tight.some_pairs import PAIR_CHUNK

each_subset = pytest.mark.parametrize(
    "operators", SUBSETS, ids=lambda subset: "+".join(o.name for o in subset)
)


def region_of(setting: Setting, light: np.ndarray | None = None) -> Region:
    return setting.place.region(setting.v, np.ones(N, bool) if light is None else light)


def of_pairs(setting: Setting) -> np.ndarray:
    """`pair_bounds` of all pairs, `[form, a, b]`."""
    region, forms = region_of(setting), forms_of(setting.operators)
    with jax.enable_x64(True):
        rows = rows_of(region)
        found = np.asarray(pair_bounds(region, rows, jnp.arange(N, dtype=jnp.int32), forms=forms))
        highest = np.asarray(highest_pair_bounds(region, rows, forms=forms))
    np.testing.assert_allclose(highest, found.max(2), rtol=1e-12, atol=1e-12)
    return found.transpose(1, 0, 2)


def of_chunk(bound: Callable[..., jax.Array], setting: Setting, chains: Chains) -> np.ndarray:
    """A bound of given pairs, for the first two concepts of each chain."""
    codes, which = np.unique(
        np.column_stack([chains.forms[:, 0], chains.concepts[:, :2]]), axis=0, return_inverse=True
    )
    padded = np.zeros((PAIR_CHUNK, 3), np.int32)  # the shape that the search uses
    padded[: len(codes)] = codes
    with jax.enable_x64(True):
        columns = (jnp.asarray(column) for column in padded.T)
        return np.asarray(bound(*columns, forms=forms_of(setting.operators)))[which.reshape(-1)]


def gram(setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    masks = setting.case.columns.astype(np.int64)
    inside, outside = setting.counts
    return (masks * inside) @ masks.T, (masks * outside) @ masks.T


def pair_of(chains: Chains) -> tuple[np.ndarray, ...]:
    return chains.forms[:, 0], chains.concepts[:, 0], chains.concepts[:, 1]


def pairs_once(chains: Chains) -> np.ndarray:
    """Symmetric pairs in the one order that they are bounded in."""
    form, a, b = pair_of(chains)
    return (form == DIFFERENCE) | (a < b)


def most_w(setting: Setting, length: int) -> float:
    """The highest W of a formula of at most so many concepts: the tightest `best` there can be."""
    return max(
        float(part.w(setting.v).max(initial=0.0))
        for part in (setting.chains(k) for k in range(1, length + 1))
    )
