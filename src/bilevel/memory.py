"""Memory that is not there: recognised in whatever way a library says so, and asked for before one would crash."""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Callable
from functools import cache
from pathlib import Path

MOST = 1 << 30  # mebibytes, that nobody has
LACKING = "there is not enough memory for this"
# What libraries say: the loader of shared ones, C++, torch, Python where it starts a thread.
_WORDS = (
    "initialization failed",
    "failed to map segment",
    "allocate memory",
    "bad_alloc",
    "bad allocation",
    "out of memory",
    "can't start new thread",
)


def lacks_memory(error: BaseException) -> bool:
    """Return whether an error says that there is not enough memory."""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    return isinstance(error, (RuntimeError, ImportError)) and any(word in str(error) for word in _WORDS)


def require_memory(mebibytes: int) -> None:
    """`MemoryError` where so much is not to be had: for what does not ask, or would only notice after minutes.

    A system may promise more memory than it has, and then kill who uses it. So what is free counts, too, where that is
    known.
    """
    free = _free_mebibytes()
    if mebibytes > (MOST if free is None else free):
        raise MemoryError
    bytearray(mebibytes << 20)


def _free_mebibytes() -> int | None:
    """Return how much memory programs can still get without swapping, where the system says so: Linux does."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) >> 10 for line in lines if line.startswith("MemAvailable:")), None)


def give_back() -> None:
    """Give memory that nobody uses back to the system, where it can (glibc): threads that have ended leave some."""
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None
