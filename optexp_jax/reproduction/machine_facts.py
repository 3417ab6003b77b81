"""Where figures were made: the machine, how busy it was, and versions."""

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path

import jax
import psutil

from optexp_jax.internal.processor import processor_name
from optexp_jax.runs.configuration import versions
from optexp_jax.stores.durable import write_whole

FILE = "machine.json"


@dataclass(frozen=True)
class MachineFacts:
    """A machine and what was installed on it."""

    processor: str
    cores: int
    memory_gib: float
    device: str
    """What JAX computes on."""
    load: float
    """Processes that wanted to run, on average over the minute before."""
    versions: dict[str, str]

    @classmethod
    def here(cls) -> "MachineFacts":
        """Of this machine, now."""
        return cls(
            processor=processor_name(),
            cores=len(os.sched_getaffinity(0)),
            memory_gib=round(psutil.virtual_memory().total / 2**30, 1),
            device=jax.devices()[0].device_kind,
            load=round(os.getloadavg()[0], 2),
            versions=versions(),
        )

    @classmethod
    def kept_in(cls, folder: Path) -> "MachineFacts":
        """Of the machine that began the runs in a folder: this one, if there are none yet.

        Runs that are done are not done again, wherever their table is printed.
        """
        path = folder / FILE
        if path.exists():
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        found = cls.here()
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(dataclasses.asdict(found), indent=2).encode())
        return found

    def __str__(self) -> str:
        jax_version, python = self.versions.get("jax", "?"), self.versions["python"]
        return (
            f"{self.processor}, {self.cores} cores, {self.memory_gib:g} GiB, computing on "
            f"{self.device}, load {self.load:g}, Python {python}, jax {jax_version}"
        )
