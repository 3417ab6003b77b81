"""Which units of a layer: a list, a random sample, or all."""

import random
import re
from dataclasses import dataclass

from optexp_jax.runs.configuration import check_units

# No more digits than a number of units can have.
_RANGE = re.compile(r"\s*([0-9]{1,15})\s*(?:-\s*([0-9]{1,15})\s*)?")
MOST_UNITS = 1_000_000


@dataclass(frozen=True)
class UnitChoice:
    """Units by name, or so many at random; all of them if neither is given."""

    units: str | None = None
    """Numbers and ranges such as 0-49,100; all units if none are named or drawn."""
    random: int | None = None
    """So many units drawn without repetition, as published: Python's random.sample."""
    seed: int = 0
    """The seed of that draw."""

    def __post_init__(self) -> None:
        if self.units is not None and self.random is not None:
            raise ValueError("Name units or draw some at random, not both.")
        if self.random is not None and self.random < 1:
            raise ValueError(f"At least one unit must be drawn; got {self.random}.")

    def choose(self, n_units: int) -> tuple[int, ...]:
        """The units of a layer with so many."""
        if self.random is not None:
            return sample_units(n_units, self.random, self.seed)
        if self.units is None:
            return check_units(range(n_units), n_units)
        ranges = parse_ranges(self.units)
        # Before anything is listed: a range may have any end.
        check_units([end for part in ranges for end in (part[0], part[-1])], n_units)
        return check_units([unit for part in ranges for unit in part], n_units)


def parse_units(text: str) -> list[int]:
    """The units of a text such as `0-49,100`."""
    ranges = parse_ranges(text)
    if sum(map(len, ranges)) > MOST_UNITS:
        raise ValueError(f"{text!r} names more units than any layer has; at most {MOST_UNITS}.")
    return [unit for part in ranges for unit in part]


def parse_ranges(text: str) -> list[range]:
    """The same without listing them."""
    ranges: list[range] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise ValueError(f"{part.strip()!r} is not a unit or a range of units such as 0-49.")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"The range {part.strip()} ends before it begins.")
        ranges.append(range(first, last + 1))
    return ranges


def sample_units(n_units: int, n: int, seed: int = 0) -> tuple[int, ...]:
    """The published draw: seed Python's generator, sample without repetition, sort."""
    if n > n_units:
        raise ValueError(f"{n} units cannot be drawn from a layer of {n_units}.")
    return tuple(sorted(random.Random(seed).sample(range(n_units), n)))
