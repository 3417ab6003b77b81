"""`build_table`: from a dataset to a concept table on disk, in a stream that can be interrupted.

Samples are read in parts of a few. Each part lands as one file in `<table>.building`, and the
parts, in order, make the table. So the table does not depend on how many processes worked, nor on
how often they were killed; a build that is started again goes on with the parts that are there.
"""

import fcntl
import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from optexp_jax.concepts import ConceptTable, TableBuilder
from optexp_jax.concepts.storage import check_free, replace_folder
from optexp_jax.datasets.identity import hash_samples, pixels_count
from optexp_jax.datasets.parts import PART_SAMPLES, Part, PartFileError, read_part, skipped_in
from optexp_jax.datasets.protocol import (
    BadSampleError,
    Dataset,
    FindsMissingNames,
    LayoutError,
    describe,
)
from optexp_jax.datasets.provenance import (
    Provenance,
    SkippedSample,
    package_version,
    write_provenance,
)
from optexp_jax.datasets.spec import DatasetSpec
from optexp_jax.datasets.workers import PartJobs, make_parts
from optexp_jax.stores.digests import digest_of
from optexp_jax.stores.durable import write_whole

_LOG = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
"""Told the samples done and all samples."""

DEFAULT_MASK_SHAPE = (112, 112)


def build_table(
    dataset: Dataset,
    out: str | Path,
    *,
    mask_shape: tuple[int, int] = DEFAULT_MASK_SHAPE,
    spec: DatasetSpec | None = None,
    workers: int = 1,
    skip_bad: bool = False,
    progress: Progress | None = None,
    overwrite: bool = False,
) -> ConceptTable:
    """Build a dataset's concept table at `out`, a Zarr store, and open it.

    Maps are resized to `mask_shape` by nearest neighbour. With several `workers`, other processes
    read the samples; a script must then call this under `if __name__ == "__main__":`. A build that
    was interrupted goes on when it is called again with the same arguments. `spec` is kept with
    the table, so that its images can be found again. With `skip_bad`, samples that cannot be read
    are left out and listed in the table's provenance.
    """
    if workers < 1:
        raise ValueError(f"A build needs at least one worker; got {workers}.")
    if min(mask_shape) < 1:
        raise ValueError(f"mask_shape must be at least 1 x 1; got {mask_shape}.")
    target = Path(out)
    check_free(target, overwrite)
    if not len(dataset):
        raise ValueError(f"The dataset is empty: {describe(dataset)}.")
    folder = target.with_name(target.name + ".building")
    with _locked(folder):
        settings = _Settings.of(dataset, spec, mask_shape)
        jobs = PartJobs(len(dataset), mask_shape, folder, settings.fingerprint)
        _check_started(jobs, settings, overwrite)
        built = _merge(
            dataset, spec, jobs, _parts(dataset, spec, jobs, workers, skip_bad, progress)
        )
        replace_folder(built, target)
        shutil.rmtree(folder)
    return ConceptTable.load(target)


@dataclass(frozen=True)
class _Settings:
    """What the parts of a build depend on."""

    dataset: str
    dataset_fingerprint: str | None
    n_samples: int
    n_concepts: int
    concepts: str
    mask_shape: str
    samples_per_part: int
    package_version: str

    @classmethod
    def of(
        cls, dataset: Dataset, spec: DatasetSpec | None, mask_shape: tuple[int, int]
    ) -> "_Settings":
        concepts = [[concept.name, concept.category] for concept in dataset.concepts()]
        digest = hashlib.blake2b(json.dumps(concepts).encode(), digest_size=8).hexdigest()
        return cls(
            # Without the folder: a dataset that was moved is the same.
            dataset=type(dataset).__qualname__ if spec is None else str(replace(spec, root=None)),
            dataset_fingerprint=None if spec is None else spec.fingerprint,
            n_samples=len(dataset),
            n_concepts=len(concepts),
            concepts=digest,
            mask_shape=f"{mask_shape[0]}x{mask_shape[1]}",
            samples_per_part=PART_SAMPLES,
            package_version=package_version(),
        )

    @property
    def fingerprint(self) -> str:
        """A checksum of all of it."""
        return _fingerprint(asdict(self))


def _check_started(jobs: PartJobs, settings: _Settings, overwrite: bool) -> None:
    """Refuse to go on with a build of something else, and say what differs."""
    folder = jobs.folder
    path = folder / "settings.json"
    ours = asdict(settings)
    if path.exists():
        theirs = _read_settings(path)
        changed = [name for name in ours if theirs.get(name) != ours[name]]
        if not changed:
            return
        # Parts that have to be made again, as after a refused image, are not worth keeping; of
        # what cannot be told, nothing is thrown away.
        former = replace(jobs, build=_fingerprint(theirs))
        worth = any(_is_done(former, part) or not theirs for part in range(len(jobs)))
        if worth and not overwrite:
            said = "; ".join(
                f"{name} {theirs.get(name)} there, {ours[name]} now" for name in changed
            )
            raise ValueError(
                f"{folder} holds a started build with other settings: {said}. Finish it with its "
                "own settings, remove the folder, or pass overwrite=True (--overwrite) to start "
                "again."
            )
        for part in folder.glob("part-*"):
            part.unlink()
    write_whole(path, json.dumps(ours, indent=2).encode())


def _fingerprint(settings: dict[str, Any]) -> str:
    return digest_of(json.dumps(settings).encode())


def _read_settings(path: Path) -> dict[str, Any]:
    """The settings of a started build; nothing fits those that cannot be read."""
    try:
        found = json.loads(path.read_bytes())
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _parts(
    dataset: Dataset,
    spec: DatasetSpec | None,
    jobs: PartJobs,
    workers: int,
    skip_bad: bool,
    progress: Progress | None,
) -> Generator[Part]:
    """All parts in order, read from their files; those that are not there are made."""
    missing = [part for part in range(len(jobs)) if not _is_done(jobs, part)]
    ready = set(range(len(jobs))).difference(missing)
    n_done = sum(stop - start for start, stop in map(jobs.bounds, ready))
    with closing(make_parts(dataset, spec, jobs, missing, workers)) as made:
        for part in range(len(jobs)):
            if progress is not None:
                progress(n_done, jobs.n_samples)
            while part not in ready:
                finished = next(made)
                if finished.skipped and not skip_bad:
                    raise _refused(dataset, finished.skipped[0])
                ready.add(finished.part)
                start, stop = jobs.bounds(finished.part)
                n_done += stop - start
            yield _read_or_make(dataset, jobs, part)
    if progress is not None:
        progress(jobs.n_samples, jobs.n_samples)


def _read_or_make(dataset: Dataset, jobs: PartJobs, part: int) -> Part:
    """A part from its file; a file that was damaged since is made again."""
    try:
        return read_part(jobs.path(part), jobs.place(part))
    except PartFileError:
        jobs.make(dataset, part)
        return read_part(jobs.path(part), jobs.place(part))


def _is_done(jobs: PartJobs, part: int) -> bool:
    """Whether a part need not be made. One with skipped samples is: a file may be repaired now."""
    try:
        return not skipped_in(jobs.path(part), jobs.place(part))
    except PartFileError:
        return False


def _refused(dataset: Dataset, sample: SkippedSample) -> ValueError:
    lacking = dataset.missing_names(sample.name) if isinstance(dataset, FindsMissingNames) else None
    if lacking is not None:
        return LayoutError(f"Sample {sample.name!r} and maybe others cannot be read: {lacking}")
    return BadSampleError(
        sample.name,
        f"{sample.reason.rstrip('.')}. To leave such samples out, pass skip_bad=True (--skip-bad).",
    )


def _merge(
    dataset: Dataset, spec: DatasetSpec | None, jobs: PartJobs, parts: Iterable[Part]
) -> Path:
    """The finished store, still in the folder of the build."""
    concepts = dataset.concepts()
    path = jobs.folder / "table.zarr"
    builder = TableBuilder(
        [concept.name for concept in concepts],
        [concept.category for concept in concepts],
        path=path,
        overwrite=True,
    )
    pixels: dict[str, str] = {}
    skipped: list[SkippedSample] = []
    for part in parts:
        skipped += part.skipped
        for sample in part.samples:
            if sample.name in pixels:
                raise ValueError(f"Two samples of the dataset are called {sample.name!r}.")
            pixels[sample.name] = sample.pixels
            builder.add_sets(sample.sets, sample.members, jobs.mask_shape)
    if not pixels:
        raise ValueError(f"No sample could be read; the first: {_first(skipped)}")
    if not builder.build().concept_sizes.any():
        _LOG.warning(
            "No concept holds anywhere in the %d samples. Look whether the annotations mean what "
            "the names say; of label maps in a folder, the values 0, 255 and 65535 are no concepts "
            "unless they have a name.",
            len(pixels),
        )
    write_provenance(
        Provenance(
            spec=spec,
            fingerprint=None if spec is None else spec.fingerprint,
            description=describe(dataset),
            sample_names=tuple(pixels),
            samples=hash_samples(
                tuple(pixels), list(pixels.values()) if pixels_count(dataset, spec) else None, spec
            ),
            mask_shape=jobs.mask_shape,
            skipped=tuple(skipped),
            version=package_version(),
        ),
        path,
    )
    return path


def _first(skipped: list[SkippedSample]) -> str:
    return f"{skipped[0].name}: {skipped[0].reason}"


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    """The folder of the build for this process alone; the lock goes with the process."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BlockingIOError(f"Another process is building in {folder}.") from error
        yield
