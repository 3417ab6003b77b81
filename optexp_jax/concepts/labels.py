"""What the integers of label maps mean."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Int32, Integer

from optexp_jax.concepts.inputs import plain_category, plain_name, to_integers

NO_CONCEPT = -1


@dataclass(frozen=True)
class LabelLayer:
    """One layer of label maps (objects, parts, colours, ...): what its values stand for.

    `names` maps a value to a concept name; a sequence names the values 0, 1, 2, ... A value without
    a name must stand in `ignore`, so that no annotation gets lost by oversight; 0 is ignored unless
    it has a name. A name that several layers use is one concept: it holds where any of them says
    so, and keeps the category under which it was met first.
    """

    names: Mapping[int, str] | Sequence[str]
    category: str | None = None
    ignore: Collection[int] = ()

    def items(self) -> list[tuple[int, str]]:
        """Pairs (value, name), ascending by value."""
        if isinstance(self.names, str):
            raise TypeError(f"LabelLayer.names must map values to names; got {self.names!r}.")
        if isinstance(self.names, Mapping):
            return sorted((int(value), name) for value, name in self.names.items())
        return list(enumerate(self.names))


@dataclass
class Vocabulary:
    """Concept names in the order in which they were met, with their categories."""

    ids: dict[str, int] = field(default_factory=dict)
    categories: list[str | None] = field(default_factory=list)

    def add(self, name: str, category: str | None) -> int:
        plain = plain_name(name)
        if plain not in self.ids:
            self.categories.append(plain_category(category))
            self.ids[plain] = len(self.ids)
        return self.ids[plain]


class LayerCoder:
    """Turns the values of one layer into concept ids."""

    def __init__(self, layer: LabelLayer, vocabulary: Vocabulary):
        named = layer.items()
        ignored = {int(value) for value in layer.ignore}
        both = sorted(ignored.intersection(value for value, _ in named))
        if both:
            raise ValueError(f"Label values {both} have a name and stand in `ignore` too.")
        codes = {value: vocabulary.add(name, layer.category) for value, name in named}
        codes.update(dict.fromkeys(ignored, NO_CONCEPT))
        codes.setdefault(0, NO_CONCEPT)
        self._values = np.array(sorted(codes), np.int64)
        self._ids = np.array([codes[value] for value in self._values.tolist()], np.int32)
        self._category = layer.category

    def encode(self, values: Integer[np.ndarray, " values"]) -> Int32[np.ndarray, " values"]:
        """Concept ids, NO_CONCEPT where a value is ignored; unknown values are an error."""
        signed = values.astype(np.int64)  # With unsigned values, numpy would search in floats.
        place = np.minimum(np.searchsorted(self._values, signed), len(self._values) - 1)
        unknown = np.unique(signed[self._values[place] != signed])
        if len(unknown):
            layer = f" of layer {self._category!r}" if self._category else ""
            shown = ", ".join(map(str, unknown[:8])) + (", ..." if len(unknown) > 8 else "")
            raise ValueError(
                f"Label maps{layer} hold values without a name: {shown}. Name them in "
                "LabelLayer.names or list them in LabelLayer.ignore."
            )
        return self._ids[place]


def check_label_map(values: Any, what: str) -> Integer[np.ndarray, "..."]:
    """An integer label map; unsigned 64-bit values would not survive a cast to int64."""
    checked = to_integers(values, what)
    if checked.dtype == np.uint64 and checked.size and int(checked.max()) >= 2**63:
        raise ValueError(f"{what} holds values from 2**63 on; label values must be smaller.")
    return checked


def concept_sets(
    columns: Iterable[Int32[np.ndarray, " rows"]],
) -> list[Int32[np.ndarray, " _"]]:
    """The set of concept ids in each row of a few columns of ids."""
    stacked = np.stack(list(columns), axis=1)
    return [np.unique(row[row != NO_CONCEPT]) for row in stacked]
