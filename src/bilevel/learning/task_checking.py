"""Whether a policy can be learned for a task: runs it as learning will, and says in words what is wrong and what to do.

for finding in check_task(task):
    print(finding)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bilevel.learning.expert_checking import (
    check_actions,
    check_applicability,
    check_controls,
    check_expert,
    check_explanations,
)
from bilevel.policies.experts import expert_policy
from bilevel.policies.policy import Policy
from bilevel.policies.rollout import Transition, rollout
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.checking import CheckedEpisode, Finding, Findings, check_environment, check_parts
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_checking import check_facts, check_flicker, check_goals, check_scenes, check_success
from bilevel.tasks.scene_env import SUCCESS, SceneEnv
from bilevel.tasks.task import Task

STEPS = 100  # of random controls, for each seed
PATIENCE = 3000  # steps for an expert, if the task gives it less, to see how many it needs


def check_task(task: Task, *, objects: int = 3, seeds: int = 3, steps: int = STEPS, **arguments: Any) -> list[Finding]:
    """Run a task with random controls and with its expert, and return what is wrong with it, errors before advice.

    With an error, learning would fail or learn something else than is meant. `arguments` are further ones of the
    task's `make_env`.
    """
    task.check_objects(objects)
    task.check_arguments(arguments)
    found = Findings()
    check_parts(task, found)
    if not found.has_errors:
        check_environment(task, objects, arguments, found)
    if not found.has_errors:
        check = _Check(task, objects, seeds, steps, arguments, found)
        check.run()
        check.close()
    return found.in_order()


class _Check:
    """Runs episodes and has them checked, for as long as there are no errors that would only cause others."""

    def __init__(
        self, task: Task, objects: int, seeds: int, steps: int, arguments: dict[str, Any], found: Findings
    ) -> None:
        self.task, self.objects, self.seeds, self.steps, self.found = task, objects, range(seeds), steps, found
        self.env, self.another = (SceneEnv(task, objects, **arguments) for _ in range(2))
        self.episodes: list[CheckedEpisode] = []

    def run(self) -> None:
        self._look_once()
        if self.found.has_errors:
            return
        for seed in self.seeds:
            self._watch(_RandomControls(self.env, seed), seed, "random controls", self.steps)
        if self.found.has_errors:
            return
        random_again = self._episode(self.another, _RandomControls(self.another, 0), 0, "random controls", self.steps)
        is_seeded = check_repetition(self.episodes[0], random_again, self.found)
        check_saving(self.env, self.found)
        limit = self.env.step_limit
        shown = self._watch_expert(is_seeded)
        if self.found.has_errors:
            return
        check_goals(self.episodes, any(episode.outcome == SUCCESS for episode in shown), self.found)
        check_applicability(self.task.domain, self.episodes, self.found)
        for episode in self.episodes:
            check_success(episode, episode.outcome == SUCCESS, self.found)
        if shown:
            check_expert(self.env, shown, limit, self.found)
            check_flicker(shown, self.found)
        if shown and not self.found.has_errors:
            check_explanations(self.task.domain, shown, self.found)

    def close(self) -> None:
        self.env.close()
        self.another.close()

    def _look_once(self) -> None:
        """Check the very first scene, so that what is wrong with all of them is said once."""
        try:
            check_scenes(self.task, CheckedEpisode("reset", 0, [self.env.reset(0)]), self.found)
        except BadInput as error:
            self.found.error("perceive", f"seed 0, step 0: {error}")

    def _watch_expert(self, is_seeded: bool) -> list[CheckedEpisode]:
        """The expert's episodes, which it is given more steps for than the task allows, to see how many it needs."""
        try:
            expert = self.env.expert
            if expert is None or not expert.can_show:
                cannot = "has no expert" if expert is None else "has an expert without `choose`, which can only answer"
                self.found.advise("expert", f"the task {cannot}: demonstrations must be imported, as none can be shown")
                return []
            for env in (self.env, self.another):
                env.step_limit = max(env.step_limit, min(4 * env.step_limit, PATIENCE))
            shown = [self._watch(expert_policy(self.env), seed, "the expert") for seed in self.seeds]
            again = self._episode(self.another, expert_policy(self.another), 0, "the expert")
        except BadInput as error:
            self.found.error("run", str(error))
            return []
        if is_seeded:
            check_repetition(shown[0], again, self.found)
        for episode in shown:
            check_controls(self.env, episode, self.found)
            check_actions(self.task.domain, episode, self.found)
        return shown

    def _watch(self, policy: Policy, seed: int, who: str, steps: int | None = None) -> CheckedEpisode:
        """Run an episode and check what was seen in it."""
        episode = self._episode(self.env, policy, seed, who, steps)
        self.episodes.append(episode)
        check_scenes(self.task, episode, self.found)
        check_facts(self.task.domain, episode, self.found)
        return episode

    def _episode(self, env: SceneEnv, policy: Policy, seed: int, who: str, steps: int | None = None) -> CheckedEpisode:
        """Run an episode, for so many steps at most, until it ends or a function of the task fails."""
        seen = CheckedEpisode(who, seed)

        def see(scene: Scene) -> None:
            seen.scenes.append(scene)
            seen.goals.append(env.labels.goal(scene))
            seen.states.append(env.labels.state(scene))

        def callback(transition: Transition) -> None:
            seen.events |= {len(seen.scenes)} if transition.events else set()
            see(transition.scene)
            seen.controls.append(transition.control)
            seen.actions.append(getattr(policy, "action", None))

        try:
            episode = rollout(env, policy, seed, callback=callback, stop=lambda: len(seen.scenes) == steps)
            see(episode.scene)
            seen.outcome = episode.outcome
        except BadInput as error:
            self.found.error("run", f"{seen.at(len(seen.states))}: {error}")
        return seen


class _RandomControls:
    """A policy that tries anything."""

    def __init__(self, env: SceneEnv, seed: int) -> None:
        self._space = env.env.action_space
        self._space.seed(seed)

    def reset(self, scene: Scene) -> None:
        """Nothing to prepare."""

    def act(self, scene: Scene) -> Control:
        return self._space.sample()


def check_repetition(first: CheckedEpisode, second: CheckedEpisode, found: Findings) -> bool:
    """Check that the seed decided everything in two episodes of the same seed; return whether it did."""
    for step in range(min(len(first.states), len(second.states))):
        if step and not np.array_equal(first.controls[step - 1], second.controls[step - 1]):
            what = "the expert gave another control for the same scene: let it draw no random numbers of its own"
        elif first.scenes[step] != second.scenes[step]:
            what = "the same seed led to another scene: call super().reset(seed=seed), and use self.np_random alone"
        elif (first.states[step], first.goals[step]) != (second.states[step], second.goals[step]):
            what = "label and goal gave other facts for the same scene: they must be functions of the scene alone"
        else:
            continue
        found.advise("seed", f"{first.at(step)}: {what}; else no episode can be repeated")
        return False
    return True


def check_saving(env: SceneEnv, found: Findings) -> None:
    """Check that what was saved comes back, and that it goes on as it did."""
    if not env.can_save or found.has_errors:
        return
    policy = _RandomControls(env, 0)
    try:
        scene = env.reset(0)
        snapshot, control = env.save(), policy.act(scene)
        after = env.step(control)
        if env.restore(snapshot) != scene or env.step(control) != after:
            found.error("save", "after restore(env, save(env)) the scene is another, or goes on in another way")
    except Exception as error:
        found.error("save", f"save(env) and restore(env, snapshot) failed: {type(error).__name__}: {error}")
