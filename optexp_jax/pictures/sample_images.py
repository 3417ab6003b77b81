"""The photographs behind the samples of a table."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int64, UInt8

from optexp_jax.datasets.protocol import Dataset, NamesSamples, image_of
from optexp_jax.datasets.provenance import read_provenance
from optexp_jax.pictures.missing import NoPicturesError
from optexp_jax.runs.layers import StoredLayer
from optexp_jax.runs.run import Run


@dataclass(frozen=True, eq=False)
class SampleImages:
    """Images and names of a table's samples, by their number in the table."""

    dataset: Dataset
    indices: Int64[np.ndarray, " samples"]
    """The place in the dataset of each sample."""
    names: tuple[str, ...]

    @classmethod
    def of_table(cls, path: str | Path, root: str | None = None) -> "SampleImages":
        """Of a stored table; `root` is the dataset's folder, if it was moved."""
        try:
            provenance = read_provenance(path)
            dataset = provenance.open(root)
        except (ValueError, OSError) as error:
            raise NoPicturesError(f"There are no images for {path}: {error}") from error
        return cls(dataset, provenance.indices, provenance.sample_names)

    @classmethod
    def of_run(cls, run: Run, root: str | None = None) -> "SampleImages":
        """Of the table that a run was made with."""
        try:
            opener = run.opener
        except ValueError as error:
            raise NoPicturesError(f"There are no images for {run.path}: {error}") from error
        if not isinstance(opener, StoredLayer):
            raise NoPicturesError(
                f"There are no images for {run.path}: its units come from {opener!r}, not from a "
                "stored table and stored activations. Pass SampleImages.of_dataset(dataset)."
            )
        return cls.of_table(opener.table, root)

    @classmethod
    def of_dataset(cls, dataset: Dataset) -> "SampleImages":
        """Of a dataset made in Python, all of whose samples are in the table."""
        every = range(len(dataset))
        names = (
            tuple(dataset.sample_names())
            if isinstance(dataset, NamesSamples)
            else tuple(f"sample {index}" for index in every)
        )
        return cls(dataset, np.arange(len(dataset), dtype=np.int64), names)

    def __len__(self) -> int:
        return len(self.indices)

    def require(self, n_samples: int) -> "SampleImages":
        """These images, if there is one for each of so many samples."""
        if len(self) != n_samples:
            raise NoPicturesError(
                f"There are images of {len(self)} samples, but the table has {n_samples}. Pass "
                "the images of the dataset that the table was built from."
            )
        return self

    def image(self, sample: int) -> UInt8[np.ndarray, "height width 3"]:
        """The photograph of a sample, decoded now."""
        if not 0 <= sample < len(self):
            raise ValueError(f"There is no sample {sample}: they are 0 to {len(self) - 1}.")
        return image_of(self.dataset, int(self.indices[sample]))

    def name(self, sample: int) -> str:
        """The name of a sample in its dataset."""
        return self.names[sample]
