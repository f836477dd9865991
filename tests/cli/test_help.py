"""The help of every command: its options are documented, their names are those that users know."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from bilevel import __version__, cli
from command_line import run_well

NAMES = Path(__file__).with_name("names.txt")  # of all commands and their options: these are what users rely on
COMMANDS = cli.all_commands()
GROUPS = ("", "rules", "domain", "demonstrations", "benchmark", "lerobot")


def names(command: click.Command) -> list[str]:
    """The arguments and options of a command, with their defaults."""
    context = click.Context(command)
    found = []
    for param in command.params:
        default = param.get_default(context)
        word = param.opts[0] if isinstance(param, click.Option) else param.make_metavar(context)
        is_shown = isinstance(default, str | int | float) and default != "" and default is not False
        found.append(f"{word}={default}" if is_shown else word)
    return found


def test_commands_and_options_keep_their_names_and_defaults() -> None:
    lines = [" ".join([name, *names(COMMANDS[name])]) for name in COMMANDS]
    assert lines == NAMES.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("name", [*COMMANDS, *GROUPS])
def test_help_fits_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = run_well(capsys, *name.split(), "--help")
    assert text.startswith(f"Usage: bilevel {name}".strip())
    longest = [line for line in text.splitlines() if not line.strip().startswith("bilevel ")]
    assert max(map(len, longest)) <= columns
    assert not re.search(r"None|\bFalse\b|UNSET|\x08", text)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_a_sentence_and_every_command_has_an_example(name: str) -> None:
    command = COMMANDS[name]
    for param in command.params:
        text = getattr(param, "help", None)
        assert text, param.name
        assert text.endswith("."), param.name
    assert command.help is not None
    examples = [line.split() for line in command.help.splitlines() if line.strip().startswith("bilevel ")]
    assert examples
    for words in examples:
        read = [word for word in words[1:] if not word.endswith(("*.pddl", "\\"))]
        command.make_context(name, read[len(name.split()) :], resilient_parsing=False)


def test_the_version_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_well(capsys, "--version") == f"bilevel {__version__}\n"
