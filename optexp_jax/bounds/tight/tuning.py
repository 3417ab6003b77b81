"""Every size and threshold of the tight search: what is done at once, and from when on.

None of them changes a result, only how long it takes. Those that depend on the number of concepts
are one value, `Tuning.of(n_concepts)`, which is passed down from the space. The sizes that programs
are written for are the same for all tables; they stand below it.
"""

from dataclasses import dataclass, replace

SMALL_TABLE = 256
"""Concepts up to which calls cost more than what they do."""
FUSED_CELLS = 2**15
"""Pairs of concepts up to which the root is one program."""


@dataclass(frozen=True)
class Tuning:
    """How a search goes about a table."""

    fused_root: bool
    """Whether all that the root asks is one program, in which every pair is scored and bounded."""
    warms_up: bool
    """Whether the first search of a kind begins with a warm-up, which calls every program."""
    first_batch: int
    """Nodes that are expanded at once, to begin with."""
    beam: int
    """Labels of each length whose children are scored first, to start with a good incumbent."""
    short_beam: int
    """The same where formulas have at most three concepts."""
    few_concepts: float
    """The size for few concepts, as a share of all; 0 keeps all of them. More sizes would save some
    time, and take more to compile than they save."""
    small_subproblem: int = SMALL_TABLE
    """Concepts of a subproblem up to which `unrefined` pairs are not bounded a second time: they
    are expanded as soon."""
    unrefined: int = 128
    fetched_cells: int = FUSED_CELLS
    """Pairs of subproblems up to which all bounds are fetched, not first the highest of a row."""
    most_at_once: int = 256
    """Nodes that are expanded at once in the end: a search that is not over soon takes long."""
    rows_at_once: int = 2048
    """Concepts up to which all pairs are scored in one program, which no clock can stop."""
    rows_in_turn: int = 64
    """With more, so many rows of pairs are scored between two looks at the clock."""
    most_heavy: int = 16
    """Concepts that are searched from the outside although formulas are bounded from the inside."""
    pairs_tried: int = 64
    """Pairs of a subproblem that are looked at for the highest W of three concepts."""
    remembered: int = 32
    """Subproblems whose counts are kept for the labels that are expanded next."""

    sets_cells: int = 2**25
    """Cells of all sets of the greatest length up to which sets are searched and not chains."""
    sets_bytes: int = 2**29
    """Memory that they may take, with what one neuron's search adds."""
    sets_at_once: int = 256
    """Sets that are solved at once."""
    shortest_by_shares: int = 4
    """Concepts of formulas from which on large tables are searched by shares and not by chains."""

    @classmethod
    def of(cls, n_concepts: int) -> "Tuning":
        """What is right for a table of so many concepts."""
        small = n_concepts <= SMALL_TABLE
        return cls(
            fused_root=n_concepts**2 <= FUSED_CELLS,
            warms_up=not small,
            first_batch=128 if small else 16,
            beam=6,
            short_beam=0 if small else 6,
            few_concepts=0.0 if small else 1 / 8,
        )

    @classmethod
    def large(cls) -> "Tuning":
        """What is done with many concepts, for tables of any size: no step is left out.

        For tests. Sets are not searched, there is no warm-up, which would take longer than the
        search, and subproblems with half of the concepts get a size of their own.
        """
        many = cls.of(SMALL_TABLE + 1).without_warm_up()
        return replace(
            many,
            few_concepts=1 / 2,
            small_subproblem=0,
            fetched_cells=0,
            sets_cells=0,
            shortest_by_shares=99,
        )

    def without_warm_up(self) -> "Tuning":
        """The same, for searches that are a warm-up themselves."""
        return replace(self, warms_up=False)


# Sizes of arrays. With more, they would no longer stay in a core's cache.

FUSED_NEURONS = 8
"""Neurons of a fused root, at least: fewer are filled up, so that one program does for all."""
PAIR_CHUNK = 128
"""Pairs that are bounded again at once, with their overlaps with every concept."""
FEWEST_ROWS, ROW_CELLS = 32, 2**15
"""At least so many rows are fetched at once, or as many as have so many cells."""
STACKED_SUBPROBLEMS, STACKED_CELLS = 16, 2**20
"""Subproblems that are looked at together: at most so many, and cells of their Gram matrices."""
LABELS_AT_ONCE, FEW_LABELS = 128, 8
"""Labels whose children are looked at in one call."""
SUBPROBLEMS_OF_LABELS = 16
"""Subproblems that the labels of one call can be of."""
SIGNATURES_AT_ONCE = 2**18
"""Signatures of labels that the host looks at at once."""
SIGNATURE_BLOCK = 2**12
"""Signatures of labels that a device looks at at once."""

# What comes back from a device.

SURVIVORS_AT_ONCE, FEW_SURVIVORS = 512, 32
"""Survivors that are looked for in one call, and how many are fetched before it is clear that there
are more."""
COUNTED_TOGETHER = 64
"""Values that are counted together before single survivors are looked for."""
COUNTS_AT_ONCE = 128
"""Pairs, or children of labels, whose counts are fetched in one call."""
