"""Programs that are run for a while and leave nothing behind, however they, or we, end.

A program and all its children form a process group, which is ended when its time is up and whenever we go on without
it. Should we be killed before we can do that, the group ends itself: one process of it, which does nothing else, waits
for the end of a pipe that only we hold.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

# A shell starts in two milliseconds. `read` comes back when the pipe has ended, and `kill 0` is for the whole group.
# What a shell runs in the background gets another standard input, so the pipe moves to 3, which the program never sees.
_GUARDED = """
exec 3<&0
{ read _ <&3; kill -s KILL 0; } >/dev/null 2>&1 & guard=$!
"$@" 3<&- </dev/null & program=$!
exec 2>/dev/null
wait $program; code=$?
kill -s KILL $guard; wait $guard
exit $code
"""


def run_in_group(
    command: Sequence[str],
    directory: Path,
    output: int,
    seconds: float,
    environment: Mapping[str, str] | None = None,
) -> int | None:
    """The exit code, or `None` where the time was up; the process and all its children are ended either way.

    As in a shell, the code is 127 where there is no such program, and above 128 where a signal ended it. `output` is
    the file that what they print goes to, `environment` what they find there besides our own.
    """
    guard, ours = os.pipe()  # which nobody else inherits
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _GUARDED, "sh", *command],
            cwd=directory,
            env={**os.environ, **(environment or {})},
            stdin=guard,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        os.close(guard)
        guard = -1
        try:
            return process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:  # on KeyboardInterrupt too
            _end_group(process)
    finally:
        os.close(ours)
        if guard >= 0:
            os.close(guard)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):  # macOS answers EPERM for a group of zombies
        os.killpg(process.pid, signal.SIGKILL)  # a new session's group has its leader's number
    process.wait()


@contextmanager
def private_directory() -> Iterator[Path]:
    """A new directory for one run of one program, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="bilevel-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def last_words(log_file: Path) -> str:
    """The last line of a log that says something, for a message on one line."""
    lines = log_file.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((" ".join(line.split()) for line in reversed(lines) if line.strip()), "no output")
