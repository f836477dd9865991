"""Checks of a task: of its parts, of its environment, and of what is seen and labelled in its episodes.

Each check yields what is wrong and what to do about it. `bilevel.learning.task_checking` runs them all.
"""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from bilevel.symbolic.domain import Action, Atom, BadInput, Domain, Facts, Parameter, Predicate
from bilevel.symbolic.expressions import is_name
from bilevel.tasks.controls import Control, controls_of
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SUCCESS
from bilevel.tasks.task import OBJECTS, Env, Task, call, takes

LARGEST_SEED = 2**63 - 1  # that an episode may have
SETTLING = 5  # steps in which labels may change back and forth
MOST_FLICKERS = 2


@dataclass(frozen=True)
class TaskFinding:
    """Something about a task that stands in the way of learning, or else a piece of advice; one for each thing."""

    about: Hashable
    message: str
    is_error: bool = True

    def __str__(self) -> str:
        return f"{'error' if self.is_error else 'advice'}: {self.message}"


Advice = partial(TaskFinding, is_error=False)
Findings = Iterator[TaskFinding]


@dataclass
class CheckedEpisode:
    """What was seen in an episode, by whose controls; `outcome` is missing where a function of the task failed."""

    who: str
    seed: int
    scenes: list[Scene] = field(default_factory=list)
    controls: list[Control] = field(default_factory=list)
    actions: list[Action | None] = field(default_factory=list)
    states: list[Facts] = field(default_factory=list)
    goals: list[Facts] = field(default_factory=list)
    events: set[int] = field(default_factory=set)  # the steps at which the environment reported some
    outcome: str | None = None
    findings: list[TaskFinding] = field(default_factory=list)  # of what was seen

    def at(self, step: int) -> str:
        """Return where a step is, in words: seed, step, and who acts."""
        return f"seed {self.seed}, step {step}, {self.who}"


# The parts of a task


def check_parts(task: Task) -> Findings:
    """Check what can be checked without running anything."""
    domain, types = f"the domain '{task.domain.name}'", task.domain.types
    for kind in task.spec.objects:
        if types and kind not in types:
            what = f"the spec has objects of the type '{kind}', which {domain} does not declare"
            yield TaskFinding(("type", kind), f"{what} (its types: {', '.join(types)}): use one name for it in both")
    kinds = [*task.spec.objects, *task.domain.constants.values()]
    for needed in {p.type for schema in task.domain.schemas.values() for p in schema.parameters}:
        if not any(task.domain.is_subtype(kind, needed) for kind in kinds):
            message = f"actions of {domain} need objects of the type '{needed}', but the spec has none: add it"
            yield Advice(("type", needed), message)
    if not takes(task.make_env, OBJECTS):
        arguments = ", ".join(inspect.signature(task.make_env).parameters)
        message = f"make_env({arguments}) does not take `objects`, the number of objects that there shall be: add it"
        yield TaskFinding("make_env", message)


# The environment


def check_environment(task: Task, objects: int, arguments: Mapping[str, Any]) -> Findings:
    """Make the environment and take a step in it, to see whether it is one of Gymnasium's."""
    try:
        env = call("the environment", task.make_env, objects=objects, **arguments)
        call("the environment", _check_gymnasium, env)
        env.close()
    except BadInput as error:
        yield TaskFinding("environment", str(error))


def _check_gymnasium(env: Env) -> None:
    controls_of(env.action_space)
    if not takes(env.reset, "seed"):
        raise BadInput("env.reset() takes no `seed`: write `def reset(self, *, seed=None, options=None)`")
    result: object = call("env.reset(seed={seed}), where seeds have up to 63 bits,", env.reset, seed=LARGEST_SEED)
    if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict)):
        raise BadInput("env.reset(seed=0) must return the observation and a dictionary `info`, as Gymnasium says")
    env.action_space.seed(0)
    result = env.step(env.action_space.sample())
    if not (isinstance(result, tuple) and len(result) == 5 and isinstance(result[4], dict)):
        raise BadInput("env.step(control) must return observation, reward, terminated, truncated and a dictionary info")


# What is seen


def check_scenes(task: Task, episode: CheckedEpisode) -> Findings:
    """Check that scenes are of the spec, that all numbers in them are finite, and that objects keep their names."""
    for step, scene in enumerate(episode.scenes):
        if not isinstance(scene, Scene):
            what = f"perceive(observation, info, env) returned a {type(scene).__name__}, not a bilevel.Scene"
            yield TaskFinding("scene", f"{episode.at(step)}: {what}")
            return
        if scene.spec is not task.spec and scene.spec != task.spec:
            yield TaskFinding("spec", f"{episode.at(step)}: perceive made a scene of another Spec than the task's")
            return
        for name, value in numbers(scene).items():
            if not np.isfinite(value):
                remedy = "give what cannot be seen a value, or leave the object out of the scene"
                yield TaskFinding(("finite", name), f"{episode.at(step)}: {name} is not a finite number: {remedy}")
    for step, (before, after) in enumerate(pairwise(episode.scenes), 1):
        if np.shares_memory(before.values, after.values) or np.shares_memory(before.features, after.features):
            yield TaskFinding("memory", "perceive gives the same arrays at every step, which change later: copy them")
            return
        yield from _check_names(before, after, episode.at(step))


def numbers(scene: Scene) -> dict[str, float]:
    """Return all numbers in a scene by what they are, such as `agent.x` and `block1.z`."""
    found = {f"agent.{name}": float(value) for name, value in zip(scene.spec.agent, scene.values, strict=True)}
    for (name, kind), row in zip(scene.objects.items(), scene.features, strict=True):
        for feature in scene.spec.objects[kind]:
            found[f"{name}.{feature}"] = float(row[scene.spec.column[feature]])
    return found


def largest_difference(first: Scene, second: Scene) -> str:
    """Return where two scenes differ most, in words."""
    before, after = numbers(first), numbers(second)
    if before.keys() != after.keys():
        return "other objects are seen"
    name, value = max(before.items(), key=lambda item: abs(item[1] - after[item[0]]))
    return f"{name} differs by {abs(value - after[name]):.2g}"


def _check_names(before: Scene, after: Scene, where: str) -> Findings:
    """Say which object changes its type, or has from one step to the next exactly the features of another."""
    for name, kind in before.objects.items():
        if after.objects.get(name, kind) != kind:
            changed = f"'{name}' was of the type '{kind}' and is now of the type '{after.objects[name]}'"
            yield TaskFinding("names", f"{where}: {changed}: an object keeps its type; give a new thing a new name")
    was, now = (
        {name: (scene.objects[name], scene.features[row].tobytes()) for name, row in scene.roster.row.items()}
        for scene in (before, after)
    )
    unique = {features: name for name, features in was.items() if list(was.values()).count(features) == 1}
    for name, features in now.items():
        other = unique.get(features, name)
        if other != name and was.get(name) != features and now.get(other) != features:
            what = f"{where}: '{name}' has exactly the features that '{other}' had a step before"
            remedy = "a thing keeps its name while it is seen, so do not number what is left"
            yield TaskFinding("names", f"{what}: {remedy}")


# What is labelled


def check_facts(domain: Domain, episode: CheckedEpisode) -> Findings:
    """Check that labels and goals are facts of the domain about what is seen; of one without predicates, any may be."""
    for step, (scene, state, goal) in enumerate(zip(episode.scenes, episode.states, episode.goals, strict=False)):
        for function, facts in (("label", state), ("goal", goal)):
            for fact in facts:
                problem = _problem(fact, scene.objects, domain)
                if problem:
                    about = fact.predicate if isinstance(fact, Atom) else None
                    yield TaskFinding((function, about), f"{episode.at(step)}: {function}(scene) gave {problem}")


def _problem(fact: object, objects: Mapping[str, str], domain: Domain) -> str | None:
    """What is wrong with a fact, if anything."""
    if not isinstance(fact, Atom):
        return f'{fact!r}, which is no Atom: write Atom("on", ("block1", "block2"))'
    if not isinstance(fact.terms, tuple):
        return f'{fact!r}, whose terms are no tuple: write Atom("{fact.predicate}", ("{fact.terms}",))'
    predicate = domain.predicates.get(fact.predicate)
    if not domain.predicates:
        if not is_name(fact.predicate) or fact.predicate != fact.predicate.lower():
            return f"{fact}, whose predicate PDDL could not name so: use a lower-case word"
        predicate = Predicate(fact.predicate, (Parameter("?x"),) * len(fact.terms))
    if predicate is None:
        known = ", ".join(domain.predicates)
        return f"{fact}, but the domain '{domain.name}' has no predicate '{fact.predicate}'; it has: {known}"
    if len(fact.terms) != predicate.arity:
        return f"{fact}, but '{fact.predicate}' has {predicate.arity} parameters in the domain '{domain.name}'"
    for name, parameter in zip(fact.terms, predicate.parameters, strict=True):
        kind = objects.get(name) or domain.constants.get(name)
        if kind is None:
            return f"{fact}, but '{name}' is neither in the scene nor a constant of the domain: label what is seen"
        if not domain.is_subtype(kind, parameter.type):
            return f"{fact}, but '{name}' is of the type '{kind}' where the domain wants '{parameter.type}'"
    return None


def check_flicker(episodes: Sequence[CheckedEpisode]) -> Findings:
    """Say which labels go and come back within a few steps, again and again."""
    places: dict[str, list[str]] = {}  # of the facts that came back, by predicate
    for episode in episodes:
        gone: dict[Atom, int] = {}
        for step, (before, after) in enumerate(pairwise(episode.states), 1):
            gone |= dict.fromkeys(before - after, step)
            for fact in after - before:
                since = gone.get(fact, -SETTLING - 1)
                if step - since <= SETTLING and episode.events.isdisjoint(range(since, step + 1)):
                    places.setdefault(fact.predicate, []).append(f"{fact} at {episode.at(step)}")
    for predicate, (first, *others) in places.items():
        if len(others) >= MOST_FLICKERS:
            what = f"labels with '{predicate}' flicker: {1 + len(others)} times one went and soon came back"
            remedy = "widen its threshold, or use two, one for on and one for off"
            yield Advice(("flicker", predicate), f"{what} (first {first}): {remedy}")


def check_goals(episodes: Sequence[CheckedEpisode]) -> Findings:
    """Check that there is a goal, and that what it wants is labelled at some time, at least where an expert acts."""
    wanted = {fact.predicate for episode in episodes for goal in episode.goals for fact in goal}
    labelled = {fact.predicate for episode in episodes for state in episode.states for fact in state}
    if not wanted:
        what = "goal(scene) gave no facts in any scene: say what is wanted, as Atom('on', ('a', 'b'))"
        yield TaskFinding("goal", what)
    shown = any(episode.outcome == SUCCESS for episode in episodes)
    for predicate in sorted(wanted - labelled):
        message = f"the goal wants '{predicate}', but label(scene) never gave such a fact in any of the episodes"
        yield TaskFinding(("goal", predicate), f"{message}: label it where it holds", is_error=shown)


def check_success(episode: CheckedEpisode) -> Findings:
    """Check that the episode ended with success exactly when the goal held."""
    reached = [goal <= state for goal, state in zip(episode.goals, episode.states, strict=True)]
    last, remedy = len(reached) - 1, "let label, goal and success agree, as the rules see only the goal"
    if episode.outcome == SUCCESS and not reached[-1]:
        missing = ", ".join(map(str, sorted(episode.goals[-1] - episode.states[-1])))
        what = f"the episode is a success, but of the goal {missing} is not labelled"
        yield TaskFinding("success", f"{episode.at(last)}: {what}: {remedy}")
    lasting = [step for step in range(last - SETTLING) if all(reached[step : step + SETTLING + 1])]
    for step in [*lasting, *([last] if reached[last] and episode.outcome != SUCCESS else [])]:
        if episode.goals[step]:
            what = "the goal holds, but the episode goes on without success"
            yield TaskFinding("success", f"{episode.at(step)}: {what}: {remedy}")
            return
