"""One real episode of Blocks, for the drawings of docs/concepts.md: a timestep of it, its trace and its rules."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bilevel.policies.policy import expert_policy
from bilevel.policies.policy_folder import load_policy
from bilevel.rules.learning import learn_rules
from bilevel.rules.matching import Match, best_matches
from bilevel.rules.rule import Rule
from bilevel.rules.traces import Trace, traces_from_states
from bilevel.symbolic.domain import Action, Domain, Facts
from bilevel.tasks.registry import find_task
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv

TASK, OBJECTS, SEED = "blocks", 3, 38
PLACED, STEPS = 1, 12  # the timestep that is shown: so many steps into the placing of a block, with one placed before
QUALITY = "good"
CROP = (0.0, 0.13, 1.0, 1.0)  # left, upper, right and lower edge of what is shown, as parts of the picture


@dataclass(frozen=True)
class Timestep:
    """What is seen, meant and done at one timestep."""

    scene: Scene
    state: Facts
    goal: Facts
    action: Action
    control: tuple[float, ...]  # the expert's
    learned: tuple[float, ...]  # what the network of the pretrained policy gives
    picture: Any  # (height, width, 3), or `None`
    places: Mapping[str, tuple[float, float]]  # where things are in the picture, as parts of its width and height

    def in_picture(self, name: str) -> tuple[float, float]:
        """Return where an object is in the part of the picture that is shown, from 0 to 1."""
        (x, y), (left, upper, right, lower) = self.places[name], CROP
        return (x - left) / (right - left), (y - upper) / (lower - upper)

    def jpeg(self, width: int, height: int) -> bytes:
        """Return the part of the picture that is shown, as a file."""
        from PIL import Image

        image, file = Image.fromarray(np.asarray(self.picture)), io.BytesIO()
        edges = [round(part * size) for part, size in zip(CROP, image.size * 2, strict=True)]
        left, upper, right, lower = edges
        part = image.crop((left, upper, right, lower)).resize((width, height), Image.Resampling.LANCZOS)
        part.save(file, "JPEG", quality=80)
        return file.getvalue()


@dataclass(frozen=True)
class Episode:
    """The timestep that is shown, the trace of the whole episode, and the rules that it shows."""

    domain: Domain
    now: Timestep
    trace: Trace
    rules: tuple[Rule, ...]

    @property
    def match(self) -> Match:
        """The rule that fires now, and its objects."""
        return best_matches(self.rules, self.domain, self.now.state, self.now.goal, self.now.scene.objects)[0]


def run(with_picture: bool = True) -> Episode:
    """Let the expert show the task, and keep what is drawn of it."""
    task = find_task(TASK)
    env = SceneEnv(task, OBJECTS, render_mode="rgb_array" if with_picture else None, quality=QUALITY)
    expert, network = expert_policy(env), load_policy(TASK, task).low
    expert.reset(env.reset(SEED))
    states, goals, steps, now = [], [], 0, None
    while env.outcome is None:
        control = expert.act(env.scene)
        assert expert.action is not None
        states.append(expert.state)
        goals.append(expert.goal)
        steps += expert.action.name == "place" and len(expert.state & expert.goal) == PLACED
        if steps == STEPS and now is None:
            about = _copied(env.scene), expert.state, expert.goal, expert.action
            shown, learned = _numbers(control), _numbers(network.control(*about))
            seen = (env.render(), env.locate()) if with_picture else (None, {})
            now = Timestep(*about, shown, learned, *seen)
        env.step(control)
    assert now is not None
    states.append(env.labels.state(env.scene))
    goals.append(env.labels.goal(env.scene))
    (trace,) = traces_from_states(task.domain, states, goals, now.scene.objects).traces
    env.close()
    return Episode(task.domain, now, trace, learn_rules([trace], task.domain))


def _numbers(control: Any) -> tuple[float, ...]:
    return tuple(np.asarray(control).tolist())


def _copied(scene: Scene) -> Scene:
    """Return the scene with arrays of its own, as an environment may use its own again."""
    return Scene.from_arrays(scene.spec, scene.values.copy(), scene.features.copy(), scene.roster)
