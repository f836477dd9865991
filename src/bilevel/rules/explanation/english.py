"""A rule in plain English: one sentence, about any object or about the objects at hand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bilevel.rules.explanation.imperative import instruction, is_place
from bilevel.rules.explanation.wording import (
    ATTRIBUTE,
    Phrase,
    is_person,
    listed,
    names_a_kind,
    noun,
    phrase_of,
    with_article,
)
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import ROOT_TYPE, Atom, is_variable

ARGUMENT = re.compile(r"\{(\d+)('s)?\}")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def sentence(rule: Rule, binding: Mapping[str, str] | None = None) -> str:
    """The rule as one sentence; with a binding, as the reason for what it does to these objects."""
    speech = _Speech(rule, binding)
    clauses = speech.clauses()
    order = speech.order()
    if not clauses:
        return f"{order[0].upper()}{order[1:]}."
    return f"{'If' if binding is None else 'Because'} {listed(clauses)}, {order}."


def nouns_of(rule: Rule) -> dict[str, str]:
    """What each variable is called: its type or, in a domain without types, the kind that a condition gives it."""
    kinds = _kinds(rule)
    return {v.name: noun(kinds[v.name].predicate if v.name in kinds else v.type) for v in rule.variables}


def _kinds(rule: Rule) -> dict[str, Atom]:
    """For each variable without a type, the first condition that says what kind of thing it is."""
    untyped = {variable.name for variable in rule.variables if variable.type == ROOT_TYPE}
    kinds: dict[str, Atom] = {}
    for atom in sorted(rule.state_condition):
        if len(atom.terms) == 1 and atom.terms[0] in untyped and names_a_kind(atom.predicate):
            kinds.setdefault(atom.terms[0], atom)
    return kinds


@dataclass
class _Speech:
    """What has been said so far, and so how each variable is to be called next."""

    rule: Rule
    binding: Mapping[str, str] | None = None
    nouns: dict[str, str] = field(init=False)
    owners: dict[str, str] = field(init=False)  # place: the variable whose goal place it is
    first_mentions: list[str] = field(init=False)
    said: set[str] = field(default_factory=set)
    latest: dict[str, str] = field(default_factory=dict)  # noun: the last variable called so
    topic: str | None = None  # what "it" would mean

    def __post_init__(self) -> None:
        rule = self.rule
        self.nouns = nouns_of(rule)
        self.facts = rule.in_reading_order(rule.state_condition - frozenset(_kinds(rule).values()))
        self.absent = rule.in_reading_order(rule.absent)
        self.goals = rule.in_reading_order(rule.goal_condition)
        atoms = [*self.facts, *self.absent, *self.goals]
        mentions = [term for atom in atoms for term in self.spoken_order(atom)] + list(rule.action.arguments)
        mentions += [term for atom in sorted(rule.negative_condition) for term in atom.terms]
        self.first_mentions = list(dict.fromkeys(term for term in mentions if is_variable(term)))
        self.owners = {} if self.binding else {a.terms[1]: a.terms[0] for a in self.goals if self.is_goal_place(a)}

    def phrase(self, atom: Atom) -> Phrase:
        nouns = tuple(map(self.noun, atom.terms))
        phrase = phrase_of(atom.predicate, nouns)
        if self.binding is not None and phrase == ATTRIBUTE:
            # "block1's colour is red", since "block1 has red" would not do
            return Phrase(f"{{0's}} {nouns[1]}", "be", "{1}")
        return phrase

    def noun(self, term: str) -> str:
        return self.nouns.get(term, term)

    def spoken_order(self, atom: Atom) -> list[str]:
        phrase = self.phrase(atom)
        return [atom.terms[int(i)] for i, _ in ARGUMENT.findall(f"{phrase.subject} {phrase.rest}")]

    def is_goal_place(self, goal: Atom) -> bool:
        """Whether the goal puts something in a place of another kind that is mentioned later: "its goal place"."""
        if len(goal.terms) != 2 or not self.phrase(goal).is_location or not all(map(is_variable, goal.terms)):
            return False
        thing, place = goal.terms
        order = self.first_mentions
        wanted_once = sum(place in other.terms for other in self.goals) == 1
        return wanted_once and self.noun(thing) != self.noun(place) and order.index(thing) < order.index(place)

    # Clauses

    def clauses(self) -> list[str]:
        facts = [self.clause(atom, self.phrase(atom).present()) for atom in self.facts]
        absent = [self.clause(atom, self.phrase(atom).absent()) for atom in self.absent]
        differing = [self.difference(atom) for atom in sorted(self.rule.negative_condition - self.rule.absent)]
        goals = [self.goal_clause(atom) for atom in self.goals]
        return [clause for clause in [*facts, *absent, *differing, *goals] if clause]

    def goal_clause(self, atom: Atom) -> str | None:
        phrase = self.phrase(atom)
        if len(atom.terms) == 2 and self.owners.get(atom.terms[1]) == atom.terms[0]:
            if atom.terms[1] in self.said:
                return None
            return f"{self.clause(atom, phrase.absent())} yet"
        return self.clause(atom, phrase.wanted())

    def difference(self, atom: Atom) -> str | None:
        """An inequality, unless "another" says it already."""
        left, right = atom.terms
        if self.binding is not None or (self.noun(left) == self.noun(right) and len(self.alike(left)) == 2):
            return None
        return self.clause(Atom("", atom.terms), "{0} is not {1}")

    def clause(self, atom: Atom, template: str) -> str:
        """The template with its arguments named, after which "it" means its subject."""
        topic, self.topic = self.topic, None
        mentioned: list[str] = []
        about_argument = template.startswith("{")
        about_you = template.startswith(("you ", "there "))

        def name(match: re.Match[str]) -> str:
            term = atom.terms[int(match[1])]
            owner = self.owners.get(term) if term not in self.said else None
            # In "the ferry is at its goal" anyone would take "its" for the ferry's.
            known = topic if match.start() == 0 or about_you else None
            text = self.called(term, "its" if match[2] else "it", known, mentioned)
            if text.startswith("the ") and template.endswith("has {1}") and self.is_latest(term):
                text = f"the same {self.noun(term)}"
            mentioned.append(owner or term)
            self.latest[self.noun(term)] = term
            return text

        text = ARGUMENT.sub(name, template)
        if about_argument or (about_you and len(set(mentioned)) == 1):
            self.topic = mentioned[0]
        return text

    def is_latest(self, term: str) -> bool:
        return self.latest.get(self.noun(term)) == term

    def called(self, term: str, pronoun: str, topic: str | None, subjects: Sequence[str] = ()) -> str:
        """`a block`, `the block`, `it`, `its goal place` and so on; `its` asks for a possessive."""
        new = term not in self.said
        self.said.add(term)
        possessive = "'s" if pronoun == "its" else ""
        if not is_variable(term) or self.binding is not None:
            return (self.binding or {}).get(term, term) + possessive
        owner = self.owners.get(term)
        if owner is not None:
            if not new:
                return f"the goal {self.noun(term)}{possessive}"
            is_topic = owner in (topic, *subjects[:1]) and not is_person(self.noun(owner))
            return f"{'its' if is_topic else self.called(owner, 'its', None)} goal {self.noun(term)}{possessive}"
        if not new and term == topic and not is_person(self.noun(term)):
            return pronoun
        return self.noun_phrase(term, new) + possessive

    def noun_phrase(self, term: str, new: bool) -> str:
        thing, alike = self.noun(term), self.alike(term)
        place = alike.index(term)
        if len(alike) == 1:
            return with_article(thing) if new else f"the {thing}"
        if len(alike) == 2 and (min(alike), max(alike)) in self.rule.inequalities:
            return (with_article(thing), f"another {thing}")[place] if new else f"the {('', 'other ')[place]}{thing}"
        ordinal = _ORDINALS[min(place, len(_ORDINALS) - 1)]
        return with_article(f"{ordinal} {thing}" if place else thing) if new else f"the {ordinal} {thing}"

    def alike(self, term: str) -> list[str]:
        """The variables that are called the same, in the order in which they are mentioned."""
        return [v for v in self.first_mentions if self.noun(v) == self.noun(term) and v not in self.owners]

    # The action

    def order(self) -> str:
        """What to do, with `there` for a place that has just been spoken of."""
        head = self.rule.action.arguments
        template = order_template(self.rule, self.nouns)
        topic, self.topic = self.topic, None

        def name(match: re.Match[str]) -> str:
            is_first = template.index("{") == match.start()
            return self.called(head[int(match[1])], "it", topic if is_first else None)

        places = [v for v in self.said if is_place(self.noun(v))]
        for i, term in enumerate(head):
            if self.binding is None and term in self.said and (term in self.owners or places == [term]):
                template = re.sub(rf"\b(?<!from )(at|on|in) \{{{i}\}}", "there", template)
        return with_pronoun_inside(ARGUMENT.sub(name, template))


def with_pronoun_inside(order: str) -> str:
    """`pick it up` rather than `pick up it`."""
    return re.sub(r"^(\w+) (up|down|on|off|out) it\b", r"\1 it \2", order)


def order_template(rule: Rule, nouns: Mapping[str, str]) -> str:
    """The action as an instruction in which `{0}` stands for its first argument."""
    head = rule.action.arguments
    things = [nouns.get(term, term) for term in head]
    attributes: set[int] = set()
    now: dict[tuple[int, int], str] = {}
    wanted: dict[tuple[int, int], str] = {}
    for atoms, places in ((rule.state_condition, now), (rule.goal_condition, wanted)):
        for atom in sorted(atom for atom in atoms if len(atom.terms) == 2):
            phrase = phrase_of(atom.predicate, tuple(nouns.get(term, term) for term in atom.terms))
            first, second = (head.index(term) if term in head else -1 for term in atom.terms)
            if phrase.is_location and first >= 0 and second >= 0:
                places[first, second] = phrase.rest.removesuffix(" {1}")
            elif phrase == ATTRIBUTE and second >= 0:
                attributes.add(second)
    return instruction(rule.action.name, things, now, wanted, frozenset(attributes))
