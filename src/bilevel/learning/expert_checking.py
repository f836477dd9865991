"""Checks of what an expert shows, and of what learning makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import ceil

import numpy as np

from bilevel.rules.learning import learn_rules
from bilevel.rules.matching import bindings
from bilevel.rules.rule import Rule
from bilevel.rules.traces import Trace, traces_from_states
from bilevel.symbolic.domain import EQUALITY, NO_FACTS, Action, BadInput, Domain, Facts, Schema
from bilevel.symbolic.semantics import ground_action
from bilevel.tasks.checking import CheckedEpisode, Findings
from bilevel.tasks.controls import BoxControls
from bilevel.tasks.scene_env import SUCCESS, SceneEnv

USUALLY = 0.9  # the part of an expert's actions that should have the effects which the domain promises


def check_expert(env: SceneEnv, episodes: Sequence[CheckedEpisode], limit: int, found: Findings) -> None:
    """Check that the expert succeeds, and in time."""
    failed = [episode for episode in episodes if episode.outcome != SUCCESS]
    if failed:
        fails = f"the expert fails in {len(failed)} of {len(episodes)} episodes (first {_ending(failed[0])})"
        if len(failed) == len(episodes):
            found.error("expert", f"{fails}: only what succeeds is kept, so nothing can be learned from it")
            return
        found.advise("expert", f"{fails}: only what succeeds is kept, so it should be the exception")
    longest = max(len(episode.controls) for episode in episodes if episode.outcome == SUCCESS)
    if longest > 0.7 * limit:
        needs = f"the expert needs up to {longest} steps with {env.objects} objects, and an episode ends after {limit}"
        remedy = f"set steps_per_object to {ceil(2 * longest / env.objects)}, so that a learner has time for mistakes"
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
        if not any(any(bindings(rule, domain, state, NO_FACTS, objects)) for state, objects in situations.items()):
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
            if not as_promised and episode.has_events(start, end):
                continue
            tally.setdefault(action.name, []).append(as_promised)
            if not as_promised:
                difference = _difference(domain, action, episode.states[start], episode.states[end])
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
    if not found.has_errors and not learn_rules(traces, domain):
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


def _difference(domain: Domain, action: Action, before: Facts, after: Facts) -> str:
    """How what came of an action differs from the likest of its outcomes, in words."""
    grounded = ground_action(domain, action)
    changed = before ^ after
    outcome = min(grounded.outcomes, key=lambda outcome: len(changed ^ (outcome.add | outcome.delete)))
    known = {term for fact in before for term in fact.terms}
    others = changed - outcome.add - outcome.delete
    arrivals = {fact for fact in others if not known.issuperset(fact.terms)}
    parts = [
        (grounded.condition.positive - before, "did not hold before"),
        (outcome.add - after, "did not become true"),
        ((outcome.delete - outcome.add) & after, "did not become false"),
        (others - arrivals, "changed as well"),
        (arrivals, "appeared at the same step"),
    ]
    said = [f"{', '.join(map(str, sorted(facts)))} {what}" for facts, what in parts if facts]
    return "; ".join(said) or "the labels came to that in several steps"
