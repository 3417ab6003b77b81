"""How many nodes, and how many of their children, are estimated at once.

Estimates take some dozens of arrays of a value per node and sample, or in an expansion per node,
child and sample. What they take is held below a number of bytes, on every device. On a CPU it also
has to fit into the cache.
"""

from dataclasses import dataclass

from optexp_jax.internal.kernel_choice import prefers_host_kernels

CHUNK_VALUES, CHUNK_ROWS = 2**14, 64
"""On a CPU, rows are estimated a few at a time: what is computed from them stays in its cache."""

LIVE = 64
"""At most so many arrays are there at the same time; 25 to 57 were counted in compiled programs."""


@dataclass(frozen=True)
class ChunkSize:
    """What is expanded at once: so many nodes, each with so many concepts."""

    nodes: int
    concepts: int


def chunk_rows(width: int, batch_size: int, chunk_bytes: int, itemsize: int) -> int:
    """Rows of `width` integers each that are estimated at once: a power of two, or all."""
    rows = min(batch_size, max(1, chunk_bytes // (width * itemsize * LIVE)))
    if prefers_host_kernels():
        rows = min(rows, CHUNK_ROWS, max(1, CHUNK_VALUES // width))
    return rows if rows == batch_size else 1 << (rows.bit_length() - 1)


def expansion_chunk(
    n_concepts: int, n_samples: int, batch_size: int, chunk_bytes: int, itemsize: int
) -> ChunkSize:
    """The same for an expansion; where one node is too much, a few of its children at a time."""
    concepts = max(1, chunk_bytes // (n_samples * itemsize * LIVE))
    if concepts < n_concepts:
        n_blocks = -(-n_concepts // concepts)
        return ChunkSize(1, -(-n_concepts // n_blocks))
    rows = chunk_rows(n_concepts * n_samples, batch_size, chunk_bytes, itemsize)
    return ChunkSize(rows, n_concepts)
