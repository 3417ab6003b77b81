"""`--groups`: which samples belong together, from a file or from the names of the samples."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.datasets.provenance import find_provenance
from optexp_jax.validation.groups import prefix_groups

PREFIX = "prefix"
HEADER = ["sample", "group"]


def read_groups(asked: str, table: Path) -> tuple[str, ...]:
    """One label a sample of a stored table, as `--groups` asks for."""
    provenance = find_provenance(table)
    if asked == PREFIX:
        if provenance is None:
            raise ValueError(
                f"--groups prefix needs the names of the samples, and {table} has none. Pass a CSV "
                "of sample,group with the numbers of the samples, from 0."
            )
        return prefix_groups(provenance.sample_names)
    if provenance is None:
        names = [str(number) for number in range(ConceptTable.load(table).n_samples)]
    else:
        names = list(provenance.sample_names)
    return tuple(labels_of(names, read_group_file(Path(asked)), asked))


def read_group_file(path: Path) -> dict[str, str]:
    """The group of each sample that a CSV of `sample,group` names."""
    if not path.is_file():
        raise ValueError(
            f"There is no file {path}. --groups takes a CSV of sample,group or prefix."
        )
    groups: dict[str, str] = {}
    with path.open(newline="", encoding="utf-8-sig") as file:
        for number, row in enumerate(csv.reader(file), start=1):
            cells = [cell.strip() for cell in row]
            if not any(cells) or (number == 1 and [cell.lower() for cell in cells] == HEADER):
                continue
            if len(cells) != 2 or not all(cells):
                raise ValueError(f"Line {number} of {path} is not sample,group: {','.join(row)!r}.")
            sample, group = cells
            if groups.setdefault(sample, group) != group:
                raise ValueError(
                    f"{path} puts {sample} into {groups[sample]} and into {group}; line {number}."
                )
    if not groups:
        raise ValueError(f"{path} names no sample. Write a line sample,group for each.")
    return groups


def labels_of(names: Sequence[str], groups: Mapping[str, str], asked: str) -> list[str]:
    """The group of each sample, found by its name, or by its name without the ending."""
    labels: list[str] = []
    for name in names:
        stem = name.rpartition(".")[0] or name
        label = groups.get(name, groups.get(stem))
        if label is None:
            raise ValueError(
                f"{asked} has no group for the sample {name}. Every sample must have one; give "
                "those that stand alone a label of their own."
            )
        labels.append(label)
    return labels
