"""The compiled parts, where they were built: each does what some Python does, only faster."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

PURE = "BILEVEL_PURE"  # set it to 1 to do without them


def find(name: str) -> Any:
    """Return the compiled module of this name, or `None` where there is none or none is wanted."""
    if os.environ.get(PURE, "0") not in ("", "0"):
        return None
    try:
        return import_module(name)
    except ImportError:
        return None
