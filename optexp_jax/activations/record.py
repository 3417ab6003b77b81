"""Recording: a model looks at all images of a dataset, and a layer's activations go to disk."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32

from optexp_jax.activations.layers import LayerProbe
from optexp_jax.activations.layouts import Layout
from optexp_jax.activations.loaded_model import LoadedModel
from optexp_jax.activations.store import (
    ActivationFileError,
    ActivationKey,
    ActivationMetadata,
    ActivationStore,
)
from optexp_jax.activations.writer import ActivationWriter
from optexp_jax.datasets import BadSampleError, Dataset, DatasetSpec, image_of
from optexp_jax.datasets.identity import identify_samples
from optexp_jax.datasets.provenance import SIDECAR, read_provenance

Progress = Callable[[int, int], None]
"""Called with the samples done and all of them."""


@dataclass(frozen=True, eq=False)
class Images:
    """The images that a layer is to see, and what tells them from others."""

    dataset: Dataset
    fingerprint: str
    spec: DatasetSpec | None = None
    """How to open the dataset again."""
    samples: tuple[int, ...] | None = None
    """Places in the dataset; None for all."""
    identity: str | None = None
    """Of those samples and their order; None to find it out."""


def find_images(data: str | Path | Dataset, *, table: str | Path | None = None) -> Images:
    """The images of a stored table, by its path; of a dataset such as `shapes:n=100`; or of a
    dataset made in Python, with `table` those that a table built from it has.

    Concepts that were derived from the images do not change them, so tables with and without them
    share activations.
    """
    if not isinstance(data, str | Path):
        return _images_of(data, table)
    if table is not None:
        raise ValueError("`table` goes with a dataset made in Python; pass the table's path alone.")
    path = Path(data)
    if path.suffix == ".zarr" or (path / SIDECAR).exists():
        provenance = read_provenance(path)
        dataset = provenance.open()
        assert provenance.spec is not None  # or it could not have been opened
        spec = replace(provenance.spec, add=())
        samples = tuple(provenance.indices.tolist())
        return Images(dataset, spec.fingerprint, spec, samples, provenance.samples)
    spec = replace(DatasetSpec.parse(str(data)), add=())
    return Images(spec.open(), spec.fingerprint, spec)


def _images_of(dataset: Dataset, table: str | Path | None) -> Images:
    """Images of a dataset that no text can open again; their identity is their fingerprint too."""
    if table is None:
        identity = identify_samples(dataset, None, range(len(dataset)))
        return Images(dataset, identity, identity=identity)
    provenance = read_provenance(table)
    samples = tuple(provenance.indices.tolist())
    same = len(dataset) == len(samples) + len(provenance.skipped)
    if not same or identify_samples(dataset, provenance.spec, samples) != provenance.samples:
        raise ValueError(
            f"{table} was not built from this dataset, or its samples were in another order. Pass "
            "the dataset that it was built from, or build the table again."
        )
    return Images(dataset, provenance.samples, None, samples, provenance.samples)


def record_activations(
    model: LoadedModel,
    layer: str,
    images: Images,
    out: str | Path,
    *,
    layout: Layout = "auto",
    batch_size: int = 32,
    device: str = "cpu",
    progress: Progress | None = None,
) -> ActivationStore:
    """Store a layer's raw activations for all images.

    A store at `out` with the same key is returned as it is; an unfinished one is continued; one
    with another key is an error.
    """
    if batch_size < 1:
        raise ValueError(f"A batch needs at least one image; got {batch_size}.")
    probe = LayerProbe(model, layer, layout=layout, device=device)
    dataset = images.dataset
    chosen = range(len(dataset)) if images.samples is None else images.samples
    if not chosen:
        raise ValueError("There are no samples to show to the model.")
    key = ActivationKey(
        model=model.title,
        weights=model.weights,
        layer=layer,
        dataset=_dataset_key(images.fingerprint, chosen),
        preprocessing=model.preprocessing.to_text(),
        layout=layout,
    )
    path = Path(out)
    if path.exists():
        return _reuse(path, key)
    identity = images.identity or identify_samples(dataset, images.spec, chosen)
    metadata = ActivationMetadata(
        key, None if images.spec is None else images.spec.to_json(), identity
    )
    # Two images, so that a first axis that is not the samples' shows before anything is written.
    first = _batch(model, dataset, [chosen[0], chosen[min(1, len(chosen) - 1)]])
    n_units, rows, columns = (int(size) for size in probe(first).shape[1:])
    if model.preprocessing.shorter is not None and rows * columns > 1:
        raise ValueError(
            f"The preprocessing crops images: the {rows} x {columns} maps of {layer!r} show "
            "the middle of an image only, while the masks of concepts show all of it. Take the "
            "protocol `whole` (--protocol whole), or a layer with one location."
        )
    with ActivationWriter(path, metadata, (len(chosen), n_units, rows, columns)) as writer:
        for start, inputs in _rows(model, dataset, chosen, writer):
            row = torch.cat([probe(part) for part in torch.split(inputs, batch_size)]).numpy()
            try:
                writer.append(row)
            except ValueError as error:
                writer.discard()  # It would go wrong again.
                raise ValueError(f"Layer {layer!r} of {model.name}: {error}") from error
            if progress is not None:
                progress(start + len(row), len(chosen))
        return writer.finish()


def _rows(
    model: LoadedModel, dataset: Dataset, chosen: Sequence[int], writer: ActivationWriter
) -> Iterator[tuple[int, torch.Tensor]]:
    """Inputs of the rows that are left to write; the next one is read while one is in use."""
    step = writer.samples_per_row
    starts = range(writer.n_done, len(chosen), step)
    with ThreadPoolExecutor(1) as reader:
        waiting = [
            reader.submit(_batch, model, dataset, chosen[start : start + step])
            for start in starts[:1]
        ]
        for place, start in enumerate(starts):
            inputs = waiting.pop().result()
            for following in starts[place + 1 : place + 2]:
                following_samples = chosen[following : following + step]
                waiting.append(reader.submit(_batch, model, dataset, following_samples))
            yield start, inputs


def _batch(model: LoadedModel, dataset: Dataset, samples: Sequence[int]) -> torch.Tensor:
    try:
        images: list[Float32[np.ndarray, "3 size size"]] = [
            model.preprocessing(image_of(dataset, index)) for index in samples
        ]
    except BadSampleError as error:
        raise BadSampleError(
            error.name,
            f"{error.reason.rstrip('.')}. To leave such samples out, build a table with skip_bad="
            "True (optexp data build --skip-bad) and record for it.",
        ) from error
    return torch.from_numpy(np.stack(images))


def _dataset_key(fingerprint: str, samples: Sequence[int]) -> str:
    text = json.dumps([fingerprint, list(samples)])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _reuse(path: Path, key: ActivationKey) -> ActivationStore:
    store = ActivationStore.open(path)
    if store.metadata.key != key:
        held = store.metadata.key
        raise ActivationFileError(
            f"{path} holds other activations (layer {held.layer!r} of {held.model}, or of other "
            "weights, images or preprocessing). Remove it or choose another path."
        )
    return store
