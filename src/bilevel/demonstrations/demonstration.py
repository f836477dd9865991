"""A demonstration: one episode of an expert, with all that it takes to learn from it and to live through it again.

As a file it is a compressed npz archive of plain arrays, with the rest as JSON among them. The same demonstration
always gives the same bytes. Reading checks everything: a file is whole and sensible, or it is refused with the reason.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from bilevel.json_files import Count, decode
from bilevel.symbolic.domain import Action, Atom, BadInput, Facts
from bilevel.tasks.controls import BoxControls, Controls
from bilevel.tasks.scene import Array, Roster, Scene
from bilevel.tasks.spec import Spec

KEYFRAME = 64  # steps from one snapshot of the simulator to the next

Value = TypeVar("Value")
Changes = tuple[tuple[int, Value], ...]  # each with the timestep from which on it holds


@dataclass(frozen=True, repr=False)
class Demonstration:
    """A timestep is what is seen before a step, and at the end: there is one more than there are steps.

    `controls` are what the expert wanted, to be imitated; `executed` is what was done, which differs where it was
    perturbed, to be replayed. Events come with the timestep at which they were first seen. Those of an expert of the
    task leave the last three fields as they are; they are for demonstrations that come from elsewhere.
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
    own_goals: bool = False  # whether only `goals` tells what was wanted, and not the task's `goal(scene)`
    has_controls: bool = True  # else `controls` and `executed` are zeros, as what was done is not on record

    @classmethod
    def of(
        cls, scenes: Sequence[Scene], states: list[Facts], goals: list[Facts], controls: NDArray[Any], **further: Any
    ) -> Demonstration:
        """Return the demonstration in which these scenes were seen and so labelled; `further` are other fields."""
        objects = all_objects(scenes)
        features, visible = _in_rows(scenes, objects)
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
            remedy = "import it again with --controls-from, or learn rules alone: bilevel rules learn --demonstrations"
            raise BadInput(f"no controls were recorded in this data set, so no network can be learned; {remedy} DIR")
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
        for name, kind in self.objects.items():
            if kind not in spec.objects:
                raise BadInput(f"'{name}' is of the type '{kind}', which the spec does not have")
        roster = Roster(self.objects)
        for kind in spec.objects:
            roster.rows(kind)  # side by side
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
    found: list[tuple[int, Value]] = []
    for timestep, value in enumerate(values):
        if not found or found[-1][1] != value:
            found.append((timestep, value))
    return tuple(found)


def all_objects(scenes: Sequence[Scene]) -> dict[str, str]:
    """Return the types of all objects that are visible in some scene, those of one type side by side."""
    types: dict[str, str] = {}
    known: Roster | None = None
    for scene in scenes:
        if scene.roster is known:
            continue
        known = scene.roster
        for name, kind in known.objects.items():
            if types.setdefault(name, kind) != kind:
                raise BadInput(f"'{name}' is of the type '{types[name]}' first, then of the type '{kind}'")
    order = {kind: place for place, kind in enumerate(dict.fromkeys(types.values()))}
    return dict(sorted(types.items(), key=lambda item: order[item[1]]))


def _in_rows(scenes: Sequence[Scene], objects: Mapping[str, str]) -> tuple[Array, NDArray[np.bool_]]:
    """Return features (timesteps, objects, columns) and what is visible (timesteps, objects), a row for each object."""
    row = {name: index for index, name in enumerate(objects)}
    features = np.zeros((len(scenes), len(objects), len(scenes[0].spec.columns)), np.float32)
    visible = np.zeros(features.shape[:2], np.bool_)
    for now, scene in enumerate(scenes):
        if now == 0 or scene.roster is not scenes[now - 1].roster:
            rows = [row[name] for name in scene.roster.names]
        features[now, rows] = scene.features
        visible[now, rows] = True
    return features, visible


# As a file

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
    own_goals: bool = False
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
    arrays = _load(data)
    metadata = decode(arrays[METADATA].tobytes(), Metadata, "the metadata makes no sense")
    numbers, actions = arrays[ACTION], [Action(name, tuple(arguments)) for name, *arguments in metadata.actions]
    if numbers.dtype.kind != "i" or numbers.ndim != 1 or not ((numbers >= -1) & (numbers < len(actions))).all():
        raise BadInput(f"'{ACTION}' is out of range: there are {len(actions)} actions")
    known = [Atom(predicate, tuple(terms)) for predicate, *terms in metadata.facts]
    if any(number >= len(known) for _, facts in (*metadata.states, *metadata.goals) for number in facts):
        raise BadInput(f"the metadata makes no sense: there are only {len(known)} facts")
    states, goals = (
        tuple((start, frozenset(known[number] for number in facts)) for start, facts in changes)
        for changes in (metadata.states, metadata.goals)
    )
    plain: dict[str, Any] = {name: arrays[name] for name in ARRAYS}
    demonstration = Demonstration(
        **plain,
        **{name: getattr(metadata, name) for name in AS_THEY_ARE},
        actions=tuple(None if number < 0 else actions[number] for number in numbers),
        states=states,
        goals=goals,
        snapshots={name.removeprefix(SNAPSHOT): part for name, part in arrays.items() if name.startswith(SNAPSHOT)},
    )
    demonstration.check(spec, controls)
    return demonstration


def _load(data: bytes) -> dict[str, NDArray[Any]]:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: np.asarray(archive[name]) for name in archive.files}
    except Exception:  # numpy, zipfile and zlib raise a dozen kinds
        raise BadInput("no whole npz archive of plain arrays; it may be truncated") from None
    expected = {*ARRAYS, ACTION, METADATA}
    for name in sorted({name for name in arrays if not name.startswith(SNAPSHOT)} ^ expected):
        raise BadInput(f"the array '{name}' is missing" if name in expected else f"unknown array '{name}'")
    for name in expected:
        if arrays[name].ndim == 0:
            raise BadInput(f"'{name}' holds a single number")
    return arrays
