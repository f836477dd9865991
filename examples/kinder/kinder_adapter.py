"""Any environment of KinDER as a task, but for its domain, labels, goal and expert.

KinDER's observations say of which objects they are, of what types, and what each number is called: so types, features
and their roles are read from the environment.

    KINDER = Kinder("StickButton2D")
    task = KINDER.task("stick-button", DOMAIN, label, goal, Expert(choose, control))
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import import_module
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from bilevel import Angle, BadInput, Domain, Expert, LabelOnly, Position, Scalar, Scene, Spec, Task
from bilevel.tasks.scene import Roster
from bilevel.tasks.spec import Features, Role

ROBOT = "robot"  # the name of the robot in all of its environments
PREFIX = re.compile("^(pos_base_|pose_)")  # in 3-D, robots and objects have different names for the same coordinates
LOOKS = re.compile("color_.*|static|z_order.*|held|grasp_.*|q[xyzw]|object_type")  # what networks are not told

kinder: Any = import_module("kinder")  # not this folder, which has the same name
kinder.register_all_environments()


class KinderEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Says in `info` that an episode has succeeded: KinDER ends it there, and nowhere else.

    Where only some numbers of a control are `used`, the others are nought.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], used: Sequence[int] | None = None) -> None:
        super().__init__(env)
        space: Any = env.action_space
        self.whole, self.used = np.zeros(space.shape, space.dtype), list(used or range(space.shape[0]))
        self.action_space = Box(space.low[self.used], space.high[self.used], dtype=space.dtype.type)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.whole[self.used] = action
        observation, reward, terminated, truncated, info = self.env.step(self.whole.copy())
        return observation, reward, terminated, truncated, info | {"success": terminated}


class Places(NamedTuple):
    """Which numbers of an observation are the robot's, which the objects', and in which row and column each belongs."""

    robot: list[int]
    objects: list[int]
    rows: list[int]
    columns: list[int]
    roster: Roster


@dataclass(frozen=True, eq=False)
class Kinder:
    """The environments of one name, such as "StickButton2D", that differ in how many objects there are.

    `roles` replace those that follow from the names of features: by the type (of the robot, "robot"), then by the
    feature. `added` is what is seen beside KinDER's objects, such as a free place: by the type of each, its features;
    `add` gives their values in a scene, in this order. Such a thing is called as its type.
    """

    name: str
    roles: Mapping[str, Features] = field(default_factory=dict)
    added: Mapping[str, Features] = field(default_factory=dict)
    add: Callable[[Scene], Sequence[Sequence[float]]] | None = None
    used: Sequence[int] | None = None  # numbers of a control, if not all of them

    @cached_property
    def ids(self) -> dict[int, str]:
        """The registered environments, by the number of their objects: 1 where no number is told."""
        numbered = ((re.search(r"-[a-z](\d+)-", name), name) for name in kinder.get_env_variants(self.name))
        sizes = {int(number[1]) if number else 1: name for number, name in numbered}
        return {size: sizes[size] for size in sorted(sizes) if size > 0}

    def make_env(self, objects: int, render_mode: str | None = None) -> KinderEnv:
        """Make the registered environment with so many objects."""
        if objects not in self.ids:
            raise BadInput(f"KinDER has {self.name} with {', '.join(map(str, self.ids))} objects, not with {objects}")
        name = self.ids[objects]
        return KinderEnv(gymnasium.make(name, render_mode=render_mode, disable_env_checker=True), self.used)

    @cached_property
    def spec(self) -> Spec:
        """The types of what is in the smallest environment, with their features."""
        env = self.make_env(min(self.ids))
        space: Any = env.unwrapped.observation_space
        env.close()
        features = {
            type_of(thing): [PREFIX.sub("", name) for name in space.type_features[thing.type]]
            for thing in space.constant_objects
        }
        axes = features[ROBOT]
        roles = {kind: {name: self.role(kind, name, axes) for name in names} for kind, names in features.items()}
        return Spec(roles.pop(ROBOT), {**roles, **self.added})

    def role(self, kind: str, name: str, axes: Sequence[str]) -> Role | type[Role]:
        """The role of a feature, by its name. Walls are not in observations, so the robot is told where it is."""
        if name in self.roles.get(kind, ()):
            return self.roles[kind][name]
        if name in ("x", "y", "z") and name in axes:
            return Position(absolute=kind == ROBOT)
        return LabelOnly if LOOKS.fullmatch(name) else Angle if name in ("theta", "rot") else Scalar

    def perceive(self, observation: Any, info: dict[str, Any], env: gymnasium.Env[Any, Any]) -> Scene:
        """What is seen: the robot, and all other objects under their names."""
        space: Any = env.unwrapped.observation_space
        places = self.places(tuple(space.constant_objects))
        features = np.zeros((len(places.roster.objects), len(self.spec.columns)), np.float32)
        features[places.rows, places.columns] = observation[places.objects]
        scene = Scene.from_arrays(self.spec, observation[places.robot].astype(np.float32), features, places.roster)
        for kind, values in zip(self.added, self.add(scene) if self.add else (), strict=True):
            features[places.roster.row[kind], [self.spec.column[name] for name in self.added[kind]]] = values
        return scene

    @lru_cache  # noqa: B019 (there is one for each number of objects)
    def places(self, things: tuple[Any, ...]) -> Places:
        """Where the numbers of an observation of these things belong."""
        members = {thing.name: kind for kind in self.spec.objects for thing in things if type_of(thing) == kind}
        roster = Roster(members | {kind: kind for kind in self.added})
        found, first = Places([], [], [], [], roster), 0
        for thing in things:
            names = self.spec.agent if thing.name == ROBOT else self.spec.objects[type_of(thing)]
            numbers = range(first, first := first + len(names))
            if thing.name == ROBOT:
                found.robot.extend(numbers)
                continue
            found.objects.extend(numbers)
            found.rows.extend([roster.row[thing.name]] * len(names))
            found.columns.extend(self.spec.column[name] for name in names)
        return found

    def task(self, name: str, domain: Domain, label: Any, goal: Any, expert: Expert, **optional: Any) -> Task:
        """The task of that name; what is optional in a `Task` may be given."""
        optional = {"max_objects": max(self.ids), "packages": ["kindergarden"], **optional}
        return Task(name, domain, self.make_env, self.spec, self.perceive, label, goal, expert, **optional)


def type_of(thing: Any) -> str:
    """What the type of one of KinDER's objects is called here: as it is there, but in small letters, as in PDDL."""
    return ROBOT if thing.name == ROBOT else thing.type.name.lower()
