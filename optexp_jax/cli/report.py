"""`optexp report`: a site of pages about runs, which opens from disk."""

import webbrowser
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from optexp_jax.cli.allowed import ALLOW_HELP, parse_allowed
from optexp_jax.cli.bars import Told, bar
from optexp_jax.cli.failures import plural
from optexp_jax.cli.parsing import share
from optexp_jax.cli.run_folder import open_run


def fill(parser: ArgumentParser, _arguments: Sequence[str]) -> None:
    """Add what the command takes."""
    parser.description = (
        "Write a static site about runs: an overview, a page with pictures for every unit, a page "
        "for every concept. It opens from disk and needs no server and no network. Runs over the "
        "same units are compared; runs over several layers get an index."
    )
    parser.epilog = "example: optexp report runs/conv1 --out conv1-report --open"
    parser.add_argument("folders", type=Path, nargs="+", metavar="RUN", help="folder of a run")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder of the report (default: the name of the first run with -report)",
    )
    parser.add_argument(
        "--threshold",
        metavar="IOU",
        type=share,
        default=0.04,
        help="mark units with a lower IoU (default: 0.04, usual in the field)",
    )
    parser.add_argument("--open", action="store_true", help="show the report in the browser")
    parser.add_argument("--allow", metavar="NAMES", help=ALLOW_HELP)
    parser.set_defaults(run=_run)


def _run(options: Namespace) -> None:
    allowed = parse_allowed(options.allow)
    runs = [open_run(folder, allowed) for folder in options.folders]
    first = options.folders[0].resolve().name
    out = options.out or Path(f"{first}-report")
    try:
        from optexp_jax.report import ReportSettings, build_report

        with _Bars() as bars:
            page = build_report(runs, out, ReportSettings(options.threshold), tell=bars.tell)
    except ImportError as error:
        raise ValueError(
            f'Reports need more: pip install "optexp-jax[report]" ({error}).'
        ) from None
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    units = plural(sum(run.counts.finished for run in runs), "unit")
    print(f"{page} shows {units} of {plural(len(runs), 'run')} ({size / 1e6:.1f} MB). Open it.")
    if options.open:
        webbrowser.open(page.resolve().as_uri())


class _Bars:
    """One bar after another, for the parts of the work."""

    def __init__(self) -> None:
        self._what = ""
        self._shown = ExitStack()
        self._told: Told = lambda done, total: None

    def __enter__(self) -> "_Bars":
        return self

    def __exit__(self, *error: object) -> None:
        self._shown.close()

    def tell(self, what: str, done: int, total: int) -> None:
        if what != self._what:
            self._shown.close()
            self._what = what
            self._told = self._shown.enter_context(bar(what))
        self._told(done, total)
