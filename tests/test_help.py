"""The help of every command reads well: at any width, each option with what it means, and its default once."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from bilevel import __version__, cli
from bilevel.commands.options import options_of
from command_line import run


def help_of(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str, columns: int) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    code, out, err = run(capsys, *name.split(), "--help")
    assert (code, err) == (0, "")
    return out


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("name", ["", *cli.COMMANDS, *cli.GROUPS])
def test_help_fits_the_terminal_and_says_nothing_odd(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str, columns: int
) -> None:
    text = help_of(capsys, monkeypatch, name, columns)
    assert text.startswith(f"usage: bilevel {name}".strip())
    assert max(map(len, text.splitlines())) <= columns
    assert not re.search(r"None|\bFalse\b|\(default: *\)|''|[{}│╭]", text)
    assert "  -h, --help " in text


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_option_is_documented_and_says_its_default_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    text = help_of(capsys, monkeypatch, name, 110)
    for option in options_of(cli.load(name)):
        assert option.help.endswith("."), option.name
        assert re.search(rf"^  {re.escape(option.usage)}( |$)", text, re.MULTILINE), option.usage
        assert not (option.default_text and "default" in option.help), option.name


def test_an_example_stays_a_command_where_it_is_broken_into_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow, wide = (help_of(capsys, monkeypatch, "evaluate", columns) for columns in (60, 110))
    joined = narrow.replace(" \\\n      ", " ")
    examples = [line for line in wide.splitlines() if line.startswith("  bilevel ")]
    assert examples
    assert all(example in joined.splitlines() for example in examples)


def test_the_version_is_in_the_help_and_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "  --version " in help_of(capsys, monkeypatch, "", 80)
    shown = subprocess.run([sys.executable, "-m", "bilevel", "--version"], capture_output=True, text=True)
    assert (shown.returncode, shown.stdout) == (0, f"bilevel {__version__}\n")
