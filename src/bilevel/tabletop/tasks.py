"""The eight tasks in one table: everything that goes over tasks goes over this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import gymnasium

from bilevel.policies.policies import BilevelPolicy
from bilevel.symbolic.domain import BadInput, Domain
from bilevel.tabletop import TELEPORT_RATE
from bilevel.tabletop.expert import Expert, Plan, colour_blocks, roll_colours, sort_blocks
from bilevel.tabletop.labelling import BlocksLabels, ColourLabels, GachaLabels, Labels
from bilevel.tabletop.observation import Slots
from bilevel.tabletop.problems import shipped_domain
from bilevel.tabletop.skills import SKILLS, Skills
from bilevel.tabletop.tabletop import Tabletop

# The arguments that only some worlds take, by domain.
WORLD_ARGUMENTS: Mapping[str, tuple[str, ...]] = {"blocks": (), "colour": ("colours",), "gacha": ("draw",)}


@dataclass(frozen=True)
class Task:
    """A world, the domain that describes it, the labels that connect the two, and an expert."""

    name: str
    environment: str  # as Gymnasium knows it
    domain_name: str
    label: type[Labels]
    program: Plan
    teleport_rate: float
    most_objects: int

    @property
    def noisy(self) -> bool:
        return self.teleport_rate > 0

    @property
    def arguments(self) -> tuple[str, ...]:
        """What its environment takes, besides what pictures need."""
        return "objects", "teleport_rate", *WORLD_ARGUMENTS[self.domain_name]

    @property
    def domain(self) -> Domain:
        return _domain(self.domain_name)

    def given(self, **arguments: Any) -> dict[str, Any]:
        """The arguments that a user has given, not `None`; `BadInput` for one that this task does not take."""
        found = {name: value for name, value in arguments.items() if value is not None}
        for name in found:
            if name not in self.arguments:
                raise BadInput(f"the task '{self.name}' takes no --{name.replace('_', '-')}")
        return found

    def make(self, objects: int = 3, **arguments: Any) -> Tabletop:
        """The environment itself, without Gymnasium's wrappers."""
        environment = gymnasium.make(self.environment, objects=objects, disable_env_checker=True, **arguments)
        return cast(Tabletop, environment.unwrapped)

    def labels(self, slots: Slots) -> Labels:
        return self.label(slots)

    def expert(self, slots: Slots) -> BilevelPolicy:
        """The hand-written policy, for an environment with these slots."""
        skills = Skills(SKILLS[self.domain_name], slots)
        return BilevelPolicy(self.labels(slots), Expert(self.program), skills)


_domain = cache(shipped_domain)


def _twins(world: str, domain: str, label: type[Labels], program: Plan, most_objects: int = 10) -> list[Task]:
    """A world's two tasks, the still one and the noisy one."""
    return [
        Task(world.lower() + suffix, f"bilevel/{world}{noisy}-v0", domain, label, program, rate, most_objects)
        for suffix, noisy, rate in (("", "", 0.0), ("-noisy", "Noisy", TELEPORT_RATE))
    ]


TASKS: Mapping[str, Task] = {
    task.name: task
    for task in (
        *_twins("Blocks", "blocks", BlocksLabels, sort_blocks, most_objects=20),
        *_twins("Factory", "blocks", BlocksLabels, sort_blocks),
        *_twins("Colour", "colour", ColourLabels, colour_blocks),
        *_twins("Gacha", "gacha", GachaLabels, roll_colours),
    )
}


def find_task(name: str) -> Task:
    if name not in TASKS:
        raise BadInput(f"unknown task {name!r}; known tasks: {', '.join(TASKS)}")
    return TASKS[name]
