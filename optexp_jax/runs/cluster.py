"""A Dask cluster as an executor."""

import contextlib
import logging
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, cast

from optexp_jax.runs.watched import ANSWER, ClusterLostError, Watched


@dataclass(frozen=True)
class Cluster:
    """The workers of a cluster, and how many tasks keep them busy."""

    executor: Watched
    in_flight: int


@contextlib.contextmanager
def dask_executor(address: str) -> Generator[Cluster]:
    """The workers of the Dask scheduler at an address.

    They must have this package, and see the table and the activations under the same paths. Dask
    gives the tasks of a worker that dies to others. When the scheduler or all workers are gone, the
    tasks fail with `ClusterLostError`; Dask itself would wait for ever.

    Dask's messages are pickles: who controls the scheduler can run code here.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError('Dask is not installed: pip install "optexp-jax[dask]".') from error
    name = f"The Dask scheduler at {address}"
    try:
        client: Any = Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise OSError(f"There is no Dask scheduler at {address}: {error}") from None
    except (RuntimeError, TypeError) as error:  # what Dask raises for its settings of TLS
        raise ValueError(f"{name} cannot be talked to as Dask is set up: {error}") from None

    def ask_for_threads() -> dict[str, int]:
        if client.status in ("closing", "closed"):
            raise ClusterLostError("is gone: Dask has given up its connection")
        return cast(dict[str, int], client.sync(client.scheduler.ncores, callback_timeout=ANSWER))

    with contextlib.ExitStack() as stack:
        stack.enter_context(_quiet())
        stack.callback(_close, client)
        threads = ask_for_threads()
        if not threads:
            raise OSError(f"{name} has no workers yet; start some.")
        # The same unit may be asked for twice, after a death; it must not be taken from a cache.
        executor = Watched(
            client.get_executor(pure=False), lambda: len(ask_for_threads()), name=name
        )
        stack.callback(executor.shutdown, wait=False)
        yield Cluster(executor, sum(threads.values()) + len(threads))


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    """Without Dask's own lines about a connection that is lost: ours say what to do."""
    logger = logging.getLogger("distributed.client")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _close(client: Any) -> None:
    """Part from the scheduler; if it does not answer, there is nothing left to part from."""
    with contextlib.suppress(Exception):
        client.close(timeout=ANSWER)
