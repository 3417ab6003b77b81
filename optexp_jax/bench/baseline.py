"""Ratios that are kept with the project, and which of them got worse.

Only ratios of our time to what does not change with our code are kept: a pass of numpy, torch, the
authors' package. Less is better for all of them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from optexp_jax.bench.turns import Spread
from optexp_jax.stores.durable import write_whole

WORSE = 1.25
"""How many times the kept ratio is too much."""


@dataclass(frozen=True)
class Change:
    """A ratio then and now."""

    name: str
    before: Spread
    now: Spread

    @property
    def factor(self) -> float:
        return self.now.median / self.before.median

    @property
    def worse(self) -> bool:
        return self.factor > WORSE

    def __str__(self) -> str:
        sure = "" if self.now.low > self.before.high else "; the quartiles overlap"
        return (
            f"{self.name}: {self.before.median:.4g} before, {self.now.median:.4g} now, "
            f"{self.factor:.2f} times{sure}"
        )


@dataclass(frozen=True)
class BaselineComparison:
    """What became of every ratio that is kept."""

    changes: tuple[Change, ...]
    missing: tuple[str, ...]
    """Kept, but not measured now, though other ratios of their suite were."""
    new: tuple[str, ...]
    """Measured now, but not kept."""

    @property
    def worse(self) -> tuple[Change, ...]:
        """Those that got worse by more than a quarter, worst first."""
        found = (each for each in self.changes if each.worse)
        return tuple(sorted(found, key=lambda each: -each.factor))


def watched_ratios(document: Mapping[str, Any]) -> dict[str, Spread]:
    """The ratios to keep of what `optexp bench --json` wrote, by suite and name.

    Quick runs measure on smaller data, so their ratios have names of their own.
    """
    try:
        return {
            f"{_named(suite)}: {figure['name']}": Spread(**figure["spread"])
            for suite in document["suites"]
            for figure in suite["figures"]
            if figure["watched"] and figure["spread"] is not None
        }
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"This is not what `optexp bench --json FILE` writes ({error!r}): pass such a file."
        ) from error


def _named(suite: Mapping[str, Any]) -> str:
    return f"{suite['suite']}, quick" if suite["settings"].get("quick") else suite["suite"]


def read_baseline(path: Path) -> dict[str, Spread]:
    """Kept ratios by name."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    return {name: Spread(**spread) for name, spread in kept["ratios"].items()}


def write_baseline(path: Path, document: Mapping[str, Any]) -> None:
    """Keep the ratios of a run, and the machine that they are from; others stay."""
    kept = {**(read_baseline(path) if path.exists() else {}), **watched_ratios(document)}
    ratios = {name: asdict(spread) for name, spread in sorted(kept.items())}
    content = {"machine": document["machine"], "ratios": ratios}
    write_whole(path, (json.dumps(content, indent=2) + "\n").encode())


def compare_ratios(before: Mapping[str, Spread], now: Mapping[str, Spread]) -> BaselineComparison:
    """What became of each ratio."""
    shared: Sequence[str] = [name for name in before if name in now]
    run = {_suite_of(name) for name in now}
    return BaselineComparison(
        tuple(Change(name, before[name], now[name]) for name in shared),
        tuple(name for name in before if name not in now and _suite_of(name) in run),
        tuple(name for name in now if name not in before),
    )


def _suite_of(name: str) -> str:
    return name.partition(": ")[0]
