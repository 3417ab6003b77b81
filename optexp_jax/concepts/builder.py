"""Building a concept table one sample at a time, in bounded memory."""

import hashlib
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from jaxtyping import Int32, Int64, UInt64

from optexp_jax.concepts.inputs import check_categories, check_names, to_bool
from optexp_jax.concepts.labels import (
    LabelLayer,
    LayerCoder,
    Vocabulary,
    check_label_map,
    concept_sets,
)
from optexp_jax.concepts.patches import Patches, SampleMap, rank_dtype
from optexp_jax.concepts.signatures import SignatureIndex, group_rows, pack_masks, unpack_sets
from optexp_jax.concepts.storage import RankSink, check_free
from optexp_jax.concepts.table import ConceptTable


class TableBuilder:
    """Takes samples one at a time and keeps signatures, patches and, on disk or not, the map.

    With `path` the map goes to that Zarr store while it is built, so that datasets larger than
    memory can be read in a stream; `build` then leaves a complete table there.

        builder = TableBuilder.for_labels([objects, colours], path="table.zarr")
        for image in images:
            builder.add_labels([image.objects, image.colours], ["kitchen-s"])
        table = builder.build()
    """

    def __init__(
        self,
        names: Sequence[str] = (),
        categories: Sequence[str | None] | None = None,
        *,
        path: str | Path | None = None,
        overwrite: bool = False,
    ):
        self._vocabulary = Vocabulary()
        if len(names):
            checked = check_names(names, len(names))
            for name, category in zip(
                checked, check_categories(categories, len(checked)), strict=True
            ):
                self._vocabulary.add(name, category)
        self._coders: list[LayerCoder] = []
        self._index = SignatureIndex()
        self._patch_signatures: list[Int32[np.ndarray, " _"]] = []
        self._patch_sizes: list[Int64[np.ndarray, " _"]] = []
        self._location_shape: tuple[int, ...] | None = None
        if path is not None:
            check_free(Path(path), overwrite)  # Now, and not after the first samples were read.
        self._path = path
        self._overwrite = overwrite
        self._sink: RankSink | None = None
        self._spent = False
        self._digest = hashlib.blake2b(digest_size=16)

    @classmethod
    def for_labels(
        cls,
        layers: Sequence[LabelLayer],
        *,
        path: str | Path | None = None,
        overwrite: bool = False,
    ) -> Self:
        """A builder for samples given as label maps, one a layer."""
        builder = cls(path=path, overwrite=overwrite)
        builder._coders = [LayerCoder(layer, builder._vocabulary) for layer in layers]
        return builder

    @property
    def n_samples(self) -> int:
        """Samples taken so far."""
        return len(self._patch_sizes)

    def add_masks(self, masks: Any) -> None:
        """Add a sample given as boolean masks `[concept, *location]`; `[concept]` if it has one."""
        checked = to_bool(masks, "masks")
        if checked.ndim < 1 or not len(checked):
            raise ValueError(f"A sample's masks are [concept, *location]; got {checked.shape}.")
        if len(checked) != len(self._vocabulary.ids):
            raise ValueError(
                f"A sample has {len(checked)} masks but the builder knows "
                f"{len(self._vocabulary.ids)} concepts."
            )
        shape = checked.shape[1:]
        self._check_location_shape(shape)
        self.add_words(pack_masks(checked.reshape(len(checked), math.prod(shape))), shape)

    def add_labels(
        self, maps: Sequence[Any], sample_labels: Iterable[str] = (), category: str | None = None
    ) -> None:
        """Add a sample given as integer maps, one a layer, all of one shape.

        `sample_labels` are concepts that hold at every location (the scene, say); names not met
        before become new concepts of the given category.
        """
        if len(maps) != len(self._coders):
            raise ValueError(f"There are {len(self._coders)} layers but {len(maps)} label maps.")
        if isinstance(sample_labels, str):
            raise TypeError(f"sample_labels must be a list of names; got {sample_labels!r}.")
        checked = [check_label_map(values, f"label map {i}") for i, values in enumerate(maps)]
        shape = checked[0].shape if checked else self._location_shape
        if shape is None:
            raise ValueError("Without label maps the locations of a sample are unknown.")
        for values in checked:
            if values.shape != shape:
                raise ValueError(f"Label maps of one sample differ: {shape} and {values.shape}.")
        flat = [values.reshape(-1) for values in checked]
        groups = group_rows(flat)
        columns = [
            coder.encode(values[groups.first])
            for coder, values in zip(self._coders, flat, strict=True)
        ]
        # Only now does anything change: a sample that is refused leaves no trace.
        self._check_location_shape(shape)
        everywhere = [self._vocabulary.add(name, category) for name in sample_labels]
        columns += [np.full(len(groups.first), concept, np.int32) for concept in everywhere]
        self._add_groups(concept_sets(columns), groups.members, shape)

    def add_words(
        self, words: UInt64[np.ndarray, "words locations"], location_shape: tuple[int, ...]
    ) -> None:
        """Add a sample given as the packed concept set of each location."""
        self._check_location_shape(location_shape)
        groups = group_rows(list(words))
        self._add_groups(unpack_sets(words[:, groups.first]), groups.members, location_shape)

    def add_sets(
        self,
        sets: Sequence[Int32[np.ndarray, " _"]],
        members: Int64[np.ndarray, " locations"],
        location_shape: tuple[int, ...],
    ) -> None:
        """Add a sample given as concept sets and, per location, which of them holds there."""
        self._check_location_shape(location_shape)
        self._add_groups(sets, members, location_shape)

    def build(self) -> ConceptTable:
        """The table of all samples taken; the builder is spent."""
        self._require_unspent()
        if self._sink is None or self._location_shape is None:
            raise ValueError("There is no sample: add at least one before building the table.")
        names = check_names(tuple(self._vocabulary.ids), len(self._vocabulary.ids))
        lengths = [len(signatures) for signatures in self._patch_signatures]
        self._spent = True
        table = ConceptTable(
            names=names,
            categories=tuple(self._vocabulary.categories),
            signatures=self._index.freeze(len(names)),
            patches=Patches(
                np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
                np.concatenate(self._patch_signatures),
                np.concatenate(self._patch_sizes),
            ),
            sample_map=SampleMap(
                self._location_shape, self._sink.finish(), self._digest.hexdigest()
            ),
        )
        return self._sink.publish(table)

    def _require_unspent(self) -> None:
        if self._spent:
            raise ValueError("This builder has built its table: make a new one for another.")

    def _check_location_shape(self, shape: tuple[int, ...]) -> None:
        self._require_unspent()
        if self._location_shape is None:
            if 0 in shape:
                raise ValueError(f"A sample needs at least one location; its shape is {shape}.")
            self._location_shape = shape
        elif self._location_shape != shape:
            raise ValueError(
                f"Sample {self.n_samples} has locations of shape {shape}, the ones before it "
                f"{self._location_shape}. Resize all samples to one shape."
            )

    def _add_groups(
        self,
        sets: Sequence[Int32[np.ndarray, " _"]],
        members: Int64[np.ndarray, " locations"],
        shape: tuple[int, ...],
    ) -> None:
        # New sets get their ids in an order of their own, so that equal data gives an equal table
        # whether it came as masks, as label maps or from another table.
        found = np.empty(len(sets), np.int32)
        for group in sorted(range(len(sets)), key=lambda group: sets[group].tobytes()):
            found[group] = self._index.add(sets[group])
        # Groups of different labels can mean the same concepts: they are one patch.
        signatures, group_ranks = np.unique(found, return_inverse=True)
        ranks = group_ranks[members]
        self._patch_signatures.append(signatures)
        self._patch_sizes.append(np.bincount(ranks, minlength=len(signatures)))
        if self._sink is None:
            self._sink = RankSink(math.prod(shape), self._path, self._overwrite)
        compact = ranks.astype(rank_dtype(len(ranks)))
        self._digest.update(compact.tobytes())
        self._sink.append(compact)
