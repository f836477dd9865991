"""What the network is told: the agent, the action, and the objects that the action names, as numbers.

An encoding follows from the spec and the domain. Of the agent and of each object that the action names, the network is
told the features in their roles; of the facts, those with no argument, and those about one of these objects alone.
Where on the table something happens plays no part, as positions are relative to the agent. Colours and the like are
`LabelOnly`: what they mean is among the facts, and with more objects there are colours that no demonstration shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import Action, BadInput, Domain, Facts
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.spec import Angle, LabelOnly, Position, Role, Scalar, Spec, Symmetry

Row = TypeVar("Row")

NOWHERE = -1  # instead of a row, for an argument that cannot be seen, such as a constant of the domain


CONTROL, SEEN, SINE, COSINE = "control", "seen", "sine", "cosine"


@dataclass(frozen=True)
class TableColumn:
    """What a column of a table holds: one number of a feature, or one of a control.

    Columns of one `group` belong to the same thing: the agent, an argument, the control.
    """

    group: int
    name: str | int  # of the feature, or the number of the control
    part: str = SEEN
    occurrence: int = 0  # of the same feature told in another way, such as a position that is also absolute
    scale: float = 1.0


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table, `None` for those that stay as they are, and the place of each schema's column.

    Where there is none, since the network is told no action, all symmetries hold for all samples.
    """

    columns: Sequence[TableColumn | None]
    schemas: dict[str, int]
    symmetries: Sequence[Symmetry]


class Unseen(BadInput):
    """An action names an object that is not visible now."""


class Column(NamedTuple):
    """One feature in one role, as the network is told it. Types with the same feature in the same role share it."""

    feature: str
    role: Position | Angle | Scalar

    @property
    def width(self) -> int:
        """How many numbers the network is told of it: two for an angle, and for a position that is also absolute."""
        if isinstance(self.role, Angle):
            return 2
        return 1 + (isinstance(self.role, Position) and self.role.absolute)


def input_role(role: Role, label_only: bool) -> Position | Angle | Scalar | None:
    """The role in which a feature is told, if it is: `label_only` ones are only where there are no labels."""
    if isinstance(role, LabelOnly):
        return role.role if label_only else None
    return role


class FeatureEncoder:
    """Features as numbers, in the roles of the spec. Everything works on one scene and on many at once."""

    def __init__(self, spec: Spec, label_only: bool = False, like: FeatureEncoder | None = None) -> None:
        """With `label_only`, features for labels alone are told, too: that is for networks that have no labels.

        The order is that of the spec, or as far as possible `like` that of another encoder.
        """
        self.spec = spec
        roles = {
            kind: [Column(name, shown) for name, role in features.items() if (shown := input_role(role, label_only))]
            for kind, features in spec.object_roles.items()
        }
        found = (column for members in roles.values() for column in members)
        self._columns: list[Column] = _in_order(found, like._columns if like else ())
        columns = self._columns
        first = np.cumsum([0, *(column.width for column in columns)]).tolist()
        self.object_size: int = first[-1]
        self._masks = {
            kind: np.array([column in members for column in columns for _ in range(column.width)], np.float32)
            for kind, members in roles.items()
        }
        seen = (
            Column(name, shown) for name, role in spec.agent_roles.items() if (shown := input_role(role, label_only))
        )
        self._agent_columns: list[Column] = _in_order(seen, like._agent_columns if like else ())
        self._place(columns, first)
        self._place_agent()

    def _place(self, columns: Sequence[Column], first: Sequence[int]) -> None:
        """Note which feature goes where."""
        spec, plain, relative, angles = self.spec, [], [], []
        for (name, role), at in zip(columns, first, strict=False):
            source = spec.column[name]
            if isinstance(role, Position):
                relative.append((at, source, spec.agent_column[role.along or name]))
                plain += [(at + 1, source)] if role.absolute else []
            elif isinstance(role, Angle):
                angles.append((at, source, role.symmetry, spec.agent_column.get(name, NOWHERE)))
            else:
                plain.append((at, source))
        copied = sorted([(at, source) for at, source, _ in relative] + plain)
        self._targets = _indices(copied, 0)
        self._sources = _indices(copied, 1)
        self._relative, self._origins = _indices(relative, 0), _indices(relative, 2)
        self._is_plain = len(angles) == 0 and self._targets.tolist() == list(range(self.object_size))
        self._angles = angles
        if spec.frame is not None:
            places = [
                (name, at) for (name, role), at in zip(columns, first, strict=False) if isinstance(role, Position)
            ]
            self._turned = [[at for name, at in places if name == axis] for axis in spec.frame[:2]]

    def _place_agent(self) -> None:
        spec = self.spec
        plain: list[int] = []
        angles: list[tuple[int, int]] = []
        for name, shown in self._agent_columns:
            if isinstance(shown, Angle):
                angles.append((spec.agent_column[name], shown.symmetry))
            elif isinstance(shown, Scalar) or (isinstance(shown, Position) and shown.absolute):
                plain.append(spec.agent_column[name])
        self._agent_plain, self._agent_angles = np.array(plain, np.int64), angles
        self.agent_size = len(plain) + 2 * len(angles)

    @property
    def agent_turns(self) -> list[int]:
        """Which of the agent's numbers are sines and cosines."""
        return list(range(self.agent_size))[len(self._agent_plain) :]

    @property
    def object_turns(self) -> list[int]:
        """Which of an object's numbers are sines and cosines."""
        return [place for at, *_ in self._angles for place in (at, at + 1)]

    def agent_columns(self, scales: Sequence[float]) -> list[TableColumn]:
        """Return what each of the agent's numbers is; `scales` are those with which they are told."""
        plain = [Column(name, role) for name, role in self._agent_columns if not isinstance(role, Angle)]
        plain = [one for one in plain if isinstance(one.role, Scalar) or one.role == Position(absolute=True)]
        turning = [one for one in self._agent_columns if isinstance(one.role, Angle)]
        parts = [(one.feature, SEEN, 1) for one in plain]  # an absolute position, as the second number of an object's
        parts += [(one.feature, part, 0) for one in turning for part in (SINE, COSINE)]
        return [TableColumn(0, name, part, way, scale) for (name, part, way), scale in zip(parts, scales, strict=False)]

    def object_columns(self, group: int, scales: Sequence[float]) -> list[TableColumn]:
        """Return what each number of an object is, in a group of columns of its own."""
        parts: list[tuple[str, str, int]] = []
        for name, role in self._columns:
            if isinstance(role, Angle):
                parts += [(name, SINE, 0), (name, COSINE, 0)]
            else:
                along = (isinstance(role, Position) and role.along) or name
                parts += [(along, SEEN, way) for way in range(Column(name, role).width)]
        return [
            TableColumn(group, name, part, way, scale) for (name, part, way), scale in zip(parts, scales, strict=False)
        ]

    @property
    def layout(self) -> tuple[object, ...]:
        """What is told, in order: equal for specs that differ only in what the network does not see."""
        return *self._shared_layout, self._layout_by_type

    @property
    def _shared_layout(self) -> tuple[object, ...]:
        return self._agent_columns, self._columns, self.spec.frame

    @property
    def _layout_by_type(self) -> dict[str, list[float]]:
        return {kind: mask.tolist() for kind, mask in self._masks.items() if mask.any()}

    def is_compatible_with(self, other: FeatureEncoder) -> bool:
        """Whether the same is told, in the same order, of all types that the other encoder knows."""
        return (
            self._shared_layout == other._shared_layout
            and other._layout_by_type.items() <= self._layout_by_type.items()
        )

    def agent(self, values: Array) -> Array:
        """(..., agent size) of the agent's features, (..., features)."""
        inputs: Array = values[..., self._agent_plain]
        if self._agent_angles:
            parts = [inputs]
            for source, symmetry in self._agent_angles:
                angle = symmetry * values[..., source : source + 1]
                parts += [np.sin(angle), np.cos(angle)]
            inputs = np.concatenate(parts, axis=-1)
        return inputs

    def mask(self, kinds: Sequence[str | None]) -> Array:
        """(objects, object size): 1 for the numbers that objects of these types have, else 0."""
        none = np.zeros(self.object_size, np.float32)
        rows = [none if kind is None else self._masks[kind] for kind in kinds]
        return np.array(rows, np.float32).reshape(len(rows), self.object_size)

    def objects(self, values: Array, features: Array, mask: Array) -> Array:
        """(..., objects, object size) of the agent's features and of those of objects, (..., objects, columns)."""
        inputs: Array
        if self._is_plain:
            inputs = features[..., self._sources]
        else:
            inputs = np.zeros((*features.shape[:-1], self.object_size), np.float32)
            inputs[..., self._targets] = features[..., self._sources]
        inputs[..., self._relative] -= values[..., None, self._origins]
        for at, source, symmetry, origin in self._angles:
            angle = features[..., source] - (values[..., None, origin] if origin != NOWHERE else 0.0)
            inputs[..., at], inputs[..., at + 1] = np.sin(symmetry * angle), np.cos(symmetry * angle)
        if self.spec.frame is not None and all(self._turned):
            heading = values[..., None, self.spec.agent_column[self.spec.frame[2]]]
            cos, sin = np.cos(heading), np.sin(heading)
            x, y = (inputs[..., places[0]] for places in self._turned)  # the same in each of the roles
            ahead, left = cos * x + sin * y, cos * y - sin * x
            inputs[..., self._turned[0]], inputs[..., self._turned[1]] = ahead[..., None], left[..., None]
        inputs *= mask
        return inputs


def _in_order(found: Iterable[Row], known: Sequence[Row]) -> list[Row]:
    """What is found, each once: first what is known, in that order, then the rest."""
    rest = dict.fromkeys(found)
    return [*(item for item in known if item in rest), *(item for item in rest if item not in known)]


def _indices(rows: Sequence[tuple[Any, ...]], part: int) -> NDArray[np.int64]:
    return np.array([row[part] for row in rows], np.int64)


@dataclass(frozen=True)
class Encoding:
    """Which number stands where."""

    spec: Spec
    nullary: tuple[str, ...]  # predicates without arguments
    unary: tuple[str, ...]  # predicates with one
    schemas: tuple[str, ...]
    arity: int  # of the schema with the most parameters, but at least 1
    bare: tuple[str, ...] = ()  # the schemas without parameters
    constants: tuple[str, ...] = ()  # objects of the domain, which may not be visible
    excluded_parameters: Mapping[str, frozenset[int]] = field(default_factory=dict)  # by schema and number
    like: FeatureEncoder | None = field(default=None, compare=False, repr=False)  # whose order it keeps

    @cached_property
    def features(self) -> FeatureEncoder:
        """What turns a scene into the numbers that the network is told of agent and objects."""
        return FeatureEncoder(self.spec, like=self.like)

    @property
    def global_size(self) -> int:
        """How many numbers the global node is told: the agent's, and whether each nullary fact holds and is wanted."""
        return self.features.agent_size + 2 * len(self.nullary)

    @property
    def object_size(self) -> int:
        """How many numbers an object's node is told: its own, unary facts and goals, and which argument it is."""
        return self.features.object_size + 2 * len(self.unary) + self.arity

    def global_facts(self, state: Facts, goal: Facts) -> Array:
        """(2 * nullary,): which facts without arguments hold, and which are wanted."""
        return np.array([(name, ()) in facts for facts in (state, goal) for name in self.nullary], np.float32)

    def object_facts(self, state: Facts, goal: Facts, action: Action) -> Array:
        """(arity, 2 * unary + arity): for each argument the facts about it alone, and which argument it is.

        There are no rows where the action has no arguments.
        """
        rows = [
            [(name, (argument,)) in facts for facts in (state, goal) for name in self.unary]
            + [index == position for index in range(self.arity)]
            for position, argument in self._seen_arguments(action)
        ]
        return np.array(self.padded(rows), np.float32).reshape(-1, 2 * len(self.unary) + self.arity)

    def padded(self, rows: Sequence[Row]) -> list[Row]:
        """One row for each argument that an action can have: the last again and again, which a maximum ignores.

        No rows stay none.
        """
        return [*rows, *list(rows[-1:]) * (self.arity - len(rows))]

    def _seen_arguments(self, action: Action) -> list[tuple[int, str]]:
        """The arguments of an action that the network is told of, each with its number."""
        excluded = self.excluded_parameters.get(action.name, ())
        return [(position, name) for position, name in enumerate(action.arguments) if position not in excluded]

    def arguments(self, scene: Scene, action: Action) -> tuple[list[int], Array]:
        """The rows of a scene in which an action's arguments are seen, padded, and the mask of what they have."""
        row, types = scene.roster.row, scene.roster.objects
        names = [name for _, name in self._seen_arguments(action)]
        for name in names:
            if name not in row and name not in self.constants:
                raise Unseen(f"the policy wants {action}, but no '{name}' is seen")
        rows = self.padded([row.get(name, NOWHERE) for name in names])
        return rows, self.features.mask(self.padded([types.get(name) for name in names]))

    def for_spec(self, spec: Spec) -> Encoding:
        """The same encoding for scenes of a spec with the same features to tell, in any order; else `BadInput`.

        There may be objects of further types, which are never named to the network.
        """
        if spec is self.spec:
            return self
        found = replace(self, spec=spec, like=self.features)
        if not found.features.is_compatible_with(self.features):
            raise BadInput(
                "the scenes have other features, or in other roles, than those that the network was trained on"
            )
        return found

    def seen(self, scene: Scene, rows: list[int]) -> Array:
        """(rows, columns): the features of these rows; what cannot be seen is masked later."""
        features = scene.features
        found: Array = features[rows] if len(features) else np.zeros((len(rows), features.shape[1]), np.float32)
        return found

    def schema_index(self, action: Action) -> int:
        """Return the place of the action's schema among those that the network knows."""
        if action.name not in self.schemas:
            raise BadInput(f"{action} is none of the domain's actions; these are {', '.join(self.schemas)}")
        return self.schemas.index(action.name)


def encoding_of(domain: Domain, spec: Spec) -> Encoding:
    """Return how the network is told about scenes of this spec and symbols of this domain."""

    def with_arguments(count: int) -> tuple[str, ...]:
        return tuple(sorted(name for name, p in domain.predicates.items() if len(p.parameters) == count))

    arities = {name: len(domain.schemas[name].parameters) for name in sorted(domain.schemas)}
    return Encoding(
        spec=spec,
        nullary=with_arguments(0),
        unary=with_arguments(1),
        schemas=tuple(arities),
        arity=max([1, *arities.values()]),
        bare=tuple(name for name, arity in arities.items() if arity == 0),
        constants=tuple(domain.constants),
        excluded_parameters={name: _numbers(domain, name, parameters) for name, parameters in spec.untold.items()},
    )


def _numbers(domain: Domain, name: str, untold: Sequence[str]) -> frozenset[int]:
    """The numbers of an action's parameters that are untold; `BadInput` where there are no such."""
    if name not in domain.schemas:
        raise BadInput(f"the spec's untold names the action '{name}', but the domain '{domain.name}' has no such")
    known = [parameter.name for parameter in domain.schemas[name].parameters]
    for parameter in untold:
        if parameter not in known:
            raise BadInput(f"the spec's untold names '{parameter}', but '{name}' has the parameters {', '.join(known)}")
    if set(known) <= set(untold):
        raise BadInput(f"the spec's untold leaves nothing of '{name}': the network must be told of something to act on")
    return frozenset(known.index(parameter) for parameter in untold)


# What the network learns from: every step that has a high-level action, encoded


Situation = tuple[Facts, Facts, "Action | None"]  # state, goal, and what is being done

Self = TypeVar("Self", bound="ImitationSamples")


@dataclass(frozen=True)
class ImitationSamples:
    """What any network learns from: arrays, most of them with a row for each step of several episodes."""

    targets: Array  # (steps, outputs): the expert's controls, as the network should put them out
    episodes: NDArray[np.int64]  # (steps,): the number of the episode

    def __len__(self) -> int:
        return len(self.episodes)

    @classmethod
    def concatenate(cls: type[Self], parts: Sequence[Self]) -> Self:
        """The samples of all parts, one after the other."""
        return cls(*map(np.concatenate, zip(*(part.arrays() for part in parts), strict=True)))

    def followed_by(self: Self, more: Sequence[Self]) -> Self:
        """With further episodes, which are counted from 0 on among themselves."""
        first = int(self.episodes.max()) + 1
        return self.concatenate([self, *(replace(part, episodes=part.episodes + first) for part in more)])

    def where(self: Self, chosen: NDArray[np.bool_]) -> Self:
        """Some of the steps."""
        return type(self)(*(array[chosen] for array in self.arrays()))

    def arrays(self) -> Iterator[NDArray[Any]]:
        """All that there is to learn from."""
        return (getattr(self, field.name) for field in fields(self))


@dataclass(frozen=True)
class Samples(ImitationSamples):
    """One row per step, in all of the arrays."""

    globals: Array  # (steps, global size)
    schemas: NDArray[np.int64]  # (steps,)
    objects: Array  # (steps, arity, object size); zeros where an action has no arguments


def encode_episode(
    encoding: Encoding, scenes: Sequence[Scene], situations: Sequence[Situation], targets: Array, number: int
) -> Samples:
    """The samples of one episode, (steps,) each. Symbols change rarely, so they are encoded once for each stretch."""
    encoding = encoding.for_spec(scenes[0].spec) if scenes else encoding
    steps, encoder = len(scenes), encoding.features
    globals_ = np.zeros((steps, encoding.global_size), np.float32)
    objects = np.zeros((steps, encoding.arity, encoding.object_size), np.float32)
    schemas = np.full(steps, -1)
    values = np.array([scene.values for scene in scenes], np.float32).reshape(steps, len(encoding.spec.agent))
    globals_[:, : encoder.agent_size] = encoder.agent(values)
    start = 0
    keys = [(*situation, scene.roster) for situation, scene in zip(situations, scenes, strict=True)]
    for (state, goal, action, _), stretch in groupby(keys):
        end = start + len(list(stretch))
        if action is not None:
            schemas[start:end] = encoding.schema_index(action)
            globals_[start:end, encoder.agent_size :] = encoding.global_facts(state, goal)
        if action is not None and action.arguments:
            rows, mask = encoding.arguments(scenes[start], action)
            features = np.stack([encoding.seen(scene, rows) for scene in scenes[start:end]])
            objects[start:end, :, : encoder.object_size] = encoder.objects(values[start:end], features, mask)
            objects[start:end, :, encoder.object_size :] = encoding.object_facts(state, goal, action)
        start = end
    return Samples(targets, np.full(steps, number), globals_, schemas, objects).where(schemas >= 0)
