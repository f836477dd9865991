"""Whether findings are complete: what was asked for is kept with them, and compared with what is there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from bilevel.experiments.reproduction.folder import ExperimentFolder
from bilevel.files import write_atomically
from bilevel.json_files import Count, encode

SELECTED = "selected"  # the part of a folder that says what was asked for


class Asked(msgspec.Struct, frozen=True):
    """What a run was asked for, as far as it is in findings."""

    rows: Mapping[str, Sequence[str]] = {}  # of each task
    sizes: Mapping[str, Sequence[Count]] = {}  # numbers of objects of each task
    episodes: Count = 0  # for each number of objects
    seeds: Sequence[Count] = ()
    memory: Mapping[str, Sequence[str]] = {}  # the rows of each task of which it was to be measured
    problems: Mapping[str, Mapping[str, Sequence[Count]]] = {}  # sizes of large problems by task and solver

    def note(self, folder: ExperimentFolder) -> None:
        """Keep it in a folder; the same once."""
        content = encode(self, indent=0)
        write_atomically(folder.path / SELECTED / f"{hashlib.sha256(content.encode()).hexdigest()[:16]}.json", content)


Episodes = Mapping[tuple[str, str, int, int], int]  # how many there are of a task, a row, a seed and a size


def missing_episodes(asked: Asked, found: Episodes) -> dict[tuple[str, str], tuple[int, int]]:
    """Return how many episodes there are, and how many were asked for, of each task and row that lacks some."""
    lacking = {}
    for task, rows in asked.rows.items():
        for row in rows:
            keys = [(task, row, seed, size) for seed in asked.seeds for size in asked.sizes.get(task, ())]
            there = sum(min(found.get(key, 0), asked.episodes) for key in keys)
            if there < len(keys) * asked.episodes:
                lacking[task, row] = there, len(keys) * asked.episodes
    return lacking


def missing_problems(asked: Asked, found: set[tuple[str, str, int]]) -> Iterator[tuple[str, str, list[int]]]:
    """Yield the sizes of large problems that are not there, by task and solver."""
    for task, solvers in asked.problems.items():
        for solver, sizes in solvers.items():
            if absent := [size for size in sizes if (task, solver, size) not in found]:
                yield task, solver, absent
