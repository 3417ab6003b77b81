"""What the parsers of all commands share."""

import argparse
import math
from collections.abc import Callable
from typing import Any, NoReturn, Protocol, runtime_checkable

from optexp_jax.datasets.registry import import_kind
from optexp_jax.runs.settings import find_class

BAD_USAGE = 2


@runtime_checkable
class Commands(Protocol):
    """What argparse gives to add the parsers of commands to."""

    def add_parser(self, name: str, **settings: Any) -> argparse.ArgumentParser:
        """A new command's parser."""
        ...


class Parser(argparse.ArgumentParser):
    """argparse, with errors of one line that point to the help."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_USAGE, f"{self.prog}: {message}. Run `{self.prog} --help`.\n")


def at_least(smallest: int) -> Callable[[str], int]:
    """A type of options: whole numbers from `smallest` on."""

    def convert(text: str) -> int:
        if not text.isdecimal() or int(text) < smallest:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a whole number of at least {smallest}"
            )
        return int(text)

    return convert


def positive(text: str) -> float:
    """A type of options: numbers above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def parse_classes(text: str | None) -> list[type[Any]]:
    """The classes of a text such as `mine:Bounds,mine:Guide`, which the user has named.

    Dataset kinds, such as `mine.photographs`, may stand among them: their modules are imported.
    """
    named = [part.strip() for part in text.split(",")] if text else []
    for kind in named:
        if ":" not in kind:
            import_kind(kind)
    return [find_class(part) for part in named if ":" in part]
