"""Exact counts of labels: their own, and of what they share with every concept of a place."""

import numpy as np
from jaxtyping import Array, Int64

from optexp_jax.internal.pytrees import pytree


@pytree
class LabelCounts:
    """On the host or on the device, where they were counted."""

    inside: Int64[Array | np.ndarray, " labels"]
    outside: Int64[Array | np.ndarray, " labels"]
    shared_inside: Int64[Array | np.ndarray, "labels concepts"]
    shared_outside: Int64[Array | np.ndarray, "labels concepts"]
