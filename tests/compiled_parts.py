"""Checks that an installed package has every compiled part: they are optional, so building one may fail in silence.

python tests/compiled_parts.py
"""

from __future__ import annotations

import sys
from pathlib import Path

from bilevel.native import find

SOURCES = Path(__file__).parents[1] / "src"


def missing() -> list[str]:
    """Return the names of the compiled modules that cannot be imported."""
    files = sorted(SOURCES.rglob("*.pyx"))
    names = [".".join(file.relative_to(SOURCES).with_suffix("").parts) for file in files]
    return [name for name in names if find(name) is None]


if __name__ == "__main__":
    sys.exit(f"not compiled: {', '.join(missing())}" if missing() else 0)
