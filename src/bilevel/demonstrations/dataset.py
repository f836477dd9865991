"""A data set: a folder with a manifest, which says what it is and how it was made, and a file for each demonstration.

A demonstration is read when it is asked for. Demonstrations that were made otherwise can be in memory instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.manifest import DOMAIN, Manifest, read_episode, read_manifest
from bilevel.symbolic.adl import read_adl_domain
from bilevel.symbolic.domain import BadInput, Domain
from bilevel.tasks.controls import Controls
from bilevel.tasks.spec import Spec
from bilevel.tasks.task import Task

if TYPE_CHECKING:
    from bilevel.demonstrations.importing.importer import ImportReport
    from bilevel.demonstrations.importing.recorded import Recordings


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
        self._translated: Callable[[Demonstration], Demonstration] | None = None
        self._most: int | None = None  # see `first`
        self.report: ImportReport | None = None  # of what has just been imported
        for number, demonstration in enumerate(items):
            try:
                demonstration.check(spec, controls)
            except BadInput as error:  # noqa: PERF203
                raise BadInput(f"demonstration {number}: {error}") from None

    def __repr__(self) -> str:
        where = f" in {self.folder}" if self.folder else ""
        return f"Demonstrations({self.task}: {len(self):,} demonstrations{where})"

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
            domain=read_adl_domain(folder / DOMAIN),
            controls=manifest.controls,
            arguments=manifest.settings.arguments,
            folder=folder,
            manifest=manifest,
        )

    @classmethod
    def from_recordings(
        cls,
        recordings: Recordings,
        task: Task,
        output: Path | str | None = None,
        *,
        callback: Callable[[int, int], None] | None = None,
        **options: Any,
    ) -> Demonstrations:
        """Return recorded episodes as demonstrations of a task: in memory, or in a new folder.

        The `options` are those of `ImportOptions`. `report` says what became of each episode. `callback` is told how
        many episodes have been read, and how many there are.
        """
        from bilevel.demonstrations.importing.importer import ImportOptions, import_recordings

        folder = None if output is None else Path(output)
        imported = import_recordings(recordings, task, folder, ImportOptions(**options), callback)
        data = (
            cls.read(folder)
            if folder
            else cls(
                imported.items,
                task=task.name,
                spec=task.spec,
                domain=task.domain,
                controls=imported.controls,
                arguments=imported.settings.arguments,
            )
        )
        data.report = imported.report
        return data

    @classmethod
    def from_arrays(
        cls,
        observations: Sequence[Any],
        controls: Sequence[Any] | None = None,
        *,
        task: Task,
        output: Path | str | None = None,
        infos: Sequence[Any] | None = None,
        successes: Sequence[bool] | None = None,
        demonstrators: Sequence[str] | None = None,
        seeds: Sequence[int] | None = None,
        **options: Any,
    ) -> Demonstrations:
        """Import episodes that are in memory; each argument but task and output holds one thing for each of them.

        The observations of an episode are a list of scenes, an array, or a dictionary or tuple of arrays. There is one
        more of them than there are controls, or as many. For the `options` see `ImportOptions`.

            data = Demonstrations.from_arrays(scenes, controls, task=task)
        """
        from bilevel.demonstrations.importing.array_reader import recordings_in_memory

        recordings = recordings_in_memory(observations, controls, infos, successes, demonstrators, seeds)
        return cls.from_recordings(recordings, task, output, **options)

    @classmethod
    def from_npz(cls, path: Path | str, task: Task, output: Path | str | None = None, **options: Any) -> Demonstrations:
        """Import an npz file of `observations`, `actions` and `terminals`, or a folder of such files."""
        from bilevel.demonstrations.importing.array_reader import read_npz

        return cls.from_recordings(read_npz(Path(path)), task, output, **options)

    @classmethod
    def from_minari(
        cls, source: Path | str, task: Task, output: Path | str | None = None, **options: Any
    ) -> Demonstrations:
        """Import a Minari data set, given by its name or its folder."""
        from bilevel.demonstrations.importing.minari_reader import read_minari

        return cls.from_recordings(read_minari(str(source)), task, output, **options)

    @classmethod
    def from_lerobot(
        cls, path: Path | str, task: Task, output: Path | str | None = None, **options: Any
    ) -> Demonstrations:
        """Import a LeRobot data set (v2.1 or v3.0), given by its folder."""
        from bilevel.demonstrations.importing.lerobot_reader import read_lerobot

        return cls.from_recordings(read_lerobot(Path(path)), task, output, **options)

    @classmethod
    def from_robomimic(
        cls, path: Path | str, task: Task, output: Path | str | None = None, *, mask: str | None = None, **options: Any
    ) -> Demonstrations:
        """Import an HDF5 file of robomimic's, or those of its episodes that a mask names, such as train."""
        from bilevel.demonstrations.importing.robomimic_reader import read_robomimic

        return cls.from_recordings(read_robomimic(Path(path), mask), task, output, **options)

    def with_domain(
        self, domain: Domain, spec: Spec, task: str, translated: Callable[[Demonstration], Demonstration]
    ) -> Demonstrations:
        """Return the same demonstrations as those of a task with another domain, each `translated` into its actions.

        The spec has the same features, but may leave other parameters of actions untold.
        """
        found = copy(self)
        found.domain, found.spec, found.task, found._translated = domain, spec, task, translated
        return found

    def with_spec(self, spec: Spec) -> Demonstrations:
        """Return the same demonstrations with a spec of the same features, of which others are told."""
        found = copy(self)
        found.spec = spec
        return found

    def first(self, number: int) -> Demonstrations:
        """Return the first so many of them, as a data set of its own; `BadInput` where there are fewer."""
        if not 1 <= number <= len(self):
            raise BadInput(f"{self!r}: the first {number} are asked for")
        found = copy(self)
        found._most = number
        return found

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
        number = len(self.manifest.files if self.manifest else self._items)
        return number if self._most is None else min(number, self._most)

    @overload
    def __getitem__(self, index: int) -> Demonstration: ...

    @overload
    def __getitem__(self, index: slice) -> list[Demonstration]: ...

    def __getitem__(self, index: int | slice) -> Demonstration | list[Demonstration]:
        number = range(len(self))[index]
        if isinstance(number, range):
            return [self[each] for each in number]
        if self.manifest is None or self.folder is None:
            found = self._items[number]
        else:
            found = read_episode(self.folder, self.manifest, number)[0]
        return self._translated(found) if self._translated else found
