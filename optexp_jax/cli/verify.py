"""`optexp verify`: check the stored results of a run independently."""

import contextlib
import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from optexp_jax.cli.allowed import ALLOW_HELP, parse_allowed
from optexp_jax.cli.bars import LINE_EVERY
from optexp_jax.cli.console import with_progress
from optexp_jax.cli.failures import plural
from optexp_jax.cli.parsing import at_least, positive
from optexp_jax.cli.run_folder import open_run
from optexp_jax.runs.layers import StoredLayer
from optexp_jax.runs.raw_maps import RawMaps
from optexp_jax.runs.record import Counts
from optexp_jax.runs.reproof import ALL_TRIED
from optexp_jax.runs.results import UnitResult
from optexp_jax.runs.run import Run
from optexp_jax.runs.selection import parse_units
from optexp_jax.runs.sources import SourceIdentity
from optexp_jax.runs.unit_check import ClaimOutcome, UnitCheck
from optexp_jax.runs.verify import Forecast, Verification, explained_results
from optexp_jax.runs.verify_tasks import VerifyTask, verify_on
from optexp_jax.runs.workers import LocalWorkers


def fill(parser: ArgumentParser, _arguments: Sequence[str]) -> None:
    """Add what the command takes."""
    parser.description = (
        "Check every result against the run's own settings, count every stored "
        "formula's IoU again, location by location, and prove optima and runners-up again by a "
        "simpler path, each within the time limit. Exit code 1 if anything is wrong; what was not "
        "checked or could not be proved in time is told, but is not wrong."
    )
    parser.epilog = "example: optexp verify runs/conv1 --time-limit 10"
    parser.add_argument("folder", type=Path, metavar="RUN", help="folder of the run")
    parser.add_argument("--units", metavar="UNITS", help="some units only, such as 0-49,100")
    parser.add_argument(
        "--time-limit",
        type=positive,
        default=60.0,
        metavar="SECONDS",
        help="for the proof of one unit (default: 60)",
    )
    parser.add_argument(
        "--from-data",
        action="store_true",
        help="count on the dataset's own label maps too, read again without the table",
    )
    parser.add_argument(
        "--allow",
        metavar="NAMES",
        help=ALLOW_HELP,
    )
    parser.add_argument(
        "--workers",
        type=at_least(1),
        metavar="N",
        help="worker processes on this machine (default: all in this one)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of lines")
    parser.set_defaults(run=_run)


def _run(options: Namespace) -> None:
    run = open_run(options.folder, parse_allowed(options.allow))
    counts = run.counts
    units = None if options.units is None else set(parse_units(options.units))
    results = explained_results(run, units)
    if not results:
        raise ValueError(f"{options.folder} has no explained units to check.")
    checks: list[UnitCheck] = []
    with _checking(run, results, options) as found:
        for check in with_progress(found, len(results), "Checking units"):
            checks.append(check)
            if not options.json:
                print(f"unit {check.unit}: {check}", flush=True)
    wrong = [check for check in checks if not check.good]
    if options.json:
        print(json.dumps([_as_json(check) for check in checks], indent=2))
    else:
        proved = sum(check.good and check.claim is ClaimOutcome.REPROVED for check in checks)
        optima = plural(proved, "optimum", "optima")
        print(f"{plural(len(checks), 'unit')} checked, {optima} re-proved, {len(wrong)} wrong")
        print(f"Not checked: {'; '.join(_unchecked(checks, counts))}.")
    if wrong:
        named = ", ".join(str(check.unit) for check in wrong)
        are, units = ("is", "unit") if len(wrong) == 1 else ("are", "units")
        results = plural(len(checks), "result")
        raise ValueError(f"{len(wrong)} of {results} {are} wrong: {units} {named}")


@contextlib.contextmanager
def _checking(
    run: Run, results: Sequence[UnitResult], options: Namespace
) -> Generator[Iterator[UnitCheck]]:
    """The checks as they come, here or from workers, after a line on how long they will take."""
    source, asked, limit = run.open_source(anew=True), run.asked, options.time_limit
    labelled = _table_of(run) if options.from_data else None
    raw = None if labelled is None else RawMaps.of_table(labelled)
    verification = Verification(source, asked, limit, raw)
    _announce(verification.forecast(results), limit, options.workers or 1)
    if options.workers is None:
        yield verification.check(results)
        return
    workers = LocalWorkers(options.workers)
    task = VerifyTask(run.opener, SourceIdentity.of(source), asked, (), limit, labelled)
    try:
        yield verify_on(workers, options.workers, task, results)
    finally:
        workers.shutdown(cancel_futures=True)


def _announce(forecast: Forecast, limit: float, n_workers: int) -> None:
    """Say how long a check will take, if that is worth a line."""
    about = "at most" if forecast.proving == limit else "about"
    seconds = forecast.seconds(n_workers)
    if seconds >= LINE_EVERY:
        units = plural(forecast.n_units, "unit")
        print(f"{units} to check, {about} {seconds:.0f} s", file=sys.stderr, flush=True)


def _unchecked(checks: Sequence[UnitCheck], counts: Counts) -> list[str]:
    """What the checks say nothing about."""
    left = counts.total - counts.finished
    unproved = sum(check.claim is ClaimOutcome.NOT_REPROVED for check in checks)
    others = sum(check.others_proved is False for check in checks)
    ties = sum(check.claim is ClaimOutcome.REPROVED and check.how != ALL_TRIED for check in checks)
    draws = sum((check.draws or 0) - check.draws_again for check in checks if check.good)
    searches = sum((check.resamples or 0) - check.resamples_again for check in checks if check.good)
    said = (
        (counts.done - len(checks), "unit that was", "units that were", "not asked for"),
        (left, "unit that is", "units that are", "not done"),
        (counts.failed, "unit that failed,", "units that failed,", "and why"),
        (unproved, "claim", "claims", "that could not be proved again in time"),
        (others, "list", "lists", "of runners-up that could not be proved again in time"),
        (
            ties,
            "optimum",
            "optima",
            "of which another formula may have the same IoU and come first",
        ),
        (draws, "draw", "draws", "of the null model"),
        (searches, "search", "searches", "on folds and resamples"),
    )
    return [
        "times and counters of work, and who did it",
        *(f"{plural(n, one, many)} {rest}" for n, one, many, rest in said if n),
    ]


def _table_of(run: Run) -> str:
    opener = run.opener
    if not isinstance(opener, StoredLayer):
        raise ValueError(f"{run.path} does not say where its table is stored.")
    return opener.table


def _as_json(check: UnitCheck) -> dict[str, Any]:
    return {
        "unit": check.unit,
        "good": check.good,
        "claim": str(check.claim),
        "how": check.how,
        "on_data": check.on_data,
        "runners_up_proved": check.others_proved,
        "draws": check.draws,
        "draws_again": check.draws_again,
        "resamples": check.resamples,
        "resamples_again": check.resamples_again,
        "faults": list(check.faults),
        "seconds": check.seconds,
    }
