"""The process that runs a vision-language-action model: started, asked questions, and sure to end.

Questions and answers go through a pipe; see `vla_server.py`. The process ends when we do, however that happens: its
input closes then. We do not wait for that, though: it is a group of its own, killed by `close()`, at exit, after a
time-out and after Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import IO, Any

from bilevel.symbolic.domain import BadInput


class ServerProcess:
    """A process that answers questions. It is of no use any more once it has not answered one."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        log = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._connection, theirs = Pipe()
        try:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=dict(environment),
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        except OSError as error:
            raise BadInput(f"{command[0]}: cannot be run: {error.strerror}") from None
        finally:
            theirs.close()  # so that ours breaks when the process dies
        self._log: IO[bytes] = log
        self.close = weakref.finalize(self, _end, self._process, self._connection, log)  # at exit too

    @property
    def alive(self) -> bool:
        return bool(self.close.alive) and self._process.poll() is None

    def ask(self, question: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
        """The answer; `BadInput` where there is none in time, or the process has died, or says that it cannot."""
        try:
            with suppress(BrokenPipeError):  # it died; what it wrote before says why
                self._connection.send(dict(question))
            if not self._connection.poll(seconds):
                raise BadInput(f"the process that runs the model has not answered within {seconds:g} s")
            answer: Mapping[str, Any] = self._connection.recv()
        except (EOFError, ConnectionError):
            raise BadInput(f"the process that runs the model ended: {self._last_words()}") from None
        except BaseException:  # Ctrl-C too: its answer would pass for that to the next question
            self.close()
            raise
        if "error" in answer:
            raise BadInput(f"the model cannot be run: {answer['error']}")
        return answer

    def _last_words(self) -> str:
        """End it, and return what it said last, for a message on one line."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").splitlines()
        said = next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
        self.close()
        return f"exit code {self._process.returncode}: {said}"


def _end(process: subprocess.Popen[bytes], connection: Connection, log: IO[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):  # macOS answers EPERM for a group of zombies
        os.killpg(process.pid, signal.SIGKILL)  # a new session's group has its leader's number
    process.wait()
    assert process.stdin is not None
    for stream in (process.stdin, connection, log):
        stream.close()
