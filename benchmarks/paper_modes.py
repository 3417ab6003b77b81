"""The published search and the beams, counted and timed, beside the released code of earlier work.

    python benchmarks/paper_modes.py

Every unit is explained by the optimal search with the published bounds, one node at a time and in
batches, and by the three beams. Where `compositional-explanations` is installed (the extra
`bench`), its optimal search and its guided beam run on the same units, in turns with ours, and the
IoU of what it finds is counted again from its formula. All times are of one whole unit, from its
bitmap to its explanation; annotations are prepared before. The first call compiles and is told
apart. Where no two concepts share a location, each method runs once more with the paper's way of
counting, and its counters stand beside the plain ones.
"""

import dataclasses
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from harness import Figure, Timing, benchmark_parser, report, say, stopwatch
from peer import Peer, PeerRun, PeerSearch, name_peer, peer_version, score_peer
from rich.console import Console
from rich.table import Table

from optexp_jax import (
    AbstractMethod,
    Beam,
    ConceptTable,
    Explanation,
    MMESHGuide,
    Optimal,
    PaperBounds,
    QuantityGuide,
    Score,
    explain,
)
from optexp_jax.explanation import SearchStats
from optexp_jax.stand_ins import Planted, PlantedUnit, Setting, make_planted

LENGTH, BEAM_SIZE, SEED = 3, 5, 0
SLOW = 20.0
"""Seconds of a first call after which it is not repeated."""

SETTINGS = {
    "disjoint": Setting("disjoint", samples=500, size=112, objects=19),
    "wide": Setting("wide", samples=500, size=56, objects=847),
    "small": Setting(
        "small", samples=100, size=28, objects=7, parts=5, materials=3, colours=3, scenes=2
    ),
    "large": Setting(
        "large", samples=1000, size=28, objects=40, parts=30, materials=12, colours=11, scenes=7
    ),
}
UNITS = {"disjoint": 4, "wide": 2, "small": 8, "large": 2}

OPTIMAL, ONE_BY_ONE, GUIDED = "optimal", "optimal, one by one", "beam, quantities"
PEER_OF: dict[str, PeerSearch] = {OPTIMAL: "optimal", GUIDED: "beam"}
AT_MOST = {OPTIMAL: 1 / 20, GUIDED: 1 / 10}
"""Musts: our seconds over the peer's."""


def methods(time_limit: float, published: bool = False) -> dict[str, AbstractMethod]:
    """All methods by name; `published` lets them count as the paper does."""
    bounds = PaperBounds(published_counters=published)
    guides = {GUIDED: QuantityGuide(), "beam, MMESH": MMESHGuide(), "beam, vanilla": None}
    return {
        OPTIMAL: Optimal(LENGTH, bounds=bounds, time_limit=time_limit),
        ONE_BY_ONE: Optimal(LENGTH, bounds=bounds, batch_size=1, time_limit=time_limit),
        **{
            name: Beam(LENGTH, size=BEAM_SIZE, guide=guide, published_counters=published)
            for name, guide in guides.items()
        },
    }


@dataclass(frozen=True)
class PeerResult:
    """The peer on one unit; `seconds` is empty when it did not end within the budget."""

    seconds: tuple[float, ...]
    formula: str | None = None
    score: Score | None = None

    def verdict(self, ours: Score) -> str:
        """How its formula compares with ours, by exact IoU."""
        if self.score is None:
            return "over budget"
        if self.score.ratio == ours.ratio:
            return "same IoU"
        return "peer is worse" if self.score.ratio < ours.ratio else "PEER IS BETTER"


@dataclass(frozen=True)
class Row:
    """One method on one unit."""

    setting: str
    unit: int
    method: str
    explanation: Explanation
    first: float
    """Seconds of the first call, which compiles what is not compiled yet."""
    warm: Timing
    published: SearchStats | None = None
    """Counters in the paper's way, where concepts are disjoint."""
    peer: PeerResult | None = None
    ratio: float | None = None
    """Our seconds over the peer's."""

    def as_json(self) -> dict[str, object]:
        found, stats = self.explanation, self.explanation.stats
        peer = self.peer
        return {
            "setting": self.setting,
            "unit": self.unit,
            "method": self.method,
            "formula": None if found.formula is None else str(found.formula),
            "intersection": found.intersection,
            "union": found.union,
            "iou": found.iou,
            "status": str(found.status),
            "stats": dataclasses.asdict(stats),
            "published_stats": None
            if self.published is None
            else dataclasses.asdict(self.published),
            "first_seconds": self.first,
            "warm_seconds": list(self.warm.seconds),
            "ratio_to_peer": self.ratio,
            "peer": None
            if peer is None
            else {
                "formula": peer.formula,
                "iou": None if peer.score is None else peer.score.iou,
                "seconds": list(peer.seconds),
                "verdict": peer.verdict(found.score),
            },
        }


@dataclass(frozen=True)
class Plan:
    """What to run."""

    rounds: int
    time_limit: float
    peer_budget: float
    peer_threads: int


def run_setting(setting: Setting, units: list[int], plan: Plan) -> Iterator[Row]:
    """All methods on some units of a setting."""
    say(f"Generating {setting.name} ...")
    planted = make_planted(setting, max(units) + 1, SEED)
    say(repr(planted.table))
    if peer_version() is None:
        yield from _run_units(planted, setting, units, plan, None)
        return
    bitmaps = [unit.bitmap for unit in planted.units]
    with Peer(
        planted.table,
        bitmaps,
        length=LENGTH,
        beam_size=BEAM_SIZE,
        threads=plan.peer_threads,
    ) as peer:
        yield from _run_units(planted, setting, units, plan, peer)


def _run_units(
    planted: Planted, setting: Setting, units: list[int], plan: Plan, peer: Peer | None
) -> Iterator[Row]:
    gave_up: set[str] = set()
    for unit in units:
        say(f"{setting.name}, unit {unit}: fires on {planted.units[unit].formula}")
        for name, method in methods(plan.time_limit).items():
            opponent = peer if name in PEER_OF and name not in gave_up else None
            row = _run(planted, setting.name, unit, name, method, plan, opponent)
            if setting.disjoint:
                counting = methods(plan.time_limit, published=True)[name]
                counted = explain(planted.table, planted.units[unit].bitmap, counting).stats
                row = dataclasses.replace(row, published=counted)
            if row.peer is not None and row.peer.score is None:
                say(f"The peer's search took more than {plan.peer_budget:g} s; no more of these.")
                gave_up.add(name)
            yield row


def _run(
    planted: Planted,
    setting: str,
    unit: int,
    name: str,
    method: AbstractMethod,
    plan: Plan,
    peer: Peer | None,
) -> Row:
    """First call, then ours and the peer's in turns."""
    table, target = planted.table, planted.units[unit]
    results: list[Explanation] = []

    def ours() -> None:
        results.append(explain(table, target.bitmap, method))

    first = stopwatch(ours)
    rounds = 1 if first > SLOW else plan.rounds
    warm: list[float] = []
    runs: list[PeerRun] = []
    over_budget = False
    left = plan.peer_budget
    for turn in range(rounds):
        warm.append(stopwatch(ours))
        # Its first run may not be cut short; further ones must fit into what is left.
        if peer is None or over_budget or (turn and runs[-1].seconds > left):
            continue
        run = peer.run(unit, PEER_OF[name], plan.peer_budget)
        if run is None:
            over_budget = True
        else:
            runs.append(run)
            left -= run.seconds
    found = results[-1]
    return _compare(
        Row(setting, unit, name, found, first, Timing(tuple(warm))),
        table,
        target,
        None if peer is None else runs,
        plan.peer_budget,
    )


def _compare(
    row: Row, table: ConceptTable, target: PlantedUnit, runs: list[PeerRun] | None, budget: float
) -> Row:
    """The row with what the peer found, and the ratio of times."""
    if runs is None:
        return row
    if not runs:
        return dataclasses.replace(row, peer=PeerResult(()), ratio=row.warm.median / budget)
    formula = runs[-1].formula
    seconds = tuple(run.seconds for run in runs)
    score = score_peer(table, target.bitmap, formula)
    ours = Timing(row.warm.seconds[: len(seconds)])
    return dataclasses.replace(
        row,
        peer=PeerResult(seconds, name_peer(table, formula), score),
        ratio=ours.ratio_to(Timing(seconds)),
    )


def most_estimates(n_concepts: int, expanded: int) -> int:
    """Estimates of a beam of ten concepts and then some pairs, counted as the paper does.

    Each is joined to every other of C disjoint concepts by three operators: 30(C - 1), less 90 that
    are there twice, and 3(C - 2) a pair. Up to ten triples are there twice, too.
    """
    pairs = expanded - 2 * BEAM_SIZE
    return 6 * BEAM_SIZE * (n_concepts - 1) - 90 + 3 * pairs * (n_concepts - 2)


def print_rows(setting: Setting, rows: list[Row], plan: Plan) -> None:
    counters = ("visited", "expanded", "estimated")
    times = ("first", "warm", "IoU", "peer", "ours/peer", "")
    # Visited, expanded and estimated in the paper's way of counting.
    published = ("published v", "e", "est") if setting.disjoint else ()
    columns = ("unit", "method", *counters, *published, *times)
    table = Table(*columns, title=f"{setting.name}, seconds")
    for column in table.columns[2:-1]:
        column.justify = "right"
    for row in rows:
        found, stats = row.explanation, row.explanation.stats
        peer, ratio, verdict = "", "", ""
        if row.peer is not None and row.ratio is not None:
            done = bool(row.peer.seconds)
            verdict = row.peer.verdict(found.score)
            peer = f"{Timing(row.peer.seconds).median:.3f}" if done else f"> {plan.peer_budget:g}"
            ratio = ("" if done else "< ") + f"1/{1 / row.ratio:.1f}"
        table.add_row(
            str(row.unit),
            row.method,
            f"{stats.visited:,}",
            f"{stats.expanded:,}",
            f"{stats.estimated:,}",
            *(
                f"{getattr(row.published, counter):,}"
                for counter in counters
                if row.published is not None
            ),
            f"{row.first:.3f}",
            f"{row.warm.median:.4f}",
            f"{found.iou:.5f}" + ("" if found.gap == 0 or "beam" in row.method else " (limit)"),
            peer,
            ratio,
            verdict,
        )
    Console(width=None if sys.stdout.isatty() else 170).print(table)


def summarize(setting: Setting, rows: list[Row]) -> Iterator[Figure]:
    """The musts of a setting, from the medians over its units."""
    for name, limit in AT_MOST.items():
        compared = [row for row in rows if row.method == name and row.ratio is not None]
        ended = [row for row in compared if row.peer is not None and row.peer.seconds]
        if not compared:
            continue
        ratio = statistics.median(row.ratio for row in compared if row.ratio is not None)
        note = f"median of {len(compared)} units, 1/{1 / ratio:.1f}"
        if len(ended) < len(compared):
            note += f"; the peer was stopped on {len(compared) - len(ended)}"
        yield Figure(f"{setting.name}: {name}, ours / peer", ratio, "", limit, note)
        worse = sum(
            row.peer.verdict(row.explanation.score) == "peer is worse"
            for row in ended
            if row.peer is not None
        )
        yield Figure(
            f"{setting.name}: {name}, peer is worse", worse, "", note=f"of {len(ended)} units"
        )
    if setting.disjoint:
        visited = [row.explanation.stats.visited for row in rows if row.method == ONE_BY_ONE]
        yield Figure(f"{setting.name}: most visited", max(visited), "nodes", 3, ONE_BY_ONE)
        counted = [row.published for row in rows if row.published and "beam" in row.method]
        full = [stats for stats in counted if stats.expanded > 2 * BEAM_SIZE]
        outside = sum(
            not 0 <= most_estimates(setting.objects, stats.expanded) - stats.estimated <= 10
            for stats in full
        )
        note = f"of {len(full)} beams: not as many as follow from what was expanded"
        yield Figure(f"{setting.name}: estimates unlike the paper's", outside, "", 0, note)
    firsts = [row.first - row.warm.median for row in rows if row.unit == rows[0].unit]
    yield Figure(
        f"{setting.name}: compilation", sum(firsts), "s", note="all methods, first calls less warm"
    )


def main() -> int:
    parser = benchmark_parser(
        "Count and time the published search and the beams, beside the released code.",
        "paper_modes",
    )
    parser.add_argument(
        "--settings", nargs="+", choices=list(SETTINGS), help="which datasets (default: all)"
    )
    parser.add_argument(
        "--units", type=int, metavar="N", help="units of each setting (default: 4, 2, 8 and 2)"
    )
    parser.add_argument(
        "--rounds", type=int, default=5, help="warm calls of each method (default: %(default)s)"
    )
    parser.add_argument(
        "--time-limit",
        type=float,
        default=600,
        metavar="S",
        help="seconds after which our optimal search stops (default: %(default)s)",
    )
    parser.add_argument(
        "--peer-budget",
        type=float,
        default=300,
        metavar="S",
        help="seconds after which a search of the peer is stopped (default: %(default)s)",
    )
    parser.add_argument(
        "--peer-threads",
        type=int,
        default=1,
        metavar="N",
        help="threads of the peer; more make it slower on small arrays (default: %(default)s)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="small and disjoint, two units, two rounds"
    )
    options = parser.parse_args()
    rounds, n_units = options.rounds, options.units
    names = options.settings or list(SETTINGS)
    if options.quick:
        rounds, n_units = min(rounds, 2), n_units or 2
        names = options.settings or ["disjoint", "small"]
    plan = Plan(rounds, options.time_limit, options.peer_budget, options.peer_threads)
    if peer_version() is None:
        say("compositional-explanations is not installed (extra: bench); ours runs alone.")

    every: list[Row] = []
    figures: list[Figure] = []
    for name in names:
        setting = SETTINGS[name]
        rows = list(run_setting(setting, list(range(n_units or UNITS[name])), plan))
        print_rows(setting, rows, plan)
        figures += summarize(setting, rows)
        every += rows
    settings = {
        **dataclasses.asdict(plan),
        "length": LENGTH,
        "beam_size": BEAM_SIZE,
        "seed": SEED,
        "peer": peer_version(),
        "datasets": [dataclasses.asdict(SETTINGS[name]) for name in names],
    }
    return report("Published modes", figures, settings, options.json, [r.as_json() for r in every])


if __name__ == "__main__":
    sys.exit(main())
