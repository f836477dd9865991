"""Operators from labelled episodes: what happens, who does it, with which objects, and when it can be done."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bilevel.domain_learning.absorption import absorbed
from bilevel.domain_learning.approach import Approach, approach_of, same_controls
from bilevel.domain_learning.changes import Change, Seen, find_changes
from bilevel.domain_learning.composites import separate
from bilevel.domain_learning.conditions import held_always, is_wider, linked_objects, never_mattered
from bilevel.domain_learning.episodes import Episode
from bilevel.domain_learning.frames import common_type, inferred_frame
from bilevel.domain_learning.learned import BESIDE, DomainSettings, Dropped, LearnedDomain, Operator
from bilevel.domain_learning.lifting import Group, Occurrence, group_changes
from bilevel.domain_learning.naming import named
from bilevel.domain_learning.outcomes import joined_outcomes
from bilevel.domain_learning.relevance import without_irrelevant
from bilevel.symbolic.domain import Atom, BadInput, Domain, Facts, Outcome, Parameter


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
