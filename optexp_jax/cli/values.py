"""Values of options, from the text of a command line or a file.

A type is known by how it is written in the source of a settings class. What needs the library
imports it when there is a value to make.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optexp_jax.cli.nearest import did_you_mean
from optexp_jax.internal.own_code import find_object

if TYPE_CHECKING:
    from optexp_jax.bounds import AbstractBounds, AbstractVectors
    from optexp_jax.counts.metrics import Objective
    from optexp_jax.formulas.operators import Operator
    from optexp_jax.search import AbstractOrder

BOUNDS = {"tight": "TightBounds", "paper": "PaperBounds"}
ORDERS = {"best-first": "BestFirst", "depth-first": "DepthFirst", "breadth-first": "BreadthFirst"}
OBJECTIVES = ("iou", "f1", "cosine", "phi")
VECTORS = {"published": "PublishedVectors", "label": "LabelVectors"}
OPERATORS = "OR,AND,AND NOT"


def parse_bounds(text: str) -> "AbstractBounds":
    """A family of bounds by its short name or as `module:Class`."""
    import optexp_jax.bounds as library

    return _make(text, BOUNDS, library, library.AbstractBounds, "family of bounds")


def parse_vectors(text: str) -> "AbstractVectors":
    """Top and Bott vectors by their short name or as `module:Class`."""
    import optexp_jax.bounds as library

    return _make(text, VECTORS, library, library.AbstractVectors, "way to make vectors")


def parse_order(text: str) -> "AbstractOrder":
    """An order of nodes by its short name or as `module:Class`."""
    import optexp_jax.search as library

    return _make(text, ORDERS, library, library.AbstractOrder, "order of nodes")


def _make(text: str, known: Mapping[str, str], library: Any, base: type[Any], what: str) -> Any:
    """An object of the named class, with its defaults."""
    if text in known:
        return getattr(library, known[text])()
    if ":" not in text:
        near = did_you_mean(text, known)
        raise ValueError(f"{text!r} is not {', '.join(known)} or module:Class.{near}")
    found = find_object(text, "class")
    if not isinstance(found, type) or not issubclass(found, base):
        kind = "not a class" if not isinstance(found, type) else f"not a {what}"
        raise ValueError(f"{text} is {kind}: it must be a subclass of {base.__name__}")
    try:
        return found()
    except TypeError as error:
        raise ValueError(
            f"{text} cannot be made without arguments ({error}); give its fields defaults"
        ) from None


def parse_operators(text: str) -> tuple["Operator", ...]:
    """Operators by name or as `module:object`, with commas between."""
    from optexp_jax.formulas.operators import DEFAULT_OPERATORS, Operator, check_operators

    known = {operator.name: operator for operator in DEFAULT_OPERATORS}
    chosen: list[Operator] = []
    for part in text.split(","):
        if ":" in part:
            found: object = find_object(part.strip(), "operator")
            if not isinstance(found, Operator):
                raise ValueError(f"{part.strip()} is not an Operator; it is {found!r}")
            chosen.append(found)
            continue
        name = " ".join(part.upper().replace("_", " ").split())
        if name not in known:
            near = did_you_mean(name, known)
            raise ValueError(
                f"{part.strip()!r} is not one of {', '.join(known)}, or module:operator for one of "
                f"your own.{near}"
            )
        chosen.append(known[name])
    return check_operators(chosen)


def parse_bool(text: str) -> bool:
    """True or false, as TOML writes them."""
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is not true or false")
    return text.lower() == "true"


def parse_int(text: str) -> int:
    """A whole number."""
    try:
        return int(text.replace("_", ""))
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None


def parse_float(text: str) -> float:
    """A number."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None


def parse_objective(text: str) -> "Objective":
    """A metric by its name."""
    from optexp_jax.counts.metrics import Objective

    if text not in OBJECTIVES:
        near = did_you_mean(text, OBJECTIVES)
        raise ValueError(f"{text!r} is not one of {', '.join(OBJECTIVES)}.{near}")
    return Objective(text)


CONVERTERS: Mapping[str, Callable[[str], Any]] = {
    "int": parse_int,
    "float": parse_float,
    "bool": parse_bool,
    "str": str,
    "Path": Path,
    "AbstractBounds": parse_bounds,
    "AbstractOrder": parse_order,
    "AbstractVectors": parse_vectors,
    "Objective": parse_objective,
    "tuple[Operator, ...]": parse_operators,
}
METAVARS: Mapping[str, str] = {
    "int": "N",
    "float": "X",
    "str": "TEXT",
    "Path": "PATH",
    "AbstractBounds": "|".join([*BOUNDS, "module:Class"]),
    "AbstractOrder": "|".join([*ORDERS, "module:Class"]),
    "AbstractVectors": "|".join([*VECTORS, "module:Class"]),
    "Objective": "|".join(OBJECTIVES),
    "tuple[Operator, ...]": "OP,OP",
}
SHOWN_DEFAULTS: Mapping[str, str] = {
    **{f"{cls}()": name for name, cls in (BOUNDS | ORDERS | VECTORS).items()},
    "DEFAULT_OPERATORS": OPERATORS,
    "Objective.IOU": "iou",
}
"""How defaults that are no numbers or text are written on the command line."""
