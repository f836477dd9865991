"""A domain against demonstrations: which of their changes it explains, and what of it they contradict or never test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import msgspec

from bilevel.demonstrations.checking import Kind, Kinds
from bilevel.domain_learning.checked_conditions import Situation, situation, telling, untested
from bilevel.domain_learning.checked_schemas import Finding, Occurrences
from bilevel.domain_learning.coincidences import explain_by_events
from bilevel.domain_learning.episodes import Episode
from bilevel.rules.nearest_action import nearest_action
from bilevel.rules.traces import Change, explain_change, traces_from_states
from bilevel.symbolic.domain import NO_FACTS, Atom, BadInput, Domain, Facts


class Undeclared(msgspec.Struct):
    """Facts of the data that the domain does not know, and why; they were left out of all else."""

    reason: str
    fact: str  # the first of them
    states: int  # that have such a fact
    episode: int  # of the first
    step: int


class DomainReport(msgspec.Struct):
    """How a domain fits labelled episodes. Changes are counted by kinds, the most frequent first."""

    domain: str
    episodes: int = 0
    steps: int = 0
    actions: dict[str, int] = {}  # how many changes each action alone explains
    events: dict[str, int] = {}  # and each event
    settled: int = 0  # changes that one action explains and that took several steps
    explained: list[Kind] = []  # by one action
    by_event: list[Kind] = []  # or several at the same step, perhaps with an action
    ambiguous: list[Kind] = []  # which several actions explain
    contradicted: list[Kind] = []  # which nothing explains
    flickers: list[Kind] = []  # which were undone after a few steps
    undeclared: list[Undeclared] = []
    findings: list[Finding] = []  # about actions and events, what is wrong before what may be superfluous

    @property
    def changes(self) -> int:
        """How many changes there are, flickers left out."""
        return sum(map(total, (self.explained, self.by_event, self.ambiguous, self.contradicted)))

    @property
    def fits(self) -> bool:
        """Whether nothing contradicts the domain."""
        return not self.contradicted and not self.undeclared


def total(kinds: Iterable[Kind]) -> int:
    """Return how many changes the kinds have together."""
    return sum(kind.count for kind in kinds)


def check_domain(domain: Domain, episodes: Iterable[Episode]) -> DomainReport:
    """Compare every change in the episodes with what the actions and events of a domain say."""
    if domain.adl:
        raise BadInput(f"domain '{domain.name}' is in ADL, whose conditions and effects cannot be told one by one")
    if not domain.schemas:
        raise BadInput(f"domain '{domain.name}' has no actions to check; learn some with 'bilevel domain learn'")
    check = _Check(domain)
    for episode in episodes:
        check.add(episode)
    return check.report()


class _Check:
    """What was found in the episodes so far."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self._happenings = replace(domain, schemas=domain.events)
        self._everything = replace(domain, schemas={**domain.schemas, **domain.events})
        self._report = DomainReport(domain.name, actions=dict.fromkeys(domain.schemas, 0), events={})
        self._report.events = dict.fromkeys(domain.events, 0)
        self._explained, self._by_event, self._ambiguous = Kinds(), Kinds(), Kinds()
        self._contradicted, self._flickers = Kinds(), Kinds()
        self._undeclared: dict[str, Undeclared] = {}
        self._occurrences = {name: Occurrences(schema) for name, schema in self._everything.schemas.items()}
        self._possible: Counter[str] = Counter()  # actions that are one of several explanations
        self._situations: dict[tuple[Facts, tuple[tuple[str, str], ...]], Situation] = {}

    def add(self, episode: Episode) -> None:
        """Take in one episode."""
        report, objects = self._report, {**self.domain.constants, **episode.objects}
        number = report.episodes
        states = self._declared(number, episode.states, objects)
        goals = [NO_FACTS] * len(states)
        found = traces_from_states(self.domain, states, goals, episode.objects)
        for change in found.clear:
            report.actions[change.actions[0].name] += 1
            report.settled += states[change.step - 1] != change.before
            self._explained.note(number, change, objects)
            self._occurrences[change.actions[0].name].note(change)
        for change in found.unclear:
            if change.actions:
                self._ambiguous.note(number, change, objects)
                self._possible.update({action.name for action in change.actions})
            else:
                self._without_action(number, change, objects)
        for change in found.flickers:
            self._flickers.note(number, change, objects)
        for state, present in dict.fromkeys(zip(states, episode.present(), strict=True)):
            there = {name: kind for name, kind in objects.items() if name in present or name in self.domain.constants}
            if (state, key := tuple(there.items())) not in self._situations:
                self._situations[state, key] = situation(state, there)
        report.episodes += 1
        report.steps += max(0, len(states) - 1)

    def _declared(self, number: int, states: Sequence[Facts], objects: Mapping[str, str]) -> list[Facts]:
        """Return the states without the facts that the domain does not know, which are noted."""
        known: dict[Facts, Facts] = {}
        for step, state in enumerate(states):
            if state in known:
                continue
            reasons: dict[str, Atom] = {}
            for fact in sorted(state):
                reason = misfit(fact, self.domain, objects)
                if reason:
                    reasons.setdefault(reason, fact)
            for reason, fact in reasons.items():
                about = self._undeclared.setdefault(reason, Undeclared(reason, str(fact), 0, number, step))
                about.states += states.count(state)
            wrong = {fact for fact in state if reasons and misfit(fact, self.domain, objects)}
            known[state] = state - wrong if wrong else state
        return [known[state] for state in states]

    def _without_action(self, number: int, change: Change, objects: Mapping[str, str]) -> None:
        """Note a change that no action explains: an event, or what comes nearest."""
        happened = explain_change(self._happenings, change.before, change.after, objects)[:1]
        happened = happened or explain_by_events(self.domain, change.before, change.after, objects)
        if happened:
            self._by_event.note(number, replace(change, actions=tuple(each.action for each, _ in happened)), objects)
        for each, outcome in happened:
            name = each.action.name
            counts = self._report.events if name in self.domain.events else self._report.actions
            counts[name] += 1
            self._occurrences[name].note(replace(change, actions=(each.action,), outcome=outcome))
        if happened:
            return
        self._contradicted.note(number, change, objects)
        nearest = nearest_action(self._everything, change.before, change.after, objects)
        if nearest is not None:
            self._occurrences[nearest.action.action.name].note_failure(nearest, number, change, objects)

    def report(self) -> DomainReport:
        """Return what was found in all of them."""
        report = self._report
        report.explained, report.by_event = self._explained.by_count(), self._by_event.by_count()
        report.ambiguous, report.flickers = self._ambiguous.by_count(), self._flickers.by_count()
        report.contradicted = self._contradicted.with_nearest(self._everything)
        report.undeclared = list(self._undeclared.values())
        findings = [finding for each in self._occurrences.values() for finding in each.findings(self._possible)]
        for name, seen in self._occurrences.items():
            if seen.explained:
                about = seen.schema, self.domain, self._situations.values()
                held = telling(seen.unlisted, *about)
                findings += [Finding(name, "possible precondition", str(atom), of=seen.explained) for atom in held]
                findings += [Finding(name, "untested precondition", str(each)) for each in untested(*about)]
        wrong, doubtful = ([each for each in findings if each.is_wrong is truth] for truth in (True, False))
        report.findings = sorted(wrong, key=lambda each: -each.count) + doubtful
        return report


def misfit(fact: Atom, domain: Domain, objects: Mapping[str, str]) -> str | None:
    """Return why a fact is none of a domain's, if it is none."""
    predicate = domain.predicates.get(fact.predicate)
    if predicate is None:
        return f"the domain has no predicate '{fact.predicate}'"
    if len(fact.terms) != predicate.arity:
        return f"predicate '{fact.predicate}' takes {predicate.arity} arguments, not {len(fact.terms)}"
    for index, (term, wanted) in enumerate(zip(fact.terms, predicate.parameters, strict=True), 1):
        kind = objects.get(term, wanted.type)
        if not domain.is_subtype(kind, wanted.type):
            return f"argument {index} of '{fact.predicate}' is of type '{wanted.type}', not '{kind}'"
    return None
