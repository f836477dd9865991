"""A unit of work: a small value that is sent to whoever does it.

What it makes depends on the unit and the experiment alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import ClassVar

from bilevel.experiments.reproduction.folder import ExperimentFolder

Callback = Callable[[str], None]  # called now and then with how far a unit is, once that is in its files


@dataclass(frozen=True)
class Unit(ABC):
    """A unit of work. Files and folders are named by their paths within the folder of the experiment."""

    kind: ClassVar[str]
    is_training: ClassVar[bool] = False
    is_intermediate: ClassVar[bool] = False  # of use only to units that are still to be done
    needs_own_process: ClassVar[bool] = False  # so that its memory is not that of others, nor theirs its
    task: str

    @property
    @abstractmethod
    def outputs(self) -> tuple[str, ...]:
        """The files and folders that it makes, in an order in which they can be written elsewhere again."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The outputs of other units that it needs."""
        return ()

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Folders for what is of no use once it is done."""
        return ()

    @property
    def uses_gpu(self) -> bool:
        """Whether it is faster on a GPU."""
        return False

    @property
    def name(self) -> str:
        return f"{self.kind} {PurePosixPath(self.outputs[0].partition('/')[2]).with_suffix('')}"

    @abstractmethod
    def is_done(self, folder: ExperimentFolder) -> bool:
        """Return whether all that it makes is there, and made of what is there now."""

    @abstractmethod
    def perform(self, folder: ExperimentFolder, callback: Callback) -> None:
        """Do it, or whatever of it is not there yet."""
