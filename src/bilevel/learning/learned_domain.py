"""Learning a policy in a domain that is learned from the same demonstrations.

An expert's `control(scene, action)` knows its own actions, by its own names. Where demonstrations say which of them it
was doing, they also say which one each learned action is, argument by argument: so it can be asked about these.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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

    def arguments(self, given: Sequence[str]) -> tuple[str | None, ...]:
        """Return the expert's arguments, as far as those of the learned action tell them."""
        return tuple(given[source] if isinstance(source, int) else source for source in self.sources)

    def fits(self, said: Action, action: Action) -> bool:
        """Return whether an expert's action is a way of saying the learned one."""
        if (said.name, len(said.arguments)) != (self.name, len(self.sources)):
            return False
        known = zip(self.arguments(action.arguments), said.arguments, strict=True)
        return all(argument in (None, other) for argument, other in known)


@dataclass(frozen=True)
class Translation:
    """For learned actions, what the expert calls them, as far as it nearly always calls them so."""

    forms: Mapping[str, Form]

    def expert_action(self, action: Action, choose: Callable[[], Action | None]) -> Action | None:
        """Return what the expert calls an action, or `None` where that is not known.

        What the learned action leaves open is what the expert itself would `choose`, if that fits.
        """
        form = self.forms.get(action.name)
        if form is None:
            return None
        known = [argument for argument in form.arguments(action.arguments) if argument is not None]
        if len(known) == len(form.sources):
            return Action(form.name, tuple(known))
        chosen = choose()
        return chosen if chosen and form.fits(chosen, action) else None

    def learned_action(self, action: Action | None) -> Action | None:
        """Return the learned action that an expert's is, or `None` where it is not known, or not only one."""
        found = [
            Action(name, tuple(action.arguments[form.sources.index(place)] for place in range(form.arity)))
            for name, form in self.forms.items()
            if action and (form.name, len(form.sources)) == (action.name, len(action.arguments))
            if set(range(form.arity)).issubset(form.sources)
        ]
        return found[0] if len(found) == 1 else None

    def texts(self, domain: Domain) -> dict[str, str | None]:
        """Say for each action of the learned domain what the expert calls it, if that is known."""
        found: dict[str, str | None] = dict.fromkeys(domain.schemas)
        for name, form in self.forms.items():
            arguments = form.arguments([parameter.name for parameter in domain.schemas[name].parameters])
            found[name] = f"{form.name}({', '.join(argument or '…' for argument in arguments)})"
        return found


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
