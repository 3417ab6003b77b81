"""A run as it is compared: read once, and what of it differs from another one, in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from optexp_jax.comparison.comparison import named
from optexp_jax.explanation import Explanation
from optexp_jax.methods.claim import FormulaSpace
from optexp_jax.runs.run import Run
from optexp_jax.runs.settings import CLASS, ForeignClassError

_TOLD = ("length", "size", "guide", "bounds", "time_limit", "gap")
"""Settings of a method that its best formulas depend on most."""


@dataclass(frozen=True)
class LoadedRun:
    """A run, read once: it may grow meanwhile."""

    run: Run
    configuration: Mapping[str, Any]
    inputs: Any
    space: FormulaSpace | None
    """Which formulas its results are about; None for a method that does not say."""
    found: Mapping[int, Explanation]
    failed: frozenset[int]

    @classmethod
    def read(cls, run: Run | str | Path) -> "LoadedRun":
        """The run, as far as it is."""
        opened = run if isinstance(run, Run) else Run(run)
        results = opened.results
        return cls(
            opened,
            opened.configuration,
            opened.inputs,
            _space_of(opened),
            {each.unit: each.explanation for each in results if each.explanation is not None},
            frozenset(each.unit for each in results if each.explanation is None),
        )

    @property
    def path(self) -> Path:
        return self.run.path

    @property
    def table(self) -> str:
        """The table's fingerprint."""
        return self.configuration["table"]

    @property
    def units(self) -> tuple[int, ...]:
        """Units that it was asked for."""
        return tuple(self.configuration["units"])

    @property
    def method(self) -> str:
        """The method with the settings that matter most: `Beam length=3 size=5`."""
        settings: dict[str, Any] = self.configuration["method"]
        told = [
            f"{name}={_short(settings[name])}"
            for name in _TOLD
            if settings.get(name) not in (None, 0.0)
        ]
        return " ".join([_short(settings), *told])

    def input(self, name: str) -> Any:
        """A field of how the source was opened, if it was opened from files."""
        fields = self.inputs
        return cast(dict[str, Any], fields).get(name) if isinstance(fields, dict) else None


def _space_of(run: Run) -> FormulaSpace | None:
    try:
        return run.method.formula_space
    except ForeignClassError:
        raise  # it says what to pass
    except (ValueError, NotImplementedError):
        return None


def _short(value: Any) -> str:
    if not isinstance(value, dict):
        return str(value)
    return str(cast(dict[str, Any], value).get(CLASS)).rpartition(":")[2]


def different_data(a: LoadedRun, b: LoadedRun) -> list[str]:
    """What is other in the tables, activations and ranges."""
    said: list[str] = []
    if a.table != b.table:
        said.append(_other("the tables differ", a, b, "table", "table"))
    if a.configuration["source"] != b.configuration["source"]:
        ranges = a.input("range"), b.input("range")
        stores = a.input("activations"), b.input("activations")
        if ranges[0] != ranges[1]:
            said.append(f"the ranges differ ({ranges[0]}; {ranges[1]})")
        if stores[0] != stores[1] or ranges[0] == ranges[1]:
            said.append(_other("the activations differ", a, b, "source", "activations"))
    return said


def _other(text: str, a: LoadedRun, b: LoadedRun, checksum: str, place: str) -> str:
    shown = [
        f"{run.input(place) or 'in memory'}, checksum {str(run.configuration[checksum])[:12]}"
        for run in (a, b)
    ]
    return f"{text} ({'; '.join(shown)})"


def different_units(a: LoadedRun, b: LoadedRun) -> list[str]:
    """Which units only one of the runs was asked for."""
    only = [
        f"{len(units)} only in {run.path}: {named(sorted(units))}"
        for run, units in ((a, {*a.units} - {*b.units}), (b, {*b.units} - {*a.units}))
        if units
    ]
    return [f"the units differ ({'; '.join(only)})"] if only else []


def different_questions(a: LoadedRun, b: LoadedRun) -> list[str]:
    """That the runs look for other formulas, so that differences are to be expected."""
    unknown = [name for name, run in (("A", a), ("B", b)) if run.space is None]
    if a.space is None or b.space is None:
        return [
            f"which formulas the method of {' and '.join(unknown)} may use is not known, so its "
            "claims were not checked against the other run"
        ]
    said: list[str] = []
    if a.space.length != b.space.length:
        said.append(f"formulas of up to {a.space.length} concepts in A, {b.space.length} in B")
    used = [sorted(op.name for op in space.operators) for space in (a.space, b.space)]
    if set(a.space.operators) != set(b.space.operators):
        said.append(f"operators {', '.join(used[0])} in A, {', '.join(used[1])} in B")
    return [f"the runs ask different questions: {'; '.join(said)}"] if said else []
