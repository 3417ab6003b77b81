"""Parts of a build: a few samples each, as concept sets and where they hold, one file a part.

A part file is there as a whole or not at all, so whoever finds one need not make it again. It
begins with a digest of its place and content: one of another build, or of other samples, is not
taken for it.
"""

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int32, Int64, Integer

from optexp_jax.concepts.labels import concept_sets
from optexp_jax.concepts.signatures import group_rows
from optexp_jax.datasets.identity import pixel_digest
from optexp_jax.datasets.protocol import BadSampleError, Dataset, Sample, check_sample
from optexp_jax.datasets.provenance import SkippedSample
from optexp_jax.stores.digests import digest_of
from optexp_jax.stores.durable import write_whole

PART_SAMPLES = 32
"""Samples a part: what a killed worker has to do again, at most."""
DIGEST_LENGTH = len(digest_of(b""))


class PartFileError(ValueError):
    """A part file that is damaged, or not the one of its place."""


@dataclass(frozen=True, eq=False)
class CodedSample:
    """A sample as its distinct concept sets and, per location of the mask, which holds there."""

    name: str
    pixels: str
    """A checksum of the image."""
    sets: tuple[Int32[np.ndarray, " _"], ...]
    members: Int64[np.ndarray, " locations"]


@dataclass(frozen=True, eq=False)
class Part:
    """Samples that follow one another in the dataset."""

    samples: tuple[CodedSample, ...]
    skipped: tuple[SkippedSample, ...]


def resize_nearest(
    values: Int32[np.ndarray, "h w"], shape: tuple[int, int]
) -> Int32[np.ndarray, "height width"]:
    """Nearest-neighbour resize: row i of the result is row floor(i * h / height)."""
    rows, columns = (
        np.arange(new) * old // new for new, old in zip(shape, values.shape, strict=True)
    )
    return values[rows[:, None], columns]


def code_sample(sample: Sample, mask_shape: tuple[int, int], n_concepts: int) -> CodedSample:
    """The concept sets of a sample at the resolution of the masks."""
    n_locations = mask_shape[0] * mask_shape[1]
    columns = [resize_nearest(values, mask_shape).reshape(-1) for values in sample.maps]
    columns = columns or [np.full(n_locations, -1, np.int32)]
    groups = group_rows(_packed(columns, n_concepts))
    chosen = [column[groups.first] for column in columns]
    chosen += [np.full(len(groups.first), concept, np.int32) for concept in sample.everywhere]
    return CodedSample(
        sample.name, pixel_digest(sample.image), tuple(concept_sets(chosen)), groups.members
    )


def make_part(dataset: Dataset, start: int, stop: int, mask_shape: tuple[int, int]) -> Part:
    """Read the samples `start:stop`; those that cannot be read are noted instead."""
    n_concepts = len(dataset.concepts())
    samples: list[CodedSample] = []
    skipped: list[SkippedSample] = []
    for index in range(start, stop):
        try:
            sample = check_sample(dataset[index], n_concepts)
        except BadSampleError as error:
            skipped.append(SkippedSample(index, error.name, error.reason))
            continue
        samples.append(code_sample(sample, mask_shape, n_concepts))
    return Part(tuple(samples), tuple(skipped))


def write_part(part: Part, path: Path, place: str) -> None:
    """Write a part file in one step; `place` says which part of which build it is."""
    sets = [concepts for sample in part.samples for concepts in sample.sets]
    members = np.array([sample.members for sample in part.samples], np.int64)
    head = {
        "names": [sample.name for sample in part.samples],
        "pixels": [sample.pixels for sample in part.samples],
        "skipped": [asdict(sample) for sample in part.skipped],
    }
    file = io.BytesIO()
    np.savez_compressed(
        file,
        head=np.frombuffer(json.dumps(head).encode(), np.uint8),
        sets_per_sample=np.array([len(sample.sets) for sample in part.samples], np.int64),
        set_lengths=np.array([len(concepts) for concepts in sets], np.int64),
        set_concepts=np.concatenate([np.empty(0, np.int32), *sets]),
        members=members.astype(np.min_scalar_type(int(members.max(initial=0)))),
    )
    content = file.getvalue()
    write_whole(path, _digest(place, content) + content)


def read_part(path: Path, place: str) -> Part:
    """Read a part file."""
    with np.load(_checked(path, place)) as stored:
        head = _head(stored)
        pixel_digests = head["pixels"]
        per_sample, lengths = stored["sets_per_sample"], stored["set_lengths"]
        concepts, members = stored["set_concepts"], stored["members"]
    sets = iter(np.split(concepts, np.cumsum(lengths)[:-1]) if len(lengths) else [])
    samples = tuple(
        CodedSample(name, pixels, tuple(_take(sets, count)), row.astype(np.int64))
        for name, pixels, count, row in zip(
            head["names"], pixel_digests, per_sample.tolist(), members, strict=True
        )
    )
    return Part(samples, _skipped(head))


def skipped_in(path: Path, place: str) -> tuple[SkippedSample, ...]:
    """The samples that a part file notes as not readable, without unpacking the others."""
    with np.load(_checked(path, place)) as stored:
        return _skipped(_head(stored))


def _checked(path: Path, place: str) -> io.BytesIO:
    """The arrays of a part file, if they are those that were written for the place."""
    try:
        stored = path.read_bytes()
    except OSError as error:
        raise PartFileError(f"{path} cannot be read ({error}).") from error
    digest, content = stored[:DIGEST_LENGTH], stored[DIGEST_LENGTH:]
    if digest != _digest(place, content):
        raise PartFileError(f"{path} is damaged, or not the part of its place.")
    return io.BytesIO(content)


def _digest(place: str, content: bytes) -> bytes:
    return digest_of(f"{place}\n".encode() + content).encode()


def _head(stored: Any) -> dict[str, Any]:
    return json.loads(stored["head"].tobytes())


def _skipped(head: dict[str, Any]) -> tuple[SkippedSample, ...]:
    return tuple(SkippedSample(**entry) for entry in head["skipped"])


def _packed(
    columns: Sequence[Int32[np.ndarray, " locations"]], n_concepts: int
) -> list[Integer[np.ndarray, " locations"]]:
    """Columns of ids, several to a 64-bit word: fewer columns to sort by."""
    bits = (n_concepts + 1).bit_length()
    step = max(1, 63 // bits)
    words: list[Integer[np.ndarray, " locations"]] = []
    for first in range(0, len(columns), step):
        word = np.zeros(len(columns[0]), np.int64)
        for column in columns[first : first + step]:
            word = word << bits | (column + 1)
        words.append(word)
    return words


def _take(sets: Iterator[Int32[np.ndarray, " _"]], count: int) -> Iterator[Int32[np.ndarray, " _"]]:
    for _ in range(count):
        yield next(sets)
