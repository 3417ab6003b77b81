"""The paper's own figures, read from `published.toml`. They are never mixed with measured ones."""

import functools
import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class PublishedWork:
    """Mean work a unit: a cell of Tables 2, 5, 6 and 7. None where nothing is printed."""

    visited: float | None
    expanded: float | None
    estimated: float | None
    seconds: float | None


@dataclass(frozen=True)
class PublishedIoUs:
    """Mean IoUs of the units that differ, and of two categories of them: Table 4."""

    total: float
    category_1: float
    category_2: float


@dataclass(frozen=True)
class PublishedCategories:
    """How often a beam is not optimal, in percent: a row of Tables 3 and 9, with Table 4."""

    non_optimal: float
    """Of all units: those whose explanations differ."""
    shares: tuple[float, float, float]
    """Categories 1, 2 and 3, of the units that differ."""
    beam: PublishedIoUs | None = None
    optimal: PublishedIoUs | None = None


@dataclass(frozen=True)
class PublishedMinutes:
    """Minutes a unit of two beams at one length and size: a column of Table 8."""

    length: int
    size: int
    quantities: float
    mmesh: float

    def of(self, algorithm: str) -> float:
        """Those of one of the two."""
        return {"quantities": self.quantities, "mmesh": self.mmesh}[algorithm]


def published_work(setting: str, algorithm: str, model: str) -> PublishedWork | None:
    """Of `optimal`, `quantities`, `mmesh` or `vanilla` in the `low`, ... setting."""
    found = _figures()["runtime"][setting][algorithm].get(model)
    return None if found is None else PublishedWork(*(_printed(value) for value in found))


def published_categories(model: str) -> PublishedCategories | None:
    """Of the units of a model on Broden."""
    return _categories("categories", model)


def published_clusters(model: str) -> PublishedCategories | None:
    """The same with the highest of five clusters as range."""
    return _categories("clusters", model)


def published_minutes() -> tuple[PublishedMinutes, ...]:
    """Table 8, in its order."""
    return tuple(PublishedMinutes(**row) for row in _figures()["hyperparameters"])


def _categories(table: str, model: str) -> PublishedCategories | None:
    found = _figures()[table].get(model)
    if found is None:
        return None
    one, two, three = found["shares"]
    return PublishedCategories(
        float(found["non_optimal"]),
        (float(one), float(two), float(three)),
        _ious(found.get("beam")),
        _ious(found.get("optimal")),
    )


def _ious(values: Sequence[float] | None) -> PublishedIoUs | None:
    return None if values is None else PublishedIoUs(*values)


def _printed(value: float | int) -> float | None:
    return None if math.isnan(value) else float(value)


@functools.cache
def _figures() -> dict[str, Any]:
    text = (
        resources.files("optexp_jax.reproduction")
        .joinpath("published.toml")
        .read_text(encoding="utf-8")
    )
    return tomllib.loads(text)
