"""Whether a policy can be learned for a task: runs it as learning will, and says in words what is wrong and what to do.

for finding in check_task(task):
    print(finding)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import groupby
from math import ceil
from typing import Any

import numpy as np

from bilevel.policies.episode import NO_ACTION
from bilevel.policies.policy import Policy, expert_policy
from bilevel.policies.rollout import Transition, rollout
from bilevel.rules.instances import Instances
from bilevel.rules.learning import learn_rules
from bilevel.rules.nearest_action import how_it_differs
from bilevel.rules.rule import Rule
from bilevel.rules.traces import Trace, traces_from_states
from bilevel.symbolic.domain import EQUALITY, NO_FACTS, Action, BadInput, Domain, Schema
from bilevel.symbolic.semantics import ground_action
from bilevel.tasks.checking import (
    SETTLING,
    CheckedEpisode,
    Finding,
    Findings,
    check_environment,
    check_facts,
    check_flicker,
    check_goals,
    check_parts,
    check_scenes,
    check_success,
    largest_difference,
)
from bilevel.tasks.controls import BoxControls, Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SUCCESS, SceneEnv
from bilevel.tasks.task import Task

OBJECTS = 3  # if the task takes so many
STEPS = 100  # of random controls, for each seed
PATIENCE = 3000  # steps for an expert, if the task gives it less, to see how many it needs


def check_task(
    task: Task, *, objects: int | None = None, seeds: int = 3, steps: int = STEPS, **arguments: Any
) -> list[Finding]:
    """Run a task with random controls and with its expert, and return what is wrong with it, errors before advice.

    With an error, learning would fail or learn something else than is meant. There are 3 objects unless told, or the
    most that the task takes. `arguments` are further ones of the task's `make_env`.
    """
    objects = min(OBJECTS, task.max_objects or OBJECTS) if objects is None else objects
    task.check_objects(objects)
    task.check_arguments(arguments)
    found = Findings()
    check_parts(task, found)
    if not found.has_errors:
        check_environment(task, objects, arguments, found)
    if found.has_errors:
        return found.in_order()
    check = _Check(task, objects, steps, arguments)
    with closing(check.env), closing(check.twin):
        for part in (
            check.first_scene,
            partial(check.random_controls, range(seeds)),
            partial(check.expert, range(seeds)),
            check.all_episodes,
        ):
            if not check.found.has_errors:  # which would only cause others
                part()
    return [*found.in_order(), *check.found.in_order()]


class _Check:
    """Runs episodes and has them checked."""

    def __init__(self, task: Task, objects: int, steps: int, arguments: Mapping[str, Any]) -> None:
        self.task, self.objects, self.steps = task, objects, steps
        self.found = Findings()
        self.env, self.twin = (SceneEnv(task, objects, **arguments) for _ in range(2))
        self.episodes: list[CheckedEpisode] = []
        self.shown: list[CheckedEpisode] = []  # those of the expert among them

    def first_scene(self) -> None:
        """Check the very first scene, so that what is wrong with all of them is said once."""
        try:
            check_scenes(self.task, CheckedEpisode("reset", 0, [self.env.reset(0)]), self.found)
        except BadInput as error:
            self.found.error("perceive", f"seed 0, step 0: {error}")

    def random_controls(self, seeds: Sequence[int]) -> None:
        for seed in seeds:
            self._watch(_RandomControls(self.env, seed), seed, "random controls", self.steps)
        if not self.found.has_errors:
            again = self._episode(self.twin, _RandomControls(self.twin, 0), 0, "random controls", self.steps)
            check_repetition(self.episodes[0], again, self.found)
            check_saving(self.env, self.found)

    def expert(self, seeds: Sequence[int]) -> None:
        """Watch the expert, which is given more steps than the task allows, to see how many it needs."""
        try:
            expert = self.env.expert
            if expert is None or not expert.can_show:
                cannot = "has no expert" if expert is None else "has an expert without `choose`, which can only answer"
                advice = f"the task {cannot}: demonstrations must be imported, as none can be shown"
                self.found.advise("expert", advice)
                return
            for either in (self.env, self.twin):
                either.step_limit = max(either.step_limit, min(4 * either.step_limit, PATIENCE))
            self.shown = [self._watch(expert_policy(self.env), seed, "the expert") for seed in seeds]
            again = self._episode(self.twin, expert_policy(self.twin), 0, "the expert")
        except BadInput as error:
            self.found.error("run", str(error))
            return
        check_repetition(self.shown[0], again, self.found)
        for episode in self.shown:
            check_controls(self.env, episode, self.found)
            if self.task.domain.schemas:
                check_actions(self.task.domain, episode, self.found)

    def all_episodes(self) -> None:
        """Check what shows only over all episodes."""
        found, domain, shown = self.found, self.task.domain, self.shown
        check_goals(self.episodes, any(episode.outcome == SUCCESS for episode in shown), found)
        if domain.schemas:
            check_applicability(domain, self.episodes, found)
        else:
            missing = "no actions" if domain.predicates else "no predicates and no actions"
            remedy = (
                "`bilevel domain learn DIR --output domain.pddl`, or with the policy: `bilevel learn --learn-domain`"
            )
            found.advise(
                "actions", f"the domain '{domain.name}' has {missing}: learn them from demonstrations: {remedy}"
            )
        for episode in self.episodes:
            check_success(episode, episode.outcome == SUCCESS, found)
        if shown:
            check_expert(self.objects, shown, self.objects * self.task.steps_per_object, found)
            check_flicker(shown, found)
        if shown and domain.schemas and not found.has_errors:
            check_explanations(domain, shown, found)

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
            seen.actions.append(policy.action)

        try:
            episode = rollout(env, policy, seed, callback=callback, stop=lambda: len(seen.scenes) == steps)
            see(episode.scene)
            seen.outcome = episode.outcome
            action = policy.action
            for name in action.arguments if action and episode.outcome == NO_ACTION else ():
                if name not in episode.scene:
                    self.found.error("run", f"{seen.at(episode.steps)} wants {action}, but no '{name}' is seen")
        except BadInput as error:
            self.found.error("run", f"{seen.at(len(seen.states))}: {error}")
        return seen


class _RandomControls(Policy):
    """A policy that tries anything."""

    def __init__(self, env: SceneEnv, seed: int) -> None:
        self._space = env.env.action_space
        self._space.seed(seed)

    def reset(self, scene: Scene) -> None:
        """Nothing to prepare."""

    def act(self, scene: Scene) -> Control:
        return self._space.sample()


def check_repetition(first: CheckedEpisode, second: CheckedEpisode, found: Findings) -> None:
    """Check that the seed decided everything in two episodes of the same seed."""
    for step in range(min(len(first.states), len(second.states))):
        if step and not np.array_equal(first.controls[step - 1], second.controls[step - 1]):
            what = "the expert gave another control for the same scene: let it draw no random numbers of its own"
        elif first.scenes[step] != second.scenes[step]:
            what = (
                f"the same seed led to another scene ({largest_difference(first.scenes[step], second.scenes[step])}): "
                "call super().reset(seed=seed) and draw from self.np_random alone; a simulator that keeps state over "
                "episodes has to be made anew at each reset"
            )
        elif (first.states[step], first.goals[step]) != (second.states[step], second.goals[step]):
            what = "label and goal gave other facts for the same scene: they must be functions of the scene alone"
        else:
            continue
        found.advise("seed", f"{first.at(step)}: {what}; else no episode can be repeated")
        return


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


OFTEN = 4  # times that an expert does the same action; more look as if it is undone again and again
USUALLY = 0.9  # the part of an expert's actions that should have the effects which the domain promises


def check_expert(objects: int, episodes: Sequence[CheckedEpisode], limit: int, found: Findings) -> None:
    """Check that the expert succeeds, and in time."""
    failed = [episode for episode in episodes if episode.outcome != SUCCESS]
    if failed:
        fails = f"the expert fails in {len(failed)} of {len(episodes)} episodes (first {_ending(failed[0])})"
        if len(failed) == len(episodes):
            found.error("expert", f"{fails}: only what succeeds is kept, so nothing can be learned from it")
            return
        found.advise("expert", f"{fails}: only what succeeds is kept, so it should be the exception")
    slowest = max((each for each in episodes if each.outcome == SUCCESS), key=lambda each: len(each.controls))
    longest = len(slowest.controls)
    if longest > 0.7 * limit:
        needs = f"the expert needs up to {longest} steps with {objects} objects, and an episode ends after {limit}"
        remedy = f"set steps_per_object to {ceil(2 * longest / objects)}, so that a learner has time for mistakes"
        times = Counter(action for action, _, _ in _doings(slowest.actions))
        for action, number in times.most_common(1):
            if number >= OFTEN:
                remedy = f"it does {action} {number} times with seed {slowest.seed}: see what undoes it, or {remedy}"
        (found.error if longest > limit else found.advise)("steps", f"{needs}: {remedy}")


def _ending(episode: CheckedEpisode) -> str:
    """How an episode ended, and what the expert did last, if it says so."""
    *_, last = [None, *_doings(episode.actions)]
    doing = f", after {last[2] - last[1]} steps of {last[0]}" if last else ""
    missing = ", ".join(map(str, sorted(episode.goals[-1] - episode.states[-1]))) or "nothing"
    return f"{episode.at(len(episode.controls))}: {episode.outcome}{doing}; of the goal is missing {missing}"


def check_controls(env: SceneEnv, episode: CheckedEpisode, found: Findings) -> None:
    """Check that the expert's controls are in the action space."""
    controls = env.controls
    for step, control in enumerate(episode.controls):
        if not isinstance(controls, BoxControls):
            if not env.env.action_space.contains(np.int64(control)):
                found.error("control", f"{episode.at(step)}: the control {control!r} is not in {env.env.action_space}")
        elif np.shape(control) != tuple(controls.shape) or not np.isfinite(control).all():
            found.error("control", f"{episode.at(step)}: the control {control!r} does not fit {env.env.action_space}")
        elif (np.abs(controls.encode(np.asarray(control))) > 1.001).any():
            found.advise("control", f"{episode.at(step)}: the control {control!r} is out of bounds: clip it")


def check_actions(domain: Domain, episode: CheckedEpisode, found: Findings) -> None:
    """Check that the actions which the expert says it does are actions of the domain, and that they can be done."""
    for step, action in enumerate(episode.actions):
        if action is None or (step and action == episode.actions[step - 1]):
            continue
        where = f"{episode.at(step)}: choose(state, goal) gave {action}"
        try:
            condition = ground_action(domain, action).condition
        except BadInput as error:
            found.error("action", f"{where}: {error}")
            continue
        objects = {**domain.constants, **episode.scenes[step].objects}
        for name, parameter in zip(action.arguments, domain.schemas[action.name].parameters, strict=True):
            if name not in objects or not domain.is_subtype(objects[name], parameter.type):
                found.error("action", f"{where}, but there is no {parameter.type} '{name}' to be seen")
        state = episode.states[step]
        unmet = [str(fact) for fact in sorted(condition.positive - state)]
        unmet += [f"not {fact}" for fact in sorted(condition.negative & state)]
        if unmet:
            about = "precondition", action.name
            found.advise(about, f"{where}, whose precondition does not hold: {', '.join(unmet)}")


# What learning makes of it


def check_applicability(domain: Domain, episodes: Sequence[CheckedEpisode], found: Findings) -> None:
    """Say which actions could not be done in any state that was seen."""
    situations = {
        state: scene.objects
        for episode in episodes
        for scene, state in zip(episode.scenes, episode.states, strict=True)
    }
    labelled = {fact.predicate for state in situations for fact in state}
    never = []
    for name, schema in domain.schemas.items():
        rule = _as_rule(schema)
        instances = Instances([rule], domain)
        if not any(any(instances.in_order(state, NO_FACTS, objects)) for state, objects in situations.items()):
            needed = sorted({fact.predicate for fact in rule.state_condition} - labelled)
            never.append(name)
            reason = f"'{needed[0]}' was never labelled" if needed else "its precondition never held as a whole"
            found.advise(("applicable", name), f"the action '{name}' was never applicable in what was seen: {reason}")
    if len(never) == len(domain.schemas):
        found.error(
            "applicable", "no action of the domain was ever applicable in what was seen: compare label and domain"
        )


def _as_rule(schema: Schema) -> Rule:
    """A rule that applies where the action does."""
    condition = frozenset(fact for fact in schema.precondition if fact.predicate != EQUALITY)
    head = Action(schema.name, tuple(parameter.name for parameter in schema.parameters))
    return Rule(0, schema.parameters, condition, NO_FACTS, head, schema.negative_precondition)


def check_explanations(domain: Domain, episodes: Sequence[CheckedEpisode], found: Findings) -> None:
    """Check that the changes which the expert brings about are the effects of actions, and that rules follow."""
    traces: list[Trace] = []
    tally: dict[str, list[bool]] = {}
    first: dict[str, str] = {}
    for episode in episodes:
        objects = {name: kind for scene in episode.scenes for name, kind in scene.objects.items()}
        abstraction = traces_from_states(domain, episode.states, episode.goals, objects)
        traces += abstraction.traces
        for action, start, end in _doings(episode.actions):
            as_promised = action in abstraction.actions[start:end]
            flickered = start > 0 and end - start <= SETTLING and episode.states[start - 1] == episode.states[end]
            if not as_promised and (flickered or episode.has_events(start, end)):
                continue
            tally.setdefault(action.name, []).append(as_promised)
            if not as_promised:
                difference = how_it_differs(domain, action, episode.states[start], episode.states[end])
                first.setdefault(action.name, f"{episode.at(end)}: after {action}, {difference}")
    for name, results in tally.items():
        times = f"{sum(results)} of {len(results)} times"
        message = (
            f"the expert's '{name}' has the effects that the domain promises {times} (first not at {first.get(name)})"
        )
        if not any(results):
            found.error(("effects", name), f"{message}: correct the domain, the labels or the expert")
        elif sum(results) < USUALLY * len(results):
            found.advise(("effects", name), f"{message}: learning leaves out what no action explains")
    if domain.adl:
        found.advise("rules", "the domain is in ADL: no rules are learned, so run policies by --method det-replan")
    elif not found.has_errors and not learn_rules(traces, domain):
        found.error(
            "rules",
            "no rule can be learned from the expert: no fact of the goal becomes true by the effects of an action; "
            "compare what the labels do when the goal is reached with the effects in the domain",
        )


def _doings(actions: Sequence[Action | None]) -> Iterator[tuple[Action, int, int]]:
    """Each action that is done for some steps, with the first of them and the one after the last."""
    for action, group in groupby(enumerate(actions), key=lambda pair: pair[1]):
        steps = [step for step, _ in group]
        if action is not None:
            yield action, steps[0], steps[-1] + 1
