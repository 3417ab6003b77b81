"""The propositions of the documentation and the code that cites them."""

import re
from pathlib import Path

import optexp_jax
from optexp_jax.bounds.tight import theory

DOCS = Path(__file__).parents[4] / "docs" / "explanation"
PAGES = ("tight_bounds.md", "sets_of_concepts.md", "large_sets.md")
"""In the order in which they number their propositions."""
TIGHT = Path(optexp_jax.__file__).parent / "bounds" / "tight"


def cited(text: str) -> set[int]:
    """The numbers after "Proposition", also in "Propositions 3 and 13"."""
    found = re.findall(r"Propositions?\s+(\d+(?:[a-c]?,\s+\d+)*(?:\s+and\s+\d+)?)", text)
    return {int(number) for part in found for number in re.findall(r"\d+", part)}


def test_propositions_are_numbered_and_cited():
    page = "\n".join((DOCS / name).read_text(encoding="utf-8") for name in PAGES)
    stated = [int(number) for number in re.findall(r"^\*\*Proposition (\d+)", page, re.MULTILINE)]
    assert stated == list(range(1, len(stated) + 1))
    assert cited(page) == set(stated)
    in_code = set().union(*(cited(path.read_text("utf-8")) for path in TIGHT.rglob("*.py")))
    assert in_code == set(stated), "each is used, and none that is not there is cited"


def test_every_theory_file_has_its_test():
    files = {path.stem for path in Path(theory.__file__).parent.glob("*.py")} - {"__init__"}
    tests = {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")}
    assert files == tests - {"propositions"}
