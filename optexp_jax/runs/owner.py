"""Who works on a unit, and whether that process is still there."""

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil


@dataclass(frozen=True)
class Owner:
    """A process, told apart from a later one with the same id by when it started."""

    host: str
    """The machine, its boot and its space of process ids: where `pid` means something."""
    pid: int
    started: str

    @classmethod
    def here(cls) -> Self:
        """This process."""
        return cls(_host(), os.getpid(), _start_time(os.getpid()) or "")

    @classmethod
    def parse(cls, text: str) -> Self:
        host, pid, started = text.rsplit(" ", 2)
        return cls(host, int(pid), started.removeprefix("@"))

    def __str__(self) -> str:
        return f"{self.host} {self.pid} @{self.started}"

    @property
    def is_gone(self) -> bool:
        """Whether the process is known to have ended; of other machines nothing is known."""
        if self.host != _host():
            return False
        started = _start_time(self.pid)
        return started is None or (started != "" and started != self.started)


def _host() -> str:
    boot, space = "", ""
    if Path("/proc/sys/kernel/random/boot_id").exists():
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
        space = os.readlink("/proc/self/ns/pid").removeprefix("pid:")
    return f"{socket.gethostname()}/{boot}{space}"


def _start_time(pid: int) -> str | None:
    """When a process started, in seconds since boot; None if it ended, "" if that is not told."""
    try:
        # Psutil tells it by the clock, which may be set meanwhile: from its own time of boot on, it
        # is what the system counts.
        boot = psutil.boot_time()
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return f"{process.create_time() - boot:.2f}"
    except psutil.NoSuchProcess:
        return None
    except psutil.AccessDenied:
        return ""
