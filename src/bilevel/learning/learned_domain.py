"""Learning a policy in a domain that is learned from the same demonstrations.

An expert's `control(scene, action)` knows its own actions, by its own names. Where demonstrations say which of them it
was doing, they also say which one each learned action is, argument by argument: so it can be asked about these.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.traces import explain, label
from bilevel.domain_learning.operators import learn_domain
from bilevel.rules.matching import unify
from bilevel.symbolic.domain import Action, Atom, is_variable
from bilevel.symbolic.semantics import substitute
from bilevel.tasks.task import Task

NEARLY_ALL = 0.9  # of the times that an action was done

# Learned actions of variables, each with what the expert nearly always calls it: `place(?0, ?1)`, `put(?1, box)`. A
# variable of the expert's alone stands for what the learned action does not tell.
Translation = Sequence[tuple[Action, Action]]


def translated(action: Action | None, forms: Translation) -> Action | None:
    """Return what the one of these forms that tells all of it makes of an action; `None` where there is no such one."""
    pairs = [(unify(Atom(*given), Atom(*action)), Atom(*wanted)) for given, wanted in forms] if action else []
    found = [substitute(wanted, binding) for binding, wanted in pairs if binding is not None]
    whole = [atom for atom in found if not any(map(is_variable, atom.terms))]
    return Action(*whole[0]) if len(whole) == 1 else None


def find_translation(steps: Iterable[tuple[Sequence[Action | None], Sequence[Action | None]]]) -> Translation:
    """Find what an expert calls learned actions: for each time that one was done, what it mostly said meanwhile.

    Of every step of each episode it is given the learned action that the step helped to bring about, and what the
    expert said it was doing.
    """
    found: dict[str, list[tuple[Action, Action]]] = defaultdict(list)
    for learned, recorded in steps:
        for action, stretch in groupby(zip(learned, recorded, strict=True), key=lambda step: step[0]):
            said = Counter(said for _, said in stretch if said is not None)
            if action is not None and said:
                found[action.name].append((action, max(sorted(said), key=said.__getitem__)))
    return [form for _, doings in sorted(found.items()) for form in _forms(doings)]


def _forms(doings: Translation) -> Iterator[tuple[Action, Action]]:
    """Yield the form of nearly all of these, if there is one."""
    [((name, arity), number)] = Counter((said.name, len(said.arguments)) for _, said in doings).most_common(1)
    if number >= NEARLY_ALL * len(doings):
        same = [(action, said) for action, said in doings if (said.name, len(said.arguments)) == (name, arity)]
        learned = same[0][0]
        variables = tuple(f"?{place}" for place in range(len(learned.arguments)))
        yield Action(learned.name, variables), Action(name, tuple(_source(same, place) for place in range(arity)))


def _source(doings: Translation, argument: int) -> str:
    """Return the learned action's argument that one of the expert's nearly always is, or the object, or neither."""
    for place in range(len(doings[0][0].arguments)):
        agreeing = sum(action.arguments[place] == said.arguments[argument] for action, said in doings)
        if agreeing >= NEARLY_ALL * len(doings):
            return f"?{place}"
    [(name, number)] = Counter(said.arguments[argument] for _, said in doings).most_common(1)
    return name if number >= NEARLY_ALL * len(doings) else f"?other{argument}"


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
    back = [(theirs, ours) for ours, theirs in translation]
    in_it = replace(
        demonstrations.mapped(lambda one: replace(one, actions=tuple(translated(each, back) for each in one.actions))),
        domain=domain,
        spec=replace(demonstrations.spec, untold=learned.untold),
        task=task.name if task else demonstrations.task,
    )
    summary = {
        "seen": {name: list(counts) for name, counts in learned.counts.items()},
        "dropped": sum(dropped.count for dropped in learned.dropped),
        "asked_as": dict.fromkeys(domain.schemas) | {ours.name: str(theirs) for ours, theirs in translation},
    }
    return in_it, LearnedSymbols(learned.text, translation, summary)
