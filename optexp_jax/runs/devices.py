"""Several accelerators on one machine: a thread a device, each with units of its own."""

import queue
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax

from optexp_jax.runs import task as tasks


class DeviceThreads(ThreadPoolExecutor):
    """One thread for each device, by default all of this process.

    A thread's arrays and programs live on its device; it opens the source for itself, so that
    the table is there once a device. Units are independent, so results do not depend on how many
    devices there are.
    """

    def __init__(self, devices: Sequence[Any] | None = None):
        self.devices = list(jax.local_devices() if devices is None else devices)
        if not self.devices:
            raise ValueError("There must be at least one device.")
        free: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for device in self.devices:
            free.put(device)
        super().__init__(len(self.devices), initializer=_settle, initargs=(free,))


def _settle(free: "queue.SimpleQueue[Any]") -> None:
    """Take a device for all that this thread will do."""
    device = free.get()
    jax.default_device(device).__enter__()  # JAX keeps it by thread, and the thread ends with it
    tasks.settle(str(device))
