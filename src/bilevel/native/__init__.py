"""The compiled parts, where they were built: each does what some Python does, only faster."""

import os
from importlib import import_module
from typing import Any

PURE = "BILEVEL_PURE"  # set it to 1 to do without them


def find(name: str) -> Any:
    """Return the compiled module of this name, or `None` where there is none or none is wanted."""
    try:
        return import_module(name) if os.environ.get(PURE, "0") in ("", "0") else None
    except ImportError:
        return None
