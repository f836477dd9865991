"""A policy in a few sentences: how many rules, what for, and the actions in the order in which they normally come."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from bilevel.rules.explanation.english import ARGUMENT, nouns_of, order_template, with_pronoun_inside
from bilevel.rules.explanation.wording import Phrase, is_person, listed, phrase_of, with_article
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Atom

_NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve")
_OF_FIRST = "{0's} "


def summary(rules: Sequence[Rule]) -> str:
    number = _NUMBERS[len(rules)] if len(rules) < len(_NUMBERS) else str(len(rules))
    sentences = [f"{number} rule{'' if len(rules) == 1 else 's'}."]
    for _, group in groupby(sorted(rules, key=_goal_names), key=_goal_names):
        sentences.append(_purpose(list(group)))
    if any(rule.absent for rule in rules):
        sentences.append("Some rules test that a fact is absent, so they need a closed world.")
    return " ".join(sentences)


def _goal_names(rule: Rule) -> list[str]:
    return sorted(atom.predicate for atom in rule.goal_condition)


def _purpose(rules: Sequence[Rule]) -> str:
    """`For every block that is not yet at its goal place: pick it, then place it there.`"""
    by_priority = sorted(rules, key=lambda rule: rule.priority)
    steps = list(dict.fromkeys(map(_step, by_priority)))[::-1]
    chain = f"{', '.join(steps[:-1])}, then {steps[-1]}" if len(steps) > 1 else steps[0]
    nearest = by_priority[0]
    if not nearest.goal_condition:
        return f"Whatever the goals: {chain}."
    goals = nearest.in_reading_order(nearest.goal_condition)
    return f"For every {_unachieved(goals, nouns_of(nearest))}: {chain}."


def _step(rule: Rule) -> str:
    """The action on its own: `it` and `there` for what the goal is about, `the …` for all else."""
    nouns, head = nouns_of(rule), rule.action.arguments
    template = order_template(rule, nouns)
    goals = sorted(rule.goal_condition)
    thing, place = _thing_and_place(goals[0], nouns) if len(goals) == 1 else (None, None)
    if place in head:
        template = re.sub(rf"\b(at|on|in) \{{{head.index(place)}\}}", "there", template)
    spoken = [head[int(i)] for i, _ in ARGUMENT.findall(template)]
    things = [nouns.get(term, term) for term in spoken if term != place]

    def name(match: re.Match[str]) -> str:
        term = head[int(match[1])]
        kind = nouns.get(term)
        if kind is None:
            return term
        if term == thing and term == spoken[0] and not is_person(kind):
            return "it"
        if term == place:
            return f"the goal {kind}"
        if things.count(kind) == 2:
            return f"one {kind}" if term == next(t for t in spoken if nouns.get(t) == kind) else "another"
        return f"the {kind}"

    return with_pronoun_inside(ARGUMENT.sub(name, template))


def _thing_and_place(goal: Atom, nouns: Mapping[str, str]) -> tuple[str | None, str | None]:
    """What the goal is about and, if it is about where that shall be, the place."""
    located = _phrase(goal, nouns).is_location and len(goal.terms) == 2
    return (goal.terms or (None,))[0], goal.terms[1] if located else None


def _phrase(goal: Atom, nouns: Mapping[str, str]) -> Phrase:
    return phrase_of(goal.predicate, tuple(nouns.get(term, term) for term in goal.terms))


def _unachieved(goals: Iterable[Atom], nouns: Mapping[str, str]) -> str:
    """What is left to do, as a noun with a relative clause."""
    return listed([_lacking(goal, nouns) for goal in goals])


def _lacking(goal: Atom, nouns: Mapping[str, str]) -> str:
    phrase = _phrase(goal, nouns)
    things = [nouns.get(term, term) for term in goal.terms]

    def name(match: re.Match[str]) -> str:
        i = int(match[1])
        if goal.terms[i] not in nouns:
            return goal.terms[i]
        return f"its goal {things[i]}" if phrase.is_location else with_article(things[i])

    rest = ARGUMENT.sub(name, phrase.rest)
    if phrase.subject == "{0}":
        return f"{things[0]} that {'is not yet' if phrase.verb == 'be' else f'does not yet {phrase.verb}'} {rest}"
    if phrase.subject.startswith(_OF_FIRST):
        return f"{things[0]} whose {phrase.subject.removeprefix(_OF_FIRST)} is not yet {rest}"
    return f"unachieved goal {goal.predicate}"
