"""The other end of vla_protocol: starts the process that runs a model, asks it, and sees to it that it ends.

The process ends when we do, however that happens: its input closes then. We do not wait for that, though: it is a group
of its own, killed by `close()`, at exit, after a time-out and after Ctrl-C.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

from bilevel.baselines.vla_protocol import BadMessage, Message, encode, read_message
from bilevel.symbolic.domain import BadInput


class _TimeUp(Exception):
    pass


class ServerProcess:
    """A process that answers questions. It is of no use any more once a question has failed."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=dict(environment),
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise BadInput(f"{command[0]}: cannot be run: {error.strerror}") from None
        self.close = weakref.finalize(self, _end, self._process, self._log)  # at exit too

    @property
    def alive(self) -> bool:
        return bool(self.close.alive) and self._process.poll() is None

    def ask(self, message: Message, seconds: float) -> Mapping[str, Any]:
        """The answer; `BadInput` where there is none in time, or the process has died, or says that it cannot."""
        deadline = time.monotonic() + seconds
        try:
            answer = self._exchange(message, deadline)
            if answer is None:
                raise BadInput(f"the process that runs the model ended: {self._last_line()}")
        except _TimeUp:
            self.close()
            raise BadInput(f"the process that runs the model has not answered within {seconds:g} s") from None
        except BadMessage as error:
            self.close()
            raise BadInput(f"the process that runs the model does not speak the protocol: {error}") from None
        except BaseException:  # Ctrl-C too: its answer would pass for that to the next question
            self.close()
            raise
        if answer.fields.get("answer") == "error":
            raise BadInput(f"the model cannot be run: {answer.fields.get('message')}")
        return answer.fields

    def _exchange(self, message: Message, deadline: float) -> Message | None:
        with suppress(BrokenPipeError):  # it died; what it wrote before says why
            self._write(encode(message), deadline)
        return read_message(lambda size: self._read(size, deadline))

    def _write(self, data: bytes, deadline: float) -> None:
        stream = self._process.stdin
        assert stream is not None
        os.set_blocking(stream.fileno(), False)  # a picture is more than a pipe holds, and the reader may hang
        rest = memoryview(data)
        while rest:
            _await(stream, selectors.EVENT_WRITE, deadline)
            rest = rest[os.write(stream.fileno(), rest) :]

    def _read(self, size: int, deadline: float) -> bytes:
        """So many bytes, or fewer at the end."""
        stream = self._process.stdout
        assert stream is not None
        parts: list[bytes] = []
        while size > 0:
            _await(stream, selectors.EVENT_READ, deadline)
            part = os.read(stream.fileno(), size)
            if not part:
                break
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _last_line(self) -> str:
        """What it said last, for a message on one line."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").splitlines()
        said = next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
        return f"exit code {self._process.returncode}: {said}"


def _await(stream: IO[bytes], event: int, deadline: float) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(stream, event)
        if not selector.select(max(0.0, deadline - time.monotonic())):
            raise _TimeUp


def _end(process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):  # macOS answers EPERM for a group of zombies
        os.killpg(process.pid, signal.SIGKILL)  # a new session's group has its leader's number
    process.wait()
    for stream in (process.stdin, process.stdout, log):
        if stream is not None:
            with suppress(OSError):
                stream.close()
