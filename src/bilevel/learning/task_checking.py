"""Whether a policy can be learned for a task: runs it as learning will, and says in words what is wrong and what to do.

for finding in check_task(task):
    print(finding)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import groupby
from math import ceil
from typing import Any

import numpy as np

from bilevel.policies.episode import NO_ACTION
from bilevel.policies.policy import Policy, expert_policy
from bilevel.policies.rollout import Transition, rollout
from bilevel.rules.learning import learn_rules
from bilevel.rules.nearest import how_it_differs
from bilevel.rules.state_graph import groundings
from bilevel.rules.traces import Trace, traces_from_states
from bilevel.symbolic.domain import Action, BadInput, Domain
from bilevel.symbolic.semantics import applicable
from bilevel.tasks.checking import (
    SETTLING,
    CheckedEpisode,
    Findings,
    TaskFinding,
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
OFTEN = 4  # times that an expert does the same action; more look as if it is undone again and again
USUALLY = 0.9  # the part of an expert's actions that should have the effects which the domain promises
RANDOM, EXPERT = "random controls", "the expert"  # whose controls they are


def check_task(
    task: Task, *, objects: int | None = None, seeds: int = 3, steps: int = STEPS, **arguments: Any
) -> list[TaskFinding]:
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
    if not found.has_errors:  # which would only cause others
        env, twin = (SceneEnv(task, objects, **arguments) for _ in range(2))
        with closing(env), closing(twin):
            _check_episodes(env, twin, range(seeds), steps, found)
    return found.in_order()


def _check_episodes(env: SceneEnv, twin: SceneEnv, seeds: Sequence[int], steps: int, found: Findings) -> None:
    """Check what is seen in episodes with random controls and in those of the expert; some are repeated in the twin."""
    try:
        check_scenes(env.task, CheckedEpisode("reset", 0, [env.reset(0)]), found)
    except BadInput as error:
        found.error("perceive", f"seed 0, step 0: {error}")
    if found.has_errors:
        return
    random = [_watch(env, _RandomControls(env, seed), seed, RANDOM, found, steps) for seed in seeds]
    if found.has_errors:
        return
    check_repetition(random[0], _watch(twin, _RandomControls(twin, 0), 0, RANDOM, found, steps), found)
    check_saving(env, found)
    if found.has_errors:
        return
    shown: list[CheckedEpisode] = []
    expert, limit, domain = env.expert, env.step_limit, env.task.domain
    if expert is None or not expert.can_show:
        cannot = "has no expert" if expert is None else "has an expert without `choose`, which can only answer"
        found.advise("expert", f"the task {cannot}: demonstrations must be imported, as none can be shown")
    else:  # it is given more steps than the task allows, to see how many it needs
        env.step_limit = twin.step_limit = max(limit, min(4 * limit, PATIENCE))
        shown = [_watch(env, expert_policy(env), seed, EXPERT, found) for seed in seeds]
        if not found.has_errors:
            check_repetition(shown[0], _watch(twin, expert_policy(twin), 0, EXPERT, found), found)
    for episode in shown:
        check_controls(env, episode, found)
        for action, step, _ in _doings(episode.actions) if domain.schemas else ():
            schema = domain.schemas.get(action.name)
            if schema is None or len(schema.parameters) != len(action.arguments):
                what = (
                    f"unknown action '{action.name}'" if schema is None else f"not {len(schema.parameters)} arguments"
                )
                found.error("action", f"{episode.at(step)}: choose(state, goal) gave {action}: {what}")
    if found.has_errors:
        return
    check_goals([*random, *shown], any(episode.outcome == SUCCESS for episode in shown), found)
    check_applicability(domain, [*random, *shown], found)
    for episode in (*random, *shown):
        check_success(episode, episode.outcome == SUCCESS, found)
    if shown:
        check_expert(env.objects, shown, limit, found)
        check_flicker(shown, found)
        if domain.schemas and not found.has_errors:
            check_explanations(domain, shown, found)


class _RandomControls(Policy):
    """A policy that tries anything."""

    def __init__(self, env: SceneEnv, seed: int) -> None:
        self._space = env.env.action_space
        self._space.seed(seed)

    def act(self, scene: Scene) -> Control:
        return self._space.sample()


def _watch(
    env: SceneEnv, policy: Policy, seed: int, who: str, found: Findings, steps: int | None = None
) -> CheckedEpisode:
    """Run an episode, for so many steps at most, until it ends or a function of the task fails; check what was seen."""
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
        for name in policy.action.arguments if policy.action and episode.outcome == NO_ACTION else ():
            if name not in episode.scene:
                found.error("run", f"{seen.at(episode.steps)} wants {policy.action}, but no '{name}' is seen")
    except BadInput as error:
        found.error("run", f"{seen.at(len(seen.states))}: {error}")
    check_scenes(env.task, seen, found)
    check_facts(env.task.domain, seen, found)
    return seen


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
    if env.can_save and not found.has_errors:
        try:
            scene = env.reset(0)
            snapshot, control = env.save(), _RandomControls(env, 0).act(scene)
            after = env.step(control)
            if env.restore(snapshot) != scene or env.step(control) != after:
                found.error("save", "after restore(env, save(env)) the scene is another, or goes on in another way")
        except Exception as error:
            found.error("save", f"save(env) and restore(env, snapshot) failed: {type(error).__name__}: {error}")


# What the expert does


def check_controls(env: SceneEnv, episode: CheckedEpisode, found: Findings) -> None:
    """Check that the expert's controls are in the action space."""
    space, controls = env.env.action_space, env.controls
    for step, control in enumerate(episode.controls):
        said = f"{episode.at(step)}: the control {control!r}"
        if isinstance(controls, BoxControls):
            fits = np.shape(control) == tuple(controls.shape) and np.isfinite(control).all()
            if fits and (np.abs(controls.encode(np.asarray(control))) > 1.001).any():
                found.advise("control", f"{said} is out of bounds: clip it")
        else:
            fits = space.contains(np.int64(control))
        if not fits:
            found.error("control", f"{said} is not in {space}")


def check_expert(objects: int, episodes: Sequence[CheckedEpisode], limit: int, found: Findings) -> None:
    """Check that the expert succeeds, and in time."""
    failed = [episode for episode in episodes if episode.outcome != SUCCESS]
    if failed:
        first = failed[0]
        missing = ", ".join(map(str, sorted(first.goals[-1] - first.states[-1]))) or "nothing"
        how = f"{first.at(len(first.controls))}: {first.outcome}; of the goal is missing {missing}"
        fails = f"the expert fails in {len(failed)} of {len(episodes)} episodes (first {how})"
        if len(failed) == len(episodes):
            found.error("expert", f"{fails}: only what succeeds is kept, so nothing can be learned from it")
            return
        found.advise("expert", f"{fails}: only what succeeds is kept, so it should be the exception")
    slowest = max((each for each in episodes if each.outcome == SUCCESS), key=lambda each: len(each.controls))
    longest = len(slowest.controls)
    if longest > 0.7 * limit:
        needs = f"the expert needs up to {longest} steps with {objects} objects, and an episode ends after {limit}"
        remedy = f"set steps_per_object to {ceil(2 * longest / objects)}, so that a learner has time for mistakes"
        for action, times in Counter(action for action, _, _ in _doings(slowest.actions)).most_common(1):
            if times >= OFTEN:
                remedy = f"it does {action} {times} times with seed {slowest.seed}: see what undoes it, or {remedy}"
        (found.error if longest > limit else found.advise)("steps", f"{needs}: {remedy}")


# What learning makes of it


def check_applicability(domain: Domain, episodes: Sequence[CheckedEpisode], found: Findings) -> None:
    """Say which actions could not be done in any state that was seen."""
    if not domain.schemas:
        missing = "no actions" if domain.predicates else "no predicates and no actions"
        remedy = "`bilevel domain learn DIR --output domain.pddl`, or with the policy: `bilevel learn --learn-domain`"
        found.advise("actions", f"the domain '{domain.name}' has {missing}: learn them from demonstrations: {remedy}")
        return
    situations = {
        state: {**domain.constants, **scene.objects}
        for episode in episodes
        for scene, state in zip(episode.scenes, episode.states, strict=True)
    }
    labelled = {fact.predicate for state in situations for fact in state}
    never = [
        schema
        for schema in domain.schemas.values()
        if not any(
            applicable(state, action)
            for state, objects in situations.items()
            for action in groundings([schema], domain, objects)
        )
    ]
    for schema in never:
        needed = sorted({fact.predicate for fact in schema.precondition} - labelled)
        reason = f"'{needed[0]}' was never labelled" if needed else "its precondition never held as a whole"
        message = f"the action '{schema.name}' was never applicable in what was seen: {reason}"
        found.advise(("applicable", schema.name), message)
    if len(never) == len(domain.schemas):
        message = "no action of the domain was ever applicable in what was seen: compare label and domain"
        found.error("applicable", message)


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
