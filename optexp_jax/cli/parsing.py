"""What the parsers of all commands share."""

import argparse
from collections.abc import Callable
from typing import Any, NoReturn, Protocol, runtime_checkable

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
