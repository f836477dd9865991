"""A data set: a folder with a manifest, which says what it is and how it was made, and a file for each demonstration.

A demonstration is one episode of an expert, with all that it takes to learn from it and to live through it again. As a
file it is a compressed npz archive of plain arrays, with the rest as JSON among them; the same demonstration always
gives the same bytes. It is read when it is asked for, and checked: a file is whole and sensible, or it is refused with
the reason. Demonstrations that were made otherwise can be in memory instead.
"""

from __future__ import annotations

import hashlib
import io
import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

import bilevel
from bilevel.demonstrations.importing.recorded import reading
from bilevel.files import read_bytes, write_atomically
from bilevel.json_files import Count, Name, decode
from bilevel.policies.rollout import Perturbation
from bilevel.progress import Callback, Progress, silent
from bilevel.seeds import training_seed
from bilevel.symbolic.domain import Action, Atom, BadInput, Domain, Facts
from bilevel.symbolic.pddl import read_adl_domain
from bilevel.tasks.controls import BoxControls, Controls
from bilevel.tasks.perception import PERFECT, Perception
from bilevel.tasks.scene import Array, Roster, Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.spec import Spec
from bilevel.tasks.task import NOT_OF_ENVIRONMENTS, OBJECTS, Task

FORMAT = 2
MANIFEST, DOMAIN = "manifest.json", "domain.pddl"
MOST_EPISODES = 100_000  # their numbers have five digits
KEYFRAME = 64  # steps from one snapshot of the simulator to the next

Value = TypeVar("Value")
Changes = tuple[tuple[int, Value], ...]  # each with the timestep from which on it holds


@dataclass(frozen=True, repr=False)
class Demonstration:
    """A timestep is what is seen before a step, and at the end: there is one more than there are steps.

    `controls` are what the expert wanted, to be imitated; `executed` is what was done, which differs where it was
    perturbed, to be replayed. Events come with the timestep at which they were first seen. Those of an expert of the
    task leave the last two fields as they are; they are for demonstrations that come from elsewhere.
    """

    objects: Mapping[str, str]  # the types of all that were ever visible, those of one type side by side
    agent: Array  # (timesteps, agent features)
    features: Array  # (timesteps, objects, columns)
    visible: NDArray[np.bool_]  # (timesteps, objects)
    controls: NDArray[Any]  # (steps, ...)
    executed: NDArray[Any]  # (steps, ...)
    actions: tuple[Action | None, ...]  # (steps,): what the expert was doing, where it says so
    states: Changes[Facts]
    goals: Changes[Facts]
    events: Changes[str] = ()
    outcome: str = "success"
    seed: int = 0
    attempt: int = 0  # how many episodes with other seeds had failed before
    snapshots: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # (keyframes, ...) each; may be none
    demonstrator: str = ""  # who it was, where there are several
    has_controls: bool = True  # else `controls` and `executed` are zeros, as what was done is not on record

    @classmethod
    def of(
        cls, scenes: Sequence[Scene], states: list[Facts], goals: list[Facts], controls: NDArray[Any], **further: Any
    ) -> Demonstration:
        """Return the demonstration in which these scenes were seen and so labelled; `further` are other fields."""
        stretches = [(each, [*now]) for each, now in groupby(range(len(scenes)), key=lambda now: scenes[now].roster)]
        types: dict[str, str] = {}
        for roster, _ in stretches:
            for name, kind in roster.objects.items():
                if types.setdefault(name, kind) != kind:
                    raise BadInput(f"'{name}' is of the type '{types[name]}' first, then of the type '{kind}'")
        kinds = [*dict.fromkeys(types.values())]
        objects = dict(sorted(types.items(), key=lambda item: kinds.index(item[1])))
        row = {name: index for index, name in enumerate(objects)}
        features = np.zeros((len(scenes), len(objects), len(scenes[0].spec.columns)), np.float32)
        visible = np.zeros(features.shape[:2], np.bool_)
        for roster, timesteps in stretches:
            seen = np.ix_(timesteps, [row[name] for name in roster.names])
            features[seen], visible[seen] = np.stack([scenes[now].features for now in timesteps]), True
        defaults: dict[str, Any] = {"executed": controls, "actions": (None,) * len(controls)}
        return cls(
            objects=objects,
            agent=np.stack([scene.values for scene in scenes]),
            features=features,
            visible=visible,
            controls=controls,
            states=changes(states),
            goals=changes(goals),
            **(defaults | further),
        )

    def __repr__(self) -> str:
        return f"Demonstration({len(self.objects)} objects, {self.steps:,} steps, {self.outcome})"

    @property
    def steps(self) -> int:
        """How many controls were given."""
        return len(self.controls)

    def scenes(self, spec: Spec) -> list[Scene]:
        """Return the scene of every timestep; these share a roster for as long as no object comes or goes."""
        scenes = []
        roster = Roster({})
        for now, visible in enumerate(self.visible):
            if now == 0 or (visible != self.visible[now - 1]).any():
                seen = zip(self.objects.items(), visible, strict=True)
                roster = Roster({name: kind for (name, kind), is_visible in seen if is_visible})
            features = self.features[now] if len(roster.names) == len(self.objects) else self.features[now][visible]
            scenes.append(Scene.from_arrays(spec, self.agent[now], features, roster))
        return scenes

    def at_each_timestep(self, changes: Changes[Value]) -> list[Value]:
        """Return the states or the goals of all timesteps."""
        ends = [*(start for start, _ in changes[1:]), self.steps + 1]
        return [value for (start, value), end in zip(changes, ends, strict=True) for _ in range(start, end)]

    def targets(self, controls: Controls) -> Array:
        """Return the controls to imitate, normalised, (steps, size); `BadInput` where none are on record."""
        if not self.has_controls:
            remedy = "learn rules alone: bilevel rules learn --demonstrations DIR"
            raise BadInput(f"no controls were recorded in this data set, so no network can be learned; {remedy}")
        return controls.encode(self.controls)

    @property
    def keyframes(self) -> NDArray[np.int64]:
        """(keyframes,): the timesteps of the snapshots, the end of the episode among them."""
        return np.array([*range(0, self.steps, KEYFRAME), self.steps], np.int64)

    def check(self, spec: Spec, controls: Controls) -> None:
        """Raise `BadInput` where this is no demonstration with such features and controls."""
        seen = (self.steps + 1, len(self.objects))
        control = (controls.dtype, (self.steps, *controls.shape))
        for name, (dtype, shape) in {
            "agent": ("float32", (self.steps + 1, len(spec.agent))),
            "features": ("float32", (*seen, len(spec.columns))),
            "visible": ("bool", seen),
            "controls": control,
            "executed": control,
        }.items():
            array = getattr(self, name)
            if (array.dtype, array.shape) != (np.dtype(dtype), shape):
                raise BadInput(f"'{name}' holds {array.dtype} of shape {array.shape}, not {dtype} of shape {shape}")
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise BadInput(f"'{name}' holds numbers that are not finite")
        if not isinstance(controls, BoxControls):
            for chosen in (self.controls - controls.start, self.executed - controls.start):
                if chosen.size and not 0 <= chosen.min() <= chosen.max() < controls.n:
                    raise BadInput(f"a control is out of range: there are {controls.n} controls from {controls.start}")
        if len(self.actions) != self.steps:
            raise BadInput(f"{self.steps} controls need as many actions, not {len(self.actions)}")
        for name in (name for name, kind in self.objects.items() if kind not in spec.objects):
            raise BadInput(f"'{name}' is of the type '{self.objects[name]}', which the spec does not have")
        for kind in spec.objects:
            Roster(self.objects).rows(kind)  # side by side
        for name, changes in (("states", self.states), ("goals", self.goals), ("events", self.events)):
            times = [timestep for timestep, _ in changes]
            if times != sorted(times) or (times and not 0 <= times[0] <= times[-1] <= self.steps):
                raise BadInput(f"'{name}' have timesteps that are not in order, or not those of the episode")
            if name != "events" and times[:1] != [0]:
                raise BadInput(f"'{name}' do not begin with the episode")
        for name, part in self.snapshots.items():
            if part.dtype.kind not in "fiub" or part.shape[:1] != self.keyframes.shape:
                what = f"is {part.dtype} of shape {part.shape}, not numbers for {len(self.keyframes)} keyframes"
                raise BadInput(f"the snapshots' '{name}' {what}")


def changes(values: Iterable[Value]) -> Changes[Value]:
    """Return the values that differ from the one before, with their timesteps."""
    return tuple(next(same) for _, same in groupby(enumerate(values), key=lambda item: item[1]))


# A demonstration as a file

ARRAYS = ("agent", "features", "visible", "controls", "executed")
ACTION, METADATA = "action", "metadata"
SNAPSHOT = "snapshot."  # what the names of a snapshot's parts begin with

Words = Annotated[list[str], msgspec.Meta(min_length=1)]  # the name of an action or a predicate, and its arguments


class Metadata(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What is no array. Facts, and actions in the array of that name, are given by their numbers in a list."""

    seed: int
    attempt: Count
    outcome: str
    objects: dict[str, str]
    actions: list[Words]
    facts: list[Words]
    states: list[tuple[Count, list[Count]]]
    goals: list[tuple[Count, list[Count]]]
    events: tuple[tuple[Count, str], ...]
    demonstrator: str = ""
    has_controls: bool = True


AS_THEY_ARE = tuple(name for name in Metadata.__struct_fields__ if name not in ("actions", "facts", "states", "goals"))


def encode_demonstration(demonstration: Demonstration) -> bytes:
    """Return the bytes of a demonstration's file: plain arrays, what is none as JSON in the one called `metadata`."""
    actions = {action: number for number, action in enumerate(dict.fromkeys(filter(None, demonstration.actions)))}
    known = sorted({fact for _, facts in (*demonstration.states, *demonstration.goals) for fact in facts})
    number = {fact: index for index, fact in enumerate(known)}
    metadata = Metadata(
        actions=[[name, *arguments] for name, arguments in actions],
        facts=[[predicate, *terms] for predicate, terms in known],
        states=[(start, sorted(number[fact] for fact in state)) for start, state in demonstration.states],
        goals=[(start, sorted(number[fact] for fact in goal)) for start, goal in demonstration.goals],
        **{name: getattr(demonstration, name) for name in AS_THEY_ARE},
    )
    arrays: dict[str, NDArray[Any]] = {name: getattr(demonstration, name) for name in ARRAYS}
    arrays[ACTION] = np.array([-1 if action is None else actions[action] for action in demonstration.actions], np.int32)
    arrays[METADATA] = np.frombuffer(msgspec.json.encode(metadata), np.uint8)
    arrays |= {SNAPSHOT + name: part for name, part in demonstration.snapshots.items()}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def decode_demonstration(data: bytes, spec: Spec, controls: Controls) -> Demonstration:
    """Return the demonstration in the bytes of a file; `BadInput` with the reason where there is none."""
    with reading("the archive"):
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: np.asarray(archive[name]) for name in archive.files}
        plain: dict[str, Any] = {name: arrays.pop(name) for name in ARRAYS}
        numbers, metadata = arrays.pop(ACTION), decode(arrays.pop(METADATA).tobytes(), Metadata, "the metadata")
        for name in arrays:
            if not name.startswith(SNAPSHOT):
                raise BadInput(f"unknown array '{name}'")
        actions = [Action(name, tuple(arguments)) for name, *arguments in metadata.actions]
        if numbers.dtype.kind != "i" or not ((numbers >= -1) & (numbers < len(actions))).all():
            raise BadInput(f"'{ACTION}' is out of range: there are {len(actions)} actions")
        facts = [Atom(predicate, tuple(terms)) for predicate, *terms in metadata.facts]
        states, goals = (
            tuple((start, frozenset(facts[number] for number in known)) for start, known in changes)
            for changes in (metadata.states, metadata.goals)
        )
        demonstration = Demonstration(
            **plain,
            **{name: getattr(metadata, name) for name in AS_THEY_ARE},
            actions=tuple(None if number < 0 else actions[number] for number in numbers),
            states=states,
            goals=goals,
            snapshots={name.removeprefix(SNAPSHOT): part for name, part in arrays.items()},
        )
        demonstration.check(spec, controls)
    return demonstration


# Many demonstrations


@dataclass
class Report:
    """What became of the episodes of a collection or an import."""

    found: int = 0  # episodes that were in the folder already, or that were read
    dropped: Counter[str] = field(default_factory=Counter)  # attempts and episodes that are not kept, by the reason
    notes: list[str] = field(default_factory=list)  # which files were broken and made again, what was left out


@dataclass(repr=False, eq=False)
class Demonstrations:
    """Demonstrations, and what they are of: the task's name, its spec, its domain, and the controls.

    `arguments` are those of the environment, the number of objects among them, as far as they are known. The `items`
    may be demonstrations in memory, or what these are made of whenever they are asked for: those of `read` are in a
    `folder` with a `manifest`. What has just been collected or imported has the report of that.
    """

    items: Sequence[Any] = ()
    make: Callable[[Any], Demonstration] = lambda item: item
    _: KW_ONLY
    task: str
    spec: Spec
    domain: Domain
    controls: Controls
    arguments: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    manifest: Manifest | None = None
    report: Report = field(default_factory=Report)

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
        return cls(
            range(len(manifest.files)),
            lambda number: read_episode(folder, manifest, number)[0],
            task=manifest.settings.task,
            spec=manifest.spec,
            domain=read_adl_domain(folder / DOMAIN),
            controls=manifest.controls,
            arguments=manifest.settings.arguments,
            folder=folder,
            manifest=manifest,
        )

    def first(self, number: int) -> Demonstrations:
        """Return the first so many of them, as a data set of its own; `BadInput` where there are fewer."""
        if not 1 <= number <= len(self):
            raise BadInput(f"{self!r}: the first {number} are asked for")
        return replace(self, items=self.items[:number])

    def mapped(self, change: Callable[[Demonstration], Demonstration]) -> Demonstrations:
        """Return them with each of them changed, when it is asked for."""
        return replace(self, make=lambda item: change(self.make(item)))

    @property
    def objects(self) -> int:
        """How many objects there are in the task, as far as that is known."""
        return int(self.arguments.get(OBJECTS, 1))

    @property
    def env_arguments(self) -> dict[str, Any]:
        """The arguments of the environment besides the number of objects."""
        return {name: value for name, value in self.arguments.items() if name != OBJECTS}

    def make_env(self, task: Task, **pictures: Any) -> SceneEnv:
        """Return an environment in which they can happen again, and be seen as they were."""
        perception = self.manifest.settings.perception if self.manifest else PERFECT
        return SceneEnv(task, perception=perception, **pictures, **self.arguments)

    @property
    def steps(self) -> int:
        """How many steps all of them have together."""
        files = self.manifest.files[: len(self)] if self.manifest else self
        return sum(each.steps for each in files)

    @property
    def command(self) -> str:
        """The command that made the data set, but for its --output."""
        return self.manifest.command if self.manifest else "(made in memory)"

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, number: int) -> Demonstration:
        if not 0 <= number < len(self):
            raise BadInput(f"there is no episode {number}: they are counted from 0 to {len(self) - 1}")
        return self.make(self.items[number])

    def __iter__(self) -> Iterator[Demonstration]:
        return map(self.make, self.items)


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


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where the demonstrations of a data set were recorded, if not by `bilevel collect`."""

    format: str
    place: str  # a path, or the name of a data set
    options: tuple[str, ...] = ()  # of the import, as words of its command
    rate: float | None = None  # in Hz, if it is known


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a data set says of itself. Its files are listed once it is complete."""

    format: Literal[2] = 2
    settings: CollectionSettings
    episodes: Annotated[int, msgspec.Meta(ge=1, le=MOST_EPISODES)]  # how many are wanted
    complete: bool = False
    spec: Spec  # the features of agent and objects, and what they mean
    controls: Controls
    keyframe: Literal[64] = 64
    versions: dict[str, str]
    files: tuple[FileEntry, ...] = ()
    source: Source | None = None  # of an imported data set

    def __post_init__(self) -> None:
        listed = self.episodes if self.complete else 0
        if [entry.file for entry in self.files] != [file_name(index) for index in range(listed)]:
            raise ValueError(f"'files' must list {listed} files in the order of their numbers")

    @property
    def command(self) -> str:
        """The command that makes the data set, but for its --output."""
        settings, source = self.settings, self.source
        if source:
            words = ["import", source.place, "--format", source.format, "--task", settings.task, *source.options]
            return shlex.join(["bilevel", *words])
        further = {name: value for name, value in settings.arguments.items() if name != OBJECTS}
        words = ["collect", settings.task, "--objects", str(settings.arguments[OBJECTS]), *env_args(further)]
        words += ["--episodes", str(self.episodes), "--seed", str(settings.seed)]
        words += ["--noise", str(settings.noise.amplitude)] if settings.noise else []
        words += ["--perception", str(settings.perception)] if settings.perception != PERFECT else []
        return shlex.join(["bilevel", *words])

    def command_for(self, folder: Path) -> str:
        """Return the command that makes the data set in a folder, or goes on making it."""
        return f"{self.command} --output {shlex.quote(str(folder))}"


def read_manifest(folder: Path) -> Manifest:
    """Return what the data set in a folder says of itself; `BadInput` where that makes no sense."""
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


def write_episode(folder: Path, index: int, demonstration: Demonstration) -> FileEntry:
    """Write the file of a demonstration, and return what a manifest says of it."""
    data = encode_demonstration(demonstration)
    write_atomically(folder / file_name(index), data)
    return _entry(index, demonstration, data)


def _entry(index: int, demonstration: Demonstration, data: bytes) -> FileEntry:
    digest = hashlib.sha256(data).hexdigest()
    return FileEntry(file_name(index), demonstration.seed, demonstration.attempt + 1, demonstration.steps, digest)


def read_episode(folder: Path, manifest: Manifest, index: int) -> tuple[Demonstration, FileEntry]:
    """Return one demonstration and its entry; `BadInput` names the file if it is not what it should be."""
    path = folder / file_name(index)
    data = read_bytes(path)
    try:
        demonstration = decode_demonstration(data, manifest.spec, manifest.controls)
        entry = _entry(index, demonstration, data)
        seed = training_seed(manifest.settings.seed, index, demonstration.attempt)
        if manifest.source is None and demonstration.seed != seed:
            raise BadInput(f"its seed {demonstration.seed} is not that of episode {index}")
        if manifest.complete and entry.sha256 != manifest.files[index].sha256:
            raise BadInput("not the file that the manifest describes (another sha256)")
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    return demonstration, entry


def whole_episodes(
    folder: Path, manifest: Manifest, problems: list[str], callback: Callback = silent
) -> Iterator[tuple[int, Demonstration, FileEntry]]:
    """Give the demonstrations whose files are there and whole, with number and entry; others add to the problems."""
    for number in range(manifest.episodes):
        if manifest.complete or (folder / file_name(number)).exists():
            try:
                yield number, *read_episode(folder, manifest, number)
            except BadInput as error:
                problems.append(str(error))
            callback(Progress("checking", number + 1, manifest.episodes))
