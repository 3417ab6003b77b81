"""What the parsers of all commands share."""

import argparse
import importlib
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from optexp_jax.cli.nearest import did_you_mean

if TYPE_CHECKING:
    from argparse import _SubParsersAction  # pyright: ignore[reportPrivateUsage]

BAD_USAGE = 2
_CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)", re.DOTALL)


class Parser(argparse.ArgumentParser):
    """argparse, with errors of one line that name the nearest option and the right help."""

    def __init__(self, **settings: Any):
        # An abbreviation that works today means something else when an option is added.
        super().__init__(allow_abbrev=False, **settings)

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride] of its overloads
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """As argparse does, but what a command does not know is its own error, and comes first."""
        words = list(sys.argv[1:] if args is None else args)
        self._refuse_unknown(words)
        known, unknown = super().parse_known_args(words, namespace)
        for word in unknown:
            if word != "--":
                self.error(f"there is no place for {word}")
        return known, []

    def _refuse_unknown(self, words: Sequence[str]) -> None:
        options = self._option_string_actions
        for word in words:
            if word == "--" or (self._subparsers is not None and not word.startswith("-")):
                return  # After the name of a command, the words are that one's.
            option = word.partition("=")[0]
            if option.startswith("--") and option not in options:
                near = did_you_mean(option, [name for name in options if name.startswith("--")])
                self.error(f"there is no option {option}.{near}")

    def error(self, message: str) -> NoReturn:
        """Print one line and end the command."""
        choice = _CHOICE.search(message)
        if choice is not None:
            known = choice[2].replace("'", "").split(", ")
            message = (
                f"{message[: choice.start()]}{choice[1]!r} is not one of {', '.join(known)}."
                f"{did_you_mean(choice[1], known)}"
            )
        end = "" if message.endswith(("?", ".")) else "."
        self.exit(BAD_USAGE, f"{self.prog}: {message}{end} Run `{self.prog} --help`.\n")


def add_commands(
    parser: argparse.ArgumentParser,
    helps: Mapping[str, str],
    arguments: Sequence[str],
    *,
    kind: str,
    prefix: str = "",
) -> None:
    """Add commands of these names and lines of help, each a module of `optexp_jax.cli`.

    Only the module of the one that is called for is imported. Its `fill(parser, arguments)` adds
    what it takes, and as defaults `run`, which takes the options, and `prepare`, which imports what
    is large, unless the module itself does.
    """
    commands: _SubParsersAction[argparse.ArgumentParser] = parser.add_subparsers(
        dest=kind.lower(), metavar=kind, required=True
    )
    chosen = next((at for at, word in enumerate(arguments) if not word.startswith("-")), None)
    for name, line in helps.items():
        command = commands.add_parser(name, help=line)
        if chosen is not None and arguments[chosen] == name:
            module: Any = importlib.import_module(f"optexp_jax.cli.{prefix}{name}")
            module.fill(command, arguments[chosen + 1 :])


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


def share(text: str) -> float:
    """A type of options: numbers from 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return value
