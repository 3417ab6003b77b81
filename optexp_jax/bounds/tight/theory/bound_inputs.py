"""Regions' counts as bounds see them: in floating point, with the weights W that follow.

Over a region, with v the incumbent's IoU, every formula L has `W(L) = I(L) − v·E(L)`. W adds up
over locations, and L beats the incumbent only if W(L) exceeds a threshold. The Gram matrices give
W exactly for all pairs of concepts.

Several regions of one size are bounded in the same calls. Bounds on all of their pairs are first
made as the highest of each row, which writes no matrix; what they leave is then fetched by rows.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float64, Int32, Int64, Shaped

from optexp_jax.bounds.tight.counts.gram import Gram
from optexp_jax.bounds.tight.operator_set import OperatorSet
from optexp_jax.bounds.tight.rounding import weight
from optexp_jax.internal.pytrees import pytree

NEVER = -jnp.inf


@pytree
class BoundInputs:
    """Where the inner parts of formulas do their work, at some subproblems.

    They may be subproblems of several neurons.
    """

    gram: Gram
    allowed: Bool[Array, "subs concepts"]
    """Concepts that the outer steps have not used."""
    light: Bool[Array, "subs concepts"]
    """Concepts that are not heavy (see `two_step`)."""
    v: Float64[Array, " subs"]

    @property
    def n_concepts(self) -> int:
        return self.allowed.shape[1]

    @property
    def own_i(self) -> Float64[Array, "subs concepts"]:
        return diagonals(self.gram.inside).astype(jnp.float64)

    @property
    def own_e(self) -> Float64[Array, "subs concepts"]:
        return diagonals(self.gram.outside).astype(jnp.float64)

    @property
    def own(self) -> Float64[Array, "subs concepts"]:
        """W of each concept, rounded up."""
        return weight(self.own_i, self.v[:, None] * self.own_e)

    def rows(self, sub: Int32[Array, " rows"], a: Int32[Array, " rows"]) -> "GramRows":
        """Some concepts of some subproblems, each next to every concept of its subproblem."""
        return GramRows(self, sub, a)

    def all_rows(self) -> "GramRows":
        """Every concept next to every concept of its subproblem."""
        return GramRows(self, None, None)


@pytree
class GramRows:
    """Some concepts a next to every concept b: what both have, `[…, b]`.

    The axes before b say which a: one axis if some were asked for, else subproblems and concepts.
    """

    inputs: BoundInputs
    sub: Int32[Array, " rows"] | None
    a: Int32[Array, " rows"] | None

    def of_pairs(
        self, values: Shaped[Array, "subs concepts concepts"]
    ) -> Shaped[Array, "*rows concepts"]:
        """What a matrix has for each a."""
        return values if self.a is None else values[self.sub, self.a]

    def mine(self, values: Shaped[Array, "subs concepts"]) -> Shaped[Array, "*rows one"]:
        """The values of each a."""
        return (values if self.a is None else values[self.sub, self.a])[..., None]

    def theirs(self, values: Shaped[Array, "subs concepts"]) -> Shaped[Array, "*rows concepts"]:
        """The values of every b."""
        return values[:, None, :] if self.sub is None else values[self.sub]

    def of_sub(self, values: Shaped[Array, " subs"]) -> Shaped[Array, "*rows one"]:
        """The value of each a's subproblem."""
        return values[:, None, None] if self.sub is None else values[self.sub][:, None]

    @property
    def inside(self) -> Int64[Array, "*rows concepts"]:
        return self.of_pairs(self.inputs.gram.inside)

    @property
    def outside(self) -> Int64[Array, "*rows concepts"]:
        return self.of_pairs(self.inputs.gram.outside)

    @property
    def i(self) -> Float64[Array, "*rows concepts"]:
        return self.inside.astype(jnp.float64)

    @property
    def e(self) -> Float64[Array, "*rows concepts"]:
        return self.outside.astype(jnp.float64)

    @property
    def v(self) -> Float64[Array, "*rows one"]:
        return self.of_sub(self.inputs.v)

    @property
    def ve(self) -> Float64[Array, "*rows concepts"]:
        return self.v * self.e

    @property
    def both(self) -> Float64[Array, "*rows concepts"]:
        """W(a AND b), rounded up: to be added."""
        return weight(self.i, self.ve)

    @property
    def shared(self) -> Float64[Array, "*rows concepts"]:
        """W(a AND b) next to W of a or b, which leaves room for its rounding: to be taken away."""
        return self.i - self.ve

    @property
    def own(self) -> Float64[Array, "*rows one"]:
        """W(a)."""
        return self.mine(self.inputs.own)

    @property
    def union(self) -> Float64[Array, "*rows concepts"]:
        """W(a OR b)."""
        return self.own + self.theirs(self.inputs.own) - self.shared

    @property
    def without(self) -> Float64[Array, "*rows concepts"]:
        """W(a AND NOT b)."""
        return self.own - self.shared

    @property
    def _numbers(self) -> tuple[Int32[Array, "*rows one"], Int32[Array, "*ones concepts"]]:
        """The number of each a, and of every b."""
        every = jnp.arange(self.inputs.n_concepts, dtype=jnp.int32)
        if self.a is None:
            return every[None, :, None], every[None, None, :]
        return self.a[:, None], every[None, :]

    @property
    def others(self) -> Bool[Array, "*rows concepts"]:
        """Which concepts can come to a."""
        a, b = self._numbers
        return (a != b) & self.theirs(self.inputs.allowed)

    def most(
        self,
        values: Float64[Array, "*rows concepts"],
        among: Bool[Array, "subs concepts"] | None = None,
    ) -> Float64[Array, "*rows"]:
        """The highest value over other concepts."""
        kept = self.others if among is None else self.others & self.theirs(among)
        return jnp.where(kept, values, NEVER).max(-1)

    def most_of_each(
        self, *values: Float64[Array, "*rows concepts"]
    ) -> tuple[Float64[Array, "*rows"], ...]:
        """The highest of several values over other concepts, in one pass.

        Maxima of their own would each write their values to memory first.
        """
        kept = [jnp.where(self.others, part, NEVER) for part in values]
        start = [jnp.full((), NEVER)] * len(kept)

        def larger(one: Sequence[Array], other: Sequence[Array]) -> tuple[Array, ...]:
            return tuple(jnp.maximum(*pair) for pair in zip(one, other, strict=True))

        return jax.lax.reduce(tuple(kept), tuple(start), larger, (kept[0].ndim - 1,))

    def usable(self, ops: OperatorSet) -> Bool[Array, "*rows ops concepts"]:
        """Pairs of two allowed concepts whose operator may be used; symmetric ones only once."""
        both = self.others & self.mine(self.inputs.allowed)
        a, b = self._numbers
        once = both & (a < b)
        return jnp.stack(
            [once & ops.union, once & ops.intersection, both & ops.difference], axis=-2
        )

    def proper(self) -> Bool[Array, "*rows ops concepts"]:
        """Pairs that are neither empty nor equal to one of their concepts over the region.

        The others, and whatever is built on them, exist with fewer concepts.
        """
        gram = self.inputs.gram
        own = diagonals(gram.inside) + diagonals(gram.outside)
        overlap = self.inside + self.outside
        touching = overlap > 0
        wider = overlap != self.mine(own)
        proper = wider & (overlap != self.theirs(own))
        return jnp.stack([proper, touching & proper, touching & wider], axis=-2)


def diagonals(
    values: Shaped[Array, "subs concepts concepts"],
) -> Shaped[Array, "subs concepts"]:
    """What each concept has by itself."""
    return jnp.diagonal(values, axis1=1, axis2=2)


def least(
    first: Float64[Array, "subs concepts"],
    block: GramRows,
    second: Float64[Array, "subs concepts"] | None = None,
) -> Float64[Array, "*rows concepts"]:
    """The smaller of f(a) + g(b) and f(b) + g(a), for concepts that are exchangeable."""
    if second is None:
        return jnp.minimum(block.mine(first), block.theirs(first))
    one, other = (
        block.mine(first) + block.theirs(second),
        block.mine(second) + block.theirs(first),
    )
    return jnp.minimum(one, other)
