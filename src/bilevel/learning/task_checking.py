"""Whether a policy can be learned for a task: runs it as learning will, and says in words what is wrong and what to do.

for finding in check_task(task):
    print(finding)
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, groupby
from math import ceil
from typing import Any

import numpy as np

from bilevel.policies.episode import NO_ACTION
from bilevel.policies.policy import ActingExpert, expert_policy
from bilevel.policies.rollout import Transition, rollout
from bilevel.rules.learning import learn_rules
from bilevel.rules.nearest import how_it_differs
from bilevel.rules.traces import Trace, traces_from_states
from bilevel.symbolic.domain import Action, BadInput, Domain
from bilevel.tasks import checking
from bilevel.tasks.checking import Advice, CheckedEpisode, Findings, TaskFinding, largest_difference
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
    found: dict[Hashable, TaskFinding] = {}
    with closing(_stages(task, objects, range(seeds), steps, arguments)) as stages:
        for findings in stages:
            for finding in findings:
                found.setdefault(finding.about, finding)
            if any(finding.is_error for finding in found.values()):
                break  # as errors would only cause others
    return sorted(found.values(), key=lambda finding: not finding.is_error)


def _stages(
    task: Task, objects: int, seeds: Sequence[int], steps: int, arguments: Mapping[str, Any]
) -> Generator[Iterable[TaskFinding], None, None]:
    """Yield what is found at each stage; the next one makes sense where nothing was wrong."""
    yield checking.check_parts(task)
    yield checking.check_environment(task, objects, arguments)
    with closing(SceneEnv(task, objects, **arguments)) as env:
        limit, shown = env.step_limit, list[CheckedEpisode]()
        random = [_watch(env, RANDOM, seed, steps) for seed in (*seeds, seeds[0])]
        yield chain.from_iterable(episode.findings for episode in random)
        yield check_repetition(random[0], random.pop())
        yield check_saving(env)
        if env.expert is None or not env.expert.can_show:
            yield [Advice("expert", "the task has no expert that can show it: demonstrations must be imported")]
        else:
            env.step_limit = max(limit, min(4 * limit, PATIENCE))  # to see how many steps it needs
            shown = [_watch(env, EXPERT, seed) for seed in (*seeds, seeds[0])]
            yield chain.from_iterable((*episode.findings, *check_controls(env, episode)) for episode in shown)
            yield check_repetition(shown[0], shown.pop())
        if not task.domain.schemas:
            how = "`bilevel domain learn DIR --output domain.pddl`, or with the policy: `bilevel learn --learn-domain`"
            what = f"the domain '{task.domain.name}' has no actions: learn them from demonstrations: {how}"
            yield [Advice("actions", what)]
        yield chain(
            checking.check_goals([*random, *shown]),
            *map(checking.check_success, (*random, *shown)),
            check_expert(objects, shown, limit) if shown else (),
            checking.check_flicker(shown),
        )
        if shown and task.domain.schemas:
            yield check_explanations(task.domain, shown)


def _watch(env: SceneEnv, who: str, seed: int, steps: int | None = None) -> CheckedEpisode:
    """Run an episode, for so many steps at most, until it ends or a function of the task fails; check what was seen."""
    seen, space = CheckedEpisode(who, seed), env.env.action_space
    space.seed(seed)
    policy = expert_policy(env) if who == EXPERT else ActingExpert(lambda scene: space.sample(), env.labels)

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
                what = f"{seen.at(episode.steps)} wants {policy.action}, but no '{name}' is seen"
                seen.findings.append(TaskFinding("run", what))
    except BadInput as error:
        seen.findings.append(TaskFinding("run", f"{seen.at(len(seen.states))}: {error}"))
    seen.findings += checking.check_scenes(env.task, seen)
    seen.findings += checking.check_facts(env.task.domain, seen)
    return seen


def check_repetition(first: CheckedEpisode, second: CheckedEpisode) -> Findings:
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
        yield Advice("seed", f"{first.at(step)}: {what}; else no episode can be repeated")
        return


def check_saving(env: SceneEnv) -> Findings:
    """Check that what was saved comes back, and that it goes on as it did."""
    if env.can_save:
        try:
            scene = env.reset(0)
            snapshot, control = env.save(), env.env.action_space.sample()
            after = env.step(control)
            if env.restore(snapshot) != scene or env.step(control) != after:
                what = "the scene is another, or goes on in another way"
                yield TaskFinding("save", f"after restore(env, save(env)) {what}")
        except Exception as error:
            yield TaskFinding("save", f"save(env) and restore(env, snapshot) failed: {type(error).__name__}: {error}")


# What the expert does


def check_controls(env: SceneEnv, episode: CheckedEpisode) -> Findings:
    """Check that the expert's controls are in the action space, and its actions in the domain, if that has any."""
    space, controls, schemas = env.env.action_space, env.controls, env.task.domain.schemas
    for step, control in enumerate(episode.controls):
        said = f"{episode.at(step)}: the control {control!r}"
        if isinstance(controls, BoxControls):
            fits = np.shape(control) == tuple(controls.shape) and np.isfinite(control).all()
            if fits and (np.abs(controls.encode(np.asarray(control))) > 1.001).any():
                yield Advice("control", f"{said} is out of bounds: clip it")
        else:
            fits = space.contains(np.int64(control))
        if not fits:
            yield TaskFinding("control", f"{said} is not in {space}")
    for action, step, _ in _doings(episode.actions) if schemas else ():
        if action.name not in schemas or len(schemas[action.name].parameters) != len(action.arguments):
            known = ", ".join(schemas)
            what = f"{action}: an unknown action or another number of arguments; known actions: {known}"
            yield TaskFinding("action", f"{episode.at(step)}: choose(state, goal) gave {what}")


def check_expert(objects: int, episodes: Sequence[CheckedEpisode], limit: int) -> Findings:
    """Check that the expert succeeds, and in time."""
    failed = [episode for episode in episodes if episode.outcome != SUCCESS]
    if failed:
        first = failed[0]
        missing = ", ".join(map(str, sorted(first.goals[-1] - first.states[-1]))) or "nothing"
        how = f"{first.at(len(first.controls))}: {first.outcome}; of the goal is missing {missing}"
        fails = f"the expert fails in {len(failed)} of {len(episodes)} episodes (first {how})"
        if len(failed) == len(episodes):
            yield TaskFinding("expert", f"{fails}: only what succeeds is kept, so nothing can be learned from it")
            return
        yield Advice("expert", f"{fails}: only what succeeds is kept, so it should be the exception")
    longest = max(len(each.controls) for each in episodes if each.outcome == SUCCESS)
    if longest > 0.7 * limit:
        needs = f"the expert needs up to {longest} steps with {objects} objects, and an episode ends after {limit}"
        remedy = f"set steps_per_object to {ceil(2 * longest / objects)}, so that a learner has time for mistakes"
        yield TaskFinding("steps", f"{needs}: {remedy}", is_error=longest > limit)


# What learning makes of it


def check_explanations(domain: Domain, episodes: Sequence[CheckedEpisode]) -> Findings:
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
        yield TaskFinding(("effects", name), f"'{name}' never has the effects of the domain ({others[name]}): {remedy}")
    if domain.adl:
        yield Advice("rules", "the domain is in ADL: no rules are learned, so run policies by --method det-replan")
    elif not others.keys() - as_promised and not learn_rules(traces, domain):
        why = "no fact of the goal becomes true by the effects of an action"
        remedy = "compare what the labels do when the goal is reached with the effects in the domain"
        yield TaskFinding("rules", f"no rule can be learned from the expert: {why}; {remedy}")


def _doings(actions: Sequence[Action | None]) -> Iterator[tuple[Action, int, int]]:
    """Each action that is done for some steps, with the first of them and the one after the last."""
    for action, group in groupby(enumerate(actions), key=lambda pair: pair[1]):
        steps = [step for step, _ in group]
        if action is not None:
            yield action, steps[0], steps[-1] + 1
