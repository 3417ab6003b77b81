"""Whether two formulas hold at the same locations of a table."""

from collections.abc import Sequence
from dataclasses import dataclass

from optexp_jax.comparison.loaded_run import LoadedRun
from optexp_jax.concepts.table import ConceptTable
from optexp_jax.formulas.formula import Formula
from optexp_jax.runs.layers import StoredLayer
from optexp_jax.runs.run import Run
from optexp_jax.runs.task import open_source


@dataclass(frozen=True)
class Locations:
    """The table in which formulas are looked up, or why there is none."""

    table: ConceptTable | None = None
    why_not: str | None = None

    @classmethod
    def open(cls, runs: Sequence[LoadedRun], given: ConceptTable | None) -> "Locations":
        """Of the table that was given, or of the first that a run can open again."""
        wanted = runs[0].table
        if given is not None:
            if given.fingerprint != wanted:
                raise ValueError(
                    "The table is not the one that the runs were made with: its checksum is "
                    f"{given.fingerprint}, that of the runs is {wanted}."
                )
            return cls(given)
        reasons: list[str] = []
        for each in runs:
            try:
                table = _open_table(each.run)
            except (ValueError, OSError) as error:
                reasons.append(" ".join(str(error).split()))
                continue
            if table.fingerprint == wanted:
                return cls(table)
            reasons.append(f"The table of {each.path} was replaced by another.")
        return cls(why_not=reasons[0])

    def same(self, a: Formula, b: Formula) -> bool | None:
        """Whether both hold at the same locations; None without a table."""
        return None if self.table is None else self.table.same_locations(a, b)


def _open_table(run: Run) -> ConceptTable:
    opener = run.opener
    if isinstance(opener, StoredLayer):
        return ConceptTable.load(opener.table)  # without the activations
    return open_source(opener).table
