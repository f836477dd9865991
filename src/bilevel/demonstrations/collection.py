"""Collecting a data set: in parallel, and so that it can be stopped, killed and taken up again at any time.

The manifest is written first, then a file for each episode as soon as it is recorded, then the manifest again with the
list of all files. What a file holds depends on the settings and its number alone, so it does not matter who records it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.demonstration import encode_demonstration
from bilevel.demonstrations.manifest import (
    DOMAIN,
    MANIFEST,
    MOST_EPISODES,
    CollectionSettings,
    Entry,
    Manifest,
    file_name,
    make_entry,
    read_episode,
    read_manifest,
    write_manifest,
)
from bilevel.demonstrations.recording import Recorder, collection_settings
from bilevel.files import alone_in, remove_leftovers, write_atomically
from bilevel.json_files import Damaged
from bilevel.processes import Work, spread
from bilevel.symbolic.domain import BadInput
from bilevel.symbolic.pddl import write_domain
from bilevel.tasks.perception import PERFECT, Perception
from bilevel.tasks.task import Task
from bilevel.versions import differences, versions

ELSEWHERE = "choose another --output or remove the folder"


def collect(
    task: Task,
    output: Path | str,
    *,
    objects: int = 3,
    episodes: int = 200,
    seed: int = 0,
    noise: float | None = None,
    perception: Perception | str = PERFECT,
    workers: int | None = 1,
    callback: Callable[[int, int], None] | None = None,
    **arguments: Any,
) -> Demonstrations:
    """Let a task's expert demonstrate it, and keep the episodes that succeed in a folder.

    What is there already is kept, so a collection that was stopped goes on. `noise` is the amplitude of the bursts
    that perturb the expert's controls, such as 0.7; `perception`, such as "noise=0.005,missed=0.01", is what is wrong
    with what the expert sees; `arguments` are further ones of the task's `make_env`. The files
    are the same for any number of `workers`. `callback` is told how many episodes are there, and how many are wanted.

        data = collect(task, "build/cubes", objects=3, episodes=200, workers=2)
    """
    settings = collection_settings(task, objects, seed=seed, noise=noise, perception=perception, **arguments)
    with open_collection(task, Path(output), settings, episodes) as collection:
        for _ in collection.record_missing(workers):
            if callback:
                callback(len(collection.entries), episodes)
    return Demonstrations.read(output)


@dataclass
class Collection:
    """A data set in the making: which episodes are there, and which files were broken and have to be made again."""

    task: Task
    folder: Path
    manifest: Manifest
    entries: dict[int, Entry] = field(default_factory=dict)  # by number
    broken: list[str] = field(default_factory=list)

    @property
    def missing(self) -> list[int]:
        """Return the numbers of the demonstrations that are not there yet."""
        return [index for index in range(self.manifest.episodes) if index not in self.entries]

    @property
    def failures(self) -> int:
        """Attempts of the expert that did not succeed and were not kept."""
        return sum(entry.attempts - 1 for entry in self.entries.values())

    def record_missing(self, workers: int | None = 1) -> Iterator[Entry]:
        """Record what is missing; give each episode as soon as its file is there."""
        if workers != 1:
            _check_pickles(self.task)
        start = partial(_start, self.task, self.manifest.settings, self.folder)
        with closing(spread(start, self.missing, workers)) as done:
            for index, entry in done:
                self.entries[index] = entry
                yield entry
        files = tuple(self.entries[index] for index in range(self.manifest.episodes))
        write_manifest(self.folder, msgspec.structs.replace(self.manifest, files=files, complete=True))


def _start(task: Task, settings: CollectionSettings, folder: Path) -> Work[tuple[int, Entry]]:
    """Make the environment, once; what comes back records an episode and writes its file."""
    recorder = Recorder(task, settings)

    def record(index: int) -> tuple[int, Entry]:
        demonstration = recorder.record(index)
        data = encode_demonstration(demonstration)
        write_atomically(folder / file_name(index), data)
        return index, make_entry(index, demonstration, data)

    return record


def _check_pickles(task: Task) -> None:
    try:
        pickle.dumps(task)
    except Exception as error:
        remedy = "use 1 worker, or name the task as file.py:task"
        raise BadInput(f"the task '{task.name}' cannot be sent to other processes ({error}); {remedy}") from None


@contextmanager
def open_collection(
    task: Task, folder: Path, settings: CollectionSettings, episodes: int, patience: float = 0.0
) -> Iterator[Collection]:
    """Begin a data set, or take up one that was begun: look at what is there, and keep others out meanwhile.

    For some seconds, wait for another who is about to end, as workers of a killed process are.
    """
    if not 1 <= episodes <= MOST_EPISODES:
        raise BadInput(f"the number of episodes must be at least 1, at most {MOST_EPISODES}, but is {episodes}")
    recorder = Recorder(task, settings)
    wanted = Manifest(
        settings=settings,
        episodes=episodes,
        spec_json=task.spec.as_json(),
        controls=recorder.env.controls,
        versions=versions(task.packages),
    )
    recorder.env.close()
    with alone_in(folder, "collecting", patience):
        for name in ("episode-*.npz", MANIFEST, DOMAIN):
            remove_leftovers(folder / name)
        known = _known(folder, wanted)
        _compare(folder, known, wanted)
        collection = Collection(task, folder, msgspec.structs.replace(wanted, versions=known.versions))
        _look_around(collection, known)
        _write_domain(task, folder)
        if collection.missing:
            if others := differences(known.versions, task.packages):
                raise BadInput(f"{folder}: was begun with {others}; choose another --output")
            write_manifest(folder, wanted)
        yield collection


def _known(folder: Path, wanted: Manifest) -> Manifest:
    """Return the manifest of what was begun in the folder, or the one that is wanted if nothing was."""
    if not (folder / MANIFEST).exists():
        if any(folder.glob("episode-*.npz")):
            raise BadInput(f"{folder}: there are episodes but no {MANIFEST}; {ELSEWHERE}")
        return wanted
    try:
        return read_manifest(folder)
    except Damaged as error:
        raise BadInput(f"{error}; {ELSEWHERE}") from None


def _compare(folder: Path, known: Manifest, wanted: Manifest) -> None:
    if known.source is not None:
        raise BadInput(f"{folder}: holds imported demonstrations, to which none can be added; {ELSEWHERE}")
    if known.settings != wanted.settings:
        raise BadInput(f"{folder}: was begun with {known.settings.differences(wanted.settings)}; {ELSEWHERE}")
    if known.spec != wanted.spec or known.controls != wanted.controls:
        what = "spec" if known.spec != wanted.spec else "action space"
        raise BadInput(f"{folder}: was begun when the task had another {what}; {ELSEWHERE}")
    if known.episodes > wanted.episodes:
        reason = f"is a data set of {known.episodes} episodes, more than the {wanted.episodes} wanted"
        raise BadInput(f"{folder}: {reason}; {ELSEWHERE}")


def _write_domain(task: Task, folder: Path) -> None:
    path, text = folder / DOMAIN, write_domain(task.domain)
    if not path.exists():
        write_atomically(path, text)
    elif path.read_text(encoding="utf-8", errors="replace") != text:
        raise BadInput(f"{path}: not the domain of the task '{task.name}'; {ELSEWHERE}")


def _look_around(collection: Collection, known: Manifest) -> None:
    """Find which episodes are there, whole, and which are broken."""
    for index in range(collection.manifest.episodes):
        if (collection.folder / file_name(index)).exists():
            try:
                collection.entries[index] = make_entry(index, *read_episode(collection.folder, known, index))
            except BadInput as error:
                collection.broken.append(str(error))
