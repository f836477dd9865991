"""Memory that is not there: recognised in whatever way a library says so, and asked for before one would crash."""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Callable
from functools import cache

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
    """`MemoryError` where so much is not to be had: for libraries that do not ask whether they got any."""
    bytearray(mebibytes << 20)


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
