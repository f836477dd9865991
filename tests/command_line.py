"""Commands as a user gives them, in this process."""

from __future__ import annotations

import pytest

from bilevel import cli


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stopped:
        cli.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return int(stopped.value.code or 0), captured.out, captured.err
