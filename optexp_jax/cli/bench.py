"""`optexp bench`: how fast, how large and how good, against every alternative."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from optexp_jax.bench.plan import BUDGET, QUICK_BUDGET, QUICK_TURNS, TURNS, BenchPlan
from optexp_jax.bench.suites import MAIN_SUITES, SUITES
from optexp_jax.cli.parsing import at_least, positive

if TYPE_CHECKING:
    from optexp_jax.bench.report import SuiteReport

ALL = "all"


def fill(parser: ArgumentParser, _arguments: Sequence[str]) -> None:
    """Add what the command takes."""
    about = "; ".join(f"`{name}`: {line}" for name, line in SUITES.items())
    parser.description = (
        "Measure speed, memory and quality. Methods take turns, and times are told as ratios "
        f"within a turn. Suites are {about}. Data is generated unless `--data` names real images. "
        "Exit code 1 if two exact methods disagree, or a figure is above its limit."
    )
    parser.epilog = "example: optexp bench --quick --json figures.json"
    parser.add_argument(
        "suites",
        nargs="*",
        metavar="SUITE",
        help=f"what to run (default: {' and '.join(MAIN_SUITES)}); `{ALL}` for all",
    )
    parser.add_argument(
        "--quick", action="store_true", help="small data and few turns: at most three minutes"
    )
    parser.add_argument(
        "--turns",
        type=at_least(1),
        metavar="N",
        help=f"how often everything is timed (default: {TURNS}; quick: {QUICK_TURNS})",
    )
    parser.add_argument(
        "--budget",
        type=positive,
        metavar="SECONDS",
        help="what one method may take for one unit, compilation aside "
        f"(default: {BUDGET:g}; quick: {QUICK_BUDGET:g})",
    )
    parser.add_argument(
        "--reference",
        default=BenchPlan().reference,
        metavar="METHOD",
        help="method of `alternatives` that others are multiples of (default: TightBounds)",
    )
    parser.add_argument(
        "--data",
        metavar="SOURCE",
        help="real annotations for `alternatives`: a stored table, or a dataset such as "
        "folder:data/mine",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures here")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw `growth` here: .svg, .png or .html"
    )
    parser.set_defaults(run=_run)


def _run(options: Namespace) -> None:
    names = _suites(options.suites)
    if options.plot is not None and "growth" not in names:
        raise ValueError("--plot draws the suite growth: name it too, or leave out --plot.")
    from optexp_jax.bench.machine import Machine
    from optexp_jax.bench.report import write_reports
    from optexp_jax.bench.suites import run_suite
    from optexp_jax.cli.bench_output import Doings, print_report

    if options.plot is not None:
        from optexp_jax.charts.saving import check_chart_file

        check_chart_file(options.plot)  # before an hour of work
    plan = _plan(options)
    machine = Machine.here()
    print(machine)
    reports: list[SuiteReport] = []
    with Doings() as doings:
        for name in names:
            reports.append(run_suite(name, plan, doings.tell))
            doings.pause()
            print_report(reports[-1])
    if options.json is not None:
        write_reports(options.json, reports, machine)
    if options.plot is not None:
        from optexp_jax.charts import growth_chart, save_chart

        rows = next(each.rows for each in reports if each.suite == "growth")
        options.plot.parent.mkdir(parents=True, exist_ok=True)
        save_chart(growth_chart(rows), options.plot, title="Time against size")
    _fail_if_wrong(reports)


def _fail_if_wrong(reports: "Sequence[SuiteReport]") -> None:
    faults = [fault for report in reports for fault in report.faults]
    if faults:
        raise ValueError(" ".join(faults))
    missed = [f"{each.suite}, {figure.name}" for each in reports for figure in each.missed]
    if missed:
        raise ValueError(f"Above their limits are: {'; '.join(missed)}.")


def _suites(named: Sequence[str]) -> tuple[str, ...]:
    """The suites that were asked for, each once."""
    for name in named:
        if name not in (*SUITES, ALL):
            from optexp_jax.cli.nearest import did_you_mean

            near = did_you_mean(name, [*SUITES, ALL])
            raise ValueError(f"There is no suite {name!r}; there are {', '.join(SUITES)}.{near}")
    return tuple(SUITES) if ALL in named else tuple(dict.fromkeys(named)) or MAIN_SUITES


def _plan(options: Namespace) -> BenchPlan:
    usual = BenchPlan.made_quick() if options.quick else BenchPlan()
    return BenchPlan(
        quick=options.quick,
        turns=options.turns or usual.turns,
        budget=options.budget or usual.budget,
        reference=options.reference,
        data=options.data,
    )
