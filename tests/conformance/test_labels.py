"""Labels say what is true, in the words of the domain, and change only for a reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import pytest
from episodes import Timestep, clumsy_episode, each_size, expert_episode

from bilevel.rules.traces import explain_change
from bilevel.symbolic.domain import Action, Atom, Domain, Facts
from bilevel.tabletop import TASKS

SETTLING = 5  # steps before and after a change within which labels and truth may differ
LAG = 10  # steps for which the fingers go on with what they were doing before a surprise
FLICKER = 10  # steps


Episode = tuple[Timestep, ...]


def all_episodes(task: str, objects: int) -> Iterator[Episode]:
    yield expert_episode(task, objects, 1)
    if objects == 1:
        yield expert_episode(task, objects, 1, perturbed=True)
    yield clumsy_episode(task, objects)


@each_size
def test_experts_succeed_even_when_they_are_perturbed(task: str, objects: int) -> None:
    *experts, _ = all_episodes(task, objects)
    assert all(episode[-1].outcome == "success" for episode in experts)


def settled(episode: Episode) -> list[Timestep]:
    """The timesteps at which nothing is about to change or has just changed, neither in the labels nor in truth."""
    changed = {
        step
        for step, (before, after) in enumerate(pairwise(episode), 1)
        if before.state != after.state or before.truth != after.truth
    }
    near = range(-SETTLING, SETTLING + 1)
    return [timestep for step, timestep in enumerate(episode) if not any(step + offset in changed for offset in near)]


@each_size
def test_labels_agree_with_the_simulator(task: str, objects: int) -> None:
    *experts, clumsy = all_episodes(task, objects)
    if clumsy[0].truth is None:
        pytest.skip("nobody has written down what is true of this world")
    for episode in experts:
        wrong = [
            sorted(timestep.state ^ (timestep.truth or set()))
            for timestep in settled(episode)
            if timestep.state != timestep.truth
        ]
        assert not wrong
        assert len(settled(episode)) > len(episode) / 4
    for episode in (*experts, clumsy):  # a clumsy hand may pinch a corner, which is neither holding nor not
        assert sum(timestep.state == timestep.truth for timestep in episode) > 0.9 * len(episode)


def misfits(facts: Facts, domain: Domain, objects: Mapping[str, str]) -> list[str]:
    """The facts that the domain does not know in this form."""
    return [str(fact) for fact in sorted(facts) if not _fits(fact, domain, objects)]


def _fits(fact: Atom, domain: Domain, objects: Mapping[str, str]) -> bool:
    declared = domain.predicates.get(fact.predicate)
    if declared is None or len(declared.parameters) != len(fact.terms):
        return False
    pairs = zip(fact.terms, declared.parameters, strict=True)
    return all(term in objects and domain.is_subtype(objects[term], parameter.type) for term, parameter in pairs)


@each_size
def test_facts_and_goals_conform_to_the_domain(task: str, objects: int) -> None:
    domain = TASKS[task].domain
    for episode in all_episodes(task, objects):
        for before, timestep in pairwise(episode):
            if timestep.state != before.state or timestep.goal != before.goal or before is episode[0]:
                assert not misfits(timestep.state | timestep.goal, domain, timestep.scene.objects)
    assert len(episode[0].goal) == objects


@each_size
def test_an_episode_ends_exactly_when_the_goal_holds(task: str, objects: int) -> None:
    for episode in all_episodes(task, objects):
        for timestep in episode:
            assert (timestep.outcome == "success") == (timestep.goal <= timestep.state)


@each_size
def test_labels_return_the_same_set_while_nothing_changes(task: str, objects: int) -> None:
    """So that whoever asks whether something has changed need not compare sets."""
    for before, after in pairwise(expert_episode(task, objects, 1)):
        assert (before.state is after.state) == (
            before.state == after.state
        ) or before.scene.roster != after.scene.roster
        assert before.goal is after.goal or before.goal != after.goal or before.scene.roster != after.scene.roster


# Why states change


def subjects(events: Sequence[str]) -> set[str]:
    """The objects that nature did something to."""
    return {event.split()[-1] for event in events}


def about(names: set[str], *states: Facts) -> set[str]:
    """These objects and all that any state says of them."""
    return names | {term for state in states for fact in state if names & set(fact.terms) for term in fact.terms}


def is_natural(before: Timestep, after: Timestep) -> bool:
    """Whether all that has changed concerns what nature did something to."""
    concerned = about(subjects(after.events), before.state, after.state)
    return all(concerned.issuperset(fact.terms) for fact in before.state ^ after.state)


def explanations(task: str, before: Facts, after: Timestep, state: Facts) -> list[Action]:
    found = explain_change(TASKS[task].domain, before, state, after.scene.objects)
    return [action.action for action, _ in found]


def without_newcomers(before: Timestep, after: Timestep) -> Facts:
    newcomers = after.scene.objects.keys() - before.scene.objects.keys()
    return frozenset(fact for fact in after.state if newcomers.isdisjoint(fact.terms))


def is_explained(task: str, episode: Episode, step: int) -> bool:
    """By exactly one action, which was being done, or by what nature did at that very step, or by both."""
    before, after = episode[step - 1], episode[step]
    doing = {episode[step].action}
    if any(timestep.events for timestep in episode[step - LAG if step > LAG else 0 : step]):
        doing |= {timestep.action for timestep in episode[max(0, step - LAG) : step]}  # it was surprised on its way
    if not after.events:
        found = explanations(task, before.state, after, after.state)
        return len(found) == 1 and found[0] in doing
    known = without_newcomers(before, after)
    return is_natural(before, after) or (
        len(found := explanations(task, before.state, after, known)) == 1 and found[0] in doing
    )


@each_size
@pytest.mark.parametrize("seed", [1, 2])
def test_every_change_has_one_explanation(task: str, objects: int, seed: int) -> None:
    episode = expert_episode(task, objects, seed)
    changes = [step for step in range(1, len(episode)) if episode[step].state != episode[step - 1].state]
    assert len(changes) >= 2 * objects
    unexplained = [
        (step, str(episode[step].action), sorted(map(str, episode[step].state ^ episode[step - 1].state)))
        for step in changes
        if not is_explained(task, episode, step)
    ]
    assert not unexplained


@each_size
def test_facts_do_not_flicker(task: str, objects: int) -> None:
    """A fact that has changed stays as it is for a while, unless nature changes it."""
    episode = expert_episode(task, objects, 1)
    last: dict[Atom, int] = {}
    for step, (before, after) in enumerate(pairwise(episode), 1):
        for fact in before.state ^ after.state:
            surprised = any(timestep.events for timestep in episode[last.get(fact, step) : step + 1])
            assert surprised or step - last.get(fact, -FLICKER) >= FLICKER, f"{fact} at step {step}"
            last[fact] = step
