"""Real programs that start children of their own: nothing of them is left, however they or we end."""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path

import pytest

from bilevel.planning.fast_downward import run_in_group

PATIENCE = 20  # seconds; a group ends within milliseconds

# Says where it runs, and sleeps, and so does its child; both hold the pipe that their output goes to.
PARENT_AND_CHILD = [
    sys.executable,
    "-c",
    "import os, subprocess, sys; print(os.getcwd(), flush=True); "
    "subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])",
]


class Pipe:
    """What a program and its children write to: when nobody holds it any more, they are all gone."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()

    def wait_for_output(self) -> None:
        assert select.select([self.reading], [], [], PATIENCE)[0], "the program did not start"

    def assert_all_gone(self) -> None:
        os.close(self.writing)
        while select.select([self.reading], [], [], PATIENCE)[0]:
            if not os.read(self.reading, 65536):
                os.close(self.reading)
                return
        pytest.fail("a process is still running")


def test_exit_code_and_output(tmp_path: Path) -> None:
    log_file = tmp_path / "log"
    with log_file.open("wb") as log:
        code = run_in_group(["sh", "-c", "pwd; echo $COLOUR; exit 7"], tmp_path, log.fileno(), 60, {"COLOUR": "red"})
    assert code == 7
    assert log_file.read_text().split() == [str(tmp_path), "red"]


def test_time_is_up(tmp_path: Path) -> None:
    pipe = Pipe()
    assert run_in_group(PARENT_AND_CHILD, tmp_path, pipe.writing, 0.5, {}) is None
    pipe.assert_all_gone()


def test_a_child_does_not_outlive_a_program_that_ends(tmp_path: Path) -> None:
    pipe = Pipe()
    assert run_in_group(["sh", "-c", "sleep 600 & exit 3"], tmp_path, pipe.writing, 60, {}) == 3
    pipe.assert_all_gone()
