"""Nodes of the tight search."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64, Int32, Int64

from optexp_jax.pytrees import pytree
from optexp_jax.tight.labels import Labels
from optexp_jax.tight.place import Step

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

    def __len__(self) -> int:
        return len(self.further)

    @property
    def depth(self) -> Int64[np.ndarray, " nodes"]:
        """Number of outer steps."""
        return (self.concepts != NONE).sum(1)

    def steps(self, row: int) -> list[Step]:
        """The outer steps of a node."""
        pairs = zip(self.forms[row].tolist(), self.concepts[row].tolist(), strict=True)
        return [Step(form, concept) for form, concept in pairs if concept != NONE]

    def labels(self, rows: Int64[np.ndarray, " rows"]) -> Labels:
        """The labels of some nodes, which have to be of one length."""
        length = int((self.inner[rows[0]] != NONE).sum())
        steps = max(length - 1, 0)
        return Labels(self.inner[rows, :length], self.inner_forms[rows, :steps])

    def groups(self) -> list[Int64[np.ndarray, " rows"]]:
        """The nodes in groups: labels of one length at one place; and each place by itself.

        A group stands where the first of its nodes does.
        """
        kinds = np.column_stack([self.forms, self.concepts, self.inner == NONE, self.further])
        groups: dict[bytes, list[int]] = {}
        for row, kind in enumerate(kinds):
            groups.setdefault(kind.tobytes(), []).append(row)
        return [np.array(rows) for rows in groups.values()]

    @classmethod
    def around(
        cls, labels: Labels, length: int, steps: Sequence[Step], further: int, v: float
    ) -> "TightNodes":
        """Nodes of labels inside the same outer steps."""
        n = len(labels)
        forms, concepts = _outer(length, steps, n)
        inner = np.full((n, INNER), NONE, np.int32)
        inner_forms = np.full((n, INNER - 1), NONE, np.int32)
        inner[:, : labels.length] = labels.inner
        inner_forms[:, : labels.length - 1] = labels.forms
        further_steps = np.full(n, further, np.int32)
        return cls(forms, concepts, inner_forms, inner, further_steps, np.full(n, v))

    @classmethod
    def outer(
        cls,
        length: int,
        steps: Sequence[Step],
        form: Int32[np.ndarray, " nodes"],
        concept: Int32[np.ndarray, " nodes"],
        v: float,
    ) -> "TightNodes":
        """Nodes with one more outer step each, next to the same outer steps."""
        n = len(form)
        forms, concepts = _outer(length, steps, n)
        forms[:, len(steps)], concepts[:, len(steps)] = form, concept
        none = np.full((n, INNER), NONE, np.int32)
        return cls(forms, concepts, none[:, 1:], none, np.zeros(n, np.int32), np.full(n, v))


def _outer(length: int, steps: Sequence[Step], n: int) -> tuple[np.ndarray, np.ndarray]:
    forms, concepts = np.full((2, n, length), NONE, np.int32)
    for k, step in enumerate(steps):
        forms[:, k], concepts[:, k] = step.form, step.concept
    return forms, concepts
