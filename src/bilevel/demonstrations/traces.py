"""From demonstrations to high-level traces, and to the high-level action of every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from bilevel.demonstrations.demonstration import Demonstration
from bilevel.rules.traces import Abstraction, traces_from_states
from bilevel.symbolic.domain import Domain, Facts
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import Task


def label(
    demonstration: Demonstration, task: Task | None = None, scenes: Sequence[Scene] | None = None
) -> tuple[list[Facts], list[Facts]]:
    """Return state and goal at every timestep: as the task labels the scenes, or else as they were recorded.

    A demonstration's own goals are always those that were recorded.
    """
    recorded = demonstration.at_each_timestep(demonstration.goals)
    if task is None:
        return demonstration.at_each_timestep(demonstration.states), recorded
    labels, scenes = task.labels, scenes or demonstration.scenes(task.spec)
    goals = recorded if demonstration.own_goals else [labels.goal(scene) for scene in scenes]
    return [labels.state(scene) for scene in scenes], goals


def explain(
    demonstration: Demonstration,
    domain: Domain,
    states: Sequence[Facts],
    goals: Sequence[Facts],
    *,
    use_recorded: bool = True,
) -> Abstraction:
    """Return the actions that explain the changes of the labelled states, and for each step the one it helps to do.

    Before a change that no action explains, it is what the expert was recorded to be doing, if that may be used.
    """
    recorded = (*demonstration.actions, None) if use_recorded else ()
    found = traces_from_states(domain, states, goals, demonstration.objects, recorded=recorded)
    return replace(found, actions=found.actions[:-1])


class LabelledEpisode(NamedTuple):
    """A demonstration by its number, state and goal at every timestep, and what they say at the high level."""

    number: int
    demonstration: Demonstration
    states: list[Facts]
    goals: list[Facts]
    found: Abstraction


def labelled(number: int, demonstration: Demonstration, domain: Domain, task: Task | None = None) -> LabelledEpisode:
    """Return a demonstration labelled, anew if the task is given, and explained by what was seen alone."""
    states, goals = label(demonstration, task)
    found = explain(demonstration, domain, states, goals, use_recorded=False)
    return LabelledEpisode(number, demonstration, states, goals, found)
