"""Collecting a data set: in parallel, and so that it can be stopped, killed and taken up again at any time.

The manifest is written first, then a file for each episode as soon as it is recorded, then the manifest again with the
list of all files. What a file holds depends on the recipe and its number alone, so it does not matter who records it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from bilevel.demonstrations.dataset import Misfit, Missing, read_episode
from bilevel.demonstrations.demonstration import Recipe
from bilevel.demonstrations.episode_file import encode
from bilevel.demonstrations.manifest import (
    MANIFEST,
    BrokenManifest,
    Entry,
    Manifest,
    check_number,
    file_name,
    make_entry,
    other_versions,
    read_manifest,
    versions,
    write_manifest,
)
from bilevel.demonstrations.recording import Recorder
from bilevel.files import remove_leftovers, taken_by_another, write_atomically
from bilevel.processes import Work, spread
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.observation import Slots


class Taken(BadInput):
    """Somebody else is at it."""


@dataclass
class Collection:
    """A data set in the making: which episodes are there, and which files were broken and have to be made again."""

    folder: Path
    manifest: Manifest
    entries: dict[int, Entry] = field(default_factory=dict)  # by number
    broken: list[str] = field(default_factory=list)

    @property
    def missing(self) -> list[int]:
        return [index for index in range(self.manifest.episodes) if index not in self.entries]

    @property
    def failures(self) -> int:
        """Attempts of the expert that did not succeed and were not kept."""
        return sum(entry.attempts - 1 for entry in self.entries.values())

    def collect(self, workers: int = 1) -> Iterator[Entry]:
        """Record what is missing; each episode as soon as its file is there."""
        start = partial(_start, self.manifest.recipe, self.folder)
        with closing(spread(start, self.missing, workers)) as done:
            for index, entry in done:
                self.entries[index] = entry
                yield entry
        entries = tuple(self.entries[index] for index in range(self.manifest.episodes))
        write_manifest(self.folder, replace(self.manifest, entries=entries, complete=True))


def _start(recipe: Recipe, folder: Path) -> Work[tuple[int, Entry]]:
    """Make the environment, once; what comes back records an episode and writes its file."""
    recorder = Recorder(recipe)

    def record(index: int) -> tuple[int, Entry]:
        demonstration = recorder.record(index)
        data = encode(demonstration)
        write_atomically(folder / file_name(index), data)
        return index, make_entry(index, demonstration, data)

    return record


@contextmanager
def open_when_free(
    folder: Path, recipe: Recipe, slots: Slots, episodes: int, patience: float = 10.0
) -> Iterator[Collection]:
    """As `open_collection`, but wait some seconds for one who is about to end, as workers of a killed process are."""
    end = time.monotonic() + patience
    with ExitStack() as open_things:
        while True:
            try:
                collection = open_things.enter_context(open_collection(folder, recipe, slots, episodes))
                break
            except Taken:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)
        yield collection


@contextmanager
def open_collection(folder: Path, recipe: Recipe, slots: Slots, episodes: int) -> Iterator[Collection]:
    """Begin a data set, or take up one that was begun: look at what is there, and keep others out meanwhile."""
    check_number(episodes)
    wanted = Manifest(recipe, episodes, slots, versions())
    with _alone_in(folder):
        remove_leftovers(folder / "episode-*.npz")
        remove_leftovers(folder / MANIFEST)
        known = _known(folder, wanted)
        _compare(folder, known, wanted)
        collection = Collection(folder, replace(wanted, versions=known.versions))
        _look_around(collection, known)
        if collection.missing:
            if others := other_versions(known):
                raise BadInput(f"{folder}: was begun with {others}; choose another --output")
            write_manifest(folder, wanted)
        yield collection


def _known(folder: Path, wanted: Manifest) -> Manifest:
    """What is known of the folder; where there is no manifest, its episodes must speak for themselves."""
    try:
        return read_manifest(folder) if (folder / MANIFEST).exists() else wanted
    except BrokenManifest as error:
        raise BadInput(
            f"{error}; remove this file and run the same command again, which keeps whole episodes"
        ) from None


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keep other processes from collecting into the folder; the lock goes with this process, however it ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise BadInput(f"{folder}: cannot be used as a folder: {error.strerror}") from None
    try:
        if taken_by_another(handle):
            raise Taken(f"{folder}: another process is collecting here; wait for it or choose another --output")
        yield
    finally:
        os.close(handle)


def _compare(folder: Path, known: Manifest, wanted: Manifest) -> None:
    if known.recipe != wanted.recipe:
        reason = f"was begun with {known.recipe.differences(wanted.recipe)}"
        raise BadInput(f"{folder}: {reason}; choose another --output or remove the folder")
    if known.episodes > wanted.episodes:
        reason = f"is a data set of {known.episodes} episodes, more than the {wanted.episodes} wanted"
        raise BadInput(f"{folder}: {reason}; choose another --output or remove the folder")


def _look_around(collection: Collection, known: Manifest) -> None:
    """Which episodes are there, whole, and which are broken."""
    for index in range(collection.manifest.episodes):
        listed = known if index < len(known.entries) else replace(known, entries=())
        try:
            demonstration, data = read_episode(collection.folder, listed, index)
        except Missing:
            continue
        except Misfit as error:
            raise BadInput(f"{error}; choose another --output or remove it") from None
        except BadInput as error:
            collection.broken.append(str(error))
            continue
        collection.entries[index] = make_entry(index, demonstration, data)
