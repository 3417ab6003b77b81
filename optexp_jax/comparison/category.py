"""How two results of one unit differ, in the paper's categories, decided in exact numbers."""

import enum

from optexp_jax.explanation import Explanation


class Category(enum.StrEnum):
    """How a unit's second result differs from the first; compares equal to its string.

    "1", "2" and "3" are the categories of the paper's Table 3.
    """

    meaning: str
    """What it means, in a few words."""

    def __new__(cls, value: str, meaning: str) -> "Category":
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    SAME = ("same", "same formula")
    CONCEPTS_AND_IOU = ("1", "other concepts, other IoU")
    IOU = ("2", "same concepts, other IoU")
    CONNECTION = ("3", "same concepts, same IoU, connected otherwise")
    TIE = ("tie", "other concepts, same IoU")
    """No category of the paper, but such units are among its differing ones."""
    DATA = ("data", "same formula, other IoU")
    """Only where runs over different data are compared."""

    @property
    def differs(self) -> bool:
        """Whether the formulas differ, by more than swaps that never change where they hold."""
        return self not in (Category.SAME, Category.DATA)

    @property
    def label(self) -> str:
        """The category with its meaning: `1: other concepts, other IoU`."""
        return f"{self.value}: {self.meaning}"


DIFFERING = tuple(category for category in Category if category.differs)
"""Every unit whose formulas differ is in one of these."""


def category_of(a: Explanation, b: Explanation) -> Category:
    """The category of a unit with these two results.

    IoUs are compared as fractions: two of them may differ and be rounded to one float.
    """
    level = a.score.ratio == b.score.ratio
    if a.formula == b.formula:
        return Category.SAME if level else Category.DATA
    if _concepts(a) == _concepts(b):
        return Category.CONNECTION if level else Category.IOU
    return Category.TIE if level else Category.CONCEPTS_AND_IOU


def _concepts(found: Explanation) -> frozenset[str]:
    return frozenset(() if found.formula is None else found.formula.concepts)
