"""A data set: a folder of demonstrations of one task, read one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.episode_file import decode
from bilevel.demonstrations.manifest import Manifest, digest, file_name, read_manifest
from bilevel.seeds import training_seed
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.observation import FEATURES
from bilevel.tabletop.tasks import Task, find_task


@dataclass(frozen=True)
class Dataset(Sequence[Demonstration]):
    """A complete data set; each demonstration is read from its file when it is asked for."""

    folder: Path
    manifest: Manifest

    @property
    def task(self) -> Task:
        return find_task(self.manifest.recipe.task)

    def __len__(self) -> int:
        return len(self.manifest.entries)

    @overload
    def __getitem__(self, index: int) -> Demonstration: ...

    @overload
    def __getitem__(self, index: slice) -> list[Demonstration]: ...

    def __getitem__(self, index: int | slice) -> Demonstration | list[Demonstration]:
        numbers = range(len(self))[index]
        if isinstance(numbers, range):
            return [self._read(number) for number in numbers]
        return self._read(numbers)

    def __iter__(self) -> Iterator[Demonstration]:
        return (self._read(number) for number in range(len(self)))

    def _read(self, index: int) -> Demonstration:
        demonstration, _ = read_episode(self.folder, self.manifest, index)
        return demonstration


def read_dataset(folder: Path | str) -> Dataset:
    """The data set in a folder; its files are looked at only when they are needed."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    find_task(manifest.recipe.task)
    if not manifest.complete:
        raise BadInput(f"{folder}: not complete; go on with: {manifest.command} --output {folder}")
    return Dataset(folder, manifest)


class Missing(BadInput):
    """A file that is not there."""


class Misfit(BadInput):
    """A file that is whole, but not the one that belongs here."""


def read_episode(folder: Path, manifest: Manifest, index: int) -> tuple[Demonstration, bytes]:
    """One demonstration and the bytes of its file; `BadInput`, which names the file, if it is not what it should be."""
    path = folder / file_name(index)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise Missing(f"{path}: missing") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    try:
        demonstration = decode(data)
        _check(demonstration, digest(data), manifest, index)
    except BadInput as error:
        raise type(error)(f"{path}: {error}") from None
    return demonstration, data


def _check(demonstration: Demonstration, sha256: str, manifest: Manifest, index: int) -> None:
    """Whether a demonstration is the one of this number in this data set."""
    if demonstration.recipe != manifest.recipe:
        raise Misfit(f"belongs to another data set: {demonstration.recipe.differences(manifest.recipe)}")
    if demonstration.seed != training_seed(manifest.recipe.seed, index, demonstration.attempt):
        raise Misfit(f"its seed {demonstration.seed} is not that of episode {index}")
    shape = demonstration.objects.shape[1:]
    if shape != (len(manifest.slots), len(FEATURES)):
        raise BadInput(f"'objects' has {shape[0]} slots, but the manifest names {len(manifest.slots)}")
    if manifest.entries:
        entry = manifest.entries[index]
        found = (demonstration.seed, demonstration.attempt + 1, demonstration.steps)
        if sha256 != entry.sha256 or found != (entry.seed, entry.attempts, entry.steps):
            raise BadInput("not the file that the manifest describes (another sha256)")
