"""Checks of what is seen and labelled in the episodes of a task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from bilevel.symbolic.domain import Atom, Domain
from bilevel.tasks.checking import CheckedEpisode, Findings
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import Task

SETTLING = 5  # steps in which labels may change back and forth
MOST_FLICKERS = 2


def check_scenes(task: Task, episode: CheckedEpisode, found: Findings) -> None:
    """Check that scenes are of the spec, that all numbers in them are finite, and that objects keep their names."""
    for step, scene in enumerate(episode.scenes):
        if not isinstance(scene, Scene):
            what = f"perceive(observation, info, env) returned a {type(scene).__name__}, not a bilevel.Scene"
            found.error("scene", f"{episode.at(step)}: {what}")
            return
        if scene.spec is not task.spec and scene.spec != task.spec:
            found.error("spec", f"{episode.at(step)}: perceive made a scene of another Spec than the task's")
            return
        for name in _not_finite(scene):
            found.error(
                ("finite", name),
                f"{episode.at(step)}: {name} is not a finite number: give what cannot be seen a value, or leave the "
                "object out of the scene",
            )
    for step, (before, after) in enumerate(pairwise(episode.scenes), 1):
        if np.shares_memory(before.values, after.values) or np.shares_memory(before.features, after.features):
            found.error("memory", "perceive gives the same arrays at every step, which change later: copy them")
            return
        _check_names(before, after, episode.at(step), found)


def _not_finite(scene: Scene) -> Iterator[str]:
    for name, value in zip(scene.spec.agent, scene.values, strict=True):
        if not np.isfinite(value):
            yield f"the agent's '{name}'"
    for row, column in np.argwhere(~np.isfinite(scene.features)):
        yield f"'{scene.spec.columns[column]}' of the type '{scene.objects[scene.roster.names[row]]}'"


def _check_names(before: Scene, after: Scene, where: str, found: Findings) -> None:
    """Say which object changes its type, or has from one step to the next exactly the features of another."""
    for name, kind in before.objects.items():
        if after.objects.get(name, kind) != kind:
            changed = f"'{name}' was of the type '{kind}' and is now of the type '{after.objects[name]}'"
            found.error("names", f"{where}: {changed}: an object keeps its type; give a new thing a new name")
    was, now = (
        {name: (scene.objects[name], scene.features[row].tobytes()) for name, row in scene.roster.row.items()}
        for scene in (before, after)
    )
    unique = {features: name for name, features in was.items() if list(was.values()).count(features) == 1}
    for name, features in now.items():
        other = unique.get(features, name)
        if other != name and was.get(name) != features and now.get(other) != features:
            found.error(
                "names",
                f"{where}: '{name}' has exactly the features that '{other}' had a step before: a thing must keep its "
                "name as long as it is seen, so do not number what is left when something goes",
            )


# What is labelled


def check_facts(domain: Domain, episode: CheckedEpisode, found: Findings) -> None:
    """Check that labels and goals are facts of the domain about what is seen."""
    checked: set[tuple[object, int]] = set()
    for step, (scene, state, goal) in enumerate(zip(episode.scenes, episode.states, episode.goals, strict=False)):
        for function, facts in (("label", state), ("goal", goal)):
            key = facts, id(scene.roster)
            if key not in checked:
                checked.add(key)
                for fact in facts:
                    problem = _problem(fact, scene, domain)
                    if problem:
                        about = fact.predicate if isinstance(fact, Atom) else None
                        found.error((function, about), f"{episode.at(step)}: {function}(scene) gave {problem}")


def _problem(fact: object, scene: Scene, domain: Domain) -> str | None:
    """What is wrong with a fact, if anything."""
    if not isinstance(fact, Atom):
        return f'{fact!r}, which is no Atom: write Atom("on", ("block1", "block2"))'
    if not isinstance(fact.terms, tuple):
        return f'{fact!r}, whose terms are no tuple: write Atom("{fact.predicate}", ("{fact.terms}",))'
    predicate = domain.predicates.get(fact.predicate)
    if predicate is None:
        known = ", ".join(domain.predicates)
        return f"{fact}, but the domain '{domain.name}' has no predicate '{fact.predicate}'; it has: {known}"
    if len(fact.terms) != predicate.arity:
        return f"{fact}, but '{fact.predicate}' has {predicate.arity} parameters in the domain '{domain.name}'"
    objects = {**domain.constants, **scene.objects}
    for name, parameter in zip(fact.terms, predicate.parameters, strict=True):
        if name not in objects:
            return f"{fact}, but '{name}' is neither in the scene nor a constant of the domain: label what is seen"
        if not domain.is_subtype(objects[name], parameter.type):
            return f"{fact}, but '{name}' is of the type '{objects[name]}' where the domain wants '{parameter.type}'"
    return None


def check_flicker(episodes: Sequence[CheckedEpisode], found: Findings) -> None:
    """Say which labels go and come back within a few steps, again and again."""
    times: Counter[str] = Counter()
    first: dict[str, str] = {}
    for episode in episodes:
        gone: dict[Atom, int] = {}
        for step, (before, after) in enumerate(pairwise(episode.states), 1):
            gone |= dict.fromkeys(before - after, step)
            for fact in after - before:
                since = gone.get(fact, -SETTLING - 1)
                if step - since <= SETTLING and not episode.has_events(since - 1, step):
                    times[fact.predicate] += 1
                    first.setdefault(fact.predicate, f"{fact} at {episode.at(step)}")
    for predicate, number in times.items():
        if number > MOST_FLICKERS:
            found.advise(
                ("flicker", predicate),
                f"labels with '{predicate}' flicker: {number} times one went and came back within {SETTLING} steps "
                f"(first {first[predicate]}): widen its threshold, or use two, one for on and one for off",
            )


def check_goals(episodes: Sequence[CheckedEpisode], shown: bool, found: Findings) -> None:
    """Check that there is a goal, and that what it wants is labelled at some time, at least where an expert acts."""
    wanted = {fact.predicate for episode in episodes for goal in episode.goals for fact in goal}
    labelled = {fact.predicate for episode in episodes for state in episode.states for fact in state}
    if not wanted:
        found.error(
            "goal", "goal(scene) gave no facts in any scene: say what is wanted, such as Atom('on', ('a', 'b'))"
        )
    for predicate in sorted(wanted - labelled):
        message = f"the goal wants '{predicate}', but label(scene) never gave such a fact in any of the episodes"
        (found.error if shown else found.advise)(("goal", predicate), f"{message}: label it where it holds")


def check_success(episode: CheckedEpisode, succeeded: bool, found: Findings) -> None:
    """Check that the episode ended with success exactly when the goal held."""
    reached = [goal <= state for goal, state in zip(episode.goals, episode.states, strict=True)]
    last = len(reached) - 1
    if succeeded and not reached[-1]:
        missing = ", ".join(map(str, sorted(episode.goals[-1] - episode.states[-1])))
        found.error(
            "success",
            f"{episode.at(last)}: the episode is a success, but of the goal {missing} is not labelled: let label, goal "
            "and success agree, as the rules see only the goal",
        )
    lasting = [step for step in range(last - SETTLING) if all(reached[step : step + SETTLING + 1])]
    for step in [*lasting, *([last] if reached[last] and not succeeded else [])]:
        if episode.goals[step]:
            found.error(
                "success",
                f"{episode.at(step)}: the goal holds, but the episode goes on without success: let label, goal and "
                "success agree, as a policy has nothing to do once the goal holds",
            )
            return
