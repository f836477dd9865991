"""A piece of work: a small object that is sent to whoever does it.

What it makes depends on the unit and the experiment alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bilevel.experiments.reproduction.folder import Kept

Tick = Callable[[str], None]  # told now and then how far a unit is, once what it has made so far is in its files


@dataclass(frozen=True)
class Unit(ABC):
    """A piece of work."""

    kind: ClassVar[str]
    task: str

    @property
    @abstractmethod
    def gives(self) -> tuple[str, ...]:
        """What is there once it is done, by names that other units' needs may be among."""

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    @property
    def name(self) -> str:
        return f"{self.kind} {self.gives[0].partition('/')[2]}"

    @property
    def is_means(self) -> bool:
        """Whether what it makes is of no use but to other units that are still to be done."""
        return False

    @property
    def is_training(self) -> bool:
        return False

    @property
    def likes_gpu(self) -> bool:
        return False

    @property
    def is_alone(self) -> bool:
        """Whether it gets a process of its own, so that its memory is not that of others, nor theirs its."""
        return self.is_training

    @abstractmethod
    def is_done(self, kept: Kept) -> bool: ...

    @abstractmethod
    def sources(self, kept: Kept) -> Sequence[Path]:
        """The files and folders that it reads, its own unfinished ones included."""

    @abstractmethod
    def products(self, kept: Kept) -> Sequence[Path]:
        """The files and folders that it writes, in an order in which they can be written elsewhere again."""

    @abstractmethod
    def perform(self, kept: Kept, tick: Tick) -> None:
        """Do it, or whatever of it is not there yet."""

    def leftovers(self, kept: Kept) -> Sequence[Path]:
        """Folders that are of no use once it is done."""
        return ()
