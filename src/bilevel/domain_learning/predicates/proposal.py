"""Predicates proposed from demonstrations: what could be said is measured, few are chosen, and written as Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.domain_learning.episodes import Episode, motion_of
from bilevel.domain_learning.predicates.definitions import Definition, measure_all, states_of
from bilevel.domain_learning.predicates.description import Description
from bilevel.domain_learning.predicates.evidence import Evidence
from bilevel.domain_learning.predicates.goals import Goal, goal_of_facts, goal_of_final_scenes, goal_of_function
from bilevel.domain_learning.predicates.grammar import candidates, statics
from bilevel.domain_learning.predicates.python_file import python_file, require_plain_names
from bilevel.domain_learning.predicates.selection import Selection
from bilevel.domain_learning.predicates.tracks import Track
from bilevel.domain_learning.predicates.validation import Validation, validate
from bilevel.files import write_atomically
from bilevel.symbolic.domain import ROOT_TYPE, Atom, BadInput, Domain
from bilevel.symbolic.pddl import write_domain
from bilevel.tasks.controls import Controls
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import Task

HELD_OUT = 4  # one demonstration of so many is held out
FEWEST = 2 * HELD_OUT
FINAL, TASK = "final", "task"  # the goal is what the last scenes have in common; or the task's own


@dataclass(frozen=True)
class Proposal:
    """Predicates, as definitions and as Python text, with the goal in their words.

    `label` and `goal` are the functions of the text `source`, for a `Task`; `frame` has the predicates for PDDL.
    """

    definitions: tuple[Definition, ...]
    goals: tuple[Goal, ...]
    description: Description
    validation: Validation
    candidates: int  # how many there were to choose from
    source: str
    frame: Domain
    label: Callable[[Scene], Iterable[Atom]]
    goal: Callable[[Scene], Iterable[Atom]]

    def write(self, path: Path | str) -> Path:
        """Write the Python file, and the predicates as PDDL beside it; return where that is."""
        path = Path(path)
        beside = path.with_suffix(".pddl")
        write_atomically(path, self.source)
        write_atomically(beside, write_domain(self.frame))
        return beside


def propose_predicates(
    demonstrations: Demonstrations,
    task: Task | None = None,
    *,
    goal: str | Callable[[Scene], bool] = FINAL,
    seed: int = 0,
    callback: Callable[[int, float], None] = lambda number, bits: None,
) -> Proposal:
    """Propose the predicates with which the demonstrations are described best.

        proposal = propose_predicates(Demonstrations.read("build/cubes"))
        proposal.write("labels.py")

    The `goal` is that of the recorded facts ("task"), a function that says of a scene whether all is done, or what the
    last scenes have in common ("final"). Nothing is known but the spec, what was seen, and the goal; the labels that
    were recorded are not looked at. Some demonstrations, which the `seed` decides, are held out: with the predicates,
    operators and rules are learned from the others, and asked about these. `callback` is told how many predicates have
    been chosen, and how many bits it takes to describe the demonstrations with them.
    """
    if len(demonstrations) < FEWEST:
        raise BadInput(f"it takes at least {FEWEST} demonstrations to propose predicates, not {len(demonstrations)}")
    require_plain_names(demonstrations.spec, demonstrations.task)
    order = np.random.default_rng(seed).permutation(len(demonstrations)).tolist()
    shown, held_out = sorted(order[len(order) // HELD_OUT :]), sorted(order[: len(order) // HELD_OUT])
    evidence = Evidence.of((demonstrations[number] for number in shown), demonstrations.spec)
    found = candidates(evidence)
    if not found:
        raise BadInput("nothing in the demonstrations comes to rest, is carried or changes: there is no candidate")
    goals = _goals(goal, evidence, found)
    require_plain_names(demonstrations.spec, demonstrations.task, [one.predicate.name for one in goals])
    found, goals = _in_the_words_of(goals, found)
    selection = Selection(evidence, found, goals)
    best = selection.best(callback)
    chosen, goals = _in_short(best, goals)
    types = dict.fromkeys(demonstrations.spec.objects, ROOT_TYPE)
    frame = Domain(demonstrations.task, {one.name: one.predicate for one in chosen}, {}, types)
    others = [Track(demonstrations[number], evidence.spec, evidence.axes) for number in held_out]
    episodes = [_episode(track, chosen, goals, demonstrations.controls) for track in (*evidence.tracks, *others)]
    validation = validate(episodes[: len(shown)], episodes[len(shown) :], frame)
    about = selection.describe(best), validation, len(selection.considered)
    source = _source(demonstrations, task, chosen, goals, evidence.tracks)
    functions: dict[str, Any] = {}
    exec(compile(source, "<proposed predicates>", "exec"), functions)
    return Proposal(tuple(chosen), tuple(goals), *about, source, frame, functions["label"], functions["goal"])


def _goals(goal: str | Callable[[Scene], bool], evidence: Evidence, found: Sequence[Definition]) -> list[Goal]:
    """Return what is wanted, in terms of candidates."""
    static = statics(evidence.spec)
    measured = [(track, measure_all(found, track)) for track in evidence.tracks]
    if callable(goal):
        return goal_of_function(found, static, measured, goal)
    if goal == TASK:
        return goal_of_facts(found, static, measured)
    if goal == FINAL:
        return goal_of_final_scenes(found, static, measured)
    raise BadInput(f"the goal is '{FINAL}', '{TASK}' or a function, not '{goal}'")


def _in_the_words_of(goals: Sequence[Goal], found: Sequence[Definition]) -> tuple[list[Definition], list[Goal]]:
    """Return the candidates under the names that the goal has for them, and those that only the goal knows."""
    meant = {(goal.predicate.types, goal.predicate.tests, goal.predicate.others): goal.predicate.name for goal in goals}
    names = {one.name: meant[about] for one in found if (about := (one.types, one.tests, one.others)) in meant}
    for one in found:
        if one.name not in names and one.name in names.values():
            names[one.name] = f"{one.name}-2"
    renamed = [one.renamed(names) for one in found]
    known = {one.name for one in renamed}
    further = [goal.predicate for goal in goals if goal.predicate.name not in known]
    by_name = {one.name: one for one in [*renamed, *further]}
    return [*renamed, *further], [Goal(by_name[goal.predicate.name], goal.where, goal.given) for goal in goals]


def _in_short(chosen: Sequence[Definition], goals: Sequence[Goal]) -> tuple[list[Definition], list[Goal]]:
    """Return what was chosen, and the goals, under names that are as short as they can be now that there are few."""
    names: dict[str, str] = {}
    for one in chosen:
        short = one.word or one.name
        taken = {*names.values(), *(each.name for each in chosen if each is not one)}
        names[one.name] = one.name if short in taken else short
    renamed = [one.renamed(names) for one in chosen]
    by_name = dict(zip((one.name for one in chosen), renamed, strict=True))
    return renamed, [Goal(by_name[goal.predicate.name], goal.where, goal.given) for goal in goals]


def _source(
    demonstrations: Demonstrations,
    task: Task | None,
    chosen: Sequence[Definition],
    goals: Sequence[Goal],
    tracks: Sequence[Track],
) -> str:
    """Return the Python file, which says how often each predicate changed."""
    tables = [measure_all(chosen, track) for track in tracks]
    counts = {one.name: sum(int((t[one.name][1:] != t[one.name][:-1]).sum()) for t in tables) for one in chosen}
    heading = f"Predicates that were proposed from {len(tracks)} demonstrations of the task '{demonstrations.task}'."
    return python_file(chosen, goals, heading, counts, task.source if task else None)


def _episode(track: Track, chosen: Sequence[Definition], goals: Sequence[Goal], controls: Controls) -> Episode:
    """Return a track as an episode that is labelled with the chosen predicates."""
    states = states_of(chosen, track, measure_all(chosen, track))
    wanted = [frozenset[Atom]().union(*facts) for facts in zip(*(goal.facts(track) for goal in goals), strict=True)]
    return Episode(states, track.roster.objects, wanted, motion_of(track.demonstration, track.spec, controls))
