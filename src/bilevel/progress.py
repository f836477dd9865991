"""How far long work is: what every long function tells its callback."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Progress:
    """What is being done, how much of it is done, and what was measured on the way."""

    stage: str
    done: int = 0
    total: int | None = None  # `None` where it is unknown
    values: Mapping[str, float] = field(default_factory=dict)


Callback = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """Ignore the progress: the callback where it is not shown."""
