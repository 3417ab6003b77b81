"""Memory that would be needed, and memory that there is: said before it is asked for."""

import os
import resource
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")
_GIGABYTE = 10**9


class TooLargeError(ValueError):
    """Something that would take more memory than there is."""


def require_memory(needed: int, what: str, instead: str) -> None:
    """Refuse what does not fit, with a word on how much it would take and what to do instead."""
    there = available_memory()
    if needed > there:
        raise TooLargeError(
            f"{what} would take about {_shown(needed)} of memory, and {_shown(there)} are free. "
            f"{instead}"
        )


def available_memory() -> int:
    """Bytes that this process can still get, as far as the system tells."""
    limits = [_free_of_machine(), _left_of_group(), _left_of_process()]
    return max(0, min(limit for limit in limits if limit is not None))


def _free_of_machine() -> int:
    try:
        lines = _MEMINFO.read_text(encoding="ascii").splitlines()
        return (
            next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) * 1024
        )
    except (OSError, StopIteration, ValueError, IndexError):  # Not Linux: all of it may be free.
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _left_of_group() -> int | None:
    """What a container may still use."""
    try:
        limit, used, stat = (
            (_CGROUP / name).read_text() for name in ("memory.max", "memory.current", "memory.stat")
        )
        counted = dict(line.split() for line in stat.splitlines())
        # Files that were read stay there until the memory is needed.
        return int(limit) - int(used) + int(counted["inactive_file"])
    except (OSError, ValueError, KeyError):  # No such limit: "max".
        return None


def _left_of_process() -> int | None:
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return limit
    return limit - pages * os.sysconf("SC_PAGE_SIZE")


def _shown(size: int) -> str:
    return f"{size / _GIGABYTE:.1f} GB"
