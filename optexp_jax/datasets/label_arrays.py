"""Label maps and soft masks that are arrays in `.npy` files."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from jaxtyping import Int32, Shaped

from optexp_jax.datasets.protocol import BadSampleError

MOST_PIXELS = 2**27
"""Of an image. A file of a few bytes can claim billions, all of which would be allocated."""


def read_label_array(path: Path, sample: str) -> Int32[np.ndarray, "height width"]:
    """Whole numbers `[height, width]`."""
    with _told(path, sample):
        stored = _mapped(path, 2, "a label map is [height, width]")
        if stored.dtype.kind not in "bui":
            raise ValueError(
                f"it holds {stored.dtype}; label maps are whole numbers. Soft masks are read by "
                "the kind soft."
            )
        low, high = int(stored.min()), int(stored.max())
        if low < -(2**31) or high >= 2**31:
            raise ValueError(f"it holds {low if low < 0 else high}; values must fit 32 bits.")
        return stored.astype(np.int32)


def read_score_array(path: Path, sample: str) -> Shaped[np.ndarray, "scores height width"]:
    """Soft masks `[concept, height, width]`."""
    with _told(path, sample):
        return np.array(_mapped(path, 3, "soft masks are [concept, height, width]"))


def _mapped(path: Path, n_axes: int, wanted: str) -> Shaped[np.ndarray, "..."]:
    """The array, not yet read: its header may claim more than there is."""
    stored = np.load(path, mmap_mode="r", allow_pickle=False)
    if not isinstance(stored, np.ndarray):
        stored.close()
        raise ValueError("it holds several arrays; write one with numpy.save.")
    if stored.ndim != n_axes or 0 in stored.shape:
        raise ValueError(f"{wanted}; it is {list(stored.shape)}.")
    if stored.shape[-1] * stored.shape[-2] > MOST_PIXELS:
        raise ValueError(
            f"it is {stored.shape[-2]} x {stored.shape[-1]}; at most {MOST_PIXELS} are read."
        )
    return stored


@contextmanager
def _told(path: Path, sample: str) -> Generator[None]:
    try:
        yield
    except FileNotFoundError:
        raise BadSampleError(sample, f"{path} does not exist.") from None
    except Exception as error:  # numpy raises many kinds for files that hold nonsense
        raise BadSampleError(sample, f"{path}: {error or type(error).__name__}") from error
