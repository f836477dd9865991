"""Demonstrations of one task: a folder of them, read one at a time, or some in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.episode_file import decode
from bilevel.demonstrations.manifest import DOMAIN, Manifest, digest, file_name, read_manifest
from bilevel.seeds import training_seed
from bilevel.symbolic.domain import BadInput, Domain
from bilevel.symbolic.pddl import read_domain
from bilevel.tasks.controls import Controls
from bilevel.tasks.spec import Spec


class Demonstrations(Sequence[Demonstration]):
    """Demonstrations, and what they are of: the task's name, its spec, its domain, and the controls.

    `arguments` are those of the environment, the number of objects among them, as far as they are known. The `items`
    are in memory, and are checked at once; or there is a `folder` with its `manifest`, see `read`.
    """

    def __init__(
        self,
        items: Sequence[Demonstration] = (),
        *,
        task: str,
        spec: Spec,
        domain: Domain,
        controls: Controls,
        arguments: Mapping[str, Any] | None = None,
        folder: Path | None = None,
        manifest: Manifest | None = None,
    ) -> None:
        self._items = items
        self.task, self.spec, self.domain, self.controls = task, spec, domain, controls
        self.arguments: Mapping[str, Any] = arguments or {}
        self.folder, self.manifest = folder, manifest
        self._check()

    @classmethod
    def read(cls, folder: Path | str) -> Demonstrations:
        """Return the complete data set in a folder; each file is read only when its demonstration is asked for."""
        folder = Path(folder)
        manifest = read_manifest(folder)
        if not manifest.complete:
            raise BadInput(f"{folder}: not complete; go on with: {manifest.command} --output {folder}")
        return cls(
            task=manifest.settings.task,
            spec=manifest.spec,
            domain=read_domain(folder / DOMAIN),
            controls=manifest.controls,
            arguments=manifest.settings.arguments,
            folder=folder,
            manifest=manifest,
        )

    @property
    def objects(self) -> int:
        """How many objects there are in the task, as far as that is known."""
        return int(self.arguments.get("objects", 1))

    @property
    def env_arguments(self) -> dict[str, Any]:
        """The arguments of the environment besides the number of objects."""
        return {name: value for name, value in self.arguments.items() if name != "objects"}

    @property
    def command(self) -> str:
        """The command that made the data set, but for its --output."""
        return self.manifest.command if self.manifest else "(made in memory)"

    def _check(self) -> None:
        number = 0
        try:
            for number, demonstration in enumerate(self._items):  # noqa: B007
                demonstration.check(self.spec, self.controls)
        except BadInput as error:
            raise BadInput(f"demonstration {number}: {error}") from None

    def __len__(self) -> int:
        return len(self.manifest.files if self.manifest else self._items)

    @overload
    def __getitem__(self, index: int) -> Demonstration: ...

    @overload
    def __getitem__(self, index: slice) -> list[Demonstration]: ...

    def __getitem__(self, index: int | slice) -> Demonstration | list[Demonstration]:
        numbers = range(len(self))[index]
        return [self._get(number) for number in numbers] if isinstance(numbers, range) else self._get(numbers)

    def _get(self, number: int) -> Demonstration:
        if self.manifest is None or self.folder is None:
            return self._items[number]
        return read_episode(self.folder, self.manifest, number)[0]


class Missing(BadInput):
    """A file that is not there."""


def read_episode(folder: Path, manifest: Manifest, index: int) -> tuple[Demonstration, bytes]:
    """Return one demonstration and the bytes of its file; `BadInput` names the file if it is not what it should be."""
    path = folder / file_name(index)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise Missing(f"{path}: missing") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    try:
        demonstration = decode(data, manifest.spec, manifest.controls)
        if demonstration.seed != training_seed(manifest.settings.seed, index, demonstration.attempt):
            raise BadInput(f"its seed {demonstration.seed} is not that of episode {index}")
        if manifest.files[index : index + 1] and digest(data) != manifest.files[index].sha256:
            raise BadInput("not the file that the manifest describes (another sha256)")
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    return demonstration, data
