"""Nodes of the tight search."""

import equinox as eqx
import numpy as np
from jaxtyping import Float64, Int32, Int64

from optexp_jax.tight.place import Step

NONE = -1
INNER = 3
"""The longest label that a node fixes innermost."""


class TightNodes(eqx.Module):
    """Outer steps, from the outermost inward, and a label that is innermost.

    A node stands for the chains that put `further` more steps between its label and its outer
    steps; if that is 2, the outer one of them is AND NOT. Nodes without a label stand for the
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

    def label(self, row: int) -> tuple[list[int], list[int]]:
        """The concepts and forms of a node's label."""
        concepts = [k for k in self.inner[row].tolist() if k != NONE]
        return concepts, self.inner_forms[row, : max(len(concepts) - 1, 0)].tolist()

    @classmethod
    def labels(
        cls,
        length: int,
        steps: list[Step],
        inner: list[Int32[np.ndarray, " nodes"]],
        inner_forms: list[Int32[np.ndarray, " nodes"]],
        further: int,
        v: float,
    ) -> "TightNodes":
        """Nodes of labels inside the same outer steps, given by columns."""
        n = len(inner[0])
        forms, concepts = _outer(length, steps, n)
        none = np.full(n, NONE, np.int32)
        return cls(
            forms,
            concepts,
            np.stack([*inner_forms, *[none] * (INNER - 1 - len(inner_forms))], axis=1),
            np.stack([*inner, *[none] * (INNER - len(inner))], axis=1),
            np.full(n, further, np.int32),
            np.full(n, v),
        )

    @classmethod
    def outer(
        cls,
        length: int,
        steps: list[Step],
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


def _outer(length: int, steps: list[Step], n: int) -> tuple[np.ndarray, np.ndarray]:
    forms, concepts = np.full((2, n, length), NONE, np.int32)
    for k, step in enumerate(steps):
        forms[:, k], concepts[:, k] = step.form, step.concept
    return forms, concepts
