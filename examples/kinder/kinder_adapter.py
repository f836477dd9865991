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
from functools import cached_property
from importlib import import_module
from typing import Any, NamedTuple, cast
from weakref import finalize

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from bilevel import Angle, BadInput, Domain, Expert, LabelOnly, Position, Scalar, Scene, Spec, Task
from bilevel.tasks.spec import Features, Role

ROBOT = "robot"  # the name of the robot in all of its environments
PREFIX = re.compile("^(pos_base_|pose_)")  # in 3-D, robots and objects have different names for the same coordinates
LOOKS = re.compile("color_.*|static|z_order.*|held|grasp_.*|q[xyzw]|object_type")  # what networks are not told

Added = Mapping[str, Mapping[str, Mapping[str, float]]]  # features by type and name
kinder: Any = import_module("kinder")  # not this folder, which has the same name
pybullet: Any = import_module("pybullet")
kinder.register_all_environments()


class Controller(NamedTuple):
    """Turns controls of one's own, such as a way of the hand, into KinDER's, such as those of a robot's joints."""

    most: Sequence[float]  # how large, positive or negative, each number of a control may be
    steer: Callable[[Scene, Any], Sequence[float]]  # what KinDER is given, cut to what it allows


class KinderEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Says in `info` that an episode has succeeded: KinDER ends it there, and nowhere else."""

    def __init__(self, env: Any, kinder: Kinder) -> None:
        super().__init__(env)
        client = getattr(env.unwrapped._object_centric_env, "physics_client_id", None)
        # KinDER never ends PyBullet's simulators, which take hundreds of megabytes each
        finalize(self, lambda: client is None or pybullet.disconnect(client))
        self.kinder, self.inner = kinder, cast(Box, env.action_space)
        if kinder.controller:
            most = np.array(kinder.controller.most, np.float32)
            self.action_space = Box(-most, most, dtype=np.float32)

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        self.seen, info = self.env.reset(**options)
        return self.seen, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        if self.kinder.controller:
            wanted = self.kinder.controller.steer(self.kinder.perceive(self.seen, {}, self), action)
            action = np.clip(wanted, self.inner.low, self.inner.high).astype(self.inner.dtype)
        self.seen, reward, terminated, truncated, info = self.env.step(action)
        return self.seen, reward, terminated, truncated, info | {"success": terminated}


@dataclass(frozen=True, eq=False)
class Kinder:
    """The environments of one name, such as "StickButton2D", that differ in how many objects there are.

    `roles` replace those that follow from the names of features: by the type (of the robot, "robot"), then by the
    feature. What is `added` to KinDER's objects, such as a free place, or to the features of its robot, has features by
    its type, too; `add(scene)` says what there is of it, by the type and the name of each: {"gap": {"gap": {"x": 2}}}.
    """

    name: str
    roles: Mapping[str, Features] = field(default_factory=dict)
    added: Mapping[str, Features] = field(default_factory=dict)
    add: Callable[[Scene], Added] | None = None
    controller: Controller | None = None
    untold: Mapping[str, Sequence[str]] = field(default_factory=dict)  # as in a `Spec`

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
        return KinderEnv(gymnasium.make(self.ids[objects], render_mode=render_mode, disable_env_checker=True), self)

    @cached_property
    def features(self) -> dict[str, list[str]]:
        """What KinDER itself tells, by type and in its order; all types are in the smallest environment."""
        env = self.make_env(min(self.ids))
        env.close()
        space: Any = env.unwrapped.observation_space
        names = {type_of(thing): space.type_features[thing.type] for thing in space.constant_objects}
        return {kind: [PREFIX.sub("", name) for name in names[kind]] for kind in names}

    @cached_property
    def bare(self) -> Spec:
        """The spec of that alone, which nobody is told: `add` sees it."""
        objects = {kind: dict.fromkeys(names, LabelOnly) for kind, names in self.features.items()}
        return Spec(objects.pop(ROBOT), objects)

    @cached_property
    def spec(self) -> Spec:
        """The spec of all that is seen."""
        objects = {kind: {name: self.role(kind, name) for name in names} for kind, names in self.features.items()}
        for kind, features in self.added.items():
            objects[kind] = {**objects.get(kind, {}), **features}
        return Spec(objects.pop(ROBOT), objects, untold=self.untold)

    def role(self, kind: str, name: str) -> Role | type[Role]:
        """The role of a feature, by its name. Walls are not in observations, so the robot is told where it is."""
        if name in self.roles.get(kind, ()):
            return self.roles[kind][name]
        if name in ("x", "y", "z") and name in self.features[ROBOT]:
            return Position(absolute=kind == ROBOT)
        return LabelOnly if LOOKS.fullmatch(name) else Angle if name in ("theta", "rot") else Scalar

    def perceive(self, observation: Any, info: dict[str, Any], env: gymnasium.Env[Any, Any]) -> Scene:
        """What is seen: the robot, and all other objects under their names."""
        space: Any = env.unwrapped.observation_space
        found: dict[str, dict[str, dict[str, float]]] = {kind: {} for kind in self.features}
        numbers = iter(observation.tolist())
        for thing in space.constant_objects:
            names = self.features[kind := type_of(thing)]
            found[kind][thing.name] = dict(zip(names, numbers, strict=False))  # as many as there are names
        robot = found.pop(ROBOT)[ROBOT]
        added = dict(self.add(Scene(self.bare, robot, found))) if self.add else {}
        return Scene(self.spec, {**robot, **added.pop(ROBOT, {}).get(ROBOT, {})}, {**found, **added})

    def task(self, name: str, domain: Domain, label: Any, goal: Any, expert: Expert, **optional: Any) -> Task:
        """The task of that name; what is optional in a `Task` may be given."""
        optional = {"max_objects": max(self.ids), "packages": ["kindergarden"], **optional}
        return Task(name, domain, self.make_env, self.spec, self.perceive, label, goal, expert, **optional)


def type_of(thing: Any) -> str:
    """What the type of one of KinDER's objects is called here: as it is there, but in small letters, as in PDDL."""
    return ROBOT if thing.name == ROBOT else thing.type.name.lower()
