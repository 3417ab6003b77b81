"""Code of the user's own, named as `module:object`: models, bounds, datasets, operators.

Naming runs it, so only what a user wrote may come here (a command line, its `--config`, Python), no
name that was read from a file of results or data.
"""

import difflib
import importlib
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

_PATH = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
OWN_OBJECT = re.compile(rf"({_PATH}):({_PATH})")
"""`module:object`; both may have dots."""
_NOT_OWN = (
    str(Path(__file__).parent.parent),
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
    "<frozen",
)
"""Folders of code that is not the user's: this package, Python, and what is installed."""


def find_object(text: str, what: str = "object") -> Any:
    """The object that `module:object` names; modules of the current folder are found too."""
    named = OWN_OBJECT.fullmatch(text)
    if named is None:
        raise ValueError(f"{text!r} does not name {_a(what)}; write module:{what}.")
    return _find(named[1], named[2], what, _import_from_here)


def import_object(module: str, name: str, what: str = "object") -> Any:
    """The object of this name in an installed module; ValueError tells what is wrong."""
    return _find(module, name, what, importlib.import_module)


def _find(module: str, name: str, what: str, load: Callable[[str], ModuleType]) -> Any:
    problem = f"{module}:{name} does not name {_a(what)} that can be imported"
    try:
        found: Any = load(module)
    except ModuleNotFoundError as error:
        # A module that the user's own needs may be missing as well.
        missing = error.name or module
        where = "" if (module + ".").startswith(missing + ".") else f", which {module} imports"
        raise ValueError(
            f"{problem}: there is no module {missing}{where}, installed or in the current folder "
            f"({Path.cwd()})."
        ) from None
    except Exception as error:  # it is not our code, and may raise anything
        # Of a syntax error the text itself names the line.
        where = "" if isinstance(error, SyntaxError) else f" ({place_of(error)})"
        raise ValueError(
            f"{problem}: {module} raised {type(error).__name__}: {error}{where}."
        ) from error
    for part in name.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, [n for n in dir(found) if n[0] != "_"], n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ValueError(f"{problem}: {module} has no {part}.{hint}")
        found = getattr(found, part)
    return found


def _import_from_here(name: str) -> ModuleType:
    """A module of the current folder if it has it, as for `python -m`, or else an installed one.

    A console command does not search that folder. Only the named module is looked for there first;
    what it imports is, last: no file there takes the place of an installed module.
    """
    here, top = str(Path.cwd()), name.partition(".")[0]
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
    importlib.invalidate_caches()  # the file may be new
    spec = None if top in sys.modules else PathFinder.find_spec(top, [here])
    if spec is not None and spec.loader is not None:
        sys.modules[top] = module_from_spec(spec)
        try:
            spec.loader.exec_module(sys.modules[top])
        except BaseException:
            del sys.modules[top]
            raise
    return importlib.import_module(name)


def place_of(error: BaseException) -> str:
    """Where an error arose, as `FILE, line N`: the innermost line of the user's own code."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "an unknown place"
    own = [frame for frame in frames if not frame.filename.startswith(_NOT_OWN)]
    frame = (own or frames)[-1]
    return f"{frame.filename}, line {frame.lineno}"


def _a(what: str) -> str:
    return f"{'an' if what[0].lower() in 'aeiou' else 'a'} {what}"
