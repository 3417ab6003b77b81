"""A region's counts as bounds see them: in floating point, with the weights W that follow.

Over a region, with v the incumbent's IoU, every formula L has `W(L) = I(L) − v·E(L)`. W adds up
over locations, and L beats the incumbent only if W(L) exceeds a threshold. The Gram matrices give
W exactly for all pairs of concepts.

Bounds on all pairs are first made as the highest of each row, which writes no matrix; what they
leave is then fetched by rows.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float64, Int32, Int64

from optexp_jax.pytrees import pytree
from optexp_jax.tight.forms import Forms
from optexp_jax.tight.grams import Gram

NEVER = -jnp.inf
ROWS_AT_ONCE = 32
"""Rows that are fetched at once. The arrays of more of them would not stay in a cache."""


@pytree
class Region:
    """Where the inner part of a formula does its work, at one v."""

    gram: Gram
    allowed: Bool[Array, " concepts"]
    """Concepts that the outer steps have not used."""
    light: Bool[Array, " concepts"]
    """Concepts that are not heavy (see `two_steps`)."""
    v: Float64[Array, ""]

    @property
    def n_concepts(self) -> int:
        return len(self.allowed)

    @property
    def own_i(self) -> Float64[Array, " concepts"]:
        return jnp.diagonal(self.gram.inside).astype(jnp.float64)

    @property
    def own_e(self) -> Float64[Array, " concepts"]:
        return jnp.diagonal(self.gram.outside).astype(jnp.float64)

    @property
    def own(self) -> Float64[Array, " concepts"]:
        """W of each concept."""
        return self.own_i - self.v * self.own_e

    def rows(self, a: Int32[Array, " rows"]) -> "Block":
        """Some concepts next to every concept."""
        return Block(a, self.gram.inside[a], self.gram.outside[a], self)

    def all_rows(self) -> "Block":
        """Every concept next to every concept."""
        every = jnp.arange(self.n_concepts, dtype=jnp.int32)
        return Block(every, self.gram.inside, self.gram.outside, self)


@pytree
class Block:
    """Some concepts a next to every concept b: what both have, `[a, b]`."""

    a: Int32[Array, " rows"]
    inside: Int64[Array, "rows concepts"]
    outside: Int64[Array, "rows concepts"]
    region: Region

    @property
    def i(self) -> Float64[Array, "rows concepts"]:
        return self.inside.astype(jnp.float64)

    @property
    def e(self) -> Float64[Array, "rows concepts"]:
        return self.outside.astype(jnp.float64)

    @property
    def ve(self) -> Float64[Array, "rows concepts"]:
        return self.region.v * self.e

    @property
    def both(self) -> Float64[Array, "rows concepts"]:
        """W(a AND b)."""
        return self.i - self.ve

    @property
    def own(self) -> Float64[Array, "rows one"]:
        """W(a)."""
        return self.region.own[self.a][:, None]

    @property
    def union(self) -> Float64[Array, "rows concepts"]:
        """W(a OR b)."""
        return self.own + self.region.own[None, :] - self.both

    @property
    def without(self) -> Float64[Array, "rows concepts"]:
        """W(a AND NOT b)."""
        return self.own - self.both

    @property
    def others(self) -> Bool[Array, "rows concepts"]:
        """Which concepts can come to a."""
        every = jnp.arange(self.region.n_concepts, dtype=self.a.dtype)
        return (self.a[:, None] != every[None, :]) & self.region.allowed[None, :]

    def most(
        self, values: Float64[Array, "rows concepts"], among: Bool[Array, " concepts"] | None = None
    ) -> Float64[Array, " rows"]:
        """The highest value over other concepts."""
        kept = self.others if among is None else self.others & among[None, :]
        return jnp.where(kept, values, NEVER).max(1)

    def most_of_each(
        self, *values: Float64[Array, "rows concepts"]
    ) -> tuple[Float64[Array, " rows"], ...]:
        """The highest of several values over other concepts, in one pass.

        Maxima of their own would each write their values to memory first.
        """
        kept = [jnp.where(self.others, part, NEVER) for part in values]
        start = [jnp.full((), NEVER)] * len(kept)

        def larger(one: Sequence[Array], other: Sequence[Array]) -> tuple[Array, ...]:
            return tuple(jnp.maximum(*pair) for pair in zip(one, other, strict=True))

        return jax.lax.reduce(tuple(kept), tuple(start), larger, (1,))

    def usable(self, forms: Forms) -> Bool[Array, "rows forms concepts"]:
        """Pairs of two allowed concepts whose operator may be used; symmetric forms only once."""
        both = self.others & self.region.allowed[self.a][:, None]
        every = jnp.arange(self.region.n_concepts, dtype=self.a.dtype)
        once = both & (self.a[:, None] < every[None, :])
        return jnp.stack(
            [once & forms.union, once & forms.intersection, both & forms.difference], axis=1
        )

    def proper(self) -> Bool[Array, "rows forms concepts"]:
        """Pairs that are neither empty nor equal to one of their concepts over the region.

        The others, and whatever is built on them, exist with fewer concepts.
        """
        gram = self.region.gram
        own = jnp.diagonal(gram.inside) + jnp.diagonal(gram.outside)
        overlap = self.inside + self.outside
        touching = overlap > 0
        wider = overlap != own[self.a][:, None]
        proper = wider & (overlap != own[None, :])
        return jnp.stack([proper, touching & proper, touching & wider], axis=1)


def least(
    first: Float64[Array, " concepts"],
    block: Block,
    second: Float64[Array, " concepts"] | None = None,
) -> Float64[Array, "rows concepts"]:
    """The smaller of f(a) + g(b) and f(b) + g(a), for concepts that are exchangeable."""
    if second is None:
        return jnp.minimum(first[block.a][:, None], first[None, :])
    one, other = (
        first[block.a][:, None] + second[None, :],
        second[block.a][:, None] + first[None, :],
    )
    return jnp.minimum(one, other)
