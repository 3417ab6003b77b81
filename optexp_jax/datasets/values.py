"""From the values of label maps to concept ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int32

from optexp_jax.datasets.protocol import BadSampleError

NONE = -1
_UNKNOWN = -2
_SHOWN = 8


class UnknownValuesError(BadSampleError):
    """A label map with values, or colours, that no table names."""

    def __init__(
        self, name: str, path: Path, meaning: str, values: tuple[str, ...], kind: str = "values"
    ):
        shown = ", ".join(values[:_SHOWN]) + (", ..." if len(values) > _SHOWN else "")
        super().__init__(name, f"{path} holds {kind} that {meaning} does not: {shown}.")
        self.path, self.meaning, self.values, self.kind = path, meaning, values, kind

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.path, self.meaning, self.values, self.kind)


@dataclass(frozen=True, eq=False)
class ValueCodes:
    """The concept id of each value from 0 on; values that are not listed are an error."""

    ids: Int32[np.ndarray, " values"]
    meaning: str
    """Where the values are listed, for the error."""

    @classmethod
    def of(cls, ids: Mapping[int, int], meaning: str) -> "ValueCodes":
        """From pairs value, id; an id of -1 stands for no concept."""
        table = np.full(max(ids, default=0) + 1, _UNKNOWN, np.int32)
        for value, concept in ids.items():
            table[value] = concept
        return cls(table, meaning)

    def decode(
        self, values: Int32[np.ndarray, "height width"], path: Path, sample: str
    ) -> Int32[np.ndarray, "height width"]:
        """Concept ids of a label map; the file is named if a value is unknown."""
        outside = (values < 0) | (values >= len(self.ids))
        if not outside.any():
            decoded = self.ids[values]
            if not (decoded == _UNKNOWN).any():
                return decoded
        known = ~outside
        known[known] = self.ids[values[known]] != _UNKNOWN
        unknown = map(str, np.unique(values[~known]).tolist())
        raise UnknownValuesError(sample, path, self.meaning, tuple(unknown))


def maps_of_masks(
    masks: Mapping[int, Bool[np.ndarray, "height width"]],
) -> tuple[Int32[np.ndarray, "height width"], ...]:
    """As many maps as are needed for the masks of concepts, by id, which may overlap."""
    maps: list[Int32[np.ndarray, "height width"]] = []
    for concept, mask in masks.items():
        free = next((ids for ids in maps if (ids[mask] == NONE).all()), None)
        if free is None:
            free = np.full(mask.shape, NONE, np.int32)
            maps.append(free)
        free[mask] = concept
    return tuple(maps)


def distinct(names: Sequence[str], keys: Sequence[int]) -> tuple[str, ...]:
    """Names made distinct: one that occurs several times gets its key added, as in "bar (12)"."""
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
    return tuple(
        f"{name} ({key})" if seen[name] > 1 else name for name, key in zip(names, keys, strict=True)
    )
