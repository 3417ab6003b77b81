"""Writes the reference of the command `optexp` as a Markdown page, from its parsers.

`make docs` runs it before every build, so the page is never older than the command:

    python scripts/command_reference.py docs/reference/commands.md
"""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

from optexp_jax import cli

OPENING = """# Commands

Made from the parsers of the command, like `optexp COMMAND --help`. Results go to stdout, progress
and errors to stderr. Exit codes are 0 (done), 1 (failed), 2 (bad usage) and 130 (Ctrl-C).
"""


class _Caught(Exception):
    """The parser that was about to read the command line."""

    def __init__(self, parser: argparse.ArgumentParser):
        super().__init__()
        self.parser = parser


def _catch(parser: argparse.ArgumentParser, *_: Any, **__: Any) -> NoReturn:
    raise _Caught(parser)


@dataclass(frozen=True)
class Command:
    """A command that does something, not one that only has others below it."""

    words: tuple[str, ...]
    about: str
    parser: argparse.ArgumentParser

    @property
    def name(self) -> str:
        return " ".join(("optexp", *self.words))


def commands(words: tuple[str, ...] = (), about: str = "") -> Iterator[Command]:
    """All commands that begin with these words, in the order of the help."""
    parser = parser_of(words)
    inner = _inner(parser)
    if inner is None:
        yield Command(words, about, parser)
        return
    lines = {each.dest: each.help or "" for each in inner._choices_actions}
    for name in inner.choices:
        yield from commands((*words, name), lines.get(name, ""))


def parser_of(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of a command. It is made inside `main`, perhaps for these words alone, and `main`
    is stopped before it reads the command line."""
    try:
        with mock.patch.object(argparse.ArgumentParser, "parse_known_args", _catch):
            cli.main(list(words))
    except _Caught as caught:
        parser = caught.parser
        for word in words:
            inner = _inner(parser)
            assert inner is not None, f"optexp has no command {' '.join(words)}"
            parser = inner.choices[word]
        return parser
    raise RuntimeError("optexp_jax.cli.main no longer reads its command line with argparse.")


def _inner(parser: argparse.ArgumentParser) -> Any:
    """What holds the parsers below a parser, or None."""
    found = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    return found[0] if found else None


def page() -> str:
    """The Markdown page of all commands."""
    every = list(commands())
    rows = [
        f"| [`{each.name}`](#{each.name.replace(' ', '-')}) | {_prose(each.about)} |"
        for each in every
    ]
    table = "\n".join(["| command | what it does |", "|---|---|", *rows])
    sections = [_section(each.name, each.parser) for each in every]
    return "\n\n".join([OPENING.strip(), table, *sections]) + "\n"


def _section(name: str, parser: argparse.ArgumentParser) -> str:
    parts = [f"## {name}", _prose(parser.description or "")]
    for group in parser._action_groups:
        rows = [_row(action, parser) for action in group._group_actions if _is_shown(action)]
        if rows:
            title = group.title or "options"
            heads = "argument" if title == "positional arguments" else "option"
            if title not in ("positional arguments", "options", "optional arguments"):
                parts.append(f"**{title[:1].upper()}{title[1:]}**")
            parts.append("\n".join([f"| {heads} | meaning |", "|---|---|", *rows]))
    if parser.epilog:
        before, _, example = parser.epilog.partition("example: ")
        if before.strip():
            parts.append(_prose(before))
        if example:
            parts.append(f"```bash\n{example.strip()}\n```")
    return "\n\n".join(parts)


def _is_shown(action: argparse.Action) -> bool:
    return action.help != argparse.SUPPRESS and not isinstance(action, argparse._HelpAction)


def _row(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    formatter = parser._get_formatter()
    if not action.option_strings:
        names = [formatter._metavar_formatter(action, action.dest)(1)[0]]
    else:
        value = "" if action.nargs == 0 else formatter._format_args(action, action.dest.upper())
        names = [f"{option} {value}".strip() for option in action.option_strings]
    required = "; required" if action.option_strings and action.required else ""
    shown = ", ".join(f"`{_cell(name)}`" for name in names)
    about = formatter._expand_help(action) if action.help else ""
    return f"| {shown} | {_prose(about)}{required} |"


def _cell(text: str) -> str:
    """Text inside backticks inside a table: no bars, which may end the cell, and room to wrap."""
    return text.replace("|", " / ")


def _prose(text: str) -> str:
    """Text of the help as Markdown: what stands in backticks stays, other signs are escaped."""
    pieces = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(
        piece if piece.startswith("`") else re.sub(r"([\\*_<>\[\]|])", r"\\\1", piece)
        for piece in pieces
    )


def main(arguments: Sequence[str]) -> None:
    (path,) = arguments
    Path(path).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
