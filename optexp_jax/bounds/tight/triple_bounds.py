"""Bounds on given pairs with one more concept: the same x for both concepts of the pair."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float64, Int32, Int64

from optexp_jax.bounds.tight.forms import DIFFERENCE, INTERSECTION, UNION, Forms
from optexp_jax.bounds.tight.region import NEVER, BoundInputs, diagonals
from optexp_jax.bounds.tight.rounding import weight
from optexp_jax.internal.pytrees import pytree
from optexp_jax.internal.tracing import note_trace


@partial(jax.jit, static_argnames=("forms",))
def triple_bounds(
    regions: BoundInputs,
    place: Int32[Array, " pairs"],
    form: Int32[Array, " pairs"],
    a: Int32[Array, " pairs"],
    b: Int32[Array, " pairs"],
    *,
    forms: Forms,
) -> Float64[Array, " pairs"]:
    """An upper bound on W of given pairs with one more concept, the best over each concept x."""
    note_trace("triple_bounds")
    every = jnp.arange(regions.n_concepts, dtype=a.dtype)

    def one(
        place: Int32[Array, ""], kind: Int32[Array, ""], a: Int32[Array, ""], b: Int32[Array, ""]
    ) -> Array:
        w = _Pair.of(regions, place, a, b)
        usable = regions.allowed[place] & (every != a) & (every != b)
        best = [
            jnp.where(kind == UNION, _union_and_more(w, forms), NEVER),
            jnp.where(kind == INTERSECTION, _intersection_and_more(w, forms), NEVER),
            jnp.where(kind == DIFFERENCE, _difference_and_more(w, forms), NEVER),
        ]
        return jnp.where(usable, jnp.stack(best).max(0), NEVER).max()

    return jax.vmap(one)(place, form, a, b)


@pytree
class _Counts:
    """Two concepts next to every concept x: locations of each, and of each two."""

    a: Float64[Array, ""]
    b: Float64[Array, ""]
    x: Float64[Array, " concepts"]
    ab: Float64[Array, ""]
    ax: Float64[Array, " concepts"]
    bx: Float64[Array, " concepts"]

    @classmethod
    def of(
        cls,
        gram: Int64[Array, "places n n"],
        place: Int32[Array, ""],
        a: Int32[Array, ""],
        b: Int32[Array, ""],
    ) -> "_Counts":
        own = diagonals(gram)[place]
        parts = own[a], own[b], own, gram[place, a, b], gram[place, a], gram[place, b]
        return cls(*(part.astype(jnp.float64) for part in parts))

    def common_to_three(self) -> tuple[Float64[Array, " concepts"], Float64[Array, " concepts"]]:
        """Limits of |a ∩ b ∩ x|, from the pairs."""
        high = jnp.minimum(jnp.minimum(self.ax, self.bx), self.ab)
        low = jnp.maximum(self.ab + self.ax - self.a, self.ab + self.bx - self.b)
        low = jnp.maximum(low, self.ax + self.bx - self.x)
        return jnp.maximum(low, 0.0), high


@pytree
class _Pair:
    """The same inside the neuron and outside of it."""

    i: _Counts
    e: _Counts
    v: Float64[Array, ""]

    @classmethod
    def of(
        cls, regions: BoundInputs, place: Int32[Array, ""], a: Int32[Array, ""], b: Int32[Array, ""]
    ) -> "_Pair":
        inside = _Counts.of(regions.gram.inside, place, a, b)
        return cls(inside, _Counts.of(regions.gram.outside, place, a, b), regions.v[place])

    @property
    def both(self) -> Float64[Array, ""]:
        """W(a AND b), to be added."""
        return weight(self.i.ab, self.v * self.e.ab)

    @property
    def shared(self) -> Float64[Array, ""]:
        """W(a AND b), to be taken away."""
        return self.i.ab - self.v * self.e.ab

    @property
    def x(self) -> Float64[Array, " concepts"]:
        """W(x)."""
        return weight(self.i.x, self.v * self.e.x)

    @property
    def a(self) -> Float64[Array, ""]:
        """W(a)."""
        return weight(self.i.a, self.v * self.e.a)

    @property
    def union(self) -> Float64[Array, ""]:
        """W(a OR b)."""
        return self.a + weight(self.i.b, self.v * self.e.b) - self.shared


def _union_and_more(w: _Pair, forms: Forms) -> Float64[Array, " concepts"]:
    """W of `(a OR b)∘x` for every x, the highest over the operators."""
    ia, ib, ea, eb = w.i.ax, w.i.bx, w.e.ax, w.e.bx
    union = w.union
    best = jnp.full_like(ia, NEVER)
    if forms.difference:
        removed = union + w.v * (ea + eb) - jnp.maximum(ia, ib)
        # W(a \ x) + W(b \ x) − W((a AND b) \ x)
        kept_i = jnp.maximum(w.i.ab - jnp.minimum(ia, ib), 0.0)
        kept_e = jnp.minimum(jnp.minimum(w.e.a - ea, w.e.b - eb), w.e.ab)
        parts = union + w.both - (ia - w.v * ea) - (ib - w.v * eb) - kept_i + w.v * kept_e
        best = jnp.maximum(best, jnp.minimum(removed, parts))
    if forms.union:
        covered = jnp.minimum(ea + eb, w.e.x)
        best = jnp.maximum(best, union + w.x + w.v * covered - jnp.maximum(ia, ib))
    if forms.intersection:
        inside = jnp.minimum(ia + ib, w.i.x)
        outside = jnp.maximum(jnp.maximum(ea, eb), ea + eb - w.e.ab)
        best = jnp.maximum(best, weight(inside, w.v * outside))
    return best


def _intersection_and_more(w: _Pair, forms: Forms) -> Float64[Array, " concepts"]:
    """W of `(a AND b)∘x` for every x, the highest over the operators."""
    i_low, i_high = w.i.common_to_three()
    e_low, e_high = w.e.common_to_three()
    pair = w.both
    best = jnp.full_like(i_low, NEVER)
    if forms.difference:
        best = jnp.maximum(best, pair + w.v * e_high - i_low)
    if forms.union:
        best = jnp.maximum(best, pair + w.x + w.v * e_high - i_low)
    if forms.intersection:
        best = jnp.maximum(best, weight(i_high, w.v * e_low))
    return best


def _difference_and_more(w: _Pair, forms: Forms) -> Float64[Array, " concepts"]:
    """W of `(a AND NOT b)∘x` for every x; AND is left to `(a AND x) AND NOT b`."""
    i_low, i_high = w.i.common_to_three()
    e_low, _ = w.e.common_to_three()
    pair = w.a - w.shared
    # The part of a that x shares, less what b has of it.
    shared_i = jnp.maximum(w.i.ax - i_high, 0.0)
    shared_e = w.e.ax - e_low
    best = jnp.full_like(i_low, NEVER)
    if forms.difference:
        best = jnp.maximum(best, pair + w.v * shared_e - shared_i)
    if forms.union:
        best = jnp.maximum(best, pair + w.x + w.v * shared_e - shared_i)
    return best
