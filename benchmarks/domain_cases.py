"""The tasks whose domains are learned, where their policies are run, and where everything is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

import bilevel
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.tasks.task import Task

if TYPE_CHECKING:
    from bilevel.learning.networks import LearningConfig

EXAMPLES = Path(__file__).parents[1] / "examples"


@dataclass(frozen=True)
class Setting:
    """Where a policy is run; a task of a suite has the name that the suite itself gives it."""

    name: str
    objects: int
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A task: where it is, how many objects its demonstrations have, where policies are run, and how long it takes."""

    source: str
    objects: int
    settings: tuple[Setting, ...]
    cost: float  # compared with others

    def find(self) -> Task:
        return bilevel.find_task(self.source)


def _sizes(*sizes: int) -> tuple[Setting, ...]:
    return tuple(Setting(f"n = {size}", size) for size in sizes)


def _example(name: str) -> str:
    return f"{EXAMPLES / 'ogbench' / name}.py:task"


OFFICIAL = tuple(Setting(f"task {task}", 1, {"task_id": task}) for task in range(1, 6))
COSTS = {"blocks": 1.0, "swap": 1.2, "factory": 2.5, "colour": 2.5, "gacha": 5.0}
CASES = {
    **{name: Case(name, 3, _sizes(3, 10), cost) for name, cost in COSTS.items()},
    **{
        f"{name}-noisy": Case(f"{name}-noisy", 3, _sizes(3, 10), cost) for name, cost in COSTS.items() if name != "swap"
    },
    "cubes": Case(_example("cubes"), 3, _sizes(3, 8), 7.0),
    "scene": Case(_example("scene"), 1, OFFICIAL, 6.0),
}


@dataclass(frozen=True)
class Plan:
    """What is asked for, and where it is kept."""

    tasks: tuple[str, ...]
    demonstrations: tuple[int, ...]
    domains: tuple[str, ...]
    objects: tuple[int, ...] | None  # in the settings where policies are run; all of them unless told
    episodes: int
    epochs: int | None  # instead of those of the preset
    dagger_rounds: int | None
    seed: int
    workers: int
    folder: Path

    def settings(self, task: str) -> list[Setting]:
        """Where the policies of a task are run."""
        return [each for each in CASES[task].settings if self.objects is None or each.objects in self.objects]

    @property
    def config(self) -> LearningConfig:
        """How policies are learned in either domain."""
        from bilevel.learning.networks import PRESETS  # here, lest torch counts as memory that learning a domain takes

        usual = PRESETS["best"]
        training = replace(usual.training, epochs=self.epochs, updates=0) if self.epochs else usual.training
        rounds = usual.dagger.rounds if self.dagger_rounds is None else self.dagger_rounds
        return replace(usual, training=training, dagger=replace(usual.dagger, rounds=rounds))

    def data(self, task: str, noise: float | None = None) -> Path:
        return self.folder / task / ("demonstrations" + (f"-{noise}" if noise else ""))

    def about(self, task: str, number: int) -> Path:
        return self.folder / task / f"domain-{number}.json"

    def policy(self, task: str, number: int, domain: str) -> Path:
        return self.folder / task / f"{domain}-{number}"

    def part(self, task: str, number: int, domain: str, setting: Setting, part: int) -> Path:
        name = f"{domain}-{number}-{setting.name.replace(' ', '')}-{part}.jsonl"
        return self.folder / task / "episodes" / name

    def workers_for(self, task: str) -> int:
        """How many processes a task gets while all of them are at work."""
        whole = sum(CASES[each].cost for each in self.tasks)
        return max(1, round(self.workers * CASES[task].cost / whole))


def first(demonstrations: Demonstrations, number: int) -> Demonstrations:
    """The first so many demonstrations of a data set, in memory."""
    data = demonstrations
    return Demonstrations(
        data[:number],
        task=data.task,
        spec=data.spec,
        domain=data.domain,
        controls=data.controls,
        arguments=data.arguments,
    )
