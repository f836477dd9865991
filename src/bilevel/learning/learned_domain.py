"""Learning a policy in a domain that is learned from the same demonstrations.

An expert's `control(scene, action)` knows its own actions, by its own names. Where demonstrations say which of them it
was doing, they also say which one each learned action is, argument by argument: so it can be asked about these.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.traces import explain, label
from bilevel.domain_learning.operators import learn_domain
from bilevel.symbolic.domain import Action, Domain
from bilevel.tasks.task import Task

NEARLY_ALL = 0.9  # of the times that an action was done

# Where an argument of the expert's action is found: at a place among those of the learned action, or it is always the
# same object, or neither tells it.
Source = int | str | None
Doing = tuple[Action, Action]  # a learned action, and what the expert said it was doing


class Form(NamedTuple):
    """What the expert calls a learned action of so many arguments: a name, and where each argument is found."""

    name: str
    sources: tuple[Source, ...]
    arity: int

    def expert_action(self, given: Sequence[str]) -> Action | None:
        """Return the expert's action for the arguments of the learned one, or `None` if they do not tell it."""
        found = [given[source] if isinstance(source, int) else source for source in self.sources]
        known = tuple(argument for argument in found if argument is not None)
        return Action(self.name, known) if len(known) == len(found) else None

    def is_told_by(self, said: Action) -> bool:
        """Return whether an expert's action tells which learned one it is."""
        is_called_so = (said.name, len(said.arguments)) == (self.name, len(self.sources))
        return is_called_so and set(range(self.arity)).issubset(self.sources)


class Translation(NamedTuple):
    """For learned actions, what the expert calls them, as far as it nearly always calls them so."""

    forms: Mapping[str, Form]

    def expert_action(self, action: Action) -> Action | None:
        """Return what the expert calls an action, or `None` where that is not known."""
        form = self.forms.get(action.name)
        return form.expert_action(action.arguments) if form else None

    def learned_action(self, said: Action | None) -> Action | None:
        """Return the learned action that an expert's is, or `None` where it is not known, or not only one."""
        found = [
            Action(name, tuple(said.arguments[form.sources.index(place)] for place in range(form.arity)))
            for name, form in self.forms.items()
            if said and form.is_told_by(said)
        ]
        return found[0] if len(found) == 1 else None

    def texts(self, domain: Domain) -> dict[str, str | None]:
        """Say for each action of the learned domain what the expert calls it, if that is known."""
        actions = [Action(name, tuple(p.name for p in schema.parameters)) for name, schema in domain.schemas.items()]
        asked = {action.name: self.expert_action(action) for action in actions}
        return {name: str(action) if action else None for name, action in asked.items()}


def find_translation(steps: Iterable[tuple[Sequence[Action | None], Sequence[Action | None]]]) -> Translation:
    """Find what an expert calls learned actions: for each time that one was done, what it mostly said meanwhile.

    Of every step of each episode it is given the learned action that the step helped to bring about, and what the
    expert said it was doing.
    """
    found: dict[str, list[Doing]] = defaultdict(list)
    for learned, recorded in steps:
        for action, stretch in groupby(zip(learned, recorded, strict=True), key=lambda step: step[0]):
            said = Counter(said for _, said in stretch if said is not None)
            if action is not None and said:
                found[action.name].append((action, max(sorted(said), key=said.__getitem__)))
    forms = {name: _form(doings) for name, doings in sorted(found.items())}
    return Translation({name: form for name, form in forms.items() if form})


def _form(doings: Sequence[Doing]) -> Form | None:
    """Return the expert's action that nearly all of these are, if there is one."""
    [((name, arity), number)] = Counter((said.name, len(said.arguments)) for _, said in doings).most_common(1)
    if number < NEARLY_ALL * len(doings):
        return None
    same = [(action, said) for action, said in doings if (said.name, len(said.arguments)) == (name, arity)]
    return Form(name, tuple(_source(same, argument) for argument in range(arity)), len(same[0][0].arguments))


def _source(doings: Sequence[Doing], argument: int) -> Source:
    """Return where an argument of the expert's is nearly always found."""
    for place in range(len(doings[0][0].arguments)):
        agreeing = sum(action.arguments[place] == said.arguments[argument] for action, said in doings)
        if agreeing >= NEARLY_ALL * len(doings):
            return place
    [(name, number)] = Counter(said.arguments[argument] for _, said in doings).most_common(1)
    return name if number >= NEARLY_ALL * len(doings) else None


class LearnedSymbols(NamedTuple):
    """The text of a domain that was learned, what the expert calls its actions, and what policy.json says of it."""

    text: str
    translation: Translation
    summary: dict[str, Any]


def learn_symbols(demonstrations: Demonstrations, task: Task | None) -> tuple[Demonstrations, LearnedSymbols]:
    """Learn the domain of demonstrations from all of them; return them as demonstrations in it, too.

    What the expert said it was doing plays no part in the domain. It is only translated into the learned actions.
    """
    learned = learn_domain(demonstrations, task, held_out=0.0)
    domain = learned.domain
    translation = find_translation(
        (explain(demonstration, domain, *label(demonstration, task), use_recorded=False).actions, demonstration.actions)
        for demonstration in demonstrations
    )
    translated = demonstrations.with_domain(
        domain,
        replace(demonstrations.spec, untold=learned.untold),
        task.name if task else demonstrations.task,
        lambda shown: replace(shown, actions=tuple(map(translation.learned_action, shown.actions))),
    )
    summary = {
        "seen": {name: list(counts) for name, counts in learned.counts.items()},
        "dropped": sum(dropped.count for dropped in learned.dropped),
        "asked_as": translation.texts(domain),
    }
    return translated, LearnedSymbols(learned.text, translation, summary)
