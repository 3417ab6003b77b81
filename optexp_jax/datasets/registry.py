"""The kinds of datasets, by name."""

import difflib
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

from optexp_jax.datasets.layout import short
from optexp_jax.datasets.protocol import Dataset
from optexp_jax.internal.own_code import find_object, place_of

Opener = Callable[..., Dataset]
"""Takes `root` (a Path), if the kind reads files, and its options by name."""

OptionValue = str | int | float | bool

# Where the openers are. They are imported when they are asked for, as some need extras.
KINDS: dict[str, Opener | str] = {
    "arrays": "optexp_jax.datasets.arrays_file:open_arrays",
    "ade20k": "optexp_jax.datasets.ade20k:open_ade20k",
    "broden": "optexp_jax.datasets.broden:open_broden",
    "cityscapes": "optexp_jax.datasets.cityscapes:open_cityscapes",
    "coco": "optexp_jax.datasets.coco:open_coco",
    "folder": "optexp_jax.datasets.folder:open_folder",
    "labelme": "optexp_jax.datasets.labelme:open_labelme",
    "panoptic": "optexp_jax.datasets.panoptic:open_panoptic",
    "soft": "optexp_jax.datasets.soft:open_soft",
    "shapes": "optexp_jax.datasets.shapes:open_shapes",
    "via": "optexp_jax.datasets.via:open_via",
    "voc": "optexp_jax.datasets.voc:open_voc",
    "yolo": "optexp_jax.datasets.yolo:open_yolo",
}


Kind = TypeVar("Kind", bound=Opener)


def register_kind(opener: Kind) -> Kind:
    """Decorator: make a function of a module of yours a kind of dataset, `module:function`.

    The name is the way to the function, so that other processes find it too.
    """
    KINDS[f"{opener.__module__}:{opener.__qualname__}"] = opener
    return opener


def find_opener(kind: str) -> Opener:
    """The opener of a kind that is known."""
    if kind not in KINDS and ":" in kind and kind.partition(":")[0] not in sys.modules:
        raise ValueError(
            f"{short(kind)} is a dataset kind of somebody's own, named in a file. Its code runs "
            f"only if you name it too: pass --allow {kind}, give the dataset itself, or import its "
            "module."
        )
    if kind not in KINDS:
        near = difflib.get_close_matches(kind, KINDS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"There is no kind of dataset {short(kind)}.{hint} Kinds: {', '.join(sorted(KINDS))}; "
            "or module:function for a function of yours decorated with @register_kind."
        )
    found = KINDS[kind]
    if not isinstance(found, str):
        return found
    module, _, name = found.partition(":")
    return getattr(importlib.import_module(module), name)


def open_kind(kind: str, root: Path | None, options: Mapping[str, OptionValue]) -> Dataset:
    """Open a dataset; options that the kind does not have are refused by name."""
    opener = find_opener(kind)
    parameters = inspect.signature(opener).parameters
    known = [name for name in parameters if name != "root"]
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            said = f"Its options: {', '.join(known)}." if known else "It has none."
            raise ValueError(f"Datasets of kind {kind!r} have no option {name!r}.{hint} {said}")
    arguments: dict[str, Any] = {
        name: _fitting(value, parameters[name], kind) for name, value in options.items()
    }
    if root is not None:
        if "root" not in parameters:
            raise ValueError(f"Datasets of kind {kind!r} have no folder; got {str(root)!r}.")
        arguments["root"] = root
    elif "root" in parameters and parameters["root"].default is inspect.Parameter.empty:
        raise ValueError(f"Say where the dataset is: '{kind}:/path/to/it' (--root).")
    return opener(**arguments) if ":" not in kind else _open_own(kind, opener, arguments)


def _open_own(kind: str, opener: Opener, arguments: dict[str, Any]) -> Dataset:
    """Call a function of the user's own; what goes wrong in it points at their line."""
    try:
        found: Any = opener(**arguments)
    except Exception as error:  # It is not our code.
        raise ValueError(
            f"{kind} raised {type(error).__name__}: {error} ({place_of(error)})."
        ) from error
    if isinstance(found, Dataset):
        return found
    raise TypeError(
        f"{kind} must return a dataset, with concepts(), len and [index]; got "
        f"{type(found).__name__}. Of any sequence of (image, mask), from_pairs makes one."
    )


def _fitting(value: OptionValue, parameter: inspect.Parameter, kind: str) -> OptionValue:
    """The value as the opener takes it: text may look like a number, and 1 is a float too."""
    accepted = get_args(parameter.annotation) or (parameter.annotation,)
    if not {str, int, float, bool}.intersection(accepted) or type(value) in accepted:
        return value  # Nothing to compare it with, or as it should be.
    if str in accepted:
        return str(value)
    if float in accepted and type(value) is int:
        return float(value)
    wanted = " or ".join(one.__name__ for one in accepted if one is not type(None))
    raise ValueError(
        f"Option {parameter.name!r} of datasets of kind {kind!r} must be {wanted}; got {value!r}."
    )


def import_kind(kind: str) -> None:
    """Import the module of a kind such as `module:function`, which the user has named."""
    # Only what a module registered itself is ever called: `os:system` is a way to a function too.
    if kind in KINDS or ":" not in kind:
        return
    try:
        find_object(kind, "function")
    except ValueError as error:
        module, _, rest = kind.partition(":")
        near = difflib.get_close_matches(module, KINDS, n=1)
        hint = f" Or did you mean {near[0]}:{rest}?" if near else ""
        raise ValueError(f"Dataset kind {kind}: {error}{hint}") from error
