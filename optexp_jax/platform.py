"""The one place that chooses between a host kernel and a device kernel.

Both kernels of a pair compute the same integers; tests run each against the other.
"""

import jax


def prefers_host_kernels() -> bool:
    """Whether sparse work is cheaper in numpy/scipy than as dense work on the default device.

    On a CPU the "device" is the same cores, and skipping zeros beats streaming over them.
    """
    return jax.default_backend() == "cpu"
