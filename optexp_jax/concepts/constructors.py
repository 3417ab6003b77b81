"""The ways a concept table comes into being, apart from the stream (`builder`) and files."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from jaxtyping import Int64, UInt64

from optexp_jax.concepts.builder import TableBuilder
from optexp_jax.concepts.inputs import (
    MAX_LOCATIONS,
    check_categories,
    check_names,
    to_bool,
    to_counts,
    to_integers,
)
from optexp_jax.concepts.labels import LabelLayer
from optexp_jax.concepts.patches import Patches
from optexp_jax.concepts.signatures import (
    EMPTY_SIGNATURE,
    WORD_BITS,
    MergedSets,
    as_csr,
    group_rows,
    merge_sets,
    sort_rows,
)
from optexp_jax.concepts.table import ConceptTable

SPARSE_BLOCK_BYTES = 2**27


def table_from_masks(
    masks: Any, names: Sequence[str] | None, categories: Sequence[str | None] | None
) -> ConceptTable:
    """See `ConceptTable.from_masks`."""
    if scipy.sparse.issparse(masks):
        raise TypeError("masks is one scipy.sparse matrix; pass a list of them, one a concept.")
    if isinstance(masks, list | tuple) and any(scipy.sparse.issparse(mask) for mask in masks):
        return _from_sparse(masks, names, categories)
    dense = to_bool(masks, "masks")
    if 0 in dense.shape:
        raise ValueError(
            f"masks of shape {dense.shape} hold no concept, no sample or no location: each of "
            "[concept, sample, *location] must be at least 1."
        )
    if dense.ndim < 2:
        raise ValueError(f"masks must be [concept, sample, *location]; got shape {dense.shape}.")
    checked = check_names(names, len(dense))
    builder = TableBuilder(checked, categories)
    for sample in range(dense.shape[1]):
        builder.add_masks(dense[:, sample])
    return builder.build()


def _from_sparse(
    masks: Sequence[Any], names: Sequence[str] | None, categories: Sequence[str | None] | None
) -> ConceptTable:
    for k, mask in enumerate(masks):
        if not scipy.sparse.issparse(mask):
            raise TypeError(f"Mask {k} is {type(mask).__name__}, others are scipy.sparse matrices.")
        if mask.dtype != np.bool_:
            raise TypeError(f"Sparse mask {k} must be boolean; got {mask.dtype}. Use astype(bool).")
        if len(mask.shape) != 2:
            raise ValueError(
                f"Sparse mask {k} must be [sample, location]; its shape is {mask.shape}."
            )
        if mask.shape != masks[0].shape:
            raise ValueError(
                f"Sparse masks must share one shape [sample, location]; mask 0 has "
                f"{masks[0].shape}, mask {k} has {mask.shape}."
            )
    n_samples, sample_size = masks[0].shape
    if n_samples == 0 or sample_size == 0:
        raise ValueError(f"Sparse masks of shape {masks[0].shape} hold no sample or no location.")
    builder = TableBuilder(check_names(names, len(masks)), categories)
    rows = [scipy.sparse.csr_array(mask) for mask in masks]
    n_words = -(-len(masks) // WORD_BITS)
    step = max(1, SPARSE_BLOCK_BYTES // (n_words * 8 * sample_size))
    for start in range(0, n_samples, step):
        for words in _pack_sparse(rows, start, min(start + step, n_samples), sample_size):
            builder.add_words(words, (sample_size,))
    return builder.build()


def _pack_sparse(
    masks: Sequence[Any], start: int, stop: int, sample_size: int
) -> Iterator[UInt64[np.ndarray, "words locations"]]:
    """The packed concept sets of each sample in a block, from the concepts' sparse rows."""
    n_words = -(-len(masks) // WORD_BITS)
    words = np.zeros((n_words, stop - start, sample_size), np.uint64)
    for k, mask in enumerate(masks):
        block = mask[start:stop].tocoo()
        held = block.data  # Explicitly stored False is allowed in sparse matrices.
        sample, location = block.row[held], block.col[held]
        words[k // WORD_BITS, sample, location] |= np.uint64(1 << (k % WORD_BITS))
    for sample in range(stop - start):
        yield words[:, sample]


def table_from_label_maps(
    maps: Any,
    layers: Sequence[LabelLayer],
    sample_labels: Sequence[str | Iterable[str] | None] | None,
    sample_category: str | None,
) -> ConceptTable:
    """See `ConceptTable.from_label_maps`."""
    if len(maps) != len(layers) or not len(maps):
        raise ValueError(
            f"Pass one array of label maps a layer; got {len(maps)} arrays, {len(layers)} layers."
        )
    arrays = [to_integers(values, f"maps[{k}]") for k, values in enumerate(maps)]
    for k, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            raise ValueError(f"maps[0] has shape {arrays[0].shape}, maps[{k}] {array.shape}.")
    if arrays[0].ndim < 1 or 0 in arrays[0].shape:
        raise ValueError(f"Label maps must be [sample, *location]; got shape {arrays[0].shape}.")
    n_samples = len(arrays[0])
    if sample_labels is None:
        sample_labels = [None] * n_samples
    if isinstance(sample_labels, str):
        raise TypeError(f"sample_labels must hold one entry a sample; got {sample_labels!r}.")
    if len(sample_labels) != n_samples:
        raise ValueError(f"There are {n_samples} samples but {len(sample_labels)} sample labels.")
    builder = TableBuilder.for_labels(layers)
    for sample, labels in enumerate(sample_labels):
        builder.add_labels(
            [array[sample] for array in arrays],
            _label_list(labels),
            sample_category,
        )
    return builder.build()


def _label_list(labels: str | Iterable[str] | None) -> list[str]:
    if labels is None:
        return []
    return [labels] if isinstance(labels, str) else list(labels)


def table_from_signatures(
    signatures: Any,
    sizes: Any,
    names: Sequence[str] | None,
    n_locations: int | None,
    categories: Sequence[str | None] | None,
) -> ConceptTable:
    """See `ConceptTable.from_signatures`."""
    indptr, indices = _check_csr(signatures)
    counts = to_counts(sizes, "sizes")
    if len(counts) != len(indptr) - 1:
        raise ValueError(f"There are {len(indptr) - 1} signatures but {len(counts)} sizes.")
    found = int(indices.max()) + 1 if len(indices) else 0
    n_concepts = found if names is None else len(names)
    if found > n_concepts:
        raise ValueError(
            f"A signature holds concept {found - 1}, but there are {n_concepts} names."
        )
    checked_names = check_names(names, n_concepts)
    merged = merge_sets(indptr, indices, n_concepts)
    total = np.zeros(len(merged.signatures), np.int64)
    np.add.at(total, merged.rows, counts)
    given = sum(counts.tolist())
    if n_locations is not None:
        if n_locations < given:
            raise ValueError(
                f"n_locations is {n_locations}, but the sizes already add up to {given}."
            )
        total[EMPTY_SIGNATURE] += n_locations - given
    if not 0 < sum(total.tolist()) < MAX_LOCATIONS:
        raise ValueError(
            f"The table has {sum(total.tolist())} locations; it needs at least one, and fewer "
            "than 2**53."
        )
    return _counted(checked_names, check_categories(categories, n_concepts), merged, total)


def _counted(
    names: tuple[str, ...],
    categories: tuple[str | None, ...],
    merged: MergedSets,
    total: Int64[np.ndarray, " signatures"],
) -> ConceptTable:
    """A table without map: one sample, whose patches are the signatures."""
    n = len(merged.signatures)
    return ConceptTable(
        names=names,
        categories=categories,
        signatures=merged.signatures,
        patches=Patches(np.array([0, n]), np.arange(n, dtype=np.int32), total),
        sample_map=None,
        given_rows=merged.rows,
    )


def _check_csr(signatures: Any) -> tuple[np.ndarray, np.ndarray]:
    """`(indptr, indices)` with ascending rows, from a CSR pair or a list of id lists."""
    if isinstance(signatures, tuple) and len(signatures) == 2 and np.ndim(signatures[0]) == 1:
        indptr = to_integers(signatures[0], "indptr").astype(np.int64)
        indices = to_integers(signatures[1], "indices").astype(np.int64)
        ordered = len(indptr) > 0 and indptr[0] == 0 and bool((np.diff(indptr) >= 0).all())
        if not ordered or indices.ndim != 1 or indptr[-1] != len(indices):
            raise ValueError(
                "A CSR pair is (indptr, indices): indptr starts at 0, never falls, and ends at "
                f"the number of indices; got indptr {indptr} and {indices.size} indices."
            )
    else:
        rows = [to_integers(row, f"signature {k}") for k, row in enumerate(signatures)]
        for k, row in enumerate(rows):
            if row.ndim != 1:
                raise ValueError(
                    f"Signature {k} must be a list of concept ids; got {row.tolist()}."
                )
        indptr, indices = as_csr([row.tolist() for row in rows])
    if len(indptr) < 2:
        raise ValueError("There is no signature: pass at least one concept set.")
    if len(indices) and int(indices.min()) < 0:
        raise ValueError(f"Concept ids must not be negative; got {indices.min()}.")
    ascending = sort_rows(indptr, indices)
    owners = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    repeated = (np.diff(ascending) == 0) & (np.diff(owners) == 0)
    if repeated.any():
        where = int(np.flatnonzero(repeated)[0])
        raise ValueError(f"Signature {owners[where]} lists concept {ascending[where]} twice.")
    return indptr, ascending


def select_from(
    table: ConceptTable,
    concepts: Collection[str] | None,
    categories: Collection[str] | None,
    samples: Any,
) -> ConceptTable:
    """See `ConceptTable.select`."""
    kept = _kept_concepts(table, concepts, categories)
    names = tuple(table.names[k] for k in kept)
    kinds = tuple(table.categories[k] for k in kept)
    new_ids = np.full(table.n_concepts, -1, np.int64)
    new_ids[kept] = np.arange(len(kept))
    owners, entries = table.signatures.owners, new_ids[table.signatures.indices]
    lengths = np.bincount(owners[entries >= 0], minlength=len(table.signatures))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    reduced = merge_sets(indptr, entries[entries >= 0], len(kept))
    if table.sample_map is None:
        if samples is not None:
            table.require_map("select(samples=...)")
        total = np.zeros(len(reduced.signatures), np.int64)
        np.add.at(total, reduced.rows, table.sizes)
        if table.given_rows is None:
            raise ValueError("Select concepts of the table before you reweight it, not after.")
        rows = reduced.rows[table.given_rows]
        return _counted(names, kinds, MergedSets(reduced.signatures, rows), total)

    builder = TableBuilder(names, kinds)
    chosen = _kept_samples(table.n_samples, samples)
    for sample, ranks in zip(chosen.tolist(), table.sample_map.rows(chosen), strict=True):
        first, last = table.patches.indptr[sample], table.patches.indptr[sample + 1]
        kept_sets = reduced.rows[table.patches.signature[first:last]].tolist()
        sets = [reduced.signatures[s] for s in kept_sets]
        builder.add_sets(sets, ranks, table.sample_map.location_shape)
    return builder.build()


def _kept_concepts(
    table: ConceptTable, concepts: Collection[str] | None, categories: Collection[str] | None
) -> list[int]:
    for what, given in (("concepts", concepts), ("categories", categories)):
        if isinstance(given, str):
            raise TypeError(f"{what} must be a collection of names; got the string {given!r}.")
    known = {category for category in table.categories if category is not None}
    unknown = set(categories or ()) - known
    if unknown:
        raise ValueError(
            f"The table has no category {', '.join(sorted(unknown))}; it has "
            f"{', '.join(sorted(known)) or 'none'}."
        )
    wanted = (
        None if concepts is None else {table.concept_id(table.find_name(name)) for name in concepts}
    )
    kept = [
        k
        for k, category in enumerate(table.categories)
        if (wanted is None or k in wanted) and (categories is None or category in categories)
    ]
    if not kept:
        raise ValueError("The selection holds no concept.")
    return kept


def _kept_samples(n_samples: int, samples: Any) -> Int64[np.ndarray, " samples"]:
    if samples is None:
        return np.arange(n_samples)
    try:
        wanted = samples if isinstance(samples, slice) else np.asarray(samples)
        chosen = np.arange(n_samples)[wanted]
    except IndexError as error:
        raise ValueError(f"Cannot select samples of {n_samples}: {error}.") from error
    if chosen.ndim != 1 or not len(chosen):
        raise ValueError(f"The selection must be a non-empty list of samples; got {samples!r}.")
    return chosen


def join_tables(table: ConceptTable, other: ConceptTable) -> ConceptTable:
    """See `ConceptTable.with_concepts`."""
    left, right = table.require_map("with_concepts"), other.require_map("with_concepts")
    shared = sorted(set(table.names) & set(other.names))
    if shared:
        raise ValueError(f"Both tables have the concepts {', '.join(shared[:8])}.")
    for what, a, b in (
        ("samples", table.n_samples, other.n_samples),
        ("locations", left.location_shape, right.location_shape),
    ):
        if a != b:
            raise ValueError(f"The tables have different {what}: {a} and {b}.")
    builder = TableBuilder(table.names + other.names, table.categories + other.categories)
    samples = np.arange(table.n_samples)
    for sample, *ranks in zip(
        samples.tolist(), left.rows(samples), right.rows(samples), strict=True
    ):
        groups = group_rows(ranks)
        mine, theirs = (
            part.patches.signature[part.patches.indptr[sample] + rank[groups.first]]
            for part, rank in ((table, ranks[0]), (other, ranks[1]))
        )
        sets = [
            np.concatenate([table.signatures[a], other.signatures[b] + np.int32(table.n_concepts)])
            for a, b in zip(mine.tolist(), theirs.tolist(), strict=True)
        ]
        builder.add_sets(sets, groups.members, left.location_shape)
    return builder.build()
