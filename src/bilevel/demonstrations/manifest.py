"""The manifest of a data set, which says what it is and how it was made, and the files beside it."""

from __future__ import annotations

import hashlib
import json
import shlex
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

import bilevel
from bilevel.demonstrations.demonstration import Demonstration, decode_demonstration
from bilevel.files import write_atomically
from bilevel.json_files import decode, read_bytes
from bilevel.policies.rollout import Perturbation
from bilevel.seeds import training_seed
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import Controls
from bilevel.tasks.perception import PERFECT, Perception
from bilevel.tasks.spec import Spec, read_spec
from bilevel.tasks.task import NOT_OF_ENVIRONMENTS, OBJECTS
from bilevel.versions import differences

FORMAT = 2
MANIFEST, DOMAIN = "manifest.json", "domain.pddl"
MOST_EPISODES = 100_000  # their numbers have five digits


def file_name(index: int) -> str:
    """Return the name of the file of the demonstration with this number."""
    return f"episode-{index:05d}.npz"


def digest(data: bytes) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


class CollectionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """All that an episode depends on besides its number."""

    task: str
    arguments: dict[str, Any]  # of the environment, the number of objects among them, those left out too
    noise: Perturbation | None
    seed: Annotated[int, msgspec.Meta(ge=0)]
    perception: Perception = PERFECT

    def __post_init__(self) -> None:
        if type(self.arguments.get(OBJECTS)) is not int:
            raise ValueError(f"'{OBJECTS}' among the arguments must be a whole number")
        for name in NOT_OF_ENVIRONMENTS:
            if name != OBJECTS and name in self.arguments:
                raise ValueError(f"'{name}' is no argument of environments")

    def differences(self, other: CollectionSettings) -> str:
        """Say where these settings differ from others: `objects 3 instead of 4`."""
        ours, theirs = (
            {
                "task": s.task,
                **s.arguments,
                "noise": s.noise,
                "seed": s.seed,
                "perception": str(s.perception) or "perfect",
            }
            for s in (self, other)
        )
        names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
        return ", ".join(f"{name.replace('_', ' ')} {ours.get(name)} instead of {theirs.get(name)}" for name in names)

    def command(self, episodes: int) -> str:
        """Return the command that collects so many episodes, but for its --output."""
        further = {name: value for name, value in self.arguments.items() if name != OBJECTS}
        words = [f"bilevel collect {self.task} --objects {self.arguments[OBJECTS]}"]
        words += ["--env-args", *(f"{name}={_text(value)}" for name, value in further.items())] if further else []
        words += [f"--episodes {episodes} --seed {self.seed}"]
        words += [f"--noise {self.noise.amplitude}"] if self.noise else []
        words += [f"--perception {self.perception}"] if self.perception != PERFECT else []
        return " ".join(words)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of a data set; `attempts` counts the failed ones too."""

    file: str
    seed: int
    attempts: int
    steps: int
    sha256: str


def make_entry(index: int, demonstration: Demonstration, data: bytes) -> Entry:
    """Return what a manifest says of a demonstration that is written as `data`."""
    attempts = demonstration.attempt + 1
    return Entry(file_name(index), demonstration.seed, attempts, demonstration.steps, digest(data))


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where the demonstrations of a data set were recorded, if not by `bilevel collect`."""

    format: str
    place: str  # a path, or the name of a data set
    options: tuple[str, ...] = ()  # of the import, as words of its command
    rate: float | None = None  # in Hz, of what was kept, if it is known
    read: int = 0  # episodes; those of them that were dropped follow, by the reason
    dropped: dict[str, int] = {}

    def command(self, task: str) -> str:
        """Return the command that imports them, but for its --output."""
        return " ".join(
            ["bilevel import", shlex.quote(self.place), "--format", self.format, "--task", task, *self.options]
        )


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
    files: tuple[Entry, ...] = ()
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
        return self.source.command(self.settings.task) if self.source else self.settings.command(self.episodes)

    @property
    def other_versions(self) -> str:
        """Where the versions that the data set was made with differ from those at hand, in words."""
        return differences(self.versions, self.versions)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write a line for each key and for each file."""
    fields = msgspec.to_builtins(manifest)
    if manifest.source is None:
        del fields["source"]
    files = ",".join(f"\n  {json.dumps(entry)}" for entry in fields.pop("files"))
    lines = [f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in fields.items()]
    write_atomically(folder / MANIFEST, "{\n" + "".join(lines) + f'"files": [{files}]\n}}\n')


def read_manifest(folder: Path) -> Manifest:
    """Raise `Damaged` where it is damaged, other `BadInput` where there is none or it is of another format."""
    path = folder / MANIFEST
    if not path.is_file():
        raise BadInput(f"{folder}: no data set: there is no {MANIFEST} in it")
    data = read_bytes(path)
    value = decode(data, dict[str, Any], path)
    number = value.get("format")
    if isinstance(number, int) and number > FORMAT:
        reason = f"of format {number}, but bilevel {bilevel.__version__} reads format {FORMAT}; upgrade bilevel"
        raise BadInput(f"{path}: {reason}")
    if number == 1:
        command = f"{_old_command(value)} --output ANOTHER_FOLDER"
        raise BadInput(f"{path}: made by bilevel 0.1; collect it again with: {command}")
    return decode(data, Manifest, path)


def _old_command(value: dict[str, Any]) -> str:
    """The command that made a data set of format 1, as far as that can be seen."""
    try:
        settings = {key: value[key] for key in CollectionSettings.__struct_fields__ if key in value}
        return msgspec.convert(settings, CollectionSettings).command(int(value["episodes"]))
    except (msgspec.ValidationError, KeyError, ValueError, TypeError):
        return "bilevel collect"


def read_episode(folder: Path, manifest: Manifest, index: int) -> tuple[Demonstration, bytes]:
    """Return one demonstration and the bytes of its file; `BadInput` names the file if it is not what it should be."""
    path = folder / file_name(index)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise BadInput(f"{path}: missing") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    try:
        demonstration = decode_demonstration(data, manifest.spec, manifest.controls)
        if manifest.source is None and demonstration.seed != training_seed(
            manifest.settings.seed, index, demonstration.attempt
        ):
            raise BadInput(f"its seed {demonstration.seed} is not that of episode {index}")
        if manifest.files[index : index + 1] and digest(data) != manifest.files[index].sha256:
            raise BadInput("not the file that the manifest describes (another sha256)")
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    return demonstration, data
