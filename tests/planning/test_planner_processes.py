"""Real programs that start children of their own: nothing of them is left, however they or we end."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from types import FrameType

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


def test_a_program_that_is_missing_or_killed(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        assert run_in_group(["no-such-program"], tmp_path, log.fileno(), 60, {}) == 127
        assert run_in_group(["sh", "-c", "kill -s KILL $$"], tmp_path, log.fileno(), 60, {}) == 128 + signal.SIGKILL


def test_arguments_are_not_read_by_the_shell(tmp_path: Path) -> None:
    log_file = tmp_path / "log"
    with log_file.open("wb") as log:
        run_in_group(["printf", "%s|", "$HOME", "a b", "'", "; exit 3"], tmp_path, log.fileno(), 60, {})
    assert log_file.read_text() == "$HOME|a b|'|; exit 3|"


def test_time_is_up(tmp_path: Path) -> None:
    pipe = Pipe()
    assert run_in_group(PARENT_AND_CHILD, tmp_path, pipe.writing, 0.5, {}) is None
    pipe.assert_all_gone()


def test_a_child_does_not_outlive_a_program_that_ends(tmp_path: Path) -> None:
    pipe = Pipe()
    assert run_in_group(["sh", "-c", "sleep 600 & exit 3"], tmp_path, pipe.writing, 60, {}) == 3
    pipe.assert_all_gone()


def test_a_program_cannot_get_rid_of_us_by_ending_its_guard(tmp_path: Path) -> None:
    """It ends everything of its group but itself, as far as it can."""
    pipe = Pipe()
    ends_others = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.killpg(0, signal.SIGTERM)"
    program = [sys.executable, "-c", f"{ends_others}; time.sleep(600)"]
    assert run_in_group(program, tmp_path, pipe.writing, 0.5, {}) in (None, -signal.SIGTERM)
    pipe.assert_all_gone()


@contextmanager
def raising_at(seconds: float, error: Callable[[], BaseException]) -> Iterator[None]:
    """Wherever the program is then."""

    def interrupt(signum: int, frame: FrameType | None) -> None:
        raise error()

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_exception_anywhere(tmp_path: Path, error: type[BaseException]) -> None:
    pipe = Pipe()
    with pytest.raises(error), raising_at(0.4, error):
        run_in_group(PARENT_AND_CHILD, tmp_path, pipe.writing, 600, {})
    pipe.assert_all_gone()


# Runs the program above with its own standard output and ends as the command line does, also where we ignore signals.
CALLER = """
import signal, sys, tempfile
from pathlib import Path
from bilevel.planning.fast_downward import run_in_group
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
signal.signal(signal.SIGINT, signal.default_int_handler)  # under nohup and in the background it is inherited as ignored
signal.signal(signal.SIGHUP, signal.SIG_DFL)
with tempfile.TemporaryDirectory() as directory:
    run_in_group(sys.argv[1:], Path(directory), 1, 600, {})
"""


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_to_us(tmp_path: Path, end: signal.Signals) -> None:
    pipe = Pipe()
    caller = subprocess.Popen(
        [sys.executable, "-c", CALLER, *PARENT_AND_CHILD],
        stdout=pipe.writing,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    pipe.wait_for_output()
    caller.send_signal(end)
    caller.wait(PATIENCE)
    pipe.assert_all_gone()
    assert caller.returncode == (143 if end is signal.SIGTERM else -end)
    if end in (signal.SIGINT, signal.SIGTERM):  # else we cannot tidy up
        assert list(tmp_path.iterdir()) == []


def test_two_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    pipes = [Pipe(), Pipe()]
    results: dict[int, int | None] = {}

    def run(number: int, command: list[str], seconds: float) -> None:
        results[number] = run_in_group(command, tmp_path, pipes[number].writing, seconds, {})

    first = Thread(target=run, args=(0, PARENT_AND_CHILD, 0.3))
    second = Thread(target=run, args=(1, ["sh", "-c", "sleep 1; exit 5"], 60))
    for thread in (first, second):
        thread.start()
    first.join()
    pipes[0].assert_all_gone()  # though the other still runs
    second.join()
    pipes[1].assert_all_gone()
    assert results == {0: None, 1: 5}
