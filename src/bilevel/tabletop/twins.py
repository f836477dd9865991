"""The two tasks of a world: the still one, and its noisy twin, in which objects teleport away from their goals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from bilevel.symbolic.domain import Action, Domain, Facts
from bilevel.tabletop.observation import perceive
from bilevel.tabletop.skills import Skill, skilled
from bilevel.tabletop.symbols import Label
from bilevel.tabletop.tabletop import Tabletop
from bilevel.tasks.task import Expert, Task

TELEPORT_RATE = 1 / 2000  # per object at its goal and step, in the noisy twins
FINGERS = 3  # the number of a control that opens and closes them


def twins(
    world: type[Tabletop],
    domain: Domain,
    label: Label,
    goal: Label,
    choose: Callable[[Facts, Facts], Action | None],
    skills: Mapping[str, Skill],
) -> tuple[Task, Task]:
    """Return the tasks of a world, called after its class; `choose` and `skills` are those of its expert."""
    name = world.__name__.lower()
    still = Task(
        name,
        domain,
        make_env=world,
        spec=world.scene_spec,
        perceive=perceive,
        label=label,
        goal=goal,
        expert=Expert(choose, skilled(skills)),
        max_objects=world.max_objects,
        switches=(FINGERS,),
        save=world.save,
        restore=world.restore,
        packages=("mujoco", "metaworld"),
        source=name,
    )
    noisy = f"{name}-noisy"
    return still, replace(still, name=noisy, make_env=partial(world, teleport_rate=TELEPORT_RATE), source=noisy)
