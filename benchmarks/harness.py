"""What the benchmarks share: timing in ratios, musts, tables for people and JSON for machines.

Seconds on a shared machine say little. Work is therefore timed in turns with a yardstick, round
after round, and told as the median of the rounds' ratios.
"""

import argparse
import dataclasses
import json
import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

RESULTS = Path("benchmarks") / "results"
PACKAGES = ("optexp-jax", "jax", "jaxlib", "numpy", "scipy", "zarr", "equinox")


@dataclass(frozen=True)
class Timing:
    """Seconds of one piece of work, round by round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def ratio_to(self, yardstick: "Timing") -> float:
        """The median of the rounds' ratios: slow spells of the machine cancel out."""
        pairs = zip(self.seconds, yardstick.seconds, strict=True)
        return statistics.median(mine / theirs for mine, theirs in pairs)


def stopwatch(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def interleave(works: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Timing]:
    """Time several pieces of work in turns, one call of each a round, after one unmeasured round.

    Work must be finished when its call returns: block on device results inside it.
    """
    for work in works.values():
        work()
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            seconds[name].append(stopwatch(work))
    return {name: Timing(tuple(rounds)) for name, rounds in seconds.items()}


@dataclass(frozen=True)
class Figure:
    """One measured number; with a `limit` it must not be above it."""

    name: str
    value: float
    unit: str = ""
    limit: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the limit is kept; None where there is none."""
        return None if self.limit is None else self.value <= self.limit


@dataclass(frozen=True)
class Environment:
    """Where the figures were measured."""

    platform: str
    python: str
    cpu_count: int
    packages: dict[str, str]

    @classmethod
    def here(cls) -> "Environment":
        found = {name: _version(name) for name in PACKAGES}
        return cls(
            platform=platform.platform(),
            python=platform.python_version(),
            cpu_count=os.cpu_count() or 1,
            packages={name: text for name, text in found.items() if text is not None},
        )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def benchmark_parser(description: str, name: str) -> argparse.ArgumentParser:
    """A parser with the options that every benchmark has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--json",
        type=Path,
        default=RESULTS / f"{name}.json",
        metavar="PATH",
        help="where the figures go (default: %(default)s)",
    )
    return parser


def say(message: str) -> None:
    """One line on what is being done; on stderr, apart from the figures."""
    print(message, file=sys.stderr, flush=True)


def report(
    title: str,
    figures: Sequence[Figure],
    settings: Mapping[str, Any],
    path: Path,
    rows: Sequence[Mapping[str, Any]] = (),
) -> int:
    """Print the figures, write them with settings and environment, return the exit code.

    The code is 1 if a limit is not kept. `rows` are single measurements; they are only written.
    """
    table = Table("figure", "value", "must be at most", "", "note", title=title)
    table.columns[1].justify = table.columns[2].justify = "right"
    for figure in figures:
        limit = "" if figure.limit is None else f"{figure.limit:g} {figure.unit}".strip()
        verdict = {None: "", True: "ok", False: "[red]missed[/]"}[figure.met]
        value = f"{_number(figure.value)} {figure.unit}".strip()
        table.add_row(figure.name, value, limit, verdict, figure.note)
    Console().print(table)

    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "title": title,
        "settings": dict(settings),
        "environment": dataclasses.asdict(Environment.here()),
        "figures": [_as_json(figure) for figure in figures],
        "rows": [dict(row) for row in rows],
    }
    path.write_text(json.dumps(content, indent=2) + "\n")
    say(f"Written to {path}")
    return 1 if any(figure.met is False for figure in figures) else 0


def _as_json(figure: Figure) -> dict[str, Any]:
    """A figure; JSON has no infinity, so what never ended has no value."""
    value = figure.value if math.isfinite(figure.value) else None
    return {**dataclasses.asdict(figure), "value": value, "met": figure.met}


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "never"
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.3g}"
