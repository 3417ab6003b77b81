"""Who works on a unit, and whether that process is still there."""

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Self


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
        return self.host == _host() and _start_time(self.pid) != (self.started or "")


def _host() -> str:
    boot, space = "", ""
    if Path("/proc/sys/kernel/random/boot_id").exists():
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
        space = os.readlink("/proc/self/ns/pid").removeprefix("pid:")
    return f"{socket.gethostname()}/{boot}{space}"


def _start_time(pid: int) -> str | None:
    """When a process started, in ticks since boot; "" where there is no /proc; None if it ended."""
    if not Path("/proc/self/stat").exists():
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            pass
        return ""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name of the program, in brackets, may hold spaces. Then come the state and 18 numbers.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields[19]
