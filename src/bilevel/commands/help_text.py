"""The help of commands, and of all of them: plain text as wide as the terminal."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import getdoc
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bilevel.commands.options import Option

WIDEST = 110  # longer lines are hard to read
FIXED = "\xa0"  # a space at which no line ends
INDENT = 22  # of what is said about an option
HELP = ("-h, --help", "Show this help.")


def command_help(program: str, command: Any) -> str:
    """Return the help of one command: its usage, what it does, and all that it takes."""
    from bilevel.commands.options import options_of

    options = options_of(command)
    places = [option for option in options if option.is_positional]
    named = [option for option in options if not option.is_positional]
    named.sort(key=lambda option: not option.is_required)
    sections = [_wrapped(f"usage: {usage(program, options)}", indent=" " * 15)]
    sections += _paragraphs(getdoc(command) or "")
    if places:
        sections.append("arguments:\n" + two_columns((option.metavar, option.help) for option in places))
    sections.append("options:\n" + two_columns([*((option.usage, _about(option)) for option in named), HELP]))
    return "\n\n".join(sections)


def usage(program: str, options: Sequence[Option]) -> str:
    """Return how a command is written: what it cannot do without, and what stands at a place of its own."""
    places = [option for option in options if option.is_positional]
    words = [option.metavar if option.is_required else f"[{option.metavar}]" for option in places]
    words += [option.usage for option in options if option.is_required and not option.is_positional]
    return " ".join([program, *words, "[OPTIONS]"])


def overview(program: str, about: str, commands: Mapping[str, str], options: Mapping[str, str]) -> str:
    """Return the help of several commands: of each its name and what it does."""
    commands_table = "commands:\n" + two_columns(commands.items())
    options_table = "options:\n" + two_columns([*options.items(), HELP])
    more = _wrapped(f"{program} COMMAND --help shows the options of a command.")
    how = f"usage: {program} COMMAND [OPTIONS]"
    return "\n\n".join([how, _wrapped(about), commands_table, options_table, more])


def _about(option: Option) -> str:
    default = "required" if option.is_required else option.default_text and f"default:{FIXED}{option.default_text}"
    return f"{option.help} ({default})" if default else option.help


def _width() -> int:
    return min(shutil.get_terminal_size().columns, WIDEST)


def _wrapped(text: str, indent: str = "") -> str:
    """Wrap a paragraph; the second line and all further ones are indented."""
    return "\n".join(_lines(text, _width(), indent))


def _lines(text: str, width: int, indent: str = "") -> list[str]:
    """The lines of a text; none ends within a word with a hyphen, nor between an option and its value."""
    whole = re.sub(r"(--[\w-]+) (?=[^-\s])", rf"\1{FIXED}", text)
    lines = textwrap.wrap(whole, max(width, 30), subsequent_indent=indent, break_on_hyphens=False)
    return [line.replace(FIXED, " ") for line in lines]


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a docstring; its examples are commands, a line each or several with a backslash."""
    for paragraph in text.split("\n\n"):
        head, colon, rest = paragraph.partition(":")
        if not colon or head not in ("Example", "Examples"):
            yield _wrapped(" ".join(paragraph.split()))
            continue
        lines = [f"{head.lower()}:"]
        for command in rest.splitlines():
            first, *further = _lines(command.strip(), _width() - 8)
            lines.append(" \\\n".join([f"  {first}", *(f"      {line}" for line in further)]))
        yield "\n".join(lines)


def two_columns(rows: Iterable[tuple[str, str]]) -> str:
    """A row for each name and what it means; a name that is too long for its column has a line of its own."""
    lines = []
    for name, text in rows:
        margin = " " * INDENT
        said = _lines(text, _width() - INDENT) or [""]
        if len(name) + 4 > INDENT:
            lines += [f"  {name}", *(margin + line for line in said)]
        else:
            lines += [f"  {name:{INDENT - 2}}{said[0]}".rstrip(), *(margin + line for line in said[1:])]
    return "\n".join(lines)
