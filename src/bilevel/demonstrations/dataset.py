"""A data set: a folder with a manifest, which says what it is and how it was made, and a file for each demonstration.

A demonstration is read when it is asked for. Demonstrations that were made otherwise can be in memory instead.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, overload

import msgspec

import bilevel
from bilevel.demonstrations.demonstration import Demonstration, decode_demonstration, encode_demonstration
from bilevel.files import write_atomically
from bilevel.json_files import Count, Name, decode, read_bytes
from bilevel.policies.rollout import Perturbation
from bilevel.seeds import training_seed
from bilevel.symbolic.domain import BadInput, Domain
from bilevel.symbolic.pddl import read_adl_domain
from bilevel.tasks.controls import Controls
from bilevel.tasks.perception import PERFECT, Perception
from bilevel.tasks.spec import Spec, read_spec
from bilevel.tasks.task import NOT_OF_ENVIRONMENTS, OBJECTS

FORMAT = 2
MANIFEST, DOMAIN = "manifest.json", "domain.pddl"
MOST_EPISODES = 100_000  # their numbers have five digits
OWN = "bilevel"  # the folder, in what is exported for others, with the data set itself


@dataclass
class CollectionReport:
    """What a collection found in its folder, and why attempts of the expert were not kept."""

    already_there: int = 0  # episodes
    broken: tuple[str, ...] = ()  # for each file that was broken, and was made again, where it is and why
    failures: Counter[str] = field(default_factory=Counter)  # attempts that are not kept, by how they ended


@dataclass
class ImportReport:
    """What became of the episodes that were read."""

    read: int = 0
    rate: float | None = None
    controls: Counter[str] = field(default_factory=Counter)  # of episodes, by where they come from
    dropped: Counter[str] = field(default_factory=Counter)  # by the reason
    clipped: int = 0  # numbers of controls that were out of bounds
    notes: list[str] = field(default_factory=list)


class Demonstrations(Sequence[Demonstration]):
    """Demonstrations, and what they are of: the task's name, its spec, its domain, and the controls.

    `arguments` are those of the environment, the number of objects among them, as far as they are known. The `items`
    are in memory, and are checked at once; those of `read` are in a `folder` with a `manifest`. What has just been
    collected or imported has the report of that.
    """

    folder: Path | None = None
    manifest: Manifest | None = None
    collected: CollectionReport | None = None
    report: ImportReport | None = None

    def __init__(
        self,
        items: Sequence[Demonstration] = (),
        *,
        task: str,
        spec: Spec,
        domain: Domain,
        controls: Controls,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self.task, self.spec, self.domain, self.controls = task, spec, domain, controls
        self.arguments: Mapping[str, Any] = arguments or {}
        self._length = len(items)
        self._item: Callable[[int], Demonstration] = items.__getitem__
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
            raise BadInput(f"{folder}: not complete; go on with: {manifest.command_for(folder)}")
        data = cls(
            task=manifest.settings.task,
            spec=manifest.spec,
            domain=read_adl_domain(folder / DOMAIN),
            controls=manifest.controls,
            arguments=manifest.settings.arguments,
        )
        data.folder, data.manifest = folder, manifest
        data._length, data._item = len(manifest.files), lambda number: read_episode(folder, manifest, number)[0]
        return data

    def with_domain(
        self, domain: Domain, spec: Spec, task: str, translated: Callable[[Demonstration], Demonstration]
    ) -> Demonstrations:
        """Return the same demonstrations as those of a task with another domain, each `translated` into its actions.

        The spec has the same features, but may leave other parameters of actions untold.
        """
        found = self.with_spec(spec)
        found.domain, found.task, found._item = domain, task, lambda number: translated(self._item(number))
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
        found._length = number
        return found

    def copy_to(self, folder: Path) -> None:
        """Copy the data set to a new folder, if it is in one and all of it is meant."""
        if self.folder and self.manifest and len(self) == len(self.manifest.files):
            folder.mkdir()
            for name in (MANIFEST, DOMAIN, *(entry.file for entry in self.manifest.files)):
                shutil.copyfile(self.folder / name, folder / name)

    @property
    def objects(self) -> int:
        """How many objects there are in the task, as far as that is known."""
        return int(self.arguments.get(OBJECTS, 1))

    @property
    def env_arguments(self) -> dict[str, Any]:
        """The arguments of the environment besides the number of objects."""
        return {name: value for name, value in self.arguments.items() if name != OBJECTS}

    @property
    def steps(self) -> int:
        """How many steps all of them have together."""
        files = self.manifest.files[: len(self)] if self.manifest else self
        return sum(each.steps for each in files)

    def episode(self, number: int) -> Demonstration:
        """Return the demonstration of this number; `BadInput` where there is none."""
        if not 0 <= number < len(self):
            raise BadInput(f"there is no episode {number}: they are counted from 0 to {len(self) - 1}")
        return self[number]

    @property
    def command(self) -> str:
        """The command that made the data set, but for its --output."""
        return self.manifest.command if self.manifest else "(made in memory)"

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Demonstration: ...

    @overload
    def __getitem__(self, index: slice) -> list[Demonstration]: ...

    def __getitem__(self, index: int | slice) -> Demonstration | list[Demonstration]:
        number = range(len(self))[index]
        return self._item(number) if isinstance(number, int) else [self._item(each) for each in number]


# The manifest


class CollectionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """All that an episode depends on besides its number."""

    task: Name
    arguments: dict[str, Any]  # of the environment, the number of objects among them, those left out too
    noise: Perturbation | None
    seed: Count
    perception: Perception = PERFECT

    def __post_init__(self) -> None:
        if type(self.arguments.get(OBJECTS)) is not int:
            raise ValueError(f"'{OBJECTS}' among the arguments must be a whole number")
        for name in NOT_OF_ENVIRONMENTS:
            if name != OBJECTS and name in self.arguments:
                raise ValueError(f"'{name}' is no argument of environments")

    def differences(self, other: CollectionSettings) -> str:
        """Return where these settings differ from others: `objects 3 instead of 4`."""
        ours, theirs = (
            {**msgspec.structs.asdict(each), **each.arguments, "perception": str(each.perception) or "perfect"}
            for each in (self, other)
        )
        names = [name for name in ours | theirs if name != "arguments" and ours.get(name) != theirs.get(name)]
        return ", ".join(f"{name} {ours.get(name)} instead of {theirs.get(name)}" for name in names)

    def words(self, episodes: int) -> list[str]:
        """Return the words of the command that collects so many episodes, but for its --output."""
        further = {name: value for name, value in self.arguments.items() if name != OBJECTS}
        words = ["bilevel", "collect", self.task, "--objects", str(self.arguments[OBJECTS]), *env_args(further)]
        words += ["--episodes", str(episodes), "--seed", str(self.seed)]
        words += ["--noise", str(self.noise.amplitude)] if self.noise else []
        return words + (["--perception", str(self.perception)] if self.perception != PERFECT else [])


def env_args(arguments: Mapping[str, Any]) -> list[str]:
    """Return arguments of an environment as words of a command; no words where there are none."""
    texts = (f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in arguments.items())
    return ["--env-args", *texts] if arguments else []


class FileEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of a data set; `attempts` counts the failed ones too."""

    file: str
    seed: int
    attempts: int
    steps: int
    sha256: str


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where the demonstrations of a data set were recorded, if not by `bilevel collect`."""

    format: str
    place: str  # a path, or the name of a data set
    options: tuple[str, ...] = ()  # of the import, as words of its command
    rate: float | None = None  # in Hz, of what was kept, if it is known
    read: int = 0  # episodes; those of them that were dropped follow, by the reason
    dropped: dict[str, int] = {}

    def words(self, task: str) -> list[str]:
        """Return the words of the command that imports them, but for its --output."""
        return ["bilevel", "import", self.place, "--format", self.format, "--task", task, *self.options]


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, dict=True):
    """What a data set says of itself. Its files are listed once it is complete."""

    format: Literal[2] = 2
    settings: CollectionSettings
    episodes: Annotated[int, msgspec.Meta(ge=1, le=MOST_EPISODES)]  # how many are wanted
    complete: bool = False
    spec_json: dict[str, Any] = msgspec.field(name="spec")
    controls: Controls
    keyframe: Literal[64] = 64
    versions: dict[str, str]
    files: tuple[FileEntry, ...] = ()
    source: Source | None = None  # of an imported data set

    def __post_init__(self) -> None:
        listed = self.episodes if self.complete else 0
        if [entry.file for entry in self.files] != [file_name(index) for index in range(listed)]:
            raise ValueError(f"'files' must list {listed} files in the order of their numbers")
        try:
            read_spec(self.spec_json)
        except BadInput as error:
            raise ValueError(str(error)) from None

    @cached_property
    def spec(self) -> Spec:
        """The features of agent and objects, and what they mean."""
        return read_spec(self.spec_json)

    @property
    def command(self) -> str:
        """The command that makes the data set, but for its --output."""
        settings = self.settings
        return shlex.join(self.source.words(settings.task) if self.source else settings.words(self.episodes))

    def command_for(self, folder: Path) -> str:
        """Return the command that makes the data set in a folder, or goes on making it."""
        return f"{self.command} --output {shlex.quote(str(folder))}"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write a line for each key and for each file."""
    fields = msgspec.to_builtins(manifest)
    if manifest.source is None:
        del fields["source"]
    files = ",".join(f"\n  {json.dumps(entry)}" for entry in fields.pop("files"))
    lines = [f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in fields.items()]
    write_atomically(folder / MANIFEST, "{\n" + "".join(lines) + f'"files": [{files}]\n}}\n')


def read_manifest(folder: Path) -> Manifest:
    """Return what the data set in a folder says of itself; `Damaged` where that makes no sense."""
    path = folder / MANIFEST
    if not path.is_file():
        raise BadInput(f"{folder}: no data set: there is no {MANIFEST} in it")
    data = read_bytes(path)
    number = decode(data, dict[str, Any], path).get("format")
    if isinstance(number, int) and number != FORMAT:
        advice = "upgrade bilevel" if number > FORMAT else "collect it again"
        raise BadInput(f"{path}: of format {number}, but bilevel {bilevel.__version__} reads format {FORMAT}; {advice}")
    return decode(data, Manifest, path)


# The files


def file_name(index: int) -> str:
    """Return the name of the file of the demonstration with this number."""
    return f"episode-{index:05d}.npz"


def make_entry(index: int, demonstration: Demonstration, data: bytes) -> FileEntry:
    """Return what a manifest says of a demonstration that is written as `data`."""
    digest = hashlib.sha256(data).hexdigest()
    return FileEntry(file_name(index), demonstration.seed, demonstration.attempt + 1, demonstration.steps, digest)


def write_episode(folder: Path, index: int, demonstration: Demonstration) -> FileEntry:
    """Write the file of a demonstration, and return what a manifest says of it."""
    data = encode_demonstration(demonstration)
    write_atomically(folder / file_name(index), data)
    return make_entry(index, demonstration, data)


def read_episode(folder: Path, manifest: Manifest, index: int) -> tuple[Demonstration, bytes]:
    """Return one demonstration and the bytes of its file; `BadInput` names the file if it is not what it should be."""
    path = folder / file_name(index)
    data = read_bytes(path)
    try:
        demonstration = decode_demonstration(data, manifest.spec, manifest.controls)
        seed = training_seed(manifest.settings.seed, index, demonstration.attempt)
        if manifest.source is None and demonstration.seed != seed:
            raise BadInput(f"its seed {demonstration.seed} is not that of episode {index}")
        if manifest.complete and make_entry(index, demonstration, data).sha256 != manifest.files[index].sha256:
            raise BadInput("not the file that the manifest describes (another sha256)")
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    return demonstration, data
