"""Programs that are run for a while and leave nothing behind, however they, or we, end.

A program and its children form a process group, which is ended when its time is up and whenever we go on without it.
Should we be killed, the group ends itself: one process of it, the guard, only waits for the end of a pipe that we hold.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

# `read` comes back when the pipe has ended, and `kill 0` is for the whole group. What a shell runs in the background
# gets another standard input, so the pipe moves to 3, which the program never sees.
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
    with subprocess.Popen(
        ["/bin/sh", "-c", _GUARDED, "sh", *command],
        cwd=directory,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        start_new_session=True,
    ) as process:
        try:
            return process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:  # on KeyboardInterrupt too
            _end_session(process.pid)


def _end_session(leader: int) -> None:
    """End the group that the process leads and, where there is a /proc, what has left it for a group of its own."""
    with suppress(ProcessLookupError, PermissionError):  # macOS answers EPERM for a group of zombies
        os.killpg(leader, signal.SIGKILL)  # a new session and its group have their leader's number
    ended: set[int] = set()
    while strays := _session_members(leader) - ended:  # which may be starting others
        for stray in strays:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(stray, signal.SIGKILL)
        ended |= strays


def _session_members(session: int) -> set[int]:
    members = set()
    for process in map(int, filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else ())):
        with suppress(OSError):  # it has ended
            if os.getsid(process) == session:
                members.add(process)
    return members


@contextmanager
def private_directory() -> Iterator[Path]:
    """A new directory for one run of one program, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="bilevel-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def last_words(log_file: Path) -> str:
    """The last line of a log that says something, for a message on one line."""
    lines = log_file.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((" ".join(line.split()) for line in reversed(lines) if line.strip()), "no output")
