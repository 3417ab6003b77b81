"""Zarr stores of this package: how each kind tells what it is, and refuses what it is not."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zarr


@dataclass(frozen=True)
class StoreKind:
    """One kind of store: a Zarr group whose attributes give its format and version."""

    name: str
    """What it is, with its article, in error messages."""
    format: str
    version: int
    error: type[ValueError]
    """Raised for a file that is not such a store."""
    again: str
    """What to do about one of another version."""

    @property
    def attributes(self) -> dict[str, Any]:
        """What a store of this kind is marked with."""
        return {"format": self.format, "version": self.version}

    def open(self, source: Path) -> zarr.Group:
        """The group of a store that exists, to be read."""
        try:
            group = zarr.open_group(source, mode="r")
            attributes = dict(group.attrs)
        except Exception as error:  # zarr raises many kinds for a folder or file of another make
            raise self.error(f"{source} is not {self.name} (no Zarr group: {error}).") from error
        if attributes.get("format") != self.format:
            raise self.error(f"{source} is a Zarr group, but not {self.name}.")
        if attributes.get("version") != self.version:
            raise self.error(
                f"{source} has format version {attributes.get('version')}; this release reads "
                f"{self.version}. {self.again}"
            )
        return group
