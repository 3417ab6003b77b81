"""Programs that JAX has compiled are kept for the next command, in the user's cache directory.

The library leaves this to its users, as it sets no flag of JAX; a command is a process of its own.
What is set are variables of the environment, before JAX is imported, so that workers have them too.

A kept program is machine code. So its folder is named after the processor's features and jaxlib's
version: on another machine that shares the home directory, it would fail or stop the process. And
the folder must be one that nobody else can write to.
"""

import os
import stat
import sys
from collections.abc import MutableMapping
from pathlib import Path

VARIABLE = "OPTEXP_COMPILATION_CACHE"
"""A folder to keep programs in instead, or `off`."""
FOLDER, TIME, ENABLED = (
    "JAX_COMPILATION_CACHE_DIR",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS",
    "JAX_ENABLE_COMPILATION_CACHE",
)
"""JAX's own settings, which come first where they are given."""
OFF = ("off", "0", "no", "false")


def keep_programs(environment: MutableMapping[str, str] = os.environ) -> Path | None:
    """Have JAX keep what it compiles; the folder, or None if it does not, or not here."""
    if FOLDER in environment or ENABLED in environment:
        return None
    chosen = environment.get(VARIABLE, "")
    if chosen.lower() in OFF:
        return None
    try:
        folder = (Path(chosen).expanduser() if chosen else _default()) / _machine()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
        _require_own(folder)
    except (OSError, RuntimeError) as error:  # a home that cannot be written, or is not known
        if chosen:
            said = f"programs are not kept in {chosen}, as {VARIABLE} asks: {error}"
            print(f"optexp: {said}", file=sys.stderr)
        return None
    environment[FOLDER] = str(folder)
    # Most of our programs take less time than JAX thinks worth keeping, and there are many.
    environment.setdefault(TIME, "0")
    return folder


def _default() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("optexp", appauthor=False)) / "compiled"


def _require_own(folder: Path) -> None:
    """Refuse a folder that others can put programs into."""
    found = folder.stat()
    if os.name == "posix" and (found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077):
        raise PermissionError(f"{folder} is not yours alone.")


def _machine() -> str:
    """A name that machines share only if programs of one run on the other."""
    import hashlib
    import platform
    from importlib.metadata import version

    parts = (platform.machine(), platform.system(), *_processor_features())
    digest = hashlib.blake2b("\n".join(parts).encode(), digest_size=6).hexdigest()
    return f"jaxlib-{version('jaxlib')}-{platform.machine()}-{digest}"


def _processor_features() -> tuple[str, ...]:
    """What the processor can do, as Linux tells it; elsewhere, what it is."""
    import platform

    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return (platform.processor(),)
    told = ("flags", "Features", "model name", "CPU part")
    return tuple(sorted({line for line in lines if line.split("\t")[0].strip() in told}))
