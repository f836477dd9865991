"""Whether a policy can be learned for a task: runs it as learning will, and says in words what is wrong and what to do.

for finding in check_task(task):
    print(finding)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import groupby
from math import ceil
from typing import Any

import numpy as np

from bilevel.policies.episode import NO_ACTION
from bilevel.policies.policy import ActingExpert, Policy, expert_policy
from bilevel.policies.rollout import Transition, rollout
from bilevel.rules.learning import learn_rules
from bilevel.rules.nearest import how_it_differs
from bilevel.rules.traces import Trace, traces_from_states
from bilevel.symbolic.domain import Action, BadInput, Domain
from bilevel.tasks import checking
from bilevel.tasks.checking import CheckedEpisode, Findings, TaskFinding, largest_difference
from bilevel.tasks.controls import BoxControls
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SUCCESS, SceneEnv
from bilevel.tasks.task import Task

OBJECTS = 3  # if the task takes so many
STEPS = 100  # of random controls, for each seed
PATIENCE = 3000  # steps for an expert, if the task gives it less, to see how many it needs
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
    checking.check_parts(task, found)
    if not found.has_errors:
        checking.check_environment(task, objects, arguments, found)
    if not found.has_errors:  # which would only cause others
        with closing(SceneEnv(task, objects, **arguments)) as env:
            _check_episodes(env, range(seeds), steps, found)
    return found.in_order()


def _check_episodes(env: SceneEnv, seeds: Sequence[int], steps: int, found: Findings) -> None:
    """Check what is seen with random controls and with the expert, as far as what was found lets it make sense."""
    domain, limit, shown = env.task.domain, env.step_limit, list[CheckedEpisode]()
    random = _watch_all(env, RANDOM, seeds, found, steps)
    if not found.has_errors:
        check_saving(env, found)
    if not found.has_errors and (env.expert is None or not env.expert.can_show):
        found.advise("expert", "the task has no expert that can show it: demonstrations must be imported")
    elif not found.has_errors:
        env.step_limit = max(limit, min(4 * limit, PATIENCE))  # to see how many steps it needs
        shown = _watch_all(env, EXPERT, seeds, found)
        env.step_limit = limit
        for episode in shown:
            check_controls(env, episode, found)
    if found.has_errors:
        return
    if not domain.schemas:
        remedy = "`bilevel domain learn DIR --output domain.pddl`, or with the policy: `bilevel learn --learn-domain`"
        found.advise("actions", f"the domain '{domain.name}' has no actions: learn them from demonstrations: {remedy}")
    checking.check_goals([*random, *shown], any(episode.outcome == SUCCESS for episode in shown), found)
    for episode in (*random, *shown):
        checking.check_success(episode, episode.outcome == SUCCESS, found)
    if shown:
        check_expert(env.objects, shown, limit, found)
        checking.check_flicker(shown, found)
        if domain.schemas and not found.has_errors:
            check_explanations(domain, shown, found)


def _random_policy(env: SceneEnv, seed: int) -> Policy:
    """Return a policy that tries anything."""
    space = env.env.action_space
    space.seed(seed)
    return ActingExpert(lambda scene: space.sample(), env.labels)


def _watch_all(
    env: SceneEnv, who: str, seeds: Sequence[int], found: Findings, steps: int | None = None
) -> list[CheckedEpisode]:
    """Return an episode for each seed, each step checked, and check that the first can be repeated."""
    watched = [_watch(env, who, seed, found, steps) for seed in (*seeds, seeds[0])]
    if not found.has_errors:
        check_repetition(watched[0], watched[-1], found)
    return watched[:-1]


def _watch(env: SceneEnv, who: str, seed: int, found: Findings, steps: int | None) -> CheckedEpisode:
    """Run an episode, for so many steps at most, until it ends or a function of the task fails; check what was seen."""
    policy = expert_policy(env) if who == EXPERT else _random_policy(env, seed)
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
    checking.check_scenes(env.task, seen, found)
    checking.check_facts(env.task.domain, seen, found)
    return seen


def check_repetition(first: CheckedEpisode, second: CheckedEpisode, found: Findings) -> None:
    """Check that the seed decided everything in two episodes of the same seed."""
    for step, (scene, other) in enumerate(zip(first.scenes, second.scenes, strict=False)):
        if step and not np.array_equal(first.controls[step - 1], second.controls[step - 1]):
            what = "the expert gave another control for the same scene: let it draw no random numbers of its own"
        elif scene != other:
            what = (
                f"the same seed led to another scene ({largest_difference(scene, other)}): "
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
    if env.can_save:
        try:
            scene = env.reset(0)
            snapshot, control = env.save(), _random_policy(env, 0).act(scene)
            after = env.step(control)
            if env.restore(snapshot) != scene or env.step(control) != after:
                found.error("save", "after restore(env, save(env)) the scene is another, or goes on in another way")
        except Exception as error:
            found.error("save", f"save(env) and restore(env, snapshot) failed: {type(error).__name__}: {error}")


# What the expert does


def check_controls(env: SceneEnv, episode: CheckedEpisode, found: Findings) -> None:
    """Check that the expert's controls are in the action space, and its actions in the domain, if that has any."""
    space, controls, schemas = env.env.action_space, env.controls, env.task.domain.schemas
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
    for action, step, _ in _doings(episode.actions) if schemas else ():
        if action.name not in schemas or len(schemas[action.name].parameters) != len(action.arguments):
            known = ", ".join(schemas)
            said = f"{episode.at(step)}: choose(state, goal) gave {action}"
            found.error("action", f"{said}: an unknown action or another number of arguments; known actions: {known}")


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
    longest = max(len(each.controls) for each in episodes if each.outcome == SUCCESS)
    if longest > 0.7 * limit:
        needs = f"the expert needs up to {longest} steps with {objects} objects, and an episode ends after {limit}"
        remedy = f"set steps_per_object to {ceil(2 * longest / objects)}, so that a learner has time for mistakes"
        (found.error if longest > limit else found.advise)("steps", f"{needs}: {remedy}")


# What learning makes of it


def check_explanations(domain: Domain, episodes: Sequence[CheckedEpisode], found: Findings) -> None:
    """Check that what the expert does has the effects of its actions, at least at times, and that rules follow."""
    traces: list[Trace] = []
    as_promised: set[str] = set()
    others: dict[str, str] = {}
    for episode in episodes:
        objects = {name: kind for scene in episode.scenes for name, kind in scene.objects.items()}
        abstraction = traces_from_states(domain, episode.states, episode.goals, objects)
        traces += abstraction.traces
        for action, start, end in _doings(episode.actions):
            if action in abstraction.actions[start:end]:
                as_promised.add(action.name)
            elif action.name not in others:
                difference = how_it_differs(domain, action, episode.states[start], episode.states[end])
                others[action.name] = f"{episode.at(end)}: after {action}, {difference}"
    for name in sorted(others.keys() - as_promised):
        remedy = "correct the domain, the labels or the expert"
        found.error(("effects", name), f"'{name}' never has the effects of the domain ({others[name]}): {remedy}")
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
