"""Episodes to look at: an expert's, a jostled expert's, and a clumsy one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from simulator_truth import true_facts

from bilevel.symbolic.domain import Action, Facts
from bilevel.tabletop.labelling import Labels
from bilevel.tabletop.noise import Bursts, Jostle
from bilevel.tabletop.observation import Observation
from bilevel.tabletop.tabletop import Tabletop
from bilevel.tabletop.tasks import TASKS

Control = NDArray[np.float32]

# In this order all tests of one task come together, so that its worlds and episodes are made only once.
each_task = pytest.mark.parametrize("task", TASKS, scope="session")
each_size = pytest.mark.parametrize("objects", [1, 3], scope="session")

CLUMSY_STEPS = 600
STEPS_PER_MOVEMENT = 40  # so that the hand gets somewhere


@dataclass(frozen=True)
class Moment:
    """After a step: what is seen, said and true; and what was being done at it."""

    observation: Observation
    info: dict[str, Any]
    terminated: bool
    state: Facts
    goal: Facts
    truth: Facts
    action: Action | None = None


def random_controls(steps: int, seed: int = 0) -> Control:
    """(steps, 4): wild movements near the table, each for a while."""
    rng = np.random.default_rng(seed)
    movements = rng.uniform(-1, 1, (steps // STEPS_PER_MOVEMENT + 1, 4)) - (0, 0, 0.2, 0)
    return np.repeat(movements, STEPS_PER_MOVEMENT, axis=0)[:steps].astype(np.float32)


@cache
def world(task: str, objects: int) -> Tabletop:
    """One environment per task and size for all tests in a process: making one takes longer than many steps."""
    return TASKS[task].make(objects)


def _moment(environment: Tabletop, labels: Labels, observation: Observation, *rest: Any) -> Moment:
    info, terminated, action = rest
    state, goal = labels.state(observation), labels.goal(observation)
    return Moment(observation, info, terminated, state, goal, true_facts(environment), action)


@cache
def expert_episode(task: str, objects: int, seed: int, jostled: bool = False) -> tuple[Moment, ...]:
    environment = world(task, objects)
    labels, expert = TASKS[task].labels(environment.slots), TASKS[task].expert(environment.slots)
    disturb = Jostle(Bursts(), seed) if jostled else None
    observation, info = environment.reset(seed=seed)
    expert.reset(observation)
    moments = [_moment(environment, labels, observation, info, False, None)]
    while info["outcome"] is None:
        control = expert.act(observation)
        assert control is not None, "the expert does not know what to do"
        observation, _, terminated, _, info = environment.step(disturb(control) if disturb else control)
        moments.append(_moment(environment, labels, observation, info, terminated, expert.action))
    return tuple(moments)


@cache
def clumsy_episode(task: str, objects: int, seed: int) -> tuple[Moment, ...]:
    """The hand goes for one thing after the other, misses more or less, and closes its fingers there."""
    environment = world(task, objects)
    labels = TASKS[task].labels(environment.slots)
    rng = np.random.default_rng(seed)
    observation, info = environment.reset(seed=seed)
    moments = [_moment(environment, labels, observation, info, False, None)]
    while len(moments) <= CLUMSY_STEPS and info["outcome"] is None:
        phase = (len(moments) - 1) % STEPS_PER_MOVEMENT
        if phase == 0:
            blocks = np.flatnonzero(observation["visible"][environment.slots.rows("block")])
            things = blocks if len(blocks) else np.flatnonzero(observation["objects"][:, 1])  # else what has a place
            target = observation["objects"][rng.choice(things), :3] + rng.normal((0, 0, 0.03), 0.015)
            fingers = rng.choice([-1, 1])
        elif phase == STEPS_PER_MOVEMENT - 15:
            fingers = 1
        control = np.append(10 * (target - observation["agent"][:3]), fingers).clip(-1, 1).astype(np.float32)
        observation, _, terminated, _, info = environment.step(control)
        moments.append(_moment(environment, labels, observation, info, terminated, None))
    return tuple(moments)
