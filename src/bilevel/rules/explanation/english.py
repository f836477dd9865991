"""Rules in plain English: a sentence for each, about any object or about the objects at hand, and a summary."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

from bilevel.rules.explanation.wording import (
    ATTRIBUTE,
    Phrase,
    instruction,
    listed,
    names_a_kind,
    phrase_of,
    with_article,
    words,
)
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import ROOT_TYPE, Atom

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve")
_FORMS = {"": Phrase.present, "not": Phrase.absent, "goal": Phrase.wanted}


def english(rules: Sequence[Rule]) -> str:
    """Return the summary, then a sentence for each rule after its priority."""
    lines = [f"{rule.priority}. {sentence(rule)}" for rule in rules]
    return "\n".join([summary(rules), *([""] if lines else []), *lines]) + "\n"


def sentence(rule: Rule, binding: Mapping[str, str] | None = None) -> str:
    """Return the rule as one sentence; with a binding, as the reason for what it does to these objects."""
    speech = Speech(rule, binding)
    kinds = frozenset(kinds_in(rule).values())
    clauses = []
    for kind, atom in rule.literals():
        if kind != "!=" and atom not in kinds:
            clauses.append(speech.clause(atom, _FORMS[kind]))
        elif kind == "!=" and binding is None:
            clauses.append(speech.say("{0} is not {1}", atom.terms))
    order = speech.order()
    if not clauses:
        return f"{order[0].upper()}{order[1:]}."
    return f"{'If' if binding is None else 'Because'} {listed(clauses)}, {order}."


def summary(rules: Sequence[Rule]) -> str:
    """Return a policy in a few sentences: how many rules there are, and the usual actions for each kind of goal."""
    number = _NUMBERS[len(rules)] if len(rules) < len(_NUMBERS) else str(len(rules))
    sentences = [f"{number} rule{'' if len(rules) == 1 else 's'}."]
    for _, group in groupby(sorted(rules, key=_goal_predicates), key=_goal_predicates):
        sentences.append(_purpose(sorted(group, key=lambda rule: rule.priority)))
    if any(rule.absent for rule in rules):
        sentences.append("Some rules test that a fact is absent, so they need a closed world.")
    return " ".join(sentences)


def _goal_predicates(rule: Rule) -> list[str]:
    return sorted(atom.predicate for atom in rule.goal_condition)


def _purpose(rules: Sequence[Rule]) -> str:
    """Return the actions of rules for one kind of goal: `So that a block is at a place: pick the block, then …`"""
    nearest, speech = rules[0], Speech(rules[0])
    goals = [speech.clause(atom, Phrase.present) for atom in nearest.in_reading_order(nearest.goal_condition)]
    orders = list(dict.fromkeys(Speech(rule).order(known=True) for rule in rules))[::-1]
    chain = f"{', '.join(orders[:-1])}, then {orders[-1]}" if len(orders) > 1 else orders[0]
    return f"{f'So that {listed(goals)}' if goals else 'Whatever the goal'}: {chain}."


def kinds_in(rule: Rule) -> dict[str, Atom]:
    """Return, for each variable without a type, the first condition that says what kind of thing it is."""
    untyped = {variable.name for variable in rule.variables if variable.type == ROOT_TYPE}
    kinds: dict[str, Atom] = {}
    for atom in sorted(rule.state_condition):
        if len(atom.terms) == 1 and atom.terms[0] in untyped and names_a_kind(atom.predicate):
            kinds.setdefault(atom.terms[0], atom)
    return kinds


class Speech:
    """What has been mentioned of a rule so far, and so how each term is called next: `a block`, then `the block`.

    A variable is called after its type or, in a domain without types, after the kind that a condition gives it. What
    the clause before was about is called `it`, and the place it spoke of `there`.
    """

    def __init__(self, rule: Rule, binding: Mapping[str, str] | None = None) -> None:
        self.rule = rule
        self.binding = binding
        kinds = {variable: atom.predicate for variable, atom in kinds_in(rule).items()}
        self.nouns = {v.name: " ".join(words(kinds.get(v.name, v.type))) for v in rule.variables}
        self.mentioned: list[str] = []
        self.latest: list[str] = []  # what the clause before spoke of, its subject first

    def things(self, terms: Sequence[str]) -> tuple[str, ...]:
        """Return the nouns of terms; a constant stands for itself."""
        return tuple(self.nouns.get(term, term) for term in terms)

    def phrase(self, atom: Atom) -> Phrase:
        """Return how an atom is said of these things."""
        phrase = phrase_of(atom.predicate, self.things(atom.terms))
        if self.binding is not None and phrase == ATTRIBUTE:  # "block1's colour is red", not "block1 has red"
            return Phrase(f"{{0's}} {self.things(atom.terms)[1]}", "be", "{1}")
        return phrase

    def clause(self, atom: Atom, form: Callable[[Phrase], str]) -> str:
        """Return an atom as a clause, present or absent as `form` has it."""
        return self.say(form(self.phrase(atom)), atom.terms)

    def say(self, template: str, terms: Sequence[str]) -> str:
        """Return the template with names, or with pronouns, for the terms."""
        latest = self.latest if self.binding is None else []
        self.latest = [terms[int(place)] for place in re.findall(r"\{(\d)", template)]
        start = re.match(r"(\w+ |)\{(\d)('s)?\}", template)
        if start and latest[:1] == [terms[int(start[2])]]:
            template = f"{start[1]}it{'s' if start[3] else ''}{template[start.end() :]}"
        there = re.sub(r"\b(?:at|in) \{(\d)\}", lambda m: "there" if terms[int(m[1])] in latest else m[0], template)
        return self.fill(there, terms)

    def fill(self, template: str, terms: Sequence[str], known: bool = False) -> str:
        """Return the template with the names of the terms for `{0}`, `{1's}` and so on."""
        return re.sub(r"\{(\d+)('s)?\}", lambda m: self.name(terms[int(m[1])], known) + (m[2] or ""), template)

    def name(self, term: str, known: bool = False) -> str:
        """Return how a term is called; `known` says that it need not be introduced."""
        if self.binding is not None or term not in self.nouns:
            return (self.binding or {}).get(term, term)
        is_new = term not in self.mentioned
        self.mentioned += [term] * is_new
        noun = self.nouns[term]
        place = [other for other in self.mentioned if self.nouns[other] == noun].index(term)
        introduced = is_new and not known
        rivals = self.things(self.rule.action.arguments) if known else tuple(self.nouns.values())
        if rivals.count(noun) > 1 and (place or not introduced):
            noun = f"{_ORDINALS[min(place, len(_ORDINALS) - 1)]} {noun}"
        return with_article(noun) if introduced else f"the {noun}"

    def order(self, known: bool = False) -> str:
        """Return the rule's action as an instruction."""
        head = self.rule.action.arguments
        attributes: set[int] = set()  # arguments that describe others: the tray's colour
        places: dict[tuple[int, int], str] = {}  # how one argument is located, or shall be, at another
        for atom in (*sorted(self.rule.state_condition), *sorted(self.rule.goal_condition)):
            if len(atom.terms) != 2:
                continue
            phrase = phrase_of(atom.predicate, self.things(atom.terms))
            first, second = (head.index(term) if term in head else -1 for term in atom.terms)
            if phrase.is_location and first >= 0 and second >= 0:
                places[first, second] = phrase.rest.removesuffix(" {1}")
            elif phrase == ATTRIBUTE and second >= 0:
                attributes.add(second)
        arguments = [i for i in range(len(head)) if i not in attributes] or list(range(len(head)))
        order = instruction(self.rule.action.name, self.things(head), arguments, places)
        return self.fill(order, head, known) if known else self.say(order, head)
