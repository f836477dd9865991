"""Operators from labelled episodes: what happens, who does it, with which objects, when it can be done, and a name."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, islice, permutations

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.domain_learning.agent import Approach, approach_of, same_controls
from bilevel.domain_learning.changes import (
    Seen,
    SettledChange,
    ShownEpisode,
    common_type,
    episodes_of,
    find_changes,
    frame_of,
)
from bilevel.domain_learning.check import DomainReport, check_domain
from bilevel.domain_learning.conditions import (
    BESIDE,
    Operator,
    held_always,
    is_wider,
    linked_objects,
    misses,
    never_mattered,
    without_irrelevant,
)
from bilevel.domain_learning.groups import Cluster, Occurrence, absorbed, group_changes, separate
from bilevel.symbolic.domain import NO_FACTS, Atom, BadInput, Domain, Facts, Outcome, Parameter, Schema
from bilevel.symbolic.pddl import write_domain
from bilevel.symbolic.semantics import substitute_all
from bilevel.tasks.task import Task

SETTLING = 5  # what changes within so many timesteps of each other is one change
FEWEST, SHARE = 3, 0.005  # what happens less often, or in a smaller share of all changes, is no operator
MOST_PARAMETERS = 5  # of operators that are compared
MOST_STATES = 600  # in which it is looked whether a condition ever mattered
HEADER = ";# Learned from demonstrations, and yours to edit.\n"


@dataclass(frozen=True)
class Dropped:
    """A change that was not taken for an operator: what it was, how often it was seen, and where first."""

    text: str
    count: int
    episode: int
    step: int


@dataclass(frozen=True)
class LearnedDomain:
    """A domain with its operators and events, what was seen of each, and how it explains what was held out.

    `counts` says of each schema and event how often each of its outcomes was seen; `untold` names the parameters on
    which the controls do not depend. It was learned from so many `episodes`, and so many more were held out.
    """

    domain: Domain
    counts: Mapping[str, tuple[int, ...]]
    untold: Mapping[str, tuple[str, ...]]
    dropped: tuple[Dropped, ...]
    episodes: int = 0
    held_out: int = 0
    report: DomainReport | None = None  # of the episodes that were held out, if there are any

    @property
    def text(self) -> str:
        """The domain as PDDL, with what was seen as comments."""
        text = write_domain(self.domain)
        for name in (*self.domain.schemas, *self.domain.events):
            start = re.compile(rf"^( *)(?=\(:(?:action|event) {re.escape(name)}$)", re.MULTILINE)
            text = start.sub(lambda found, name=name: f"{found[1]}{self._seen(name)}\n{found[1]}", text)  # type: ignore[misc]
        dropped = [
            f";#   {_times(each.count)}, first in episode {each.episode} at step {each.step}: {each.text}\n"
            for each in self.dropped
        ]
        title = ["\n;# Changes that were not taken for operators:\n"] if dropped else []
        return HEADER + text.rstrip("\n") + "\n" + "".join(title + dropped)

    def _seen(self, name: str) -> str:
        """Say how often an operator was seen, with which outcomes, and which parameters no control depends on."""
        counts, untold = self.counts[name], self.untold.get(name, ())
        outcomes = (f"outcome {number} {_times(seen)}" for number, seen in enumerate(counts, 1))
        text = f";# seen {_times(sum(counts))}{': ' + ', '.join(outcomes) if len(counts) > 1 else ''}"
        return f"{text}; the controls do not depend on {', '.join(untold)}" if untold else text


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def learn_domain(
    demonstrations: Demonstrations, task: Task | None = None, *, held_out: float = 0.2, settling: int = SETTLING
) -> LearnedDomain:
    """Learn operators and events from demonstrations, and check them on a share of these that is `held_out`.

        learned = learn_domain(demonstrations, task)
        Path("domain.pddl").write_text(learned.text)

    The labels are the task's, or else those that were recorded. Of the domain that there is, only types and predicates
    are looked at, and where it has none they are learned, too. What an expert called its actions plays no part. What
    changes within `settling` timesteps of each other is one change.
    """
    if not 0 <= held_out < 1:
        raise BadInput(f"the share of episodes that is held out must be at least 0 and less than 1, not {held_out:g}")
    episodes = list(episodes_of(demonstrations, task))
    held = [number for number in range(1, len(episodes)) if int((number + 1) * held_out) > int(number * held_out)]
    shown = [number for number in range(len(episodes)) if number not in held]
    frame = frame_of(episodes, task.domain if task else demonstrations.domain)
    learned = learn_operators([episodes[number] for number in shown], frame, settling)
    report = check_domain(learned.domain, ((number, episodes[number]) for number in held)) if held else None
    dropped = tuple(replace(each, episode=shown[each.episode]) for each in learned.dropped)
    return replace(learned, dropped=dropped, episodes=len(shown), held_out=len(held), report=report)


def learn_operators(episodes: Sequence[ShownEpisode], frame: Domain, settling: int = SETTLING) -> LearnedDomain:
    """Learn the operators and events of a domain, whose types and predicates are in the frame, from labelled episodes.

    The same episodes give the same domain. `BadInput` where nothing ever changes.
    """
    every, states = find_changes(episodes, settling)
    if not every:
        raise BadInput("no fact changes in any episode, so there is no operator to learn; look at the labels")
    changes = separate(every)
    groups, left = group_changes(changes)
    fewest = max(FEWEST, math.ceil(SHARE * len(changes)))
    places = min(FEWEST, max(1, len(episodes) // 4))
    every_group = list(groups.values())
    common = [
        group
        for group in every_group
        if group.count >= fewest and len({each.change.episode for each in group.occurrences}) >= places
    ]
    rare = [group for group in every_group if group not in common]
    study = _Study(episodes, frame, states)
    operators, events, mislabelled = study.operators(common)
    if any(episode.goals for episode in episodes):
        operators = without_irrelevant(operators, frame, episodes, changes)
    dropped = [_dropped(group) for group in (*mislabelled, *rare)]
    if left:
        dropped.append(Dropped("changes of too many objects at once", len(left), left[0].episode, left[0].step))
    return _named(frame, operators, events, tuple(dropped))


def _dropped(group: Cluster) -> Dropped:
    first = group.occurrences[0].change
    came = [str(fact) for fact in sorted(first.added)]
    went = [f"not {fact}" for fact in sorted(first.deleted)]
    return Dropped(", ".join(came + went), group.count, first.episode, first.step)


# From groups of changes to operators


@dataclass(frozen=True)
class _Study:
    """What all groups are looked at with."""

    episodes: Sequence[ShownEpisode]
    frame: Domain
    states: Sequence[Seen]

    def operators(self, groups: Sequence[Cluster]) -> tuple[list[Operator], list[Operator], list[Cluster]]:
        """Return the operators of the agent, the events of nature, and the groups that are mislabels."""
        approaches = {id(group): self._approach(group) for group in groups}
        held = {id(group): held_always(group.occurrences) for group in groups}

        def alike(one: Cluster, other: Cluster) -> bool:
            a, b = approaches[id(one)], approaches[id(other)]
            return (a.is_agents, _is_arrival(one)) == (b.is_agents, _is_arrival(other)) and same_controls(a, b)

        merged, mislabelled = absorbed(groups, lambda group: held[id(group)], alike)
        made = [self._operator(group, self._approach(group)) for group in merged]
        ours = _joined_outcomes([operator for operator in made if not _is_event(operator)])
        events = [operator for operator in made if _is_event(operator)]
        for operator in (*ours, *events):
            self._prune(operator)
        return ours, events, mislabelled

    def _approach(self, group: Cluster) -> Approach:
        if _is_arrival(group):
            return Approach(is_agents=False)
        return approach_of(group.occurrences, self.episodes)

    def _operator(self, group: Cluster, approach: Approach) -> Operator:
        """Make an operator of a group: its parameters, nature's choices, and all that held."""
        occurrences = list(group.occurrences)
        if approach.beside is not None:
            occurrences = [
                Occurrence(occurrence.change, {**occurrence.binding, BESIDE: name})
                for occurrence, name in zip(occurrences, approach.beside[1], strict=True)
            ]
        types = {v: self._type([(o.change, o.binding[v]) for o in occurrences]) for v in occurrences[0].binding}
        chosen, new = self._natures(group, approach, occurrences)
        outcome = Outcome(group.add, group.delete, tuple(Parameter(v, types[v]) for v in chosen), frozenset(new))
        left = {variable: kind for variable, kind in types.items() if variable not in chosen}
        bare = [Occurrence(each.change, {v: each.binding[v] for v in left}) for each in occurrences]
        operator = Operator([(outcome, len(bare))], left, approach, held_always(bare))
        for linked in linked_objects(bare):
            operator.linked[linked.variable] = linked.conditions
            seen = zip(bare, linked.objects, strict=True)
            operator.types[linked.variable] = self._type([(each.change, name) for each, name in seen if name])
        return operator

    def _type(self, objects: Sequence[tuple[SettledChange, str]]) -> str:
        """Return the least type of all objects, each given with a change in whose episode it is."""
        return common_type(self.frame.types, {change.types.get(name, "") for change, name in objects})

    def _natures(
        self, group: Cluster, approach: Approach, occurrences: Sequence[Occurrence]
    ) -> tuple[list[str], list[str]]:
        """Return the variables that nature binds, and which of them to objects that are new.

        An object is nature's choice if it was not there, or if nothing that held names it and no control depends on it.
        """
        held = held_always(occurrences)
        added, deleted = ({term for atom in atoms for term in atom.terms} for atoms in (group.add, group.delete))
        chosen, new = [], []
        for variable in sorted(added - deleted):
            fresh = sum(each.binding[variable] not in each.change.known for each in occurrences)
            is_new = fresh > len(occurrences) - 1 - misses(len(occurrences))
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
        return not self._never_mattered(NO_FACTS, frozenset({Atom(atom.predicate, tuple(kinds))}), kinds, {})

    def _never_mattered(
        self, conditions: Facts, tested: Facts, types: Mapping[str, str], linked: Mapping[str, Facts]
    ) -> bool:
        some = self.states[:: 1 + len(self.states) // MOST_STATES]
        return never_mattered(conditions, tested, types, self.frame, some, linked)

    def _prune(self, operator: Operator) -> None:
        """Leave out the conditions that never mattered: where the rest held, they did, in all states that were seen."""
        conditions = operator.raw.union(*operator.linked.values())
        usual = Counter(fact.predicate for seen in self.states for fact in seen.state)
        for variable, tested in list(operator.linked.items()):
            if self._never_mattered(conditions, tested, operator.types, operator.linked):
                conditions -= tested
                del operator.linked[variable], operator.types[variable]
        for atom in sorted(conditions - operator.deleted, key=lambda atom: (-usual[atom.predicate], atom)):
            if self._never_mattered(conditions, frozenset({atom}), operator.types, operator.linked):
                conditions -= {atom}
        operator.spared = self._narrower(conditions & operator.deleted)
        operator.conditions = conditions - operator.spared
        for variable in list(operator.linked):
            operator.linked[variable] &= operator.conditions
            if not operator.linked[variable]:
                del operator.linked[variable], operator.types[variable]

    def _narrower(self, deleted: Facts) -> Facts:
        """Return what need not be there to be deleted, as something wider is: a door that is not open may be ajar.

        No demonstration may open such a door. But to try is better than to stop.
        """
        return frozenset(atom for atom in deleted if any(is_wider(other, atom, self.states) for other in deleted))


def _is_arrival(group: Cluster) -> bool:
    return 2 * sum(occurrence.change.is_arrival for occurrence in group.occurrences) > group.count


def _is_event(operator: Operator) -> bool:
    """Whether nature did it; so she did where something is let go of at no place, and lands where she decides."""
    approach, (outcome, _) = operator.approach, operator.outcomes[0]
    is_dropped = approach.is_astray and len(outcome.chosen) > len(outcome.new)
    return is_dropped or not approach.is_agents


def _joined_outcomes(operators: Sequence[Operator]) -> list[Operator]:
    """Return the operators, the most frequent first; those that differ in nothing but what comes of them are joined."""
    result: list[Operator] = []
    for operator in sorted(operators, key=lambda operator: -operator.count):
        every = ((number, _joined(other, operator)) for number, other in enumerate(result))
        place, joined = next(((number, both) for number, both in every if both), (len(result), operator))
        result[place : place + 1] = [joined]
    return result


def _joined(one: Operator, other: Operator) -> Operator | None:
    """Return both as one operator; `None` where conditions, controls or parameters differ."""
    if not len(one.types) == len(other.types) <= MOST_PARAMETERS or not same_controls(one.approach, other.approach):
        return None
    if (one.approach.beside or ("",))[0] != (other.approach.beside or ("",))[0]:
        return None
    for order in permutations(one.types):
        names = dict(zip(other.types, order, strict=True))
        if any(one.types[names[variable]] != kind for variable, kind in other.types.items()):
            continue
        linked = {names[variable]: substitute_all(said, names) for variable, said in other.linked.items()}
        if substitute_all(other.raw, names) == one.raw and linked == one.linked:
            outcomes = [(_renamed(outcome, names), seen) for outcome, seen in other.outcomes]
            return replace(one, outcomes=[*one.outcomes, *outcomes])
    return None


def _renamed(outcome: Outcome, names: Mapping[str, str]) -> Outcome:
    """Return the outcome with other names; those of nature's variables that have none may not clash with them."""
    free = {variable.name for variable in outcome.chosen} - names.keys()
    every = {**names, **{name: f"{name}n" for name in free if name in names.values()}}
    return Outcome(
        substitute_all(outcome.add, every),
        substitute_all(outcome.delete, every),
        tuple(replace(variable, name=every.get(variable.name, variable.name)) for variable in outcome.chosen),
        frozenset(every.get(name, name) for name in outcome.new),
    )


# Names

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


def _named(
    frame: Domain, operators: Sequence[Operator], events: Sequence[Operator], dropped: tuple[Dropped, ...]
) -> LearnedDomain:
    """Give everything a name, and make it a domain."""
    found: dict[str, Schema] = {}
    counts: dict[str, tuple[int, ...]] = {}
    untold: dict[str, tuple[str, ...]] = {}
    for number, operator in enumerate((*operators, *events), 1):
        is_event = number > len(operators)
        proposals = _event_names(operator) if is_event else _proposals(operator, number, operators)
        name = next(name for name in proposals if name not in found)
        names = _variables(operator)
        found[name] = _schema(operator, name, names)
        counts[name] = tuple(seen for _, seen in operator.outcomes)
        parameters = [variable for variable in names if variable in operator.types]
        idle = tuple(names[variable] for variable in parameters if not _is_told(variable, operator.approach))
        if not is_event and 0 < len(idle) < len(parameters):
            untold[name] = idle
    schemas, happenings = dict(islice(found.items(), len(operators))), dict(islice(found.items(), len(operators), None))
    return LearnedDomain(replace(frame, schemas=schemas, events=happenings), counts, untold, dropped)


def _is_told(variable: str, approach: Approach) -> bool:
    """Whether the controls depend on a parameter: the agent came to it, or nothing is known of that."""
    return approach.controls is None or variable in approach.touched or variable == BESIDE


def _proposals(operator: Operator, number: int, operators: Sequence[Operator]) -> Iterator[str]:
    """Return names for an operator, the best first: a verb, with a type, then numbered."""
    first = operator.outcomes[0][0]
    beside = operator.approach.beside[0] if operator.approach.beside else ""
    verb = TOUCHED.get(beside) or _verb(first.add, first.delete)
    if verb is None:
        return (f"action-{further}" for further in count(number))
    others = {kind for other in operators if other is not operator for kind in other.types.values()}
    special = [kind for kind in operator.types.values() if kind not in others]
    came = [atom.predicate for atom in sorted(first.add) if atom.terms]
    with_type = (f"{verb}-{what}" for what in (*special, *operator.types.values(), *came))
    return chain([verb], with_type, (f"{verb}-{further}" for further in count(number)))


def _verb(add: Facts, delete: Facts) -> str | None:
    facts = {"+": add, "-": delete}
    fitting = (verb for verb, sign, pattern in NAMES if any(re.search(pattern, fact.predicate) for fact in facts[sign]))
    return next(fitting, None)


def _event_names(operator: Operator) -> Iterator[str]:
    first = operator.outcomes[0][0]
    added, deleted = ({atom.terms[0] for atom in atoms if atom.terms} for atoms in (first.add, first.delete))
    if first.new:
        name = "arrival"
    elif added & deleted:
        name = "displacement"
    else:
        name = f"change-of-{min([*first.add, *first.delete]).predicate}"
    return chain([name], (f"{name}-{number}" for number in count(2)))


def _variables(operator: Operator) -> dict[str, str]:
    """Return readable names for variables: what their types are called, in the order in which the effects name them."""
    first = operator.outcomes[0][0]
    effects = sorted((*first.add, *first.delete), key=lambda atom: (-len(atom.terms), atom))
    named_first = [term for atom in effects for term in atom.terms if term in operator.types]
    kinds = {variable: operator.all_types[variable] for variable in (*named_first, *operator.all_types)}
    every, counts = Counter(kinds.values()), Counter[str]()
    names = {}
    for variable, kind in kinds.items():
        counts[kind] += 1
        names[variable] = f"?{kind}{counts[kind]}" if every[kind] > 1 else f"?{kind}"
    return names


def _schema(operator: Operator, name: str, names: Mapping[str, str]) -> Schema:
    """Return the schema with these names for its variables, in their order."""
    parameters = tuple(Parameter(names[v], operator.types[v]) for v in names if v in operator.types)
    outcomes = tuple(_renamed(outcome, names) for outcome, _ in operator.outcomes)
    return Schema(name, parameters, substitute_all(operator.conditions, names), outcomes)
