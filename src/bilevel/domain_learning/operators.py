"""Operators from labelled episodes: what happens, who does it, with which objects, when it can be done, and a name."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from bilevel.domain_learning.agent import Approach, approach_of, same_controls
from bilevel.domain_learning.changes import Change, Episode, Seen, common_type, find_changes, inferred_frame
from bilevel.domain_learning.conditions import (
    BESIDE,
    DomainSettings,
    Dropped,
    LearnedDomain,
    Operator,
    held_always,
    is_wider,
    linked_objects,
    never_mattered,
    without_irrelevant,
)
from bilevel.domain_learning.groups import Group, Occurrence, absorbed, group_changes, separate
from bilevel.symbolic.domain import Atom, BadInput, Domain, Facts, Outcome, Parameter, Schema
from bilevel.symbolic.semantics import substitute_all

MOST_PARAMETERS = 5


def joined_outcomes(operators: Sequence[Operator]) -> list[Operator]:
    """Return the operators, the most frequent first; those that differ in nothing but what comes of them are joined."""
    result: list[Operator] = []
    for operator in sorted(operators, key=lambda operator: -operator.count):
        for number, other in enumerate(result):
            joined = _joined(other, operator)
            if joined is not None:
                result[number] = joined
                break
        else:
            result.append(operator)
    return result


def _joined(one: Operator, other: Operator) -> Operator | None:
    """Return both as one operator; `None` where conditions, controls or parameters differ."""
    if len(one.types) != len(other.types) or not same_controls(one.approach, other.approach):
        return None
    if (one.approach.beside or ("",))[0] != (other.approach.beside or ("",))[0]:
        return None
    for names in _renamings(other, one):
        linked = {names[variable]: substitute_all(said, names) for variable, said in other.linked.items()}
        if substitute_all(other.raw, names) == one.raw and linked == one.linked:
            outcomes = [(_renamed(outcome, names), count) for outcome, count in other.outcomes]
            moved = [
                Occurrence(each.change, {names[variable]: name for variable, name in each.binding.items()})
                for each in other.occurrences
            ]
            return replace(one, outcomes=[*one.outcomes, *outcomes], occurrences=[*one.occurrences, *moved])
    return None


def _renamings(one: Operator, other: Operator) -> Iterator[Mapping[str, str]]:
    """Yield every way to call an operator's parameters by another's names for parameters of the same types."""
    if len(one.types) > MOST_PARAMETERS:
        return
    for names in permutations(other.types):
        pairs = zip(one.types.items(), names, strict=True)
        if all(other.types[name] == kind for (_, kind), name in pairs):
            yield dict(zip(one.types, names, strict=True))


def _renamed(outcome: Outcome, names: Mapping[str, str]) -> Outcome:
    """Return the outcome with other names; those of nature's variables may not clash with them."""
    taken = {variable.name: f"{variable.name}n" for variable in outcome.chosen if variable.name in names.values()}
    every = {**names, **taken}
    return Outcome(
        substitute_all(outcome.add, every),
        substitute_all(outcome.delete, every),
        tuple(replace(variable, name=every.get(variable.name, variable.name)) for variable in outcome.chosen),
        frozenset(every.get(name, name) for name in outcome.new),
    )


# What an operator is called if a fact with such a name comes (+) or goes (-); the first that fits.
HELD = r"hold|held|carr|grasp|in-hand|have-"
NAMES: Sequence[tuple[str, str, str]] = (
    ("pick", "+", HELD),
    ("place", "-", HELD),
    ("unlock", "+", r"unlock"),
    ("lock", "+", r"^lock|locked"),
    ("press", "+", r"press|push"),
    ("open", "+", r"^open"),
    ("close", "+", r"^clos"),
    ("move", "+", r"robot|at-|agent|vehicle|position"),
)
TOUCHED = {"button": "press", "switch": "switch", "lever": "pull", "handle": "turn"}  # by the type that the agent is at


def named(
    frame: Domain, operators: Sequence[Operator], events: Sequence[Operator], dropped: tuple[Dropped, ...]
) -> LearnedDomain:
    """Give everything a name, and make it a domain."""
    taken: set[str] = set()
    schemas: dict[str, Schema] = {}
    happenings: dict[str, Schema] = {}
    counts: dict[str, tuple[int, ...]] = {}
    untold: dict[str, tuple[str, ...]] = {}
    for number, operator in enumerate(operators, 1):
        name = _free(_proposals(operator, number, operators), taken)
        schemas[name], names = _schema(operator, name)
        counts[name] = tuple(count for _, count in operator.outcomes)
        idle = tuple(names[variable] for variable in operator.types if not _is_told(variable, operator))
        if idle and len(idle) < len(operator.types):
            untold[name] = idle
    for operator in events:
        name = _free(_event_names(operator), taken)
        happenings[name], _ = _schema(operator, name)
        counts[name] = tuple(count for _, count in operator.outcomes)
    return LearnedDomain(replace(frame, schemas=schemas, events=happenings), counts, untold, dropped)


def _is_told(variable: str, operator: Operator) -> bool:
    """Whether the controls depend on a parameter: the agent came to it, or nothing is known of that."""
    return operator.approach.controls is None or variable in operator.approach.touched or variable == BESIDE


def _free(names: Iterator[str], taken: set[str]) -> str:
    name = next(name for name in names if name not in taken)
    taken.add(name)
    return name


def _effects(operator: Operator) -> tuple[Facts, Facts]:
    first = operator.outcomes[0][0]
    return first.add, first.delete


def _proposals(operator: Operator, number: int, operators: Sequence[Operator]) -> Iterator[str]:
    """Yield names for an operator, the best first: a verb, with a type, then numbered."""
    add, delete = _effects(operator)
    beside = operator.approach.beside[0] if operator.approach.beside else ""
    verb = TOUCHED.get(beside) or _verb(add, delete)
    if verb is None:
        yield f"action-{number}"
        verb = "action"
    else:
        yield verb
        others = {kind for other in operators if other is not operator for kind in other.types.values()}
        special = [kind for kind in operator.types.values() if kind not in others]
        came = [atom.predicate for atom in sorted(add) if atom.terms]
        for what in (*special, *operator.types.values(), *came):
            yield f"{verb}-{what}"
    further = number
    while True:
        yield f"{verb}-{further}"
        further += 1


def _verb(add: Facts, delete: Facts) -> str | None:
    for verb, sign, pattern in NAMES:
        if any(re.search(pattern, atom.predicate) for atom in (add if sign == "+" else delete)):
            return verb
    return None


def _event_names(operator: Operator) -> Iterator[str]:
    first = operator.outcomes[0][0]
    if first.new:
        yield "arrival"
        stem = "arrival"
    else:
        stem = f"change-of-{min([*first.add, *first.delete]).predicate}"
        moved = {atom.terms[0] for atom in first.delete if atom.terms} & {
            atom.terms[0] for atom in first.add if atom.terms
        }
        stem = "displacement" if moved else stem
        yield stem
    number = 2
    while True:
        yield f"{stem}-{number}"
        number += 1


def _reading_order(operator: Operator) -> list[str]:
    """Return the parameters in the order in which the effects name them, those that name most first."""
    add, delete = _effects(operator)
    effects = sorted((*add, *delete), key=lambda atom: (-len(atom.terms), atom))
    named_first = dict.fromkeys(term for atom in effects for term in atom.terms)
    return list(dict.fromkeys([*(v for v in named_first if v in operator.types), *operator.types]))


def _schema(operator: Operator, name: str) -> tuple[Schema, Mapping[str, str]]:
    """Return the schema with readable variables, called after their types, and what each is called."""
    counts: Counter[str] = Counter()
    names: dict[str, str] = {}
    operator.types = {variable: operator.types[variable] for variable in _reading_order(operator)}
    kinds = operator.all_types
    every = Counter(kinds.values())
    for variable, kind in kinds.items():
        counts[kind] += 1
        names[variable] = f"?{kind}{counts[kind]}" if every[kind] > 1 else f"?{kind}"
    schema = operator.schema(name)
    return (
        Schema(
            name,
            tuple(Parameter(names[p.name], p.type) for p in schema.parameters),
            substitute_all(schema.precondition, names),
            tuple(
                Outcome(
                    substitute_all(outcome.add, names),
                    substitute_all(outcome.delete, names),
                    tuple(Parameter(names[p.name], p.type) for p in outcome.chosen),
                    frozenset(names[variable] for variable in outcome.new),
                )
                for outcome in schema.outcomes
            ),
            substitute_all(schema.negative_precondition, names),
        ),
        names,
    )


def learn_operators(
    episodes: Sequence[Episode], frame: Domain | None = None, settings: DomainSettings | None = None
) -> LearnedDomain:
    """Learn the operators and events of a domain from labelled episodes.

    `frame` declares types and predicates; without one, both are read off the facts. The same episodes give the same
    domain. `BadInput` where nothing ever changes.
    """
    settings = settings or DomainSettings()
    frame = replace(frame, schemas={}) if frame else inferred_frame(episodes)
    found = find_changes(episodes, settings.settling, settings.blip)
    if not found.changes:
        raise BadInput("no fact changes in any episode, so there is no operator to learn; look at the labels")
    types = [episode.objects for episode in episodes]
    known = [_seen_before(change, episodes[change.episode]) for change in found.changes]
    changes = separate(found.changes, known, types)
    groups, left = group_changes(changes, types)
    fewest = max(settings.fewest, math.ceil(settings.share * len(changes)))
    places = min(settings.fewest, max(1, len(episodes) // 4))
    common = [group for group in groups if len(group.occurrences) >= fewest and _episodes(group) >= places]
    rare = [group for group in groups if group not in common]
    study = _Study(episodes, frame, settings, found.states)
    operators, events, mislabelled = study.operators(common)
    if any(episode.goals for episode in episodes):
        without_irrelevant(operators, frame, episodes, changes)
    dropped = [_dropped(group) for group in (*mislabelled, *rare)] + ([_many(left)] if left else [])
    return named(frame, operators, events, tuple(dropped))


def _seen_before(change: Change, episode: Episode) -> frozenset[str]:
    """The objects that had been seen before a change: that were visible, or else that a fact had mentioned."""
    if episode.motion is not None:
        names = list(episode.objects)
        rows = np.flatnonzero(episode.motion.visible[: change.step].any(axis=0))
        return frozenset(names[row] for row in rows.tolist())
    return frozenset(term for state in set(episode.states[: change.step]) for fact in state for term in fact.terms)


def _dropped(group: Group) -> Dropped:
    first = group.occurrences[0].change
    return Dropped(_effects_text(first), len(group.occurrences), first.episode, first.step)


def _without_luck(operators: Sequence[Operator]) -> None:
    """Leave out further objects that have to do with one parameter alone, by facts that no operator brings about."""
    made = {atom.predicate for each in operators for outcome, _ in each.outcomes for atom in outcome.add}
    for operator in operators:
        for variable, said in list(operator.linked.items()):
            others = {term for atom in said for term in atom.terms if term != variable}
            if len(others) < 2 and made.isdisjoint(atom.predicate for atom in said):
                operator.conditions -= said
                del operator.linked[variable], operator.types[variable]


def _is_event(operator: Operator) -> bool:
    """Whether nature did it; so she did where something is let go of at no place, and lands where she decides."""
    approach, (outcome, _) = operator.approach, operator.outcomes[0]
    is_dropped = approach.is_astray and len(outcome.chosen) > len(outcome.new)
    return is_dropped or not approach.is_agents


def _episodes(group: Group) -> int:
    return len({occurrence.change.episode for occurrence in group.occurrences})


def _is_arrival(group: Group) -> bool:
    return 2 * sum(occurrence.change.is_arrival for occurrence in group.occurrences) > len(group.occurrences)


def _effects_text(change: Change) -> str:
    came = [str(fact) for fact in sorted(change.after - change.before)]
    went = [f"not {fact}" for fact in sorted(change.before - change.after)]
    return ", ".join(came + went)


def _many(left: Sequence[Change]) -> Dropped:
    return Dropped("changes of too many objects at once", len(left), left[0].episode, left[0].step)


@dataclass(frozen=True)
class _Study:
    """What all groups are looked at with."""

    episodes: Sequence[Episode]
    frame: Domain
    settings: DomainSettings
    states: Sequence[Seen]

    def operators(self, groups: Sequence[Group]) -> tuple[list[Operator], list[Operator], list[Group]]:
        """Return the operators of the agent, the events of nature, and the groups that are mislabels."""
        approaches = {id(group): self._approach(group) for group in groups}

        def alike(one: Group, other: Group) -> bool:
            a, b = approaches[id(one)], approaches[id(other)]
            return (a.is_agents, _is_arrival(one)) == (b.is_agents, _is_arrival(other)) and same_controls(a, b)

        held = {id(group): self._held(group) for group in groups}
        merged, mislabelled = absorbed(groups, lambda group: held[id(group)], alike)
        made = [self._operator(group, self._approach(group)) for group in merged]
        ours = joined_outcomes([operator for operator in made if not _is_event(operator)])
        events = [operator for operator in made if _is_event(operator)]
        for operator in (*ours, *events):
            self._prune(operator)
        _without_luck(ours)
        return ours, events, mislabelled

    def _approach(self, group: Group) -> Approach:
        if _is_arrival(group):
            return Approach(is_agents=False)
        return approach_of(group.occurrences, self.episodes)

    def _held(self, group: Group) -> Facts:
        return held_always(group.occurrences, self._misses(group.occurrences))

    def _misses(self, occurrences: Sequence[Occurrence]) -> int:
        return math.floor(self.settings.misses * len(occurrences))

    def _operator(self, group: Group, approach: Approach) -> Operator:
        """Make an operator of a group: its parameters, nature's choices, and all that held."""
        occurrences = list(group.occurrences)
        if approach.beside is not None:
            occurrences = [
                Occurrence(occurrence.change, {**occurrence.binding, BESIDE: name})
                for occurrence, name in zip(occurrences, approach.beside[1], strict=True)
            ]
        types = {variable: self._type(variable, occurrences) for variable in occurrences[0].binding}
        misses = self._misses(occurrences)
        held = held_always(occurrences, misses)
        chosen, new = self._natures(group, approach, occurrences, held)
        outcome = Outcome(group.add, group.delete, tuple(Parameter(v, types[v]) for v in chosen), frozenset(new))
        left = {variable: kind for variable, kind in types.items() if variable not in chosen}
        bare = [Occurrence(each.change, {v: each.binding[v] for v in left}) for each in occurrences]
        operator = Operator([(outcome, len(bare))], left, bare, approach, held_always(bare, misses))
        for linked in linked_objects(bare, misses):
            operator.linked[linked.variable] = linked.conditions
            seen = zip(bare, linked.objects, strict=True)
            kinds = {self.episodes[each.change.episode].objects.get(name, "") for each, name in seen if name}
            operator.types[linked.variable] = common_type(self.frame, kinds)
        return operator

    def _type(self, variable: str, occurrences: Sequence[Occurrence]) -> str:
        kinds = {self.episodes[each.change.episode].objects.get(each.binding[variable], "") for each in occurrences}
        return common_type(self.frame, kinds)

    def _natures(
        self, group: Group, approach: Approach, occurrences: Sequence[Occurrence], held: Facts
    ) -> tuple[list[str], list[str]]:
        """Return the variables that nature binds, and which of them to objects that nobody had seen.

        An object is nature's choice if it was not there, or if nothing that held names it and no control depends on it.
        """
        seen = [_seen_before(each.change, self.episodes[each.change.episode]) for each in occurrences]
        added = {term for atom in group.add for term in atom.terms}
        deleted = {term for atom in group.delete for term in atom.terms}
        chosen, new = [], []
        for variable in sorted(added - deleted):
            fresh = sum(each.binding[variable] not in names for each, names in zip(occurrences, seen, strict=True))
            is_new = fresh > len(occurrences) - 1 - self._misses(occurrences)
            told = variable in approach.touched or approach.controls is None
            named_before = any(variable in atom.terms and self._says(atom) for atom in held)
            if is_new or not (told or named_before):
                chosen.append(variable)
            if is_new:
                new.append(variable)
        return chosen, new

    def _says(self, atom: Atom) -> bool:
        """Whether a condition says anything: it does not hold of all objects at all times."""
        kinds = {f"?{i}": p.type for i, p in enumerate(self.frame.predicates[atom.predicate].parameters)}
        return not never_mattered(
            frozenset({Atom(atom.predicate, tuple(kinds))}),
            frozenset({Atom(atom.predicate, tuple(kinds))}),
            kinds,
            (),
            self.frame,
            self.states,
        )

    def _prune(self, operator: Operator) -> None:
        """Leave out the conditions that never mattered: where the rest held, they did, in all states that were seen."""
        conditions = operator.raw.union(*operator.linked.values())
        usual = Counter(fact.predicate for seen in self.states for fact in seen.state)
        for variable in list(operator.linked):
            tested = operator.linked[variable]
            if never_mattered(conditions, tested, operator.types, operator.linked, self.frame, self.states):
                conditions -= tested
                del operator.linked[variable], operator.types[variable]
        for atom in sorted(conditions - operator.deleted, key=lambda atom: (-usual[atom.predicate], atom)):
            tested = frozenset({atom})
            if never_mattered(conditions, tested, operator.types, operator.linked, self.frame, self.states):
                conditions -= tested
        operator.spared = self._narrower(conditions & operator.deleted)
        operator.conditions = conditions - operator.spared
        for variable in list(operator.linked):
            operator.linked[variable] &= operator.conditions
            if not operator.linked[variable]:
                del operator.linked[variable], operator.types[variable]

    def _narrower(self, deleted: Facts) -> Facts:
        """Return what need not be there to be deleted, as something wider is: a door that is not open may be ajar.

        Nobody may have opened such a door. But somebody who tries is better off than somebody who cannot go on.
        """
        return frozenset(atom for atom in deleted if any(is_wider(other, atom, self.states) for other in deleted))
