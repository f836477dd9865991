"""Commands as a user gives them, in this process."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bilevel import cli


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stopped:
        cli.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return int(stopped.value.code or 0), captured.out, captured.err


def run_well(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Standard output of a command that must end with 0."""
    code, out, err = run(capsys, *arguments)
    assert code == 0, err
    return out


def run_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    """What a command prints with --json."""
    found: dict[str, Any] = json.loads(run_well(capsys, *arguments, "--json"))
    return found


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line of a command that must end with 2, without its prefix."""
    code, out, err = run(capsys, *arguments)
    assert (code, out, err.count("\n"), err.startswith("error: ")) == (2, "", 1, True), err
    return err.removeprefix("error: ").rstrip()
