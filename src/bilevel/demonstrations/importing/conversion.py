"""From a recorded episode to demonstrations of a task: what is seen, what was wanted, and what was done."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bilevel.demonstrations.collect import in_rows
from bilevel.demonstrations.demonstration import Demonstration, all_objects, changes
from bilevel.demonstrations.importing.controls import ControlSource, places
from bilevel.demonstrations.importing.hindsight import Hindsight, Stretch, stretches
from bilevel.demonstrations.importing.recorded import RecordedEpisode
from bilevel.demonstrations.importing.timing import Combine, thin
from bilevel.demonstrations.traces import explain
from bilevel.symbolic.domain import BadInput, Facts
from bilevel.tasks.checking import CheckedEpisode, Findings, check_facts, check_scenes
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SUCCESS
from bilevel.tasks.task import Task, TaskError, call

FAILURE = "failure"  # the outcome of an episode that was kept although it failed


class Dropped(Exception):
    """Why an episode, or a stretch of it, is no demonstration."""


@dataclass(frozen=True)
class Conversion:
    """How recorded episodes are turned into demonstrations of a task."""

    task: Task
    controls: ControlSource
    perceive: Callable[..., Scene] | None = None
    hindsight: Hindsight | None = None
    keep_failed: bool = False
    every: int = 1
    combine: Combine = "mean"
    notes: list[str] = field(default_factory=list)  # what looks strange, but is no error

    def demonstrations(self, episode: RecordedEpisode) -> Iterator[Demonstration | Dropped]:
        """Give the demonstrations in an episode, mostly one, and the reason for each that is none."""
        switches = () if self.controls.function else self.task.switches
        episode = thin(aligned(episode), self.every, self.combine, switches)
        if len(episode.observations) < 2:
            yield Dropped("without a step")
            return
        scenes = self._scenes(episode)
        if self.hindsight is None:
            found = [Stretch(0, len(scenes) - 1, scenes)]
        else:
            found = stretches(self.hindsight, scenes, episode.name)
            if not found:
                yield Dropped("in which hindsight found nothing")
        for stretch in found:
            try:
                yield self._demonstration(episode, stretch)
            except Dropped as reason:  # noqa: PERF203
                yield reason

    def _scenes(self, episode: RecordedEpisode) -> list[Scene]:
        infos = episode.infos or [{} for _ in episode.observations]
        perceive = perceiving(self.task, self.perceive)
        scenes = []
        for now, (observation, info) in enumerate(zip(episode.observations, infos, strict=True)):
            if isinstance(observation, Scene) and self.perceive is None:
                scenes.append(observation)
            else:
                scenes.append(perceive(f"{episode.name}, step {now}", observation, dict(info)))
        return scenes

    def _demonstration(self, episode: RecordedEpisode, stretch: Stretch) -> Demonstration:
        """Label a stretch of an episode, find where it ends, and add the controls."""
        labels, scenes = self.task.labels, list(stretch.scenes)
        seen = _Seen("", 0, scenes, name=episode.name)
        self._check(check_scenes, self.task, seen)
        states = [labels.state(scene) for scene in scenes]
        if stretch.goal is None:
            goals = [labels.goal(scene) for scene in scenes]
        else:
            goals = [self._about_seen(stretch.goal, scene) for scene in scenes]
        seen.states, seen.goals = states, goals
        self._check(check_facts, self.task.domain, seen)
        end, achieved, outcome = self._end(episode, states, goals)
        scenes, states = scenes[: end + 1], states[: end + 1]
        goals = goals[: end + 1] if achieved is None else [self._about_seen(achieved, scene) for scene in scenes]
        demonstration = self._without_controls(episode, scenes, states, goals, outcome)
        recorded = None if episode.controls is None else episode.controls[stretch.start : stretch.start + end]
        controls = self.controls.controls(
            scenes, recorded, lambda: explain(demonstration, self.task.domain, states, goals).actions, episode.name
        )
        own_goals = stretch.goal is not None or achieved is not None
        if controls is None:
            return replace(demonstration, own_goals=own_goals)
        return replace(demonstration, controls=controls, executed=controls, has_controls=True, own_goals=own_goals)

    def _without_controls(
        self,
        episode: RecordedEpisode,
        scenes: Sequence[Scene],
        states: Sequence[Facts],
        goals: Sequence[Facts],
        outcome: str,
    ) -> Demonstration:
        objects, kind, steps = all_objects(scenes), self.controls.reader.controls, len(scenes) - 1
        features, visible = in_rows(scenes, objects)
        nothing = np.zeros((steps, *kind.shape), kind.dtype)
        return Demonstration(
            objects=objects,
            agent=np.stack([scene.values for scene in scenes]),
            features=features,
            visible=visible,
            controls=nothing,
            executed=nothing,
            actions=(None,) * steps,
            states=changes(states),
            goals=changes(goals),
            outcome=outcome,
            seed=episode.seed,
            demonstrator=episode.demonstrator,
            has_controls=False,
        )

    def _check(self, check: Callable[..., None], about: object, seen: _Seen) -> None:
        """`BadInput` with the first error that a check finds; what is no error becomes a note."""
        found = _Findings()
        check(about, seen, found)
        for finding in found.in_order():
            if finding.is_error:
                raise BadInput(finding.message)
            if not self.notes:
                self.notes.append(finding.message)

    def _about_seen(self, goal: Facts, scene: Scene) -> Facts:
        """Return the part of a goal that is about what is seen: nobody wants anything of what is not there yet."""
        known = self.task.domain.constants
        return frozenset(fact for fact in goal if all(term in scene or term in known for term in fact.terms))

    def _end(
        self, episode: RecordedEpisode, states: Sequence[Facts], goals: Sequence[Facts]
    ) -> tuple[int, Facts | None, str]:
        """Return the last timestep to keep, the goal if it is reduced to what was achieved, and the outcome."""
        last = len(states) - 1
        if not any(goals):
            raise Dropped("without a goal (see --hindsight)")
        if self.hindsight is not None:
            if not goals[-1] <= states[-1]:
                raise Dropped("in which what hindsight wants is not achieved")
            if goals[-1] <= states[0]:
                raise Dropped("in which nothing was achieved")
            return last, None, SUCCESS
        if succeeded(episode, states[-1], goals[-1]):
            return last, None, SUCCESS
        if not self.keep_failed:
            raise Dropped("that failed (see --keep-failed)")
        holding = [len(goal & state) for goal, state in zip(goals, states, strict=True)]
        best = holding.index(max(holding))
        if best == 0:
            raise Dropped("that failed, and in which nothing was achieved")
        return best, goals[best] & states[best], FAILURE


def aligned(episode: RecordedEpisode) -> RecordedEpisode:
    """Return an episode with one more observation than it has controls; `BadInput` for other lengths."""
    observations, controls, infos = episode.observations, episode.controls, episode.infos
    if infos is not None and len(infos) != len(observations):
        raise BadInput(f"{episode.name}: {len(infos)} infos, but {len(observations)} observations")
    if controls is None or len(observations) == len(controls) + 1:
        return episode
    if len(observations) != len(controls):
        lengths = f"{len(observations)} observations, but {len(controls)} controls"
        raise BadInput(f"{episode.name}: {lengths}; there must be one more, or as many")
    return replace(episode, controls=controls[: max(0, len(observations) - 1)])


def succeeded(episode: RecordedEpisode, state: Facts, goal: Facts) -> bool:
    """Return whether an episode succeeded: as was recorded, or else by whether the goal holds at the end."""
    if episode.success is not None:
        return episode.success
    final: Mapping[str, Any] = episode.infos[-1] if episode.infos else {}
    for key in ("success", "is_success"):
        if key in final:
            return bool(np.all(final[key]))
    return goal <= state


def perceiving(task: Task, perceive: Callable[..., Scene] | None) -> Callable[[str, Any, dict[str, Any]], Scene]:
    """Return the function from the place, a recorded observation and its info to a scene.

    It is the user's, of an observation, or of that and its info; or else the task's, which is given no environment.
    """
    if perceive is not None:
        function, number = perceive, min(places(perceive), 2)
        return lambda where, *seen: call(f"{where}: perceive", function, *seen[:number])

    def by_task(where: str, observation: Any, info: dict[str, Any]) -> Scene:
        try:
            return call(f"{where}: perceive(observation, info, None)", task.perceive, observation, info, None)
        except TaskError as error:
            reason = "what was recorded may be other than what the task sees: give --perceive file.py:function"
            raise TaskError(f"{error}; {reason}") from None

    return by_task


@dataclass
class _Seen(CheckedEpisode):
    """An episode to be checked; messages name it as its reader does."""

    name: str = field(default="")

    def at(self, step: int) -> str:
        return f"{self.name}, step {step}"


class _Findings(Findings):
    """Names that seem to change are no error here: who has only recordings can seldom do anything about it."""

    def error(self, about: Hashable, message: str) -> None:
        (super().advise if about == "names" else super().error)(about, message)
