"""Signatures: the distinct concept sets of a dataset, each stored once.

Locations that carry exactly the same set of concepts are indistinguishable to every formula, so a
dataset is described without loss by its distinct sets and how often each occurs. Signature 0 is
always the empty set.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Int, Int32, Int64, Integer, UInt64

EMPTY_SIGNATURE = 0
WORD_BITS = 64


@dataclass(frozen=True, eq=False)
class Signatures:
    """Concept sets in CSR form: set `s` is `indices[indptr[s]:indptr[s + 1]]`, ascending."""

    indptr: Int64[np.ndarray, "signatures_plus_one"]
    indices: Int32[np.ndarray, "entries"]
    n_concepts: int

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, signature: int) -> Int32[np.ndarray, " concepts"]:
        return self.indices[self.indptr[signature] : self.indptr[signature + 1]]

    @cached_property
    def lengths(self) -> Int64[np.ndarray, " signatures"]:
        """Number of concepts in each signature: 0 uncovered, 1 *unique*, more *common*."""
        return np.diff(self.indptr)

    @cached_property
    def owners(self) -> Int64[np.ndarray, " entries"]:
        """The signature that each entry of `indices` belongs to."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @cached_property
    def incidence(self) -> scipy.sparse.csr_array:
        """Sparse 0/1 matrix `[signature, concept]`, int64 so that weighted sums are exact."""
        ones = np.ones(len(self.indices), np.int64)
        return scipy.sparse.csr_array(
            (ones, self.indices, self.indptr), shape=(len(self), self.n_concepts)
        )

    @cached_property
    def holders(self) -> scipy.sparse.csc_array:
        """The incidence by columns: which signatures hold a concept."""
        return self.incidence.tocsc()

    def membership(self, concept: int) -> Bool[np.ndarray, " signatures"]:
        """Whether each signature holds the concept."""
        column = self.holders
        member = np.zeros(len(self), bool)
        member[column.indices[column.indptr[concept] : column.indptr[concept + 1]]] = True
        return member


class SignatureIndex:
    """Gives each distinct concept set an id, in order of first appearance."""

    def __init__(self) -> None:
        self._ids: dict[bytes, int] = {b"": EMPTY_SIGNATURE}

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, concepts: Int32[np.ndarray, " concepts"]) -> int:
        """The id of a set, given as ascending ids without repetition."""
        return self._ids.setdefault(concepts.tobytes(), len(self._ids))

    def freeze(self, n_concepts: int) -> Signatures:
        sets = [np.frombuffer(key, np.int32) for key in self._ids]
        indptr = np.concatenate([[0], np.cumsum([len(s) for s in sets])]).astype(np.int64)
        return Signatures(indptr, np.concatenate(sets).astype(np.int32), n_concepts)


@dataclass(frozen=True, eq=False)
class RowGroups:
    """Equal rows put together: `members[i]` is row i's group, `first[g]` one row of group g."""

    first: Int64[np.ndarray, " groups"]
    members: Int64[np.ndarray, " rows"]


def group_rows(columns: Sequence[Integer[np.ndarray, " rows"]]) -> RowGroups:
    """Group equal rows of a table of integers given by its columns.

    Folds one column at a time into a dense group number, so that every step is a sort of
    machine integers rather than of byte strings, and no hash can collide.
    """
    first, members = np.unique(columns[0], return_index=True, return_inverse=True)[1:]
    for column in columns[1:]:
        values, codes = np.unique(column, return_inverse=True)
        # Fewer groups than rows and fewer values than rows: the product fits int64 with ease.
        joint = members * len(values) + codes
        first, members = np.unique(joint, return_index=True, return_inverse=True)[1:]
    return RowGroups(first, members)


def pack_masks(masks: Bool[np.ndarray, "concepts locations"]) -> UInt64[np.ndarray, "words locs"]:
    """The concept set of each location as a column of 64-bit words (bit k = concept k)."""
    packed = np.packbits(masks, axis=0, bitorder="little")
    n_words = -(-len(masks) // WORD_BITS)
    padded = np.zeros((n_words * 8, masks.shape[1]), np.uint8)
    padded[: len(packed)] = packed
    words = padded.reshape(n_words, 8, -1).transpose(0, 2, 1)
    return np.ascontiguousarray(words).view("<u8").squeeze(-1).astype(np.uint64, copy=False)


def unpack_sets(words: UInt64[np.ndarray, "words rows"]) -> list[Int32[np.ndarray, " _"]]:
    """The concept sets behind columns of packed words."""
    as_bytes = np.ascontiguousarray(words.T).astype("<u8", copy=False).view(np.uint8)
    bits = np.unpackbits(as_bytes, axis=1, bitorder="little")
    return [np.flatnonzero(row).astype(np.int32) for row in bits]


@dataclass(frozen=True, eq=False)
class MergedSets:
    """Distinct sets among given rows, and the signature of each given row."""

    signatures: Signatures
    rows: Int64[np.ndarray, " rows"]


def merge_sets(
    indptr: Int64[np.ndarray, "rows_plus_one"],
    indices: Int[np.ndarray, " entries"],
    n_concepts: int,
) -> MergedSets:
    """Merge duplicate rows of a CSR list of concept sets (ascending, no repetition in a row).

    Works on all rows of one length at a time, so hundreds of thousands of rows stay in numpy.
    Ids follow first appearance, after the empty set.
    """
    lengths = np.diff(indptr)
    representative = np.full(len(lengths), -1, np.int64)
    for length in np.unique(lengths[lengths > 0]):
        rows = np.flatnonzero(lengths == length)
        starts = indptr[rows]
        groups = group_rows([indices[starts + k] for k in range(length)])
        representative[rows] = rows[groups.first][groups.members]
    kept = np.unique(representative[representative >= 0])
    ids = np.zeros(len(lengths), np.int64)
    ids[kept] = np.arange(1, len(kept) + 1)
    rows = np.where(representative >= 0, ids[representative], EMPTY_SIGNATURE)

    kept_lengths = lengths[kept]
    new_indptr = np.concatenate([[0, 0], np.cumsum(kept_lengths)]).astype(np.int64)
    offsets = np.arange(new_indptr[-1]) - np.repeat(new_indptr[1:-1], kept_lengths)
    entries = indices[np.repeat(indptr[kept], kept_lengths) + offsets]
    return MergedSets(Signatures(new_indptr, entries.astype(np.int32), n_concepts), rows)


def sort_rows(
    indptr: Int64[np.ndarray, "rows_plus_one"], indices: Int[np.ndarray, " entries"]
) -> Int[np.ndarray, " entries"]:
    """The entries with each CSR row in ascending order."""
    owners = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return indices[np.lexsort((indices, owners))]


def as_csr(sets: Iterable[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """`(indptr, indices)` of a list of id lists."""
    rows = [np.asarray(row, dtype=np.int64).reshape(-1) for row in sets]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return indptr, np.concatenate([np.empty(0, np.int64), *rows])


def ranges(
    starts: Int64[np.ndarray, " rows"], counts: Int64[np.ndarray, " rows"]
) -> Int64[np.ndarray, " entries"]:
    """`starts[i], starts[i] + 1, ...`, counts[i] of them, one row after another."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - (ends - counts), counts)
