"""Ways to open a source in every process that works on a run."""

from dataclasses import dataclass
from pathlib import Path

from optexp_jax.runs.shared import share_bitmaps
from optexp_jax.runs.sources import AbstractOpener, BitmapUnits, UnitSource


@dataclass(frozen=True, eq=False)
class InMemory(AbstractOpener):
    """Gives back a source that this process holds. It does not travel."""

    source: UnitSource

    def open(self) -> UnitSource:
        return self.source


def make_opener(
    source: UnitSource | AbstractOpener, folder: Path, *, in_memory: bool
) -> AbstractOpener:
    """An opener for a source: where the work is done elsewhere, one that others can use too.

    What they need beyond the files that there are is written into `folder`.
    """
    if isinstance(source, AbstractOpener):
        return source if in_memory else source.share(folder)
    if in_memory:
        return InMemory(source)
    if isinstance(source, BitmapUnits):
        return share_bitmaps(source, folder)
    raise TypeError(
        f"Other processes cannot open {source!r}. Pass an opener, such as StoredLayer(...), in its "
        "place."
    )
