"""Memory that is not there: one line, whichever library noticed."""

from __future__ import annotations

import errno
import sys

import numpy as np
import pytest

from bilevel.memory import lacks_memory, require_memory

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
