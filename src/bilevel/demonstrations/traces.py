"""From demonstrations to high-level traces, and to the high-level action of every step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from bilevel.demonstrations.demonstration import Demonstration
from bilevel.rules.traces import Abstraction, Trace, traces_from_states
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
    """Explain the changes of the labelled states by actions, and give each step the action it helped to bring about.

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
    """Label a demonstration, anew if the task is given, and explain it by what was seen alone."""
    states, goals = label(demonstration, task)
    found = explain(demonstration, domain, states, goals, use_recorded=False)
    return LabelledEpisode(number, demonstration, states, goals, found)


@dataclass(frozen=True)
class Summary:
    """What is in demonstrations; summaries of several can be added."""

    traces: tuple[Trace, ...] = ()
    episodes: int = 0
    steps: int = 0
    explained: int = 0  # steps that have a high-level action, found from what was seen alone
    recorded: int = 0  # steps of which the expert said what it was doing
    agreeing: int = 0  # of these, where it is the action that was found
    exogenous: int = 0  # changes that no action explains
    ambiguous: int = 0  # changes that several actions explain
    actions: Counter[str] = field(default_factory=Counter)  # carried out, by schema
    events: Counter[str] = field(default_factory=Counter)  # that the environment itself reported, by kind

    def __add__(self, other: Summary) -> Summary:
        return Summary(**{name: getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__})


def summarise(episode: LabelledEpisode) -> Summary:
    """Return the summary of one demonstration."""
    demonstration, found = episode.demonstration, episode.found
    recorded = demonstration.actions
    return Summary(
        traces=found.traces,
        episodes=1,
        steps=demonstration.steps,
        explained=sum(action is not None for action in found.actions),
        recorded=sum(action is not None for action in recorded),
        agreeing=sum(ours == theirs is not None for ours, theirs in zip(found.actions, recorded, strict=True)),
        exogenous=found.exogenous,
        ambiguous=found.ambiguous,
        actions=Counter(step.action.action.name for trace in found.traces for step in trace.steps),
        events=Counter(event.split()[0] for _, event in demonstration.events if event.split()),
    )


def summaries(demonstrations: Iterable[Demonstration], domain: Domain) -> Iterator[Summary]:
    """Give the summary of each demonstration; their `sum` with `Summary()` is that of the data set."""
    return (summarise(labelled(*each, domain)) for each in enumerate(demonstrations))
