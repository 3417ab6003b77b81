"""What the processor of this machine is called."""

import platform


def processor_name() -> str:
    """As Linux tells it, or as Python does elsewhere."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
