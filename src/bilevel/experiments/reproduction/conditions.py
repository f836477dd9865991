"""Conditions: under what an episode is run, besides its task and its number of objects."""

from __future__ import annotations

from dataclasses import dataclass

from bilevel.json_files import Plain
from bilevel.tasks.perception import PERFECT, Perception


@dataclass(frozen=True)
class Condition:
    """Under what episodes are run; its name is part of the names of files, and empty for the plain one."""

    name: str = ""
    noise: float = 0.0  # amplitude of the control noise
    arguments: tuple[tuple[str, Plain], ...] = ()  # of the environment
    perception: Perception = PERFECT
    lengthening: float = 1.0  # about how many times as long an episode lasts as a plain one, for forecasts


PLAIN = Condition()
