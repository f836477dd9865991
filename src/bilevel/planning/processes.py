"""Programs that are run for a while and leave nothing behind, however they, or we, end.

A program and all its children form a process group, which is ended when its time is up and whenever we go on without
it. It ends itself, too, should we be killed: one process of it, the guard, does nothing but wait for the end of a pipe
that only we hold. Children that leave the group, as those of the command `timeout` do, still belong to its session;
they are found where there is a /proc, as on Linux.
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
# After the name in a line of /proc/*/stat come state, parent, group and session; this shell's session has its number.
_GUARDED = """
end_session() {
  read -r me </proc/self/stat
  for pass in 1 2 3; do
    for stat in /proc/[0-9]*/stat; do
      read -r line <"$stat" || continue
      set -- ${line##*) }
      test "$4" = $$ && test "${line%% *}" != "${me%% *}" && kill -s KILL "${line%% *}"
    done
  done
  kill -s KILL 0
}
exec 3<&0
{ read _ <&3; end_session; } >/dev/null 2>&1 & guard=$!
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
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(guard)
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:  # on KeyboardInterrupt too
        try:
            _end_session(process)
        finally:
            os.close(ours)


def _end_session(process: subprocess.Popen[bytes]) -> None:
    """End the group that the process leads, and what has left it."""
    with suppress(ProcessLookupError, PermissionError):  # macOS answers EPERM for a group of zombies
        os.killpg(process.pid, signal.SIGKILL)  # a new session and its group have their leader's number
    ended: set[int] = set()
    while strays := _session_members(process.pid) - ended:  # which may be starting others
        for stray in strays:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(stray, signal.SIGKILL)
        ended |= strays
    process.wait()


def _session_members(session: int) -> set[int]:
    try:
        processes = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return set()
    return {process for process in processes if _session_of(process) == session}


def _session_of(process: int) -> int | None:
    try:
        return os.getsid(process)
    except OSError:  # it has ended
        return None


@contextmanager
def private_directory() -> Iterator[Path]:
    """A new directory for one run of one program, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="bilevel-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def last_words(log_file: Path) -> str:
    """The last line of a log that says something, for a message on one line."""
    lines = log_file.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((" ".join(line.split()) for line in reversed(lines) if line.strip()), "no output")
