"""What the network is told: the agent, the action, and the objects that the action names, as numbers.

An encoding follows from the spec and the domain. Of the agent and of each object that the action names, the network is
told the features in their roles; of the facts, those with no argument, and those about one of these objects alone.
Objects that an action does not name, but that decide how it is done, are seen through links: `relevance` finds these.
Where on the table something happens plays no part, as positions are relative to the agent. Colours and the like are
`LabelOnly`: what they mean is among the facts, and with more objects there are colours that no demonstration shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain, groupby
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import Action, BadInput, Domain, Facts
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.spec import Angle, InputRole, LabelOnly, Position, Role, Spec, input_role

Row = TypeVar("Row")

NOWHERE = -1  # instead of a row, for an argument that cannot be seen, such as a constant of the domain
RELATIVE, ABSOLUTE, PLAIN, SINE, COSINE = "relative", "absolute", "plain", "sine", "cosine"  # forms of a feature
CONTROL, SCHEMA = "control", "schema"


class Unseen(BadInput):
    """An action names an object that is not visible now."""


class Number(NamedTuple):
    """One of the numbers that tell a feature in its role. Types with the same feature in the same role share it."""

    feature: str
    role: InputRole
    form: str

    @property
    def axis(self) -> str:
        """The coordinate of the agent that it is measured along, or else the feature."""
        return (isinstance(self.role, Position) and self.role.along) or self.feature


class TableColumn(NamedTuple):
    """What a column of a table of samples holds: of a feature, of the control, or whether an action is of a schema."""

    group: int  # the same for all that belongs to one thing: the agent, an argument, the control
    name: str | int  # of the feature or the axis, or of the schema, or the number of the control
    form: str
    scale: float = 1.0


def columns_of(numbers: Sequence[Number], group: int, scales: Sequence[float]) -> list[TableColumn]:
    """Return the columns that hold these numbers; `scales` are those with which they are told, and maybe more."""
    return [TableColumn(group, each.axis, each.form, scale) for each, scale in zip(numbers, scales, strict=False)]


def turns(numbers: Sequence[Number]) -> list[int]:
    """Return which of the numbers are sines and cosines."""
    return [place for place, number in enumerate(numbers) if isinstance(number.role, Angle)]


class FeatureEncoder:
    """Features as numbers, in the roles of the spec. Everything works on one scene and on many at once."""

    def __init__(self, spec: Spec, label_only: bool = False) -> None:
        """With `label_only`, features for labels alone are told, too: that is for networks that have no labels."""
        self.spec = spec
        self._by_type = {kind: _numbers(roles, label_only) for kind, roles in spec.object_roles.items()}
        self.object_numbers = list(dict.fromkeys(chain.from_iterable(self._by_type.values())))
        own = [number for number in _numbers(spec.agent_roles, label_only) if number.form != RELATIVE]
        self.agent_numbers = sorted(own, key=lambda number: isinstance(number.role, Angle))
        self.object_size, self.agent_size = len(self.object_numbers), len(self.agent_numbers)
        self._masks = {
            kind: np.array([number in numbers for number in self.object_numbers], np.float32)
            for kind, numbers in self._by_type.items()
        }
        self.coordinates = {
            kind: {name for name, role in roles.items() if isinstance(role, Position) and role.along is None}
            for kind, roles in spec.object_roles.items()
        }
        self._of_agent = _Sources(self.agent_numbers, spec.agent_column, {})
        self._of_objects = _Sources(self.object_numbers, spec.column, spec.agent_column)
        relative = {each[:2]: place for place, each in enumerate(self.object_numbers) if each.form == RELATIVE}
        turned = [[place for (name, _), place in relative.items() if name == axis] for axis in (spec.frame or ())[:2]]
        self._turned = turned if all(turned) else []  # which numbers are along the first axis of a frame, and the other

    @property
    def layout(self) -> tuple[object, dict[str, set[Number]]]:
        """What is told, in order, and of which types: equal for specs that differ in what the network does not see."""
        types = {kind: {*numbers} for kind, numbers in self._by_type.items() if numbers}
        return (self.agent_numbers, self.object_numbers, self.spec.frame), types

    def mask(self, kinds: Sequence[str | None]) -> Array:
        """(objects, object size): 1 for the numbers that objects of these types have, else 0."""
        none = np.zeros(self.object_size, np.float32)
        rows = [none if kind is None else self._masks[kind] for kind in kinds]
        return np.array(rows, np.float32).reshape(len(rows), self.object_size)

    def agent(self, values: Array) -> Array:
        """(..., agent size) of the agent's features, (..., features)."""
        return self._of_agent.numbers(values, values)

    def objects(self, values: Array, features: Array, mask: Array) -> Array:
        """(..., objects, object size) of the agent's features and of those of objects, (..., objects, columns)."""
        numbers = self._of_objects.numbers(features, values[..., None, :])
        if self.spec.frame is not None and self._turned:
            heading = values[..., None, self.spec.agent_column[self.spec.frame[2]]]
            cos, sin = np.cos(heading), np.sin(heading)
            x, y = (numbers[..., places[0]] for places in self._turned)  # the same in each of the roles
            ahead, left = cos * x + sin * y, cos * y - sin * x
            numbers[..., self._turned[0]], numbers[..., self._turned[1]] = ahead[..., None], left[..., None]
        numbers *= mask
        return numbers


class _Sources:
    """From which features the numbers of the agent or of objects come."""

    def __init__(self, numbers: Sequence[Number], column: Mapping[str, int], origin: Mapping[str, int]) -> None:
        """`column` is the place of each feature, and `origin` of each of the agent's that others are relative to."""
        places = list(enumerate(numbers))
        copied = [(place, column[each.feature]) for place, each in places if not isinstance(each.role, Angle)]
        relative = [(place, origin[each.axis]) for place, each in places if each.form == RELATIVE]
        self._size = len(numbers)
        self._targets, self._sources = np.array(copied, np.int64).reshape(-1, 2).T
        self._relative, self._origins = np.array(relative, np.int64).reshape(-1, 2).T
        self._angles = [
            (place, column[feature], role.symmetry, origin.get(feature, NOWHERE))
            for place, (feature, role, form) in places
            if isinstance(role, Angle) and form == SINE
        ]

    def numbers(self, features: Array, agent: Array) -> Array:
        """(..., numbers) of features, (..., columns), and of the agent's."""
        inputs = np.zeros((*features.shape[:-1], self._size), np.float32)
        inputs[..., self._targets] = features[..., self._sources]
        inputs[..., self._relative] -= agent[..., self._origins]
        for at, source, symmetry, origin in self._angles:
            angle = features[..., source] - (agent[..., origin] if origin != NOWHERE else 0.0)
            inputs[..., at], inputs[..., at + 1] = np.sin(symmetry * angle), np.cos(symmetry * angle)
        return inputs


def _numbers(roles: Mapping[str, Role], label_only: bool) -> list[Number]:
    """The numbers that are told of one thing, in the order of its features; the origin is nothing to be told."""
    found = []
    for feature, role in roles.items():
        seen_as = None if isinstance(role, LabelOnly) and not label_only else input_role(role)
        if isinstance(seen_as, Angle):
            found += [Number(feature, seen_as, SINE), Number(feature, seen_as, COSINE)]
        elif isinstance(seen_as, Position):
            forms = (RELATIVE, ABSOLUTE) if seen_as.absolute else (RELATIVE,)
            found += [Number(feature, seen_as, form) for form in forms]
        elif seen_as is not None:
            found.append(Number(feature, seen_as, PLAIN))
    return found


class ObjectLink(msgspec.Struct, frozen=True, order=True, omit_defaults=True):
    """An object that the network sees when it does an action, although that does not name it.

    It is the end of a row: of the objects that share a fact with an argument, the first are near the argument in whose
    place the farthest is seen, and each other one is near one of them. Or, where no fact is given, it is the nearest to
    the agent, and seen besides the arguments.
    """

    action: str
    of: str  # the type of these objects
    sharing: str = ""  # the predicate of the fact
    argument: str = ""  # with which parameter of the action
    where: tuple[str, ...] = ()  # what must hold of each of them: predicates with one argument
    given: tuple[str, ...] = ()  # and of the argument
    within: float | None = None  # so far from the next one, or from the agent, in the unit of positions
    first: float | None = None  # so far from that argument, if that is another distance
    instead: str = ""  # of which parameter of the action the farthest is seen

    def __str__(self) -> str:
        if not self.sharing:
            return f"{self.action} sees, besides its arguments, the nearest {self.of} within {self.within or 0:.2g}"
        where = f", where {' and '.join(self.where)} holds" if self.where else ""
        given = f", given {' and '.join(self.given)} of that" if self.given else ""
        within = f", in steps of at most {self.within:.2g}" if self.within is not None else ""
        within += f", the first of at most {self.first:.2g}" if self.first is not None else ""
        shared = f"shares {self.sharing} with its {self.argument}"
        last = f"the last {self.of} of the row from there that {shared}"
        return f"{self.action} sees, instead of its {self.instead}, {last}{where}{given}{within}"


class SeenObjects(NamedTuple):
    """The objects that the network sees, and what it is told of them but for their features."""

    rows: list[int]  # of the scene
    mask: Array  # (objects, numbers): 1 for the numbers that they have, else 0
    about: Array  # (objects, others): facts about each alone, of which type it is if not named, which argument it is
    candidates: int  # so many of them, the last, are those of which the nearest is seen
    instead: str  # what is seen in the place of an argument


@dataclass(frozen=True)
class Encoding:
    """Which number stands where."""

    features: FeatureEncoder  # what turns a scene into the numbers that are told of the agent and of objects
    nullary: tuple[str, ...]  # predicates without arguments
    unary: tuple[str, ...]  # predicates with one
    schemas: tuple[str, ...]
    arity: int  # of the schema with the most parameters, but at least 1
    constants: tuple[str, ...] = ()  # objects of the domain, which may not be visible
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of each schema
    untold: Mapping[str, Sequence[str]] = field(default_factory=dict)  # those that the network is not told of
    links: tuple[ObjectLink, ...] = ()

    @property
    def spec(self) -> Spec:
        """The spec of the scenes that it encodes."""
        return self.features.spec

    @property
    def global_size(self) -> int:
        """How many numbers the global node is told: the agent's, and whether each nullary fact holds and is wanted."""
        return self.features.agent_size + 2 * len(self.nullary)

    @property
    def object_size(self) -> int:
        """How many numbers an object's node is told: its own, unary facts and goals, and what it is to the action.

        It may be of one of the types that are linked, and it may be one of the arguments, or stand for it.
        """
        return self.features.object_size + 2 * len(self.unary) + len(self.kinds) + self.arity

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The types of what is seen without being named."""
        return tuple(sorted({link.of for link in self.links}))

    @cached_property
    def nearest(self) -> dict[str, ObjectLink]:
        """The links to what is nearest, by action."""
        return {link.action: link for link in self.links if not link.sharing}

    @property
    def kind_columns(self) -> slice:
        """Where in an object's numbers these types stand; zeros for what the action names."""
        return slice(self.object_size - self.arity - len(self.kinds), self.object_size - self.arity)

    @property
    def nodes(self) -> int:
        """How many objects a sample holds: arguments and, after these, what is nearest."""
        return self.arity + bool(self.nearest)

    def global_facts(self, state: Facts, goal: Facts) -> Array:
        """(2 * nullary,): which facts without arguments hold, and which are wanted."""
        return np.array([(name, ()) in facts for facts in (state, goal) for name in self.nullary], np.float32)

    def padded(self, rows: Sequence[Row]) -> list[Row]:
        """The rows, and the last again for each node that is lacking, which a maximum ignores; none stay none."""
        return [*rows, *list(rows[-1:]) * (self.nodes - len(rows))]

    def _seen_arguments(self, action: Action) -> list[tuple[int, str]]:
        """The arguments of an action that the network is told of, each with its number."""
        told = self.seen_parameters(action.name)
        named = enumerate(zip(self.parameters.get(action.name, ()), action.arguments, strict=False))
        return [(position, name) for position, (parameter, name) in named if parameter in told]

    def seen_parameters(self, action: str) -> list[str]:
        """The parameters of an action that the network is told of."""
        return [each for each in self.parameters.get(action, ()) if each not in self.untold.get(action, ())]

    def seen_objects(self, scene: Scene, state: Facts, goal: Facts, action: Action) -> SeenObjects:
        """What the network sees of the arguments of an action, and of candidates for what is nearest."""
        arguments, types = self._seen_arguments(action), scene.roster.objects
        for _, name in arguments:
            if name not in types and name not in self.constants:
                raise Unseen(f"the policy wants {action}, but no '{name}' is seen")
        instead = self.instead(scene, state, action) if self.links else {}
        link = self.nearest.get(action.name)
        candidates = [name for name in scene.roster.of_type(link.of) if name not in action.arguments] if link else []
        named = self.padded([(number, instead.get(number, name)) for number, name in arguments])
        named += [(NOWHERE, name) for name in candidates]
        about = [
            [(predicate, (name,)) in facts for facts in (state, goal) for predicate in self.unary]
            + [name not in action.arguments and types.get(name) == kind for kind in self.kinds]
            + [number == place for place in range(self.arity)]
            for number, name in named
        ]
        return SeenObjects(
            [scene.roster.row.get(name, NOWHERE) for _, name in named],
            self.features.mask([types.get(name) for _, name in named]),
            np.array(about, np.float32).reshape(len(named), self.object_size - self.features.object_size),
            len(candidates),
            next(iter(instead.values()), ""),
        )

    def nearest_row(self, action: Action, candidates: int, agent: Array, features: Array) -> NDArray[np.int64]:
        """(...,): which of the rows is that of the nearest candidate, if it is near enough, or else of an argument.

        The agent's features are (..., features), those of the rows (..., rows, columns).
        """
        link = self.nearest[action.name]
        axes = sorted(self.features.coordinates[link.of])
        theirs, own = ([column[name] for name in axes] for column in (self.spec.column, self.spec.agent_column))
        distances = np.linalg.norm(features[..., -candidates:, theirs] - agent[..., None, own], axis=-1)
        is_near = distances.min(axis=-1) <= (np.inf if link.within is None else link.within)
        return np.where(is_near, features.shape[-2] - candidates + distances.argmin(axis=-1), self.arity - 1)

    def instead(self, scene: Scene, state: Facts, action: Action) -> dict[int, str]:
        """What is seen in the places of arguments, by their numbers: of the rows that links lead to the last."""
        found: dict[int, str] = {}
        for link in (link for link in self.links if link.action == action.name and link.sharing):
            arguments = dict(zip(self.parameters[action.name], action.arguments, strict=True))
            argument, start = arguments[link.argument], arguments[link.instead]
            names = [
                name
                for name in sharing(state, link.sharing, action, argument)
                if scene.roster.objects.get(name) == link.of
                and all((predicate, (name,)) in state for predicate in link.where)
                and all((predicate, (argument,)) in state for predicate in link.given)
            ]
            steps = self.steps(scene, start, names, link.within / link.first if link.within and link.first else 1.0)
            row = [name for name in names if link.within is None or steps[name] <= link.within]
            if row:
                where = self.positions(scene, [start, *row])
                far = {name: float(np.linalg.norm(where[name] - where[start])) for name in where if start in where}
                last = max(row, key=lambda name: (far.get(name, 0.0), name))
                found[self.parameters[action.name].index(link.instead)] = last
        return found

    def positions(self, scene: Scene, names: Iterable[str]) -> dict[str, Array]:
        """Where those of these objects are that are seen and have all coordinates, (coordinates,) each."""
        coordinates, row = self.features.coordinates, scene.roster.row
        columns = sorted(self.spec.column[name] for name in set().union(*coordinates.values()))
        kinds = {kind for kind, axes in coordinates.items() if columns and len(axes) == len(columns)}
        placed = [name for name in names if scene.roster.objects.get(name) in kinds]
        return {name: scene.features[row[name], columns] for name in placed}

    def steps(self, scene: Scene, start: str, others: Sequence[str], scale: float = 1.0) -> dict[str, float]:
        """For each of the others, the longest step on the way to it from an object, by others.

        Of all ways it is the one whose longest step is the shortest. Where something has no position, it is 0. First
        steps count `scale` times.
        """
        first, rest = (self.positions(scene, names) for names in ([start], others))
        if not rest:
            return dict.fromkeys(others, 0.0)
        where = np.array([*rest.values()])
        apart = np.linalg.norm(where[:, None] - where, axis=-1)
        longest = scale * np.linalg.norm(where - first.get(start, np.inf), axis=-1)
        for _ in rest:
            longest = np.minimum(longest, np.maximum(longest[:, None], apart).min(axis=0))
        return {**dict.fromkeys(others, 0.0), **dict(zip(rest, longest.tolist(), strict=True))}

    def for_spec(self, spec: Spec) -> Encoding:
        """The same encoding for scenes of a spec with the same features to tell, and maybe further types of objects."""
        if spec is self.spec:
            return self
        features = FeatureEncoder(spec)
        (order, types), (new_order, new_types) = self.features.layout, features.layout
        if order != new_order or not types.items() <= new_types.items():
            raise BadInput("the scenes have other features, roles or orders than those that the network was trained on")
        return replace(self, features=features)

    def seen(self, scene: Scene, rows: list[int]) -> Array:
        """(rows, columns): the features of these rows; what cannot be seen is masked later."""
        features = scene.features
        found: Array = features[rows] if len(features) else np.zeros((len(rows), features.shape[1]), np.float32)
        return found

    def schema_index(self, action: Action) -> int:
        """Return the place of the action's schema among those that the network knows."""
        if action.name not in self.schemas:
            raise BadInput(f"{action} is none of the actions that the network knows: {', '.join(self.schemas)}")
        return self.schemas.index(action.name)


def sharing(state: Facts, predicate: str, action: Action, argument: str) -> set[str]:
    """Return what shares a fact of this predicate with an argument, and is none of the action's arguments itself."""
    found = {name for fact, names in state if fact == predicate and argument in names for name in names}
    return found.difference(action.arguments)


def encoding_of(domain: Domain, spec: Spec, links: Sequence[ObjectLink] = ()) -> Encoding:
    """Return how the network is told about scenes of this spec and symbols of this domain."""

    def with_arguments(count: int) -> tuple[str, ...]:
        return tuple(sorted(name for name, p in domain.predicates.items() if len(p.parameters) == count))

    parameters = {name: tuple(each.name for each in schema.parameters) for name, schema in domain.schemas.items()}
    for name, untold in spec.untold.items():
        if not {*untold} < {*(known := parameters.get(name, ()))}:
            raise BadInput(
                f"the spec's untold has {', '.join(untold)} of the action '{name}', but these must be some, and not "
                f"all, of its parameters in the domain '{domain.name}': {', '.join(known) or 'it has none'}"
            )
    return Encoding(
        features=FeatureEncoder(spec),
        nullary=with_arguments(0),
        unary=with_arguments(1),
        schemas=tuple(sorted(parameters)),
        arity=max([1, *map(len, parameters.values())]),
        constants=tuple(domain.constants),
        parameters=parameters,
        untold=spec.untold,
        links=tuple(sorted(links)),
    )


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
    objects: Array  # (steps, nodes, object size); zeros where there are no arguments


def encode_episode(
    encoding: Encoding, scenes: Sequence[Scene], situations: Sequence[Situation], targets: Array, number: int
) -> Samples:
    """The samples of one episode, (steps,) each. Symbols change rarely, so they are encoded once for each stretch."""
    encoding = encoding.for_spec(scenes[0].spec) if scenes else encoding
    steps, encoder = len(scenes), encoding.features
    globals_ = np.zeros((steps, encoding.global_size), np.float32)
    objects = np.zeros((steps, encoding.nodes, encoding.object_size), np.float32)
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
            seen, agent = encoding.seen_objects(scenes[start], state, goal, action), values[start:end]
            features = np.stack([encoding.seen(scene, seen.rows) for scene in scenes[start:end]])
            about = np.broadcast_to(seen.about, (end - start, *seen.about.shape))
            told = np.concatenate([encoder.objects(agent, features, seen.mask), about], axis=2)
            if seen.candidates:
                row = encoding.nearest_row(action, seen.candidates, agent, features)
                told[:, encoding.arity] = told[np.arange(end - start), row]
            objects[start:end, : len(seen.rows) - seen.candidates] = told[:, : len(seen.rows) - seen.candidates]
        start = end
    return Samples(targets, np.full(steps, number), globals_, schemas, objects).where(schemas >= 0)
