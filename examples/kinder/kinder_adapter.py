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
from typing import Any, NamedTuple, cast

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from bilevel import Angle, BadInput, Domain, Expert, LabelOnly, Position, Scalar, Scene, Spec, Task
from bilevel.tasks.scene import Roster
from bilevel.tasks.spec import Features, Role

ROBOT = "robot"  # the name of the robot in all of its environments
PREFIX = re.compile("^(pos_base_|pose_)")  # in 3-D, robots and objects have different names for the same coordinates
LOOKS = re.compile("color_.*|static|z_order.*|held|grasp_.*|q[xyzw]|object_type")  # what networks are not told

Added = Mapping[str, Mapping[str, Mapping[str, float]]]  # features by type and name

kinder: Any = import_module("kinder")  # not this folder, which has the same name
kinder.register_all_environments()


class Controller(NamedTuple):
    """Turns controls of one's own, such as a way of the hand, into KinDER's, such as those of a robot's joints.

    `most` is how large, positive or negative, each number of a control may be; `steer(scene, control)` is what KinDER
    is given, cut to what it allows.
    """

    most: Sequence[float]
    steer: Callable[[Scene, Any], Sequence[float]]


class KinderEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Says in `info` that an episode has succeeded: KinDER ends it there, and nowhere else."""

    def __init__(self, env: gymnasium.Env[Any, Any], kinder: Kinder) -> None:
        super().__init__(env)
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
    feature. What is `added` to KinDER's objects, such as a free place, or to the features of its robot, has features by
    its type, too; `add(scene)` says what there is of it, by the type and the name of each: {"gap": {"gap": {"x": 2}}}.
    For `frame` and `untold` see `Spec`.
    """

    name: str
    roles: Mapping[str, Features] = field(default_factory=dict)
    added: Mapping[str, Features] = field(default_factory=dict)
    add: Callable[[Scene], Added] | None = None
    controller: Controller | None = None
    frame: tuple[str, str, str] | None = None
    untold: Mapping[str, Sequence[str]] = field(default_factory=dict)

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
        return KinderEnv(gymnasium.make(name, render_mode=render_mode, disable_env_checker=True), self)

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
        added = {kind: features for kind, features in self.added.items() if kind != ROBOT}
        return Spec(roles.pop(ROBOT) | dict(self.added.get(ROBOT, {})), roles | added, self.frame, self.untold)

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
        values = np.zeros(len(self.spec.agent), np.float32)
        values[: len(places.robot)] = observation[places.robot]
        features = np.zeros((len(places.roster.objects), len(self.spec.columns)), np.float32)
        features[places.rows, places.columns] = observation[places.objects]
        scene = Scene.from_arrays(self.spec, values, features, places.roster)
        return extended(scene, self.add(scene)) if self.add else scene

    @lru_cache  # noqa: B019 (there is one for each number of objects)
    def places(self, things: tuple[Any, ...]) -> Places:
        """Where the numbers of an observation of these things belong."""
        members = {thing.name: kind for kind in self.spec.objects for thing in things if type_of(thing) == kind}
        roster = Roster(members)
        found, first = Places([], [], [], [], roster), 0
        for thing in things:
            is_robot, own = thing.name == ROBOT, self.added.get(ROBOT, {})
            names = (
                [name for name in self.spec.agent if name not in own] if is_robot else self.spec.objects[type_of(thing)]
            )
            numbers = range(first, first := first + len(names))
            if is_robot:
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


def extended(scene: Scene, added: Added) -> Scene:
    """The scene with what is added to it."""
    spec, roster = scene.spec, dict(scene.objects)
    for name, value in added.get(ROBOT, {}).get(ROBOT, {}).items():
        scene.values[spec.agent_column[name]] = value
    rows = [scene.features]
    for kind, members in added.items():
        for name, features in members.items() if kind != ROBOT else ():
            roster[name] = kind
            rows.append(np.zeros((1, len(spec.columns)), np.float32))
            rows[-1][0, [spec.column[feature] for feature in features]] = list(features.values())
    return Scene.from_arrays(spec, scene.values, np.concatenate(rows), Roster(roster))
