"""Nodes of the tight search."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64, Int32, Int64

from optexp_jax.bounds.tight.operator_set import OPERATORS
from optexp_jax.bounds.tight.search.labels import Labels
from optexp_jax.bounds.tight.search.subproblem import Prefix, Step
from optexp_jax.formulas.text import format_chain, quote_name
from optexp_jax.internal.pytrees import pytree

NONE = -1
INNER = 3
"""The longest label that a node fixes innermost."""


@pytree
class TightNodes:
    """Outer steps, from the outermost inward, and a label that is innermost.

    A node stands for the chains that put `further` more steps between its label and its outer
    steps; if that is 2, the outer one of them is OR or AND NOT. Nodes without a label stand for the
    chains with their outer steps and at least three concepts inside.
    """

    ops: Int32[np.ndarray, "nodes length"]
    concepts: Int32[np.ndarray, "nodes length"]
    inner_ops: Int32[np.ndarray, "nodes two"]
    inner: Int32[np.ndarray, "nodes three"]
    further: Int32[np.ndarray, " nodes"]
    v: Float64[np.ndarray, " nodes"]
    """The IoU at which the bound was made, which settles what is searched where."""
    shorter: Float64[np.ndarray, " nodes"]
    """The highest W of chains with one concept less (see `Prefix`)."""

    def __len__(self) -> int:
        return len(self.further)

    @property
    def depth(self) -> Int64[np.ndarray, " nodes"]:
        """Number of outer steps."""
        return (self.concepts != NONE).sum(1)

    def prefix(self, row: int) -> Prefix:
        """Where a node is to be looked at."""
        pairs = zip(self.ops[row].tolist(), self.concepts[row].tolist(), strict=True)
        steps = tuple(Step(op, concept) for op, concept in pairs if concept != NONE)
        return Prefix(steps, float(self.shorter[row]))

    def labels(self, rows: Int64[np.ndarray, " rows"]) -> Labels:
        """The labels of some nodes, which have to be of one length."""
        length = int((self.inner[rows[0]] != NONE).sum())
        steps = max(length - 1, 0)
        return Labels(self.inner[rows, :length], self.inner_ops[rows, :steps])

    def groups(self) -> list[Int64[np.ndarray, " rows"]]:
        """The nodes in groups that can be expanded together.

        That is subproblems with as many steps; labels of one length with one further step; and
        those with more of one subproblem. A group stands where the first of its nodes does.
        """
        return self._grouped(
            np.column_stack([self.depth * (self.further == 0), self.inner == NONE, self.further]),
            split=self.further > 1,
        )

    def by_prefix(self) -> list[Int64[np.ndarray, " rows"]]:
        """The nodes in groups of one subproblem each."""
        none = np.zeros((len(self), 0), np.int64)
        return self._grouped(none, split=np.ones(len(self), bool))

    def _grouped(
        self, kinds: Int64[np.ndarray, "nodes kinds"], split: np.ndarray
    ) -> list[Int64[np.ndarray, " rows"]]:
        prefixes = np.column_stack([self.ops, self.concepts, self.shorter.view(np.int64)])
        keys = np.column_stack([kinds, np.where(split[:, None], prefixes, 0)])
        if (keys == keys[:1]).all():
            return [np.arange(len(keys))]
        groups: dict[bytes, list[int]] = {}
        for row, key in enumerate(keys):
            groups.setdefault(key.tobytes(), []).append(row)
        return [np.array(rows) for rows in groups.values()]

    @classmethod
    def around(
        cls, labels: Labels, length: int, prefix: Prefix, further: int, v: float
    ) -> "TightNodes":
        """Nodes of labels at one subproblem."""
        n = len(labels)
        ops, concepts = _outer(length, prefix, n)
        inner = np.full((n, INNER), NONE, np.int32)
        inner_ops = np.full((n, INNER - 1), NONE, np.int32)
        inner[:, : labels.length] = labels.inner
        inner_ops[:, : labels.length - 1] = labels.ops
        return cls(
            ops,
            concepts,
            inner_ops,
            inner,
            np.full(n, further, np.int32),
            np.full(n, v),
            np.full(n, prefix.shorter),
        )

    @classmethod
    def everything(cls, length: int, v: float) -> "TightNodes":
        """One node without outer steps, for all chains of three concepts and more."""
        ops, concepts = _outer(length, Prefix(), 1)
        return cls(
            ops,
            concepts,
            np.full((1, INNER - 1), NONE, np.int32),
            np.full((1, INNER), NONE, np.int32),
            np.zeros(1, np.int32),
            np.full(1, v),
            np.full(1, np.inf),
        )

    @classmethod
    def outer(
        cls,
        length: int,
        prefix: Prefix,
        op: Int32[np.ndarray, " nodes"],
        concept: Int32[np.ndarray, " nodes"],
        v: float,
    ) -> "TightNodes":
        """Nodes with one more outer step each than one subproblem has."""
        n, depth = len(op), len(prefix.steps)
        ops, concepts = _outer(length, prefix, n)
        ops[:, depth], concepts[:, depth] = op, concept
        return cls(
            ops,
            concepts,
            np.full((n, INNER - 1), NONE, np.int32),
            np.full((n, INNER), NONE, np.int32),
            np.zeros(n, np.int32),
            np.full(n, v),
            np.full(n, prefix.shorter),
        )


def _outer(
    length: int, prefix: Prefix, n: int
) -> tuple[Int32[np.ndarray, "n length"], Int32[np.ndarray, "n length"]]:
    """The operators and concepts of outer steps, for n nodes."""
    ops, concepts = np.full((2, n, length), NONE, np.int32)
    for k, step in enumerate(prefix.steps):
        ops[:, k], concepts[:, k] = step.op, step.concept
    return ops, concepts


def node_text(nodes: TightNodes, row: int, names: Sequence[str]) -> str:
    """A node from the inside outward, such as `(a OR b), 1 more step, then AND NOT c`."""
    labels = nodes.labels(np.array([row]))
    inner: list[int] = labels.inner[0].tolist()
    concepts = [names[concept] for concept in inner]
    if concepts:
        further = int(nodes.further[row])
        label = format_chain(concepts, [OPERATORS[op] for op in labels.ops[0].tolist()])
        inside = f"{label}, {further} more step{'' if further == 1 else 's'}"
    else:
        inside = "any three concepts or more"
    outer = [
        f", then {OPERATORS[step.op]} {quote_name(names[step.concept])}"
        for step in reversed(nodes.prefix(row).steps)
    ]
    return inside + "".join(outer)
