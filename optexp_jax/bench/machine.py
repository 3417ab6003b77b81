"""Where figures were measured: the machine, how busy it was, and the versions of what ran."""

import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import psutil

from optexp_jax.internal.processor import processor_name

PACKAGES = (
    "optexp-jax",
    "jax",
    "jaxlib",
    "numpy",
    "scipy",
    "zarr",
    "equinox",
    "torch",
    "compositional-explanations",
)


@dataclass(frozen=True)
class Machine:
    """A machine and what was installed on it."""

    platform: str
    processor: str
    cpu_count: int
    memory_bytes: int
    load: float
    """Processes that wanted to run, on average over a minute, when the figures were begun."""
    python: str
    packages: dict[str, str]

    @classmethod
    def here(cls, packages: Iterable[str] = PACKAGES) -> "Machine":
        found = {name: installed_version(name) for name in packages}
        return cls(
            platform=platform.platform(),
            processor=processor_name(),
            cpu_count=os.cpu_count() or 1,
            memory_bytes=psutil.virtual_memory().total,
            load=round(os.getloadavg()[0], 2),
            python=platform.python_version(),
            packages={name: text for name, text in found.items() if text is not None},
        )

    def __str__(self) -> str:
        memory = f"{self.memory_bytes / 2**30:.0f} GiB"
        return (
            f"{self.processor}, {self.cpu_count} cores, {memory}, load {self.load:g} at the start, "
            f"Python {self.python}, jax {self.packages.get('jax', 'unknown')}"
        )


def installed_version(package: str) -> str | None:
    """The installed version of a package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
