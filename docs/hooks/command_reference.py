"""The command reference: of every command what it does, its usage and its options, from the types of the commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from inspect import getdoc
from typing import Any

from bilevel import cli
from bilevel.commands.help_text import usage
from bilevel.commands.options import Option, options_of

INTRODUCTION = """# Commands

`bilevel COMMAND --help` says the same at a prompt. The exit code is 0 if all is well, 1 if the answer is no, 2 after
bad input, and 130 where you interrupt it. `--json` prints one JSON object instead of text.
"""


def command_page() -> str:
    """Return the page with all commands in the order of `bilevel --help`."""
    return "\n".join([INTRODUCTION, *(line for name in cli.COMMANDS for line in _section(name))])


def _section(name: str) -> Iterator[str]:
    """Yield the lines about a command."""
    kind = cli.load(name)
    options = options_of(kind)
    first, *further = _description(kind)
    yield from (
        f"## bilevel {name}",
        "",
        first,
        "",
        "```text",
        usage(f"bilevel {name}", options),
        "```",
        "",
        *further,
        "",
    )
    yield from ('<div class="options" markdown>', "", "| argument | meaning |", "|---|---|")
    yield from map(_row, sorted(options, key=lambda option: (not option.is_positional, not option.is_required)))
    yield from ("", "</div>", "")


def _description(kind: Any) -> Iterator[str]:
    """Yield the paragraphs of a command's docstring; its examples become a block of commands."""
    for paragraph in re.split(r"\n\n+", getdoc(kind) or ""):
        head, colon, rest = paragraph.partition(":")
        if colon and head in ("Example", "Examples"):
            commands = re.split(r";?\s*(?=\bbilevel )", " ".join(rest.split()))
            yield "\n".join(["```sh", *(command.strip() for command in commands if command.strip()), "```\n"])
        else:
            yield " ".join(paragraph.split()) + "\n"


def _row(option: Option) -> str:
    """Return the row of an option or a positional argument."""
    note = "*Required.*" if option.is_required and not option.is_positional else ""
    if option.default_text:
        note = f"Default: {_code(option.default_text)}."
    text = option.help.replace("|", "\\|")
    return f"| {_code(option.usage)} | {text} {note} |"


def _code(text: str) -> str:
    return f"<code>{escape(text).replace('|', '&#124;')}</code>"
