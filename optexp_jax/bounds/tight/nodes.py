"""Nodes of the tight search."""

import numpy as np
from jaxtyping import Float64, Int32, Int64

from optexp_jax.bounds.tight.labels import Labels
from optexp_jax.bounds.tight.place import Spot, Step
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

    forms: Int32[np.ndarray, "nodes length"]
    concepts: Int32[np.ndarray, "nodes length"]
    inner_forms: Int32[np.ndarray, "nodes two"]
    inner: Int32[np.ndarray, "nodes three"]
    further: Int32[np.ndarray, " nodes"]
    v: Float64[np.ndarray, " nodes"]
    """The IoU at which the bound was made, which settles what is searched where."""
    shorter: Float64[np.ndarray, " nodes"]
    """The highest W of chains with one concept less (see `Spot`)."""

    def __len__(self) -> int:
        return len(self.further)

    @property
    def depth(self) -> Int64[np.ndarray, " nodes"]:
        """Number of outer steps."""
        return (self.concepts != NONE).sum(1)

    def spot(self, row: int) -> Spot:
        """Where a node is to be looked at."""
        pairs = zip(self.forms[row].tolist(), self.concepts[row].tolist(), strict=True)
        steps = tuple(Step(form, concept) for form, concept in pairs if concept != NONE)
        return Spot(steps, float(self.shorter[row]))

    def labels(self, rows: Int64[np.ndarray, " rows"]) -> Labels:
        """The labels of some nodes, which have to be of one length."""
        length = int((self.inner[rows[0]] != NONE).sum())
        steps = max(length - 1, 0)
        return Labels(self.inner[rows, :length], self.inner_forms[rows, :steps])

    def groups(self) -> list[Int64[np.ndarray, " rows"]]:
        """The nodes in groups that can be expanded together.

        That is places with as many steps; labels of one length with one further step; and those
        with more at one place. A group stands where the first of its nodes does.
        """
        return self._grouped(
            np.column_stack([self.depth * (self.further == 0), self.inner == NONE, self.further]),
            split=self.further > 1,
        )

    def by_spot(self) -> list[Int64[np.ndarray, " rows"]]:
        """The nodes in groups of one place each."""
        none = np.zeros((len(self), 0), np.int64)
        return self._grouped(none, split=np.ones(len(self), bool))

    def _grouped(
        self, kinds: Int64[np.ndarray, "nodes kinds"], split: np.ndarray
    ) -> list[Int64[np.ndarray, " rows"]]:
        spots = np.column_stack([self.forms, self.concepts, self.shorter.view(np.int64)])
        keys = np.column_stack([kinds, np.where(split[:, None], spots, 0)])
        if (keys == keys[:1]).all():
            return [np.arange(len(keys))]
        groups: dict[bytes, list[int]] = {}
        for row, key in enumerate(keys):
            groups.setdefault(key.tobytes(), []).append(row)
        return [np.array(rows) for rows in groups.values()]

    @classmethod
    def around(
        cls, labels: Labels, length: int, spot: Spot, further: int, v: float
    ) -> "TightNodes":
        """Nodes of labels at one place."""
        n = len(labels)
        forms, concepts = _outer(length, spot, n)
        inner = np.full((n, INNER), NONE, np.int32)
        inner_forms = np.full((n, INNER - 1), NONE, np.int32)
        inner[:, : labels.length] = labels.inner
        inner_forms[:, : labels.length - 1] = labels.forms
        return cls(
            forms,
            concepts,
            inner_forms,
            inner,
            np.full(n, further, np.int32),
            np.full(n, v),
            np.full(n, spot.shorter),
        )

    @classmethod
    def everything(cls, length: int, v: float) -> "TightNodes":
        """One node without outer steps, for all chains of three concepts and more."""
        forms, concepts = _outer(length, Spot(), 1)
        return cls(
            forms,
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
        spot: Spot,
        form: Int32[np.ndarray, " nodes"],
        concept: Int32[np.ndarray, " nodes"],
        v: float,
    ) -> "TightNodes":
        """Nodes with one more outer step each than one place has."""
        n, depth = len(form), len(spot.steps)
        forms, concepts = _outer(length, spot, n)
        forms[:, depth], concepts[:, depth] = form, concept
        return cls(
            forms,
            concepts,
            np.full((n, INNER - 1), NONE, np.int32),
            np.full((n, INNER), NONE, np.int32),
            np.zeros(n, np.int32),
            np.full(n, v),
            np.full(n, spot.shorter),
        )


def _outer(
    length: int, spot: Spot, n: int
) -> tuple[Int32[np.ndarray, "n length"], Int32[np.ndarray, "n length"]]:
    """The forms and concepts of outer steps, for n nodes."""
    forms, concepts = np.full((2, n, length), NONE, np.int32)
    for k, step in enumerate(spot.steps):
        forms[:, k], concepts[:, k] = step.form, step.concept
    return forms, concepts
