"""Memory that is not there: one line, whichever library noticed."""

from __future__ import annotations

import errno
import subprocess
import sys

import numpy as np
import pytest

from bilevel.memory import LACKING, lacks_memory, require_memory

COMMAND = (sys.executable, "-m", "bilevel")


@pytest.mark.parametrize(
    ("error", "lacks"),
    [
        (MemoryError(), True),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), True),
        (OSError(errno.ENOSPC, "No space left on device"), False),
        (ImportError("libtorch_cpu.so: failed to map segment from shared object"), True),
        (ImportError("cannot import name 'x'"), False),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:116] DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("std::bad_alloc"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("can't allocate memory"), False),
    ],
)
def test_what_libraries_say_is_understood(error: Exception, lacks: bool) -> None:
    assert lacks_memory(error) == lacks


def test_memory_is_asked_for() -> None:
    require_memory(1)
    with pytest.raises(MemoryError):
        require_memory(2**40)
    with pytest.raises(MemoryError):
        require_memory(10**30)


def test_memory_that_is_promised_but_not_free_is_lacking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bilevel.memory._free_mebibytes", lambda: 100)
    require_memory(100)
    with pytest.raises(MemoryError):
        require_memory(101)
    monkeypatch.setattr("bilevel.memory._free_mebibytes", lambda: None)
    require_memory(101)


def test_what_libraries_lack_is_understood() -> None:
    with pytest.raises(Exception, match="allocate") as error:
        np.empty(2**48)
    assert lacks_memory(error.value)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit that the system keeps")
@pytest.mark.parametrize(
    ("mebibytes", "words"),
    [
        (160, ["collect", "blocks", "--episodes", "1", "--output", "OUT"]),
        (150, ["problem", "blocks", "--objects", "1000000", "--output", "OUT"]),
        (8000, ["problem", "blocks", "--objects", "10000000", "--output", "OUT"]),
    ],
)
def test_a_command_without_memory_ends_in_one_line(
    mebibytes: int, words: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    output = tmp_path_factory.mktemp("memory") / "out"
    command = " ".join([*COMMAND, *words]).replace("OUT", str(output))
    done = subprocess.run(
        ["bash", "-c", f"ulimit -v {mebibytes << 10}; exec {command}"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (2, f"bilevel: {LACKING}\n")
