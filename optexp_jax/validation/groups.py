"""Groups of samples that belong together: a video, a patient, a scene. They are never split."""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Int64


@dataclass(frozen=True, eq=False)
class Groups:
    """Which group each sample belongs to."""

    names: tuple[str, ...]
    """In the order of their first samples."""
    member: Int64[np.ndarray, " samples"]
    """The group of each sample, as a place in `names`."""

    @classmethod
    def of(cls, groups: "Sequence[Hashable] | Groups | None", n_samples: int) -> "Groups":
        """Groups from one label a sample; without labels each sample is a group of its own."""
        if isinstance(groups, Groups):
            labels: Sequence[Hashable] = groups.member.tolist()
        elif groups is None:
            labels = range(n_samples)
        elif isinstance(groups, str):
            raise TypeError(
                f"groups must be one label a sample; got the text {groups!r}. For the prefixes of "
                "file names pass prefix_groups(names)."
            )
        else:
            labels = [_plain(label) for label in groups]
        if len(labels) != n_samples:
            raise ValueError(
                f"There are {len(labels)} group labels; the table has {n_samples} samples. Pass "
                "one label a sample."
            )
        if isinstance(groups, Groups):
            return groups
        place: dict[Hashable, int] = {}
        member = np.array([place.setdefault(label, len(place)) for label in labels], np.int64)
        return cls(tuple(str(label) for label in place), member)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each sample's group."""
        return tuple(self.names[group] for group in self.member.tolist())

    @property
    def n_samples(self) -> int:
        return len(self.member)

    @property
    def are_samples(self) -> bool:
        """Whether every sample is a group of its own."""
        return len(self) == self.n_samples

    @property
    def sizes(self) -> Int64[np.ndarray, " groups"]:
        """Samples of each group."""
        return np.bincount(self.member, minlength=len(self))

    def samples_of(self, chosen: Bool[np.ndarray, " groups"]) -> Bool[np.ndarray, " samples"]:
        """The samples of some groups."""
        return chosen[self.member]


def prefix_groups(names: Sequence[str]) -> tuple[str, ...]:
    """The group of each sample by its file name: its folder, and the name up to the first _ or -.

    A name without these is taken without the digits at its end: `clip07` and `clip08` are `clip`.
    """
    return tuple(_prefix(name) for name in names)


def _prefix(name: str) -> str:
    folder, slash, file = name.replace("\\", "/").rpartition("/")
    stem = file.rpartition(".")[0] or file
    head, separator, _ = stem.partition("_" if "_" in stem else "-")
    start = head if separator else re.sub(r"\d+$", "", stem)
    return f"{folder}{slash}{start or stem}"


def _plain(label: Any) -> Hashable:
    """A label as plain Python, so that equal ones are equal whatever array they come from."""
    plain = label.item() if isinstance(label, np.generic) else label
    if plain is None or plain != plain:
        raise ValueError(
            f"A group label is {plain!r}: every sample must belong to a group. Give samples that "
            "stand alone a label of their own."
        )
    return plain
