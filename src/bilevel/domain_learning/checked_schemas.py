"""The occurrences of one action or event in labelled episodes: which of its effects came, and what did not fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Literal

import msgspec

from bilevel.rules.matching import Binding, join
from bilevel.rules.nearest_action import Nearest
from bilevel.rules.traces import Change
from bilevel.symbolic.domain import Action, Atom, Facts, Outcome, Schema
from bilevel.symbolic.semantics import bind_outcome, substitute

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
OFTEN = 0.05  # of the occurrences; effects that are otherwise less often are somebody else's doing
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
        self._arrivals: set[str] = set()  # of these, effects on objects that nobody had seen

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
        names = {name: p.name for p, name in zip(self.schema.parameters, nearest.action.action.arguments, strict=True)}

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
