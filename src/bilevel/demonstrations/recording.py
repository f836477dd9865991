"""Recording an expert: from a recipe and a number to a demonstration, always the same one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from bilevel.demonstrations.demonstration import KEYFRAME, Demonstration, Recipe
from bilevel.policies.policies import BilevelPolicy, Control
from bilevel.policies.rollout import Episode, Moment, rollout
from bilevel.seeds import training_seed
from bilevel.symbolic.domain import Action, BadInput, Facts
from bilevel.tabletop.noise import Bursts, Jostle
from bilevel.tabletop.observation import Observation, Slots
from bilevel.tabletop.tabletop import SUCCESS, Snapshot, Tabletop
from bilevel.tabletop.tasks import find_task

MOST_ATTEMPTS = 20


def make_recipe(
    task_name: str, objects: int = 3, *, seed: int = 0, noise: float | None = None, **arguments: Any
) -> tuple[Recipe, Slots]:
    """What to record, with every argument of the environment spelt out; and the environment's slots.

    `noise` is the amplitude of the bursts that disturb the expert, 0 for none. What is `None` is left to the world.
    """
    task = find_task(task_name)
    given = task.given(**arguments)
    if seed < 0:
        raise BadInput(f"the seed must not be negative, but is {seed}")
    if noise is not None and not (math.isfinite(noise) and noise >= 0):
        raise BadInput(f"the noise is an amplitude of controls, 0 or more, not {noise}")
    environment = task.make(objects, **given)
    spelt_out = {"objects": environment.count} | {name: getattr(environment, name) for name in task.arguments[1:]}
    bursts = asdict(Bursts(amplitude=noise)) if noise else None
    return Recipe(task_name, spelt_out, bursts, seed), environment.slots


class ExpertFailed(BadInput):
    """The expert failed too often."""


class Recorder:
    """Records the episodes of a recipe in one environment."""

    def __init__(self, recipe: Recipe) -> None:
        task = find_task(recipe.task)
        self.recipe = recipe
        self.environment = task.make(**recipe.arguments)
        self.expert = task.expert(self.environment.slots)

    def record(self, index: int) -> Demonstration:
        """The episode of this number: the first attempt at it that succeeds."""
        outcomes = []
        for attempt in range(MOST_ATTEMPTS):
            found = self.attempt(index, attempt)
            if found.outcome == SUCCESS:
                return found
            outcomes.append(found.outcome)
        what = f"the expert failed {MOST_ATTEMPTS} times at episode {index} ({', '.join(sorted(set(outcomes)))})"
        raise ExpertFailed(f"{what}; try less noise or other arguments")

    def attempt(self, index: int, attempt: int) -> Demonstration:
        seed = training_seed(self.recipe.seed, index, attempt)
        notes = _Notes(self.environment, self.expert)
        episode = rollout(self.environment, self.expert, seed, disturb=disturbance(self.recipe, seed), watch=notes)
        return notes.demonstration(self.recipe, seed, attempt, episode)


def disturbance(recipe: Recipe, seed: int) -> Callable[[Control], Control] | None:
    """What disturbs the expert in the episode with this seed."""
    if recipe.noise is None:
        return None
    return Jostle(Bursts(**recipe.noise), seed)


class _Notes:
    """What is noted at every moment of an episode."""

    def __init__(self, environment: Tabletop, expert: BilevelPolicy) -> None:
        self._environment, self._expert = environment, expert
        self._observations: list[Observation] = []
        self._controls: list[Control] = []
        self._executed: list[Control] = []
        self._actions: list[Action] = []
        self._goals: list[tuple[int, Facts]] = []
        self._events: list[tuple[int, str]] = []
        self._types: dict[str, str] = {}
        self._snapshots: list[Snapshot] = []

    def __call__(self, moment: Moment) -> None:
        if len(self._observations) % KEYFRAME == 0:
            self._snapshots.append(self._environment.save())
        self._see(moment.observation, moment.info)
        self._controls.append(moment.control)
        self._executed.append(moment.executed)
        if self._expert.action is not None:
            self._actions.append(self._expert.action)

    def _see(self, observation: Observation, info: dict[str, Any]) -> None:
        now = len(self._observations)
        self._observations.append(observation)
        self._events += [(now, event) for event in info["events"]]
        self._types.update(info["objects"])
        if not self._goals or self._goals[-1][1] != info["goal"]:
            self._goals.append((now, info["goal"]))

    def demonstration(self, recipe: Recipe, seed: int, attempt: int, episode: Episode) -> Demonstration:
        self._see(episode.observation, episode.info)
        self._snapshots.append(self._environment.save())
        seen = self._observations
        return Demonstration(
            recipe=recipe,
            seed=seed,
            attempt=attempt,
            outcome=episode.outcome,
            types=self._types,
            agent=np.stack([observation["agent"] for observation in seen]),
            objects=np.stack([observation["objects"] for observation in seen]),
            visible=np.stack([observation["visible"] for observation in seen]),
            controls=np.array(self._controls, np.float32).reshape(-1, 4),
            executed=np.array(self._executed, np.float32).reshape(-1, 4),
            actions=tuple(self._actions),
            goals=tuple(self._goals),
            events=tuple(self._events),
            snapshots={name: np.stack([saved[name] for saved in self._snapshots]) for name in self._snapshots[0]},
        )
