"""What a comparison of two runs says: unit by unit, by category, and in a few sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from optexp_jax.comparison.category import DIFFERING, Category
from optexp_jax.comparison.summary import CategorySummary, IoUSummary
from optexp_jax.explanation import Explanation

if TYPE_CHECKING:
    import pandas

MOST_NAMED = 10
"""Units that a sentence names."""

COMPARISON_COLUMNS = (
    "unit",
    "category",
    "iou_a",
    "iou_b",
    "gain",
    "formula_a",
    "formula_b",
    "same_locations",
    "intersection_a",
    "union_a",
    "intersection_b",
    "union_b",
    "status_a",
    "status_b",
)


@dataclass(frozen=True)
class ComparedRun:
    """One of the two runs."""

    path: str
    method: str
    """The method in a few words: `Beam length=3 size=5`."""
    n_optimal: int
    """Compared units of which it claims the optimum."""
    failed: tuple[int, ...] = ()
    """Units that it could not explain."""
    missing: tuple[int, ...] = ()
    """Units that it has not come to yet."""


@dataclass(frozen=True)
class ComparedUnit:
    """A unit that both runs have explained."""

    unit: int
    a: Explanation
    b: Explanation
    category: Category
    same_locations: bool | None
    """Whether both formulas hold at the same locations; None where that is not known."""

    @property
    def gain(self) -> float:
        """How much higher the IoU of `b` is: the exact difference, rounded once."""
        return float(self.b.score.ratio - self.a.score.ratio)

    def row(self) -> dict[str, Any]:
        """The unit as one flat row of a table."""
        return {
            "unit": self.unit,
            "category": self.category.value,
            "iou_a": self.a.iou,
            "iou_b": self.b.iou,
            "gain": self.gain,
            "formula_a": _text(self.a),
            "formula_b": _text(self.b),
            "same_locations": self.same_locations,
            "intersection_a": self.a.intersection,
            "union_a": self.a.union,
            "intersection_b": self.b.intersection,
            "union_b": self.b.union,
            "status_a": self.a.status.value,
            "status_b": self.b.status.value,
        }


@dataclass(frozen=True)
class Comparison:
    """The results of two runs, unit by unit. In the paper `a` is a beam and `b` the optimum."""

    a: ComparedRun
    b: ComparedRun
    units: tuple[ComparedUnit, ...]
    """Units that both have explained, in ascending order."""
    notes: tuple[str, ...] = ()
    """What to know before the figures are read: that the runs ask different questions, say."""

    @property
    def differing(self) -> tuple[ComparedUnit, ...]:
        """Units whose formulas differ, whether or not their IoUs do."""
        return tuple(unit for unit in self.units if unit.category.differs)

    @property
    def share_differing(self) -> float:
        """Differing units as a share of all: the paper's "non-optimal" if `b` is the optimum."""
        return len(self.differing) / len(self.units)

    def of(self, category: Category | str) -> tuple[ComparedUnit, ...]:
        """Units of one category."""
        wanted = Category(category)
        return tuple(unit for unit in self.units if unit.category is wanted)

    def share(self, category: Category | str) -> float:
        """A category as a share of the differing units, as in Table 3; 0 where none differs."""
        return len(self.of(category)) / max(len(self.differing), 1)

    def ious(self, category: Category | str | None = None) -> IoUSummary:
        """Mean IoUs of one category, or of all differing units, as in Table 4."""
        units = self.differing if category is None else self.of(category)
        return IoUSummary.of(
            [unit.a.iou for unit in units],
            [unit.b.iou for unit in units],
            [unit.gain for unit in units],
        )

    def categories(self) -> tuple[CategorySummary, ...]:
        """The categories of differing units, empty ones too: Tables 3, 4 and 9."""
        return tuple(
            CategorySummary(
                category,
                self.share(category),
                self.ious(category),
                sum(unit.same_locations is True for unit in self.of(category)),
            )
            for category in DIFFERING
        )

    def largest_gains(self, n: int | None = None) -> tuple[ComparedUnit, ...]:
        """Units whose IoUs differ most, whichever run has the higher one; the first `n`, or all."""
        changed = [unit for unit in self.units if unit.a.score.ratio != unit.b.score.ratio]
        changed.sort(key=lambda unit: (-abs(unit.b.score.ratio - unit.a.score.ratio), unit.unit))
        return tuple(changed[:n])

    def rows(self) -> list[dict[str, Any]]:
        """One flat row a unit."""
        return [unit.row() for unit in self.units]

    def to_pandas(self) -> "pandas.DataFrame":
        """One row a unit that both runs have explained."""
        try:
            import pandas
        except ImportError as error:
            said = 'Data frames need pandas: pip install "optexp-jax[table]".'
            raise ImportError(said) from error
        rows = self.rows()
        columns: dict[str, Any] = {name: [row[name] for row in rows] for name in COMPARISON_COLUMNS}
        return pandas.DataFrame(columns).astype({"same_locations": "boolean"})

    def sentences(self) -> list[str]:
        """The comparison in a few lines, without the table of categories."""
        n = len(self.units)
        higher = sum(unit.b.score.ratio > unit.a.score.ratio for unit in self.units)
        lower = sum(unit.b.score.ratio < unit.a.score.ratio for unit in self.units)
        return [
            f"A: {self.a.path} ({self.a.method}), {self.a.n_optimal} of {_units(n)} proved optimal",
            f"B: {self.b.path} ({self.b.method}), {self.b.n_optimal} of {_units(n)} proved optimal",
            f"{len(self.differing)} of {_units(n)} differ ({self.share_differing:.1%}): the IoU of "
            f"B is higher in {higher}, lower in {lower}",
            *self._not_compared(),
            *(f"Note: {note}" for note in self.notes),
        ]

    def _not_compared(self) -> list[str]:
        left = (
            (self.a.failed, "failed in A"),
            (self.a.missing, "not done in A"),
            (self.b.failed, "failed in B"),
            (self.b.missing, "not done in B"),
        )
        said = [f"{_units(len(units))} {why} ({named(units)})" for units, why in left if units]
        return [f"Not compared: {'; '.join(said)}"] if said else []

    def __str__(self) -> str:
        said = self.sentences()
        for row in self.categories():
            if row.n:
                said.append(f"{row.category.label}: {_figures(row.ious)} ({row.share:.1%})")
        if self.differing:
            said.append(f"all that differ: {_figures(self.ious())}")
        return "\n".join(said)


def named(units: Sequence[int]) -> str:
    """The numbers of some units, or of the first of them."""
    more = ", ..." if len(units) > MOST_NAMED else ""
    return ", ".join(str(unit) for unit in units[:MOST_NAMED]) + more


def _figures(ious: IoUSummary) -> str:
    return (
        f"{_units(ious.n)}, IoU {ious.mean_a:.4f} ± {ious.std_a:.4f} in A, "
        f"{ious.mean_b:.4f} ± {ious.std_b:.4f} in B"
    )


def _units(n: int) -> str:
    return f"{n} unit{'' if n == 1 else 's'}"


def _text(found: Explanation) -> str | None:
    return None if found.formula is None else str(found.formula)
