"""What a settings class says of its fields, read from its source without importing it.

Importing a method imports JAX, which takes a second; the help and a mistyped option should not wait
for that. So names, types, defaults and help are taken from the text of the class.
"""

import ast
import functools
import itertools
import pkgutil
import re
from dataclasses import dataclass
from typing import cast


@dataclass(frozen=True)
class Field:
    """A field of a dataclass, as its source has it."""

    name: str
    kind: str
    """Its type, without `| None`."""
    default: str | None
    """Its default, as Python text: `3`, `TightBounds()`; None if that is None or missing."""
    help: str
    """The string below it, or else the sentence of the class's docstring that names it."""


@functools.cache
def read_fields(name: str) -> tuple[Field, ...]:
    """The fields of a class of this package, `optexp_jax.module:Class`."""
    module, _, cls = name.partition(":")
    package, _, path = module.partition(".")
    folder = path.replace(".", "/")
    try:
        source = pkgutil.get_data(package, f"{folder}.py")
    except FileNotFoundError:
        source = pkgutil.get_data(package, f"{folder}/__init__.py")
    assert source is not None, f"{module} has no source"
    return fields_in(source.decode("utf-8"), cls)


def fields_in(source: str, cls: str) -> tuple[Field, ...]:
    """The fields of a class in this source."""
    (found,) = (
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name == cls
    )
    about = " ".join((ast.get_docstring(found) or "").split())
    sentences = re.split(r"(?<=[.;])\s+", about)
    fields: list[Field] = []
    for node, below in itertools.pairwise([*found.body, ast.Pass()]):
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
            continue
        kind = ast.unparse(node.annotation)
        if kind.startswith("ClassVar"):
            continue
        name = node.target.id
        text = _string(below) or next((s for s in sentences if f"`{name}" in s), "")
        fields.append(
            Field(
                name,
                kind.removesuffix(" | None"),
                _default(node.value),
                " ".join(text.replace("`", "").split()),
            )
        )
    return tuple(fields)


def _string(node: ast.stmt) -> str | None:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return str(node.value.value)
    return None


def _default(value: ast.expr | None) -> str | None:
    if isinstance(value, ast.Call) and ast.unparse(value.func).split(".")[-1] == "field":
        defaults = [keyword.value for keyword in value.keywords if keyword.arg == "default"]
        value = defaults[0] if defaults else None
    if value is None or (isinstance(value, ast.Constant) and value.value is None):
        return None
    numbers = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    if all(isinstance(node, numbers) for node in ast.walk(value)):
        # Arithmetic such as 10**10, of our own source.
        counted = eval(compile(ast.Expression(cast(ast.expr, value)), "", "eval"))
        return counted if isinstance(counted, str) else repr(counted)
    return ast.unparse(value)
