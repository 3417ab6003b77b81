"""A search over time: what it has found, and what is still possible."""

from collections.abc import Iterable

from matplotlib.figure import Figure

from optexp_jax.explanation import Explanation, Status
from optexp_jax.plot.figure import CAPTURED, EXTRAS, GREY, clear_spines, new_figure
from optexp_jax.search.stopping import Progress


class ProgressTrace:
    """Keeps what a search tells; pass it as the callback: `Optimal(callback=trace)`."""

    def __init__(self) -> None:
        self.progress: list[Progress] = []

    def __call__(self, progress: Progress) -> None:
        self.progress.append(progress)


def bounds_over_time(
    trace: ProgressTrace | Iterable[Progress], found: Explanation | None = None
) -> Figure:
    """The upper bound and the best IoU so far, by seconds; `found` adds how the search ended."""
    told = list(trace.progress if isinstance(trace, ProgressTrace) else trace)
    seconds = [each.seconds for each in told]
    upper = [each.upper_bound for each in told]
    lower = [0.0 if each.incumbent is None else each.incumbent.score.iou for each in told]
    if found is not None:
        seconds.append(max([found.stats.seconds.total, *seconds]))
        upper.append(found.upper_bound)
        lower.append(found.iou)
    if not seconds:
        raise ValueError(
            "The search told nothing: pass the trace as the method's callback, and what it found "
            "as `found`."
        )
    figure = new_figure(6.4, 3.6)
    axes = figure.add_subplot()
    mark = "." if len(seconds) < 50 else ""
    axes.fill_between(seconds, lower, upper, step="post", color=GREY, alpha=0.15, linewidth=0)
    for values, colour, label in ((upper, EXTRAS, "upper bound"), (lower, CAPTURED, "best so far")):
        axes.step(seconds, values, where="post", color=colour, marker=mark, label=label)
    axes.set_xlim(left=0.0)
    axes.set_xlabel("seconds")
    axes.set_ylabel("IoU")
    axes.set_ylim(0.0, 1.05 * max(upper))
    if found is not None:
        axes.set_title(_ending(found))
    axes.legend(frameon=False)
    clear_spines(axes)
    return figure


def _ending(found: Explanation) -> str:
    if found.status is Status.OPTIMAL:
        return f"IoU {found.iou:.4f}, proved"
    stopped = "" if found.stats.stopped_by is None else f", {found.stats.stopped_by.reason}"
    return f"IoU {found.iou:.4f}, at most {found.upper_bound:.4f} possible{stopped}"
