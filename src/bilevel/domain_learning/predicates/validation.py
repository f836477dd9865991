"""Whether predicates serve: operators and rules are learned with them, and asked about demonstrations held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bilevel.domain_learning.episodes import Episode
from bilevel.domain_learning.learned import LearnedDomain
from bilevel.domain_learning.operators import learn_operators
from bilevel.rules.instances import Instances
from bilevel.rules.learning import learn_rules
from bilevel.rules.rule import Rule
from bilevel.rules.solving import solve
from bilevel.rules.traces import Abstraction, TraceStep, traces_from_states
from bilevel.symbolic.domain import Domain, Problem

MOST_STEPS = 500  # of a solution in symbols


@dataclass(frozen=True)
class Validation:
    """What was learned from some demonstrations, and how it fares in others."""

    learned: LearnedDomain
    rules: tuple[Rule, ...]
    demonstrations: int  # that were held out
    actions: int  # in these, that operators explain
    unexplained: int  # changes in these that no operator explains, such as what nature does by itself
    agreeing: int  # actions that are among those that the rules would choose there
    solved: int  # of these demonstrations, those from whose beginnings the rules lead to the goal, in symbols


def validate(shown: Sequence[Episode], held_out: Sequence[Episode], frame: Domain) -> Validation:
    """Learn operators and rules from some episodes, and ask them about others."""
    learned = learn_operators(shown, frame)
    domain = learned.domain
    rules = learn_rules([trace for episode in shown for trace in _explained(domain, episode).traces], domain)
    found = [_explained(domain, episode) for episode in held_out]
    steps = [(step, trace.objects) for each in found for trace in each.traces for step in trace.steps]
    return Validation(
        learned,
        rules,
        len(held_out),
        len(steps),
        sum(each.exogenous for each in found),
        sum(_agrees(rules, domain, step, objects) for step, objects in steps),
        sum(_is_solved(rules, domain, episode) for episode in held_out),
    )


def _explained(domain: Domain, episode: Episode) -> Abstraction:
    return traces_from_states(domain, episode.states, episode.goals, episode.objects)


def _agrees(rules: Sequence[Rule], domain: Domain, step: TraceStep, objects: Mapping[str, str]) -> bool:
    """Return whether what was done is among what the first rules that apply say; these are all of one priority."""
    first = Instances(rules, domain).best(step.state, step.goal, objects)
    return any(match.action == step.action.action for match in first)


def _is_solved(rules: Sequence[Rule], domain: Domain, episode: Episode) -> bool:
    """Return whether the rules lead to the goal from an episode's beginning, if the domain tells the truth."""
    assert episode.motion is not None
    seen = zip(episode.objects.items(), episode.motion.visible[0], strict=True)
    objects = {name: kind for (name, kind), is_visible in seen if is_visible}
    problem = Problem("held-out", domain.name, objects, episode.states[0], episode.goals[0])
    return solve(domain, problem, rules, max_steps=MOST_STEPS).is_solved
