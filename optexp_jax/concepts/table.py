"""ConceptTable: an annotated dataset, compressed to its signatures."""

import hashlib
import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Int32, Int64

from optexp_jax.concepts.inputs import plain_name, to_bool
from optexp_jax.concepts.patches import Patches, SampleMap
from optexp_jax.concepts.signatures import Signatures
from optexp_jax.formulas.formula import Formula
from optexp_jax.formulas.text import find_concept, unknown_concept
from optexp_jax.internal.memory import require_memory

if TYPE_CHECKING:
    from optexp_jax.concepts.labels import LabelLayer
    from optexp_jax.counts.neuron import NeuronCounts

BLOCK_LOCATIONS = 2**22
"""Locations handled at once where a pass goes over the whole map."""


@dataclass(frozen=True)
class Concept:
    """A concept of a table and how much of the dataset it covers."""

    id: int
    name: str
    category: str | None
    n_locations: int
    n_samples: int


@dataclass(frozen=True, eq=False, repr=False)
class ConceptTable:
    """Concepts annotated over samples, without loss, as signatures and where they lie.

    Build one with `from_masks`, `from_label_maps`, `from_signatures`, `load`, or in a stream with
    `TableBuilder`. Arrays are host arrays and must not be changed.
    """

    names: tuple[str, ...]
    categories: tuple[str | None, ...]
    signatures: Signatures
    patches: Patches
    sample_map: SampleMap | None
    """None for a table made of counts (`from_signatures`), which knows no locations."""
    given_rows: Int64[np.ndarray, " rows"] | None = None
    """For a table made of counts: the signature of each row it was made from."""

    @classmethod
    def from_masks(
        cls,
        masks: Any,
        names: Sequence[str] | None = None,
        categories: Sequence[str | None] | None = None,
    ) -> "ConceptTable":
        """From booleans `[concept, sample, *location]` (numpy, JAX or torch), or from a list of
        scipy.sparse boolean matrices `[sample, location]`, one a concept.

        Non-spatial data has one location a sample: `[concept, sample]`.
        """
        from optexp_jax.concepts.constructors import table_from_masks

        return table_from_masks(masks, names, categories)

    @classmethod
    def from_label_maps(
        cls,
        maps: Any,
        layers: "Sequence[LabelLayer]",
        sample_labels: Sequence[str | Iterable[str] | None] | None = None,
        sample_category: str | None = "scene",
    ) -> "ConceptTable":
        """From integer maps `[sample, *location]`, one a layer, and labels of whole samples.

        `layers[k]` says what the values of `maps[k]` mean; `sample_labels[x]` names the concepts
        that hold everywhere in sample x.
        """
        from optexp_jax.concepts.constructors import table_from_label_maps

        return table_from_label_maps(maps, layers, sample_labels, sample_category)

    @classmethod
    def from_signatures(
        cls,
        signatures: Any,
        sizes: Any,
        names: Sequence[str] | None = None,
        n_locations: int | None = None,
        categories: Sequence[str | None] | None = None,
    ) -> "ConceptTable":
        """From data that is already counted: concept sets and the locations that have each.

        `signatures` is a CSR pair `(indptr, indices)` or a list of lists of concept ids; equal sets
        are merged. Locations without any concept are those of an empty set, plus what is missing
        to `n_locations`. The table has no samples and no map.
        """
        from optexp_jax.concepts.constructors import table_from_signatures

        return table_from_signatures(signatures, sizes, names, n_locations, categories)

    @classmethod
    def load(cls, path: str | Path, *, verify: bool = False) -> "ConceptTable":
        """Read a saved table; its map stays on disk. `verify` checks all of the map too."""
        from optexp_jax.concepts.storage import read_table

        return read_table(path, verify)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the table as a Zarr store."""
        from optexp_jax.concepts.storage import write_table

        write_table(self, path, overwrite)

    # What the table holds.

    @property
    def n_concepts(self) -> int:
        return len(self.names)

    @property
    def n_samples(self) -> int:
        """Samples; a table made of counts is treated as one sample."""
        return self.patches.n_samples

    @cached_property
    def n_locations(self) -> int:
        return int(self.patches.size.sum())

    @cached_property
    def sizes(self) -> Int64[np.ndarray, " signatures"]:
        """Locations of each signature."""
        sizes = np.zeros(len(self.signatures), np.int64)
        np.add.at(sizes, self.patches.signature, self.patches.size)
        return sizes

    @cached_property
    def concept_sizes(self) -> Int64[np.ndarray, " concepts"]:
        """Locations of each concept."""
        return self.signatures.incidence.T @ self.sizes

    @cached_property
    def disjoint(self) -> Bool[np.ndarray, "concepts concepts"]:
        """Whether two concepts never share a location."""
        incidence = self.signatures.incidence[self.sizes > 0]
        require_memory(
            (incidence.dtype.itemsize + 1) * self.n_concepts**2,
            f"A table of which of {self.n_concepts} concepts meet",
            "Choose fewer concepts with select(...), or use NetDissect().",
        )
        return (incidence.T @ incidence).toarray() == 0

    @cached_property
    def ids(self) -> dict[str, int]:
        """Concept id by name."""
        return {name: k for k, name in enumerate(self.names)}

    @cached_property
    def fingerprint(self) -> str:
        """A checksum of everything in the table."""
        digest = hashlib.blake2b(digest_size=16)
        located = self.sample_map
        head = (
            self.names,
            self.categories,
            None if located is None else (located.location_shape, located.digest),
        )
        digest.update(repr(head).encode("utf-8", "surrogatepass"))
        for part in (
            self.signatures.indptr,
            self.signatures.indices,
            self.patches.indptr,
            self.patches.signature,
            self.patches.size,
            np.empty(0, np.int64) if self.given_rows is None else self.given_rows,
        ):
            digest.update(f"{part.dtype.str}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    def concept_id(self, name: str) -> int:
        """A concept's id; an unknown name is an error that lists the near ones."""
        if plain_name(name) not in self.ids:
            raise ValueError(unknown_concept(name, self.names))
        return self.ids[name]

    def find_name(self, name: str) -> str:
        """The full name of a concept, given it or its first synonym: of `car, auto`, `car`."""
        return find_concept(plain_name(name), self.ids)

    def concept(self, name: str) -> Concept:
        """A concept by name, or by its first synonym."""
        name = self.find_name(name)
        k = self.concept_id(name)
        member = self.signatures.membership(k)[self.patches.signature]
        return Concept(
            id=k,
            name=name,
            category=self.categories[k],
            n_locations=int(self.concept_sizes[k]),
            n_samples=len(np.unique(self.patches.sample[member])),
        )

    def holds(self, formula: Formula) -> Bool[np.ndarray, " signatures"]:
        """Where the formula holds, by signature."""
        _check_formula(formula)
        return formula.evaluate(lambda name: self.signatures.membership(self.concept_id(name)))

    def same_locations(self, a: Formula, b: Formula) -> bool:
        """Whether two formulas hold at the same locations; a signature may have none."""
        return a == b or not ((self.holds(a) ^ self.holds(b)) & (self.sizes > 0)).any()

    def mask(self, formula: Formula | str) -> Bool[np.ndarray, "samples *location"]:
        """Where the formula (or concept name) holds, by location."""
        if isinstance(formula, str):
            formula = Formula.concept(self.find_name(formula))
        located = self.require_map("mask")
        held = self.holds(formula)[self.patches.signature]
        return np.concatenate(
            [located.spread(self.patches, held, a, b) for a, b in self.sample_blocks()]
        )

    def signature_map(self, start: int, stop: int) -> Int32[np.ndarray, "samples *location"]:
        """Signature ids of the locations of samples `start:stop`."""
        located = self.require_map("signature_map")
        return located.spread(self.patches, self.patches.signature, start, stop)

    def sample_blocks(self) -> list[tuple[int, int]]:
        """Ranges of samples small enough to handle at once."""
        step = max(1, BLOCK_LOCATIONS // self.require_map("sample_blocks").sample_size)
        edges = [*range(0, self.n_samples, step), self.n_samples]
        return list(itertools.pairwise(edges))

    def require_map(self, what: str) -> SampleMap:
        """The map, or an error that says why there is none."""
        if self.sample_map is None:
            raise ValueError(
                f"{what} needs to know where the concepts lie, but this table has counts alone: it "
                "was made with from_signatures, or reweighted. Use a table from from_masks, "
                "from_label_maps or TableBuilder."
            )
        return self.sample_map

    # Tables made from this one.

    def select(
        self,
        concepts: Collection[str] | None = None,
        *,
        categories: Collection[str] | None = None,
        samples: Any = None,
    ) -> "ConceptTable":
        """The table of some concepts (by name or category) and samples (ids, slice or booleans).

        Concepts keep the order of this table. Signatures that become equal are merged.
        """
        from optexp_jax.concepts.constructors import select_from

        return select_from(self, concepts, categories, samples)

    def with_concepts(self, other: "ConceptTable") -> "ConceptTable":
        """This table with the concepts of another one over the same samples and locations."""
        from optexp_jax.concepts.constructors import join_tables

        return join_tables(self, other)

    # Neurons.

    def count(self, bitmap: Any) -> "NeuronCounts":
        """Count a unit's active locations, boolean `[sample, *location]`, by signature."""
        from optexp_jax.counts.neuron import count_bitmaps

        return count_bitmaps(self, to_bool(bitmap, "bitmap")[None])[0]

    def count_many(self, bitmaps: Any) -> "list[NeuronCounts]":
        """Count many units at once, boolean `[unit, sample, *location]`."""
        from optexp_jax.counts.neuron import count_bitmaps

        return count_bitmaps(self, bitmaps)

    def __repr__(self) -> str:
        lengths, sizes = self.signatures.lengths, self.sizes
        total = self.n_locations
        shares = [
            sizes[lengths == 0].sum() / total,
            sizes[lengths == 1].sum() / total,
            sizes[lengths > 1].sum() / total,
        ]
        where = (
            "made of counts, no map"
            if self.sample_map is None
            else f"{self.n_samples} samples of "
            + ("x".join(map(str, self.sample_map.location_shape)) or "one location")
        )
        return (
            f"ConceptTable({self.n_concepts} concepts, {where}, {total} locations, "
            f"{len(self.signatures)} signatures, compression {self.compression:.3g}; "
            f"locations with 0 / 1 / several concepts: "
            f"{' / '.join(f'{share:.1%}' for share in shares)})"
        )

    @cached_property
    def compression(self) -> float:
        """Bytes of one dense bit per concept and location, over bytes of this table."""
        arrays = (
            self.signatures.indptr,
            self.signatures.indices,
            self.patches.indptr,
            self.patches.signature,
            self.patches.size,
        )
        held = sum(array.nbytes for array in arrays)
        if self.sample_map is not None:
            held += self.n_locations * self.sample_map.block(0, 1).itemsize
        return self.n_concepts * self.n_locations / 8 / held


def _check_formula(formula: object) -> None:
    if not isinstance(formula, Formula):
        raise TypeError(
            f"Expected a Formula; got {formula!r}. Read one with Formula.parse(text, table)."
        )
