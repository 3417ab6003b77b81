"""Metrics of a formula for a neuron, all from the same four exact counts.

With `I = |L ∩ N|`, `E = |L \\ N|`, `|N|` active locations of `T`, and `s = I + E`, the formula's:

| metric | is |
|---|---|
| IoU | `I / (|N| + E)` |
| F1, Dice | `2·I / (|N| + s)` |
| cosine | `I / √(|N|·s)` |
| phi, Matthews, Pearson | `(T·I − |N|·s) / √(|N|·(T − |N|)·s·(T − s))` |
| precision | `I / s` |
| recall | `I / |N|` |
"""

import enum
import math
from dataclasses import dataclass
from fractions import Fraction

Exact = Fraction | int


class Objective(enum.StrEnum):
    """A metric that `Optimal` can make as high as possible; compares equal to its string."""

    IOU = "iou"
    """Intersection over union, the Jaccard index."""
    F1 = "f1"
    """The Dice coefficient. It rises with the IoU, so both have the same best formulas."""
    COSINE = "cosine"
    """The cosine of the angle between the two masks."""
    PHI = "phi"
    """Matthews' correlation coefficient, which is Pearson's of the two masks."""

    @property
    def label(self) -> str:
        """As people write it."""
        return {"iou": "IoU", "f1": "F1"}.get(self.value, self.value)


@dataclass(frozen=True)
class Margins:
    """What all formulas of a neuron have in common."""

    active: int
    """|N|."""
    n_locations: int
    """T."""

    @property
    def phi_is_defined(self) -> bool:
        """A neuron that is active everywhere correlates with nothing."""
        return self.active < self.n_locations

    def key(self, objective: Objective, extras: Exact, intersection: Exact) -> Fraction:
        """A number that sorts formulas as the metric does, exactly, and has its sign.

        For cosine and phi it is the square, without factors that all formulas share. Where a metric
        is not defined the key is 0.
        """
        s = intersection + extras
        if objective in (Objective.IOU, Objective.F1):
            return Fraction(intersection) / (self.active + extras)
        if objective is Objective.COSINE:
            return Fraction(intersection) ** 2 / s if s else Fraction(0)
        above = self.n_locations * Fraction(intersection) - self.active * s
        product = s * (self.n_locations - s)
        if product <= 0:
            return Fraction(0)
        return above * abs(above) / product

    def value(self, objective: Objective, key: Fraction) -> float:
        """The metric that has this key, as near as floating point gets."""
        if objective is Objective.IOU:
            return float(key)
        if objective is Objective.F1:
            return float(2 * key / (1 + key))
        if objective is Objective.COSINE:
            return math.sqrt(key / self.active)
        if not self.phi_is_defined:
            return 0.0
        squared = key / (self.active * (self.n_locations - self.active))
        return math.copysign(math.sqrt(abs(squared)), squared)

    def at_most(self, objective: Objective, key: Fraction) -> float:
        """The same rounded up, and never above 1."""
        value = self.value(objective, key)
        return min(1.0, math.nextafter(math.nextafter(value, 2.0), 2.0)) if value else 0.0


@dataclass(frozen=True)
class Overlap:
    """How a formula and a neuron overlap."""

    intersection: int
    extras: int
    margins: Margins

    @property
    def size(self) -> int:
        """Locations where the formula holds."""
        return self.intersection + self.extras

    def key(self, objective: Objective) -> Fraction:
        """Sorts formulas as the metric does, exactly."""
        return self.margins.key(objective, self.extras, self.intersection)

    def value(self, objective: Objective) -> float:
        """The metric. Formulas that are level have the same value, and better ones no lower one."""
        return self.margins.value(objective, self.key(objective))

    @property
    def iou(self) -> float:
        return self.value(Objective.IOU)

    @property
    def f1(self) -> float:
        return self.value(Objective.F1)

    @property
    def cosine(self) -> float:
        return self.value(Objective.COSINE)

    @property
    def phi(self) -> float:
        """0 where it is not defined: a formula or a neuron that holds everywhere or nowhere."""
        return self.value(Objective.PHI)

    @property
    def precision(self) -> float:
        """The share of the formula's locations that is active; 0 if it has none."""
        return self.intersection / self.size if self.size else 0.0

    @property
    def recall(self) -> float:
        """The share of the active locations that the formula covers."""
        return self.intersection / self.margins.active
