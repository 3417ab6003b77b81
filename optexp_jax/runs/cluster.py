"""A Dask cluster as an executor."""

import contextlib
from collections.abc import Generator
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, cast


@dataclass(frozen=True)
class Cluster:
    """The workers of a cluster, and how many tasks keep them busy."""

    executor: Executor
    in_flight: int


@contextlib.contextmanager
def dask_executor(address: str) -> Generator[Cluster]:
    """The workers of the Dask scheduler at an address.

    They must have this package, and see the table and the activations under the same paths. Dask
    gives the tasks of a worker that dies to others.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError('Dask is not installed: pip install "optexp-jax[dask]".') from error
    try:
        client = Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise OSError(f"There is no Dask scheduler at {address}: {error}") from None
    with client:
        threads = cast(dict[str, int], client.nthreads())
        if not threads:
            raise OSError(f"The Dask scheduler at {address} has no workers yet; start some.")
        # The same unit may be asked for twice, after a death; it must not be taken from a cache.
        executor: Any = client.get_executor(pure=False)
        yield Cluster(cast(Executor, executor), sum(threads.values()) + len(threads))
