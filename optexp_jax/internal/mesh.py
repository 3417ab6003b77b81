"""Batches over several devices: the one place that says how arrays are laid out.

A batch is split along its first axis; what all rows need is on every device. Rows are computed as
they would be on one device, so results are the same bit for bit.
"""

import functools
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Shaped

AXIS = "batch"


def batch_devices() -> int:
    """Devices that a batch is split over: a power of two of them, as batches are padded to."""
    mesh = _mesh()
    return 1 if mesh is None else mesh.size


def split_batch(array: Shaped[Array | np.ndarray, "batch ..."]) -> Any:
    """The array with its first axis over the devices, if it can be split evenly."""
    mesh = _mesh()
    if mesh is None or array.shape[0] % mesh.size:
        return array
    return jax.device_put(array, NamedSharding(mesh, PartitionSpec(AXIS)))


def on_every_device(array: Shaped[Array, "..."]) -> Any:
    """The array with a copy on each device that batches are split over."""
    mesh = _mesh()
    return array if mesh is None else jax.device_put(array, NamedSharding(mesh, PartitionSpec()))


def _mesh() -> Mesh | None:
    # A thread or user that has chosen a device keeps to it.
    if jax.config.jax_default_device is not None:  # pyright: ignore[reportAttributeAccessIssue]
        return None
    return _mesh_of_all()


@functools.cache
def _mesh_of_all() -> Mesh | None:
    devices = jax.local_devices()
    n = 1 << (len(devices).bit_length() - 1)
    return None if n == 1 else Mesh(np.array(devices[:n]), (AXIS,))
