"""A domain against demonstrations: which of their changes it explains, and what of it they contradict or never test."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Literal

import msgspec

from bilevel.demonstrations.traces import Kind, Noted, kinds_of
from bilevel.domain_learning.changes import Seen, ShownEpisode, require_declared
from bilevel.domain_learning.conditions import never_mattered
from bilevel.rules.matching import Binding, join
from bilevel.rules.nearest import Nearest, nearest_action
from bilevel.rules.traces import Change, Explanation, explain_change, traces_from_states
from bilevel.symbolic.domain import EQUALITY, NO_FACTS, Action, Atom, BadInput, Domain, Facts, Outcome, Schema
from bilevel.symbolic.semantics import bind_outcome, ground, progress, substitute

MOST_EVENTS = 4  # at the same step


def explain_by_events(
    domain: Domain, before: Facts, after: Facts, objects: Mapping[str, str], most: int = MOST_EVENTS
) -> list[Explanation]:
    """Return events that turn one state into the other, with at most one action after them; none if there are none."""
    parts = _parts(domain, before, after, objects)
    for event in sorted(parts, key=lambda part: (part[0].action, sorted(part[1].add), sorted(part[1].delete))):
        between = progress(before, event[1])
        if between == after:
            return [event]
        rest = explain_change(domain, between, after, objects)[:1]
        if not rest and most > 1:
            rest = explain_by_events(domain, between, after, objects, most - 1)
        if rest:
            return [event, *rest]
    return []


def _parts(domain: Domain, before: Facts, after: Facts, objects: Mapping[str, str]) -> Iterator[Explanation]:
    """Give the events all of whose effects are among the facts that changed, in no fixed order."""
    came, went = after - before, before - after
    known = {term for fact in before for term in fact.terms}
    for event in domain.events.values():
        conditions = [(atom, before) for atom in sorted(event.precondition) if atom.predicate != EQUALITY]
        for outcome in event.outcomes:
            effects = [(atom, came) for atom in sorted(outcome.add)] + [(atom, went) for atom in sorted(outcome.delete)]
            for binding in join(effects + conditions, {}) if effects else ():
                types = {p.name: p.type for p in (*event.parameters, *outcome.chosen)}
                fits = types.keys() <= binding.keys() and all(
                    domain.is_subtype(objects.get(binding[name], kind), kind) for name, kind in types.items()
                )
                if not fits or any(binding[variable] in known for variable in outcome.new):
                    continue
                grounded = ground(event, tuple(binding[parameter.name] for parameter in event.parameters))
                if grounded is not None and grounded.condition.holds(before):
                    yield grounded, bind_outcome(outcome, binding)


# What never mattered


def conditions_of(schema: Schema) -> Facts:
    """Return the conditions of an action as facts; that one must not hold is a fact about what is `not` so."""
    return schema.precondition | {Atom(f"not {name}", terms) for name, terms in schema.negative_precondition}


def with_absent(seen: Seen, domain: Domain) -> Seen:
    """Return a state with the facts about what is not so, and about what is equal, that conditions may ask for."""
    schemas = (*domain.schemas.values(), *domain.events.values())
    wanted = {atom.predicate for schema in schemas for atom in schema.negative_precondition}
    facts = {Atom(EQUALITY, (name, name)) for name in seen.objects} | seen.state
    absent = set()
    for predicate in sorted(wanted):
        arity = 2 if predicate == EQUALITY else domain.predicates[predicate].arity
        every = (Atom(predicate, terms) for terms in product(seen.objects, repeat=arity))
        absent |= {Atom(f"not {predicate}", atom.terms) for atom in every if atom not in facts}
    return Seen(frozenset(absent | facts), seen.objects)


def _matters(atom: Atom, schema: Schema, domain: Domain, states: Collection[Seen]) -> bool:
    """Whether in some state an atom did not hold where all other conditions did, for whatever objects."""
    types = {parameter.name: parameter.type for parameter in schema.parameters}
    return not never_mattered(conditions_of(schema) | {atom}, frozenset({atom}), types, domain, states)


# What is said of a schema

Sort = Literal[
    "contradicted precondition",  # the effects came although it did not hold
    "missing effect",  # it did not come
    "unlisted effect",  # it came as well
    "never seen",
    "outcome never seen",
    "possible precondition",  # it always held before, and is not listed
    "untested precondition",  # it held wherever the rest held
    "unseen effect",  # it was so already
]
WRONG: tuple[Sort, ...] = ("contradicted precondition", "missing effect", "unlisted effect")
FEW = 5  # occurrences, from which something that always held may be a condition
OFTEN = 0.05  # of the occurrences; effects that are otherwise less often come from elsewhere
MOSTLY = 0.5  # of the occurrences; what appears less often at the same step arrives by itself


class Finding(msgspec.Struct):
    """Something about an action or an event: in how many of its occurrences, and where first."""

    schema: str
    sort: Sort
    what: str = ""  # a condition or an effect, in the words of the schema
    count: int = 0
    of: int = 0
    episode: int | None = None
    step: int | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether the data contradict the schema; else they only do not confirm it."""
        return self.sort in WRONG


class Occurrences:
    """Those of one schema, gathered one by one."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.explained = 0
        self._outcomes: Counter[int] = Counter()
        self._came: Counter[tuple[int, str]] = Counter()
        self._failures = 0  # with other effects
        self._always: set[Atom] | None = None
        self._wrong: dict[tuple[Sort, str], Finding] = {}
        self._arrivals: set[str] = set()  # of these, effects on objects that are new

    def note(self, change: Change) -> None:
        """Count a change that this schema alone explains."""
        self.explained += 1
        assert change.outcome is not None
        number, binding = outcome_of(self.schema, change.actions[0], change.outcome)
        self._outcomes[number] += 1
        for effect, atom, comes in effects_of(self.schema.outcomes[number]):
            self._came[number, effect] += (substitute(atom, binding) in change.before) != comes
        held = set(_facts_about(change.actions[0].arguments, self.schema, change.before))
        self._always = held if self._always is None else self._always & held

    def note_failure(self, nearest: Nearest, episode: int, change: Change, objects: Mapping[str, str]) -> None:
        """Note what does not fit in a change that nothing explains and to which this schema is the nearest."""
        lacks = nearest.lacks
        conditions, effects = lacks.unmet | lacks.hindering, lacks.not_come | lacks.not_gone
        others = lacks.others | lacks.arrivals
        if conditions and (effects or others):
            return  # something else happened
        names = {name: p.name for p, name in zip(self.schema.parameters, nearest.action.arguments, strict=True)}

        def note(sort: Sort, facts: Facts, negated: Facts) -> None:
            for fact in sorted(facts):
                text = f"{'not ' if fact in negated else ''}{_lifted(fact, names, objects)}"
                about = Finding(self.schema.name, sort, text, episode=episode, step=change.step)
                self._wrong.setdefault((sort, text), about).count += 1

        note("contradicted precondition", conditions, lacks.hindering)
        note("missing effect", effects, lacks.not_gone)
        note("unlisted effect", others, others & change.before)
        self._arrivals.update(str(_lifted(fact, names, objects)) for fact in lacks.arrivals)
        self._failures += not conditions

    @property
    def unlisted(self) -> set[Atom]:
        """What held of the parameters before each of a few occurrences, and is no precondition."""
        return (self._always or set()) - self.schema.precondition if self.explained >= FEW else set()

    def findings(self, possible: Mapping[str, int]) -> Iterator[Finding]:
        """Give what is to be said; `possible` counts the changes which the schema is one of several to explain."""
        name, tried = self.schema.name, self.explained + self._failures
        for finding in self._wrong.values():
            is_condition = finding.sort == "contradicted precondition"
            finding.of = tried + finding.count if is_condition else tried
            enough = MOSTLY if finding.what in self._arrivals else OFTEN
            if is_condition or finding.count >= enough * tried:
                yield finding
        if not tried and not self._wrong:
            yield Finding(name, "never seen", count=possible.get(name, 0))
        for number, outcome in enumerate(self.schema.outcomes if self.explained else ()):
            if not self._outcomes[number]:
                if outcome.add | outcome.delete:
                    text = ", ".join(effect for effect, _, _ in effects_of(outcome))
                    yield Finding(name, "outcome never seen", text, 0, self.explained)
                continue
            for effect, _, _ in effects_of(outcome):
                if not self._came[number, effect]:
                    yield Finding(name, "unseen effect", effect, 0, self._outcomes[number])


def effects_of(outcome: Outcome) -> Iterator[tuple[str, Atom, bool]]:
    """Give each effect as text, its atom, and whether that becomes true."""
    yield from ((str(atom), atom, True) for atom in sorted(outcome.add))
    yield from ((f"not {atom}", atom, False) for atom in sorted(outcome.delete - outcome.add))


def outcome_of(schema: Schema, action: Action, happened: Outcome) -> tuple[int, Binding]:
    """Return which outcome of a schema this one is, which has no variables left, and the objects for all of them."""
    arguments = dict(zip((parameter.name for parameter in schema.parameters), action.arguments, strict=True))
    for number, outcome in enumerate(schema.outcomes):
        wanted = [(atom, happened.add) for atom in sorted(outcome.add)]
        wanted += [(atom, happened.delete) for atom in sorted(outcome.delete)]
        for binding in sorted(join(wanted, arguments), key=lambda binding: sorted(binding.items())):
            bound = bind_outcome(outcome, binding)
            if (bound.add, bound.delete) == (happened.add, happened.delete):
                return number, binding
    raise ValueError(f"{action} has no such outcome: {happened}")


def _facts_about(arguments: Sequence[str], schema: Schema, state: Facts) -> Iterator[Atom]:
    """Give the facts about these arguments alone, in the words of the schema."""
    called: dict[str, list[str]] = {}
    for name, parameter in zip(arguments, schema.parameters, strict=True):
        called.setdefault(name, []).append(parameter.name)
    for predicate, terms in state:
        if called.keys() >= set(terms):
            yield from (Atom(predicate, names) for names in product(*(called[term] for term in terms)))


def _lifted(fact: Atom, names: Mapping[str, str], objects: Mapping[str, str]) -> Atom:
    """Return the fact with parameters in the place of objects, or with a variable called after an object's type."""
    terms = (names.get(term) or (f"?{objects[term]}" if term in objects else term) for term in fact.terms)
    return Atom(fact.predicate, tuple(terms))


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
    findings: list[Finding] = []  # about actions and events, what is wrong before what may be superfluous

    @property
    def changes(self) -> int:
        """How many changes there are, flickers left out."""
        kinds = (*self.explained, *self.by_event, *self.ambiguous, *self.contradicted)
        return sum(kind.count for kind in kinds)

    @property
    def fits(self) -> bool:
        """Whether nothing contradicts the domain."""
        return not self.contradicted


def check_domain(domain: Domain, episodes: Iterable[tuple[int, ShownEpisode]]) -> DomainReport:
    """Compare every change in the episodes, each with its number, with what a domain's actions and events say."""
    if domain.adl:
        raise BadInput(f"domain '{domain.name}' is in ADL, whose conditions and effects cannot be told one by one")
    if not domain.schemas:
        raise BadInput(f"domain '{domain.name}' has no actions to check; learn some with 'bilevel domain learn'")
    check = _Check(domain)
    for number, episode in episodes:
        check.add(number, episode)
    return check.report()


class _Check:
    """What was found in the episodes so far."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self._happenings = replace(domain, schemas=domain.events)
        self._everything = replace(domain, schemas={**domain.schemas, **domain.events})
        self._report = DomainReport(domain.name, actions=dict.fromkeys(domain.schemas, 0), events={})
        self._report.events = dict.fromkeys(domain.events, 0)
        self._noted: dict[str, list[Noted]] = defaultdict(list)  # by the report's field
        self._occurrences = {name: Occurrences(schema) for name, schema in self._everything.schemas.items()}
        self._possible: Counter[str] = Counter()  # actions that are one of several explanations
        self._states: dict[tuple[Facts, tuple[str, ...]], Seen] = {}

    def add(self, number: int, episode: ShownEpisode) -> None:
        """Take in one episode."""
        report, states, objects = self._report, episode.states, {**self.domain.constants, **episode.objects}
        require_declared(self.domain, number, episode)
        found = traces_from_states(self.domain, states, [NO_FACTS] * len(states), episode.objects)
        for change in found.changes:
            if len(change.actions) == 1:
                report.actions[change.actions[0].name] += 1
                report.settled += states[change.step - 1] != change.before
                self._noted["explained"].append(Noted(number, change, objects))
                self._occurrences[change.actions[0].name].note(change)
            elif change.actions:
                self._noted["ambiguous"].append(Noted(number, change, objects))
                self._possible.update({action.name for action in change.actions})
            else:
                self._without_action(number, change, objects)
        self._noted["flickers"] += [Noted(number, change, objects) for change in found.flickers]
        for state, present in dict.fromkeys(zip(states, episode.present(), strict=True)):
            there = {name: kind for name, kind in objects.items() if name in present or name in self.domain.constants}
            self._states.setdefault((state, tuple(there)), Seen(state, there))
        report.episodes += 1
        report.steps += max(0, len(states) - 1)

    def _without_action(self, number: int, change: Change, objects: Mapping[str, str]) -> None:
        """Note a change that no action explains: an event, or what comes nearest."""
        happened = explain_change(self._happenings, change.before, change.after, objects)[:1]
        happened = happened or explain_by_events(self.domain, change.before, change.after, objects)
        if not happened:
            self._noted["contradicted"].append(Noted(number, change, objects))
            nearest = nearest_action(self._everything, change.before, change.after, objects)
            if nearest is not None:
                self._occurrences[nearest.action.name].note_failure(nearest, number, change, objects)
            return
        together = replace(change, actions=tuple(each.action for each, _ in happened))
        self._noted["by_event"].append(Noted(number, together, objects))
        for each, outcome in happened:
            name = each.action.name
            counts = self._report.events if name in self.domain.events else self._report.actions
            counts[name] += 1
            self._occurrences[name].note(replace(change, actions=(each.action,), outcome=outcome))

    def report(self) -> DomainReport:
        """Return what was found in all of them."""
        report = self._report
        report.explained, report.by_event = (kinds_of(self._noted[name]) for name in ("explained", "by_event"))
        report.ambiguous, report.flickers = (kinds_of(self._noted[name]) for name in ("ambiguous", "flickers"))
        report.contradicted = kinds_of(self._noted["contradicted"], self._everything)
        findings = [finding for each in self._occurrences.values() for finding in each.findings(self._possible)]
        states = [with_absent(seen, self.domain) for seen in self._states.values()]
        for name, seen in self._occurrences.items():
            if seen.explained:
                schema, deleted = seen.schema, NO_FACTS.union(*(each.delete for each in seen.schema.outcomes))
                held = [atom for atom in sorted(seen.unlisted) if _matters(atom, schema, self.domain, states)]
                findings += [Finding(name, "possible precondition", str(atom), of=seen.explained) for atom in held]
                asked = [*sorted(schema.precondition), *sorted(conditions_of(schema) - schema.precondition)]
                asked = [atom for atom in asked if atom not in deleted]  # what is deleted has to be there
                never = [atom for atom in asked if not _matters(atom, schema, self.domain, states)]
                findings += [Finding(name, "untested precondition", str(atom)) for atom in never]
        report.findings = sorted(findings, key=lambda each: -each.count if each.is_wrong else 1)
        return report
