"""The command reference: of every command what it does, its usage and its options, as click knows them."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from inspect import cleandoc
from itertools import chain, starmap

import click

from bilevel import cli

INTRODUCTION = """# Commands

`bilevel COMMAND --help` says the same at a prompt. The exit code is 0 if all is well, 1 if the answer is no, 2 after
bad input, and 130 where you interrupt it. `--json` prints one JSON object instead of text.
"""


def command_page() -> str:
    """Return the page with all commands in the order of `bilevel --help`."""
    sections = starmap(_section, cli.all_commands().items())
    return "\n".join([INTRODUCTION, *chain.from_iterable(sections)])


def _section(name: str, command: click.Command) -> Iterator[str]:
    """Yield the lines about a command."""
    context = click.Context(command, info_name=f"bilevel {name}")
    first, *further = _description(command.help or "")
    usage = " ".join([f"bilevel {name}", *command.collect_usage_pieces(context)])
    yield from (f"## bilevel {name}", "", first, "", "```text", usage, "```", "", *further, "")
    yield from ('<div class="options" markdown>', "", "| argument | meaning |", "|---|---|")
    yield from (_row(param, context) for param in command.params)
    yield from ("", "</div>", "")


def _description(text: str) -> Iterator[str]:
    """Yield the paragraphs of a command's help; its examples become a block of commands."""
    for paragraph in cleandoc(text).split("\n\n"):
        lines = paragraph.replace("\b\n", "").splitlines()
        if lines[0] in ("Example:", "Examples:"):
            yield "\n".join(["```sh", *(line.strip() for line in lines[1:]), "```\n"])
        else:
            yield " ".join(lines) + "\n"


def _row(param: click.Parameter, context: click.Context) -> str:
    """Return the row of an option or a positional argument."""
    is_option, default = isinstance(param, click.Option), param.get_default(context)
    note = "*Required.*" if param.required and is_option else ""
    if is_option and isinstance(default, str | int | float) and default != "" and default is not False:
        note = f"Default: {_code(str(default))}."
    metavar = "" if getattr(param, "is_flag", False) else param.make_metavar(context)
    words = f"{param.opts[0]} {metavar}".strip() if is_option else metavar
    text = (getattr(param, "help", None) or "").replace("|", "\\|")
    return f"| {_code(words)} | {text} {note} |"


def _code(text: str) -> str:
    return f"<code>{escape(text).replace('|', '&#124;')}</code>"
