"""The packages as layers: everything imports downwards, lazily imported or not."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import optexp_jax

PACKAGE = Path(optexp_jax.__file__).parent

# From the ground up. A module belongs to the longest name here that it begins with.
LAYERS = (
    "internal",
    "stores",
    "formulas",
    "concepts",
    "counts",
    "unit_card",
    "explanation",
    "search",
    "bounds.base",
    "bounds.paper",
    "bounds.tight.operator_set",
    "bounds.tight.tuning",
    "bounds.tight.rounding",
    "bounds.tight.counts",
    "bounds.tight.theory",
    "bounds.tight.search",
    "bounds.tight.sets",
    "bounds.tight.shares",
    "bounds.tight",
    "bounds",
    "methods.claim",
    "methods.base",
    "methods.beam",
    "methods",
    "explain",
    "testing",
    "validation",
    "datasets",
    "activations",
    "stand_ins",
    "runs",
    "comparison",
    "charts",
    "pictures",
    "plot",
    "report",
    "reproduction",
    "bench",
    "demo",
    "",
    "cli",
)
UPWARDS = {
    # Methods of a table that make what is built on tables.
    ("concepts.table", "counts.neuron"),
}
MUTUAL = {
    # A class with constructors and storage in files of their own, which make the class.
    ("concepts.table", "concepts.constructors"),
    ("concepts.table", "concepts.storage"),
    ("concepts.table", "counts.neuron"),
    ("activations.store", "activations.writer"),
}
"""Imports inside functions that close a circle. There should be no more of them."""


@dataclass(frozen=True)
class Import:
    """That one module imports another; `late` if only inside a function or for type checkers."""

    importer: str
    imported: str
    late: bool

    def __str__(self) -> str:
        return f"{self.importer} -> {self.imported}" + (" (late)" if self.late else "")


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in PACKAGE.rglob("*.py")}


def imports_of(module: str, path: Path) -> Iterator[Import]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    at_once = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        late = id(node) not in at_once
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                for name in (f"{node.module}.{alias.name}", node.module):
                    found = name.removeprefix("optexp_jax").removeprefix(".")
                    if name.split(".")[0] == "optexp_jax" and found in MODULES:
                        yield Import(module, found, late)
                        break
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "optexp_jax":
                    found = alias.name.removeprefix("optexp_jax").removeprefix(".")
                    yield Import(module, found, late)


IMPORTS = [found for name, path in MODULES.items() for found in imports_of(name, path)]


def layer(module: str) -> str:
    return max(
        (name for name in LAYERS if f"{module}.".startswith(f"{name}." if name else "")), key=len
    )


def drawing() -> str:
    """The graph between layers, from the top down."""
    lines: list[str] = []
    for name in reversed(LAYERS):
        below = {layer(each.imported) for each in IMPORTS if layer(each.importer) == name} - {name}
        lines.append(f"{name or 'optexp_jax':14} -> {', '.join(sorted(below)) or 'nothing'}")
    return "\n".join(lines)


def test_every_folder_has_its_layer():
    folders = {name.split(".")[0] for name in MODULES if name}
    assert folders == {name.split(".")[0] for name in LAYERS if name}


def test_everything_imports_downwards():
    upwards = [
        str(each)
        for each in IMPORTS
        if LAYERS.index(layer(each.imported)) > LAYERS.index(layer(each.importer))
        and (each.importer, each.imported) not in UPWARDS
    ]
    if upwards:
        pytest.fail("\n".join(["These import upwards:", *upwards, "", drawing()]))


def test_no_module_imports_itself_through_others():
    after: dict[str, set[str]] = {name: set() for name in MODULES}
    for each in IMPORTS:
        own = each.importer == each.imported
        if not own and not (each.late and (each.importer, each.imported) in MUTUAL):
            after[each.importer].add(each.imported)
    try:
        TopologicalSorter(after).prepare()
    except CycleError as error:
        pytest.fail(f"A circle of imports: {' -> '.join(error.args[1])}")


@pytest.mark.parametrize("exception", sorted(UPWARDS | MUTUAL), ids=" -> ".join)
def test_exceptions_are_needed(exception: tuple[str, str]):
    assert any((each.importer, each.imported) == exception for each in IMPORTS)


def test_class_names_tell_classes_apart():
    homes: dict[str, list[str]] = {}
    for module, path in MODULES.items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(module)
    assert {name: modules for name, modules in homes.items() if len(modules) > 1} == {}
