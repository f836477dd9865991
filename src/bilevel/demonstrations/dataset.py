"""A data set: a folder with a manifest, which says what it is and how it was made, and a file for each demonstration.

A demonstration is read when it is asked for. Demonstrations that were made otherwise can be in memory instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.manifest import DOMAIN, Manifest, read_episode, read_manifest
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
        for number, demonstration in enumerate(items):
            try:
                demonstration.check(spec, controls)
            except BadInput as error:  # noqa: PERF203
                raise BadInput(f"demonstration {number}: {error}") from None

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

    def __len__(self) -> int:
        return len(self.manifest.files if self.manifest else self._items)

    @overload
    def __getitem__(self, index: int) -> Demonstration: ...

    @overload
    def __getitem__(self, index: slice) -> list[Demonstration]: ...

    def __getitem__(self, index: int | slice) -> Demonstration | list[Demonstration]:
        number = range(len(self))[index]
        if isinstance(number, range):
            return [self[each] for each in number]
        if self.manifest is None or self.folder is None:
            return self._items[number]
        return read_episode(self.folder, self.manifest, number)[0]
