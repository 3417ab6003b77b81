"""Scores from the dataset's own label maps, without the table: what verification trusts least."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int32

from optexp_jax.counts.scores import Score
from optexp_jax.datasets.protocol import Dataset, Sample
from optexp_jax.datasets.provenance import Provenance, read_provenance
from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.operators import Operator
from optexp_jax.runs.sources import UnitSource

HELD_BYTES = 2**29
"""Of packed bitmaps that are held in one pass over the dataset."""


@dataclass(frozen=True, eq=False)
class RawMaps:
    """The annotated dataset that a table was built from, read again."""

    dataset: Dataset
    provenance: Provenance

    @classmethod
    def of_table(cls, path: str) -> "RawMaps":
        """The dataset of a stored table, if it is still there and the same."""
        provenance = read_provenance(path)
        return cls(provenance.open(), provenance)

    def groups(self, units: Sequence[int]) -> Iterator[list[int]]:
        """Units whose bitmaps fit memory together: each group is one pass over the dataset."""
        rows, columns = self.provenance.mask_shape
        size = len(self.provenance.indices) * -(-rows * columns // 8)
        step = max(1, HELD_BYTES // size)
        for start in range(0, len(units), step):
            yield list(units[start : start + step])

    def scores(
        self, source: UnitSource, wanted: Mapping[int, Sequence[Formula]]
    ) -> dict[int, dict[Formula, Score]]:
        """The scores of some formulas of each unit, sample by sample, location by location."""
        n_samples = len(self.provenance.indices)
        packed = {
            unit: np.packbits(source.bitmap(unit).reshape(n_samples, -1), axis=1) for unit in wanted
        }
        totals = {(unit, formula): [0, 0] for unit, many in wanted.items() for formula in many}
        ids = {info.name: k for k, info in enumerate(self.dataset.concepts())}
        for place, index in enumerate(self.provenance.indices.tolist()):
            masks = _SampleMasks(self.dataset[index], ids, self.provenance.mask_shape)
            bitmaps = {
                unit: np.unpackbits(rows[place], count=masks.size).astype(bool)
                for unit, rows in packed.items()
            }
            for (unit, formula), total in totals.items():
                held = masks.evaluate(formula)
                total[0] += int(np.count_nonzero(held & bitmaps[unit]))
                total[1] += int(np.count_nonzero(held | bitmaps[unit]))
        found: dict[int, dict[Formula, Score]] = {unit: {} for unit in wanted}
        for (unit, formula), (intersection, union) in totals.items():
            found[unit][formula] = Score(intersection, union)
        return found


class _SampleMasks:
    """Where concepts and formulas hold in one sample, at the table's resolution."""

    def __init__(self, sample: Sample, ids: Mapping[str, int], shape: tuple[int, int]):
        self.size = shape[0] * shape[1]
        self._maps = [_nearest(values, shape).reshape(-1) for values in sample.maps]
        self._everywhere = set(sample.everywhere)
        self._ids = ids
        self._found: dict[Formula, Bool[np.ndarray, " locations"]] = {}

    def evaluate(self, formula: Formula) -> Bool[np.ndarray, " locations"]:
        if formula not in self._found:
            held = self._concept(formula.concepts[0])
            for operator, name in zip(formula.operators, formula.concepts[1:], strict=True):
                held = truth(operator)[held.astype(np.intp), self._concept(name).astype(np.intp)]
            self._found[formula] = held
        return self._found[formula]

    def _concept(self, name: str) -> Bool[np.ndarray, " locations"]:
        concept = self._ids[name]
        held = np.full(self.size, concept in self._everywhere)
        for values in self._maps:
            held |= values == concept
        return held


def truth(operator: Operator) -> Bool[np.ndarray, "two two"]:
    """The operator's truth table, by left and right side."""
    return np.array([[False, operator.q], [operator.p, operator.r]])


def _nearest(
    values: Int32[np.ndarray, "h w"], shape: tuple[int, int]
) -> Int32[np.ndarray, "height width"]:
    height, width = shape
    rows = [row * values.shape[0] // height for row in range(height)]
    columns = [column * values.shape[1] // width for column in range(width)]
    return values[np.ix_(rows, columns)]
