"""The command reference: of every command what it does, its usage and its options, from the types of the commands."""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Iterator
from html import escape
from inspect import getdoc
from typing import Any

import tyro
import tyro.extras

from bilevel import cli

INTRODUCTION = """# Commands

`bilevel COMMAND --help` says the same at a prompt. The exit code is 0 if all is well, 1 if the answer is no, 2 after
bad input, and 130 where you interrupt it. [The guide](guide.md#exit-codes-and---json) says what `--json` prints.
"""
DEFAULT = re.compile(r"\s*\((?:default: (?P<value>.*)|(?P<required>required))\)$", re.DOTALL)
NO_DEFAULT = {None, "None", "False", ""}


def command_page() -> str:
    """Return the page with all commands in the order of `bilevel --help`."""
    return "\n".join([INTRODUCTION, *(line for name in cli.COMMANDS for line in _section(name))])


def _section(name: str) -> Iterator[str]:
    """Yield the lines about a command."""
    kind = cli._load(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # tyro has no other way to see the options
        parser = tyro.extras.get_parser(kind, prog=f"bilevel {name}", config=cli.parsing())
    actions = [action for action in parser._actions if action.dest != "help"]
    required = [action for action in actions if action.option_strings and action.required]
    positional = [action for action in actions if not action.option_strings]
    words = [f"bilevel {name}", *map(_usage, positional), *map(_usage, required)]
    words += ["[OPTIONS]"] if any(action.option_strings and not action.required for action in actions) else []
    first, *further = _description(kind)
    yield from (f"## bilevel {name}", "", first, "", "```text", " ".join(words), "```", "", *further, "")
    yield from ("| argument | meaning |", "|---|---|")
    yield from map(_row, [*positional, *required, *(one for one in actions if one not in [*positional, *required])])
    yield ""


def _description(kind: Any) -> Iterator[str]:
    """Yield the paragraphs of a command's docstring; its examples become a block of commands."""
    for paragraph in re.split(r"\n\n+", getdoc(kind) or ""):
        head, colon, rest = paragraph.partition(":")
        if colon and head in ("Example", "Examples"):
            commands = re.split(r";?\s*(?=\bbilevel )", " ".join(rest.split()))
            yield "\n".join(["```sh", *(command.strip() for command in commands if command.strip()), "```\n"])
        else:
            yield " ".join(paragraph.split()) + "\n"


def _usage(action: argparse.Action) -> str:
    if action.option_strings:
        return f"{action.option_strings[0]} {_metavar(action)}".strip()
    return _metavar(action) if action.required else f"[{_metavar(action)}]"


def _metavar(action: argparse.Action) -> str:
    found = action.metavar[0] if isinstance(action.metavar, tuple) else action.metavar
    return "" if action.nargs == 0 else found or action.dest.upper()


def _row(action: argparse.Action) -> str:
    """Return the row of an option or a positional argument."""
    text = action.help or ""
    found = DEFAULT.search(text)
    text = " ".join((text[: found.start()] if found else text).split()).replace("|", "\\|")
    names = " ".join(filter(None, [", ".join(action.option_strings), _metavar(action)]))
    note = "*Required.*" if found and found["required"] else ""
    if found and found["value"] not in NO_DEFAULT:
        note = f"Default: {_code(found['value'])}."
    return f"| {_code(names)} | {text} {note} |"


def _code(text: str) -> str:
    return f"<code>{escape(text).replace('|', '&#124;')}</code>"
