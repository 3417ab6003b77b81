"""How much memory this process holds, and the most that it held."""

import os
import resource
import sys
from pathlib import Path


def resident_bytes() -> int:
    """The resident size now; where the system does not tell, the largest one so far."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return _largest()
    return pages * os.sysconf("SC_PAGESIZE")


def forget_peak() -> None:
    """Begin to look for the peak anew, where the system can: Linux."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def peak_bytes() -> int:
    """The largest resident size since `forget_peak`; where that does nothing, of the process."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return _largest()
    (kilobytes,) = (int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return kilobytes * 1024


def _largest() -> int:
    # Kilobytes on Linux, bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
