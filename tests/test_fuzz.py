"""Damaged files and odd options: the fuzzer finds nothing, and would notice if there were something."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fuzz import judged
from fuzz_options import COMMANDS, options_of
from fuzz_sandbox import Sandbox

FUZZER = Path(__file__).parents[1] / "benchmarks" / "fuzz.py"


def test_ten_thousand_inputs_break_nothing() -> None:
    run = subprocess.run(
        [sys.executable, FUZZER, "--inputs", "10000", "--workers", "2"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr
    assert "faults: 0" in run.stdout
    assert all(f"options of {command}" in run.stdout for command in COMMANDS)


@pytest.mark.parametrize(
    ("code", "errors", "verdict"),
    [
        (0, "", "accepted"),
        (1, "found in 0.1 s\n", "answered no"),
        (2, "bilevel: there is no such file\n", "refused"),
        (130, "bilevel: interrupted; nothing was written\n", "interrupted"),
        (2, "", "fault"),
        (2, "bilevel: one\nbilevel: two\n", "fault"),
        (2, "box\nbilevel: one\n", "fault"),
        (0, "x.py:1: RuntimeWarning: overflow encountered in square\n", "fault"),
        (1, "Traceback (most recent call last):\n", "fault"),
        (3, "", "fault"),
        (None, "KeyError: 'x'", "fault"),
    ],
)
def test_how_a_command_ends_is_judged(code: int | None, errors: str, verdict: str) -> None:
    assert judged(code, errors)[0] == verdict


def test_files_that_change_are_noticed_and_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    corpus = tmp_path / "corpus"
    (corpus / "user").mkdir(parents=True)
    (corpus / "user" / "notes.txt").write_text("mine")
    (corpus / "data.txt").write_text("data")
    sandbox = Sandbox(corpus, tmp_path / "sandbox")
    assert sandbox.changes(set()) == []
    Path("user/notes.txt").write_text("yours")
    Path("data.txt").unlink()
    Path("../outside.txt").touch()
    Path("new").mkdir()
    Path("new/file").touch()
    assert sorted(sandbox.changes({"new"})) == ["./data.txt", "./user/notes.txt"]
    assert (Path("user/notes.txt").read_text(), Path("data.txt").read_text()) == ("mine", "data")
    assert not Path("new").exists()
    assert not Path("../outside.txt").exists()
    Path("user/notes.txt").write_text("yours")
    assert sandbox.changes({"user"}) == []


def test_every_option_of_every_command_is_known() -> None:
    kinds = {command: {option.name: option.kind for option in options_of(command)} for command in COMMANDS}
    assert kinds["evaluate"]["--episodes"] is int
    assert kinds["evaluate"]["--noise"] is float
    assert kinds["evaluate"]["--policy"] is Path
    assert kinds["methods"]["--json"] is bool
    assert all(kinds[command] for command in COMMANDS)
