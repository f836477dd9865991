"""Commands of ours, run in this process."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
import torch

from bilevel import cli

torch.set_num_threads(1)  # networks as small as these only wait for other threads


def run(words: Sequence[str], folder: Path) -> tuple[int, list[str]]:
    """Return the exit code of a command of ours, and the lines that it prints."""
    with captured() as output, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)  # one process is enough
        with pytest.raises(SystemExit) as stopped:
            cli.main(list(words))
    return int(stopped.value.code or 0), output.getvalue().splitlines()


@contextmanager
def captured() -> Iterator[io.StringIO]:
    """Catch what is printed, in its order."""
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        yield output
