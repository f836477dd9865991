"""Pictures of a world."""

from __future__ import annotations

from typing import Any


class Picture:
    """Draws a world, off screen or in a window."""

    def __init__(self, model: Any, mode: str, quality: str) -> None: ...

    def draw(self, data: Any) -> Any: ...

    def close(self) -> None: ...
