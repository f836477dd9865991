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
MOST_NEIGHBOURS = 4  # of an action, in a sample; a policy at work sees all that there are


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
    """Other objects that the network sees when it does an action: those that share a fact with one of its arguments.

    They are its neighbours. The first are near an argument, and each other one is near one of them; what lies apart is
    none. Attention decides which of them is seen in the place of an argument, if any.
    """

    action: str
    of: str  # the type of these objects
    sharing: str  # the predicate of the fact
    argument: str  # with which parameter of the action
    where: tuple[str, ...] = ()  # what must hold of each of them: predicates with one argument
    given: tuple[str, ...] = ()  # and of the argument
    within: float | None = None  # so far from the next one, in the unit of positions
    first: float | None = None  # so far from an argument, if that is another distance
    instead: str = ""  # of which parameter of the action one of them may be seen

    def __str__(self) -> str:
        where = f", where {' and '.join(self.where)} holds" if self.where else ""
        given = f", given {' and '.join(self.given)} of that" if self.given else ""
        within = f", in steps of at most {self.within:.2g}" if self.within is not None else ""
        within += f", the first of at most {self.first:.2g}" if self.first is not None else ""
        shared = f"shares {self.sharing} with its {self.argument}"
        return f"{self.action} sees, instead of its {self.instead}, any {self.of} that {shared}{where}{given}{within}"


@dataclass(frozen=True)
class Encoding:
    """Which number stands where."""

    features: FeatureEncoder  # what turns a scene into the numbers that are told of the agent and of objects
    nullary: tuple[str, ...]  # predicates without arguments
    unary: tuple[str, ...]  # predicates with one
    schemas: tuple[str, ...]
    arity: int  # of the schema with the most parameters, but at least 1
    constants: tuple[str, ...] = ()  # objects of the domain, which may not be visible
    excluded_parameters: Mapping[str, frozenset[int]] = field(default_factory=dict)  # by schema and number
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of each schema
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

        It is one of the arguments, or a neighbour of one of the types that are linked.
        """
        return self.features.object_size + 2 * len(self.unary) + len(self.kinds) + self.arity

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The types of neighbours."""
        return tuple(sorted({link.of for link in self.links}))

    @property
    def rows(self) -> int:
        """How many objects a sample holds."""
        return self.arity + (MOST_NEIGHBOURS if self.links else 0)

    @cached_property
    def replaced(self) -> Array:
        """(schemas, arity): 1 for the argument of a schema in whose place a neighbour may be seen."""
        found = np.zeros((len(self.schemas), self.arity), np.float32)
        for link in (link for link in self.links if link.instead):
            found[self.schemas.index(link.action), self.parameters[link.action].index(link.instead)] = 1.0
        return found

    @property
    def kind_columns(self) -> slice:
        """Where in an object's numbers it stands of which type a neighbour is; zeros for an argument."""
        return slice(self.object_size - self.arity - len(self.kinds), self.object_size - self.arity)

    def global_facts(self, state: Facts, goal: Facts) -> Array:
        """(2 * nullary,): which facts without arguments hold, and which are wanted."""
        return np.array([(name, ()) in facts for facts in (state, goal) for name in self.nullary], np.float32)

    def object_facts(self, state: Facts, goal: Facts, action: Action) -> Array:
        """(arity or 0, 2 * unary + kinds + arity): for each argument the facts about it alone, and which one it is."""
        rows = [
            self._unary_facts(state, goal, argument)
            + [False] * len(self.kinds)
            + [index == position for index in range(self.arity)]
            for position, argument in self._seen_arguments(action)
        ]
        return np.array(self.padded(rows), np.float32).reshape(-1, self.object_size - self.features.object_size)

    def _unary_facts(self, state: Facts, goal: Facts, name: str) -> list[bool]:
        return [(predicate, (name,)) in facts for facts in (state, goal) for predicate in self.unary]

    def padded(self, rows: Sequence[Row]) -> list[Row]:
        """The rows, and the last again for each argument that is lacking, which a maximum ignores; none stay none."""
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

    def seen_objects(self, scene: Scene, state: Facts, goal: Facts, action: Action) -> tuple[list[int], Array, Array]:
        """The rows of a scene in which arguments and neighbours are seen, their masks, and what else is told of them.

        These are `arguments` and `object_facts`, and the same for each of the neighbours.
        """
        (rows, mask), about = self.arguments(scene, action), self.object_facts(state, goal, action)
        names = self.neighbours(scene, state, action) if self.links else []
        if not names:
            return rows, mask, about
        types = [scene.roster.objects[name] for name in names]
        more = [
            [*self._unary_facts(state, goal, name), *(kind == each for each in self.kinds), *[False] * self.arity]
            for name, kind in zip(names, types, strict=True)
        ]
        rows = [*rows, *(scene.roster.row[name] for name in names)]
        return rows, np.concatenate([mask, self.features.mask(types)]), np.concatenate([about, more], dtype=np.float32)

    def neighbours(self, scene: Scene, state: Facts, action: Action) -> list[str]:
        """The objects that the links of an action lead to, the nearest first."""
        found: dict[str, float] = {}
        for link in self.links:
            if link.action == action.name:
                number = self.parameters[action.name].index(link.argument)
                if all((predicate, (action.arguments[number],)) in state for predicate in link.given):
                    names = [
                        name
                        for name in sharing(state, link.sharing, action, number)
                        if scene.roster.objects.get(name) == link.of
                        and all((predicate, (name,)) in state for predicate in link.where)
                    ]
                    scale = link.within / link.first if link.within and link.first else 1.0
                    steps = self.steps(scene, action, names, scale)
                    found |= {name: step for name, step in steps.items() if link.within is None or step <= link.within}
        return sorted(found, key=lambda name: (found[name], name))

    def steps(self, scene: Scene, action: Action, others: Sequence[str], scale: float = 1.0) -> dict[str, float]:
        """For each of the others, the longest step on the way to it, by others, from one of the action's arguments.

        Of all ways it is the one whose longest step is the shortest. Where something has no position, it is 0. First
        steps count `scale` times.
        """
        roster, coordinates = scene.roster, self.features.coordinates
        columns = sorted(self.spec.column[name] for name in set().union(*coordinates.values()))

        def placed(names: Iterable[str]) -> list[str]:
            return [name for name in names if len(coordinates[roster.objects[name]]) == len(columns)]

        first, rest = placed(name for _, name in self._seen_arguments(action) if name in roster.row), placed(others)
        where = scene.features[[roster.row[name] for name in (*first, *rest)]][:, columns]
        apart = np.linalg.norm(where[:, None] - where, axis=-1)
        longest = scale * apart[: len(first)].min(axis=0, initial=np.inf)
        for _ in rest:
            longest = np.minimum(longest, np.maximum(longest[:, None], apart).min(axis=0))
        return {**dict.fromkeys(others, 0.0), **dict(zip(rest, longest[len(first) :].tolist(), strict=True))}

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


def sharing(state: Facts, predicate: str, action: Action, number: int) -> set[str]:
    """Return what shares a fact of this predicate with an argument, and is none of the action's arguments itself."""
    found = {name for fact, names in state if fact == predicate and action.arguments[number] in names for name in names}
    return found.difference(action.arguments)


def encoding_of(domain: Domain, spec: Spec, links: Sequence[ObjectLink] = ()) -> Encoding:
    """Return how the network is told about scenes of this spec and symbols of this domain."""

    def with_arguments(count: int) -> tuple[str, ...]:
        return tuple(sorted(name for name, p in domain.predicates.items() if len(p.parameters) == count))

    arities = {name: len(domain.schemas[name].parameters) for name in sorted(domain.schemas)}
    return Encoding(
        features=FeatureEncoder(spec),
        nullary=with_arguments(0),
        unary=with_arguments(1),
        schemas=tuple(arities),
        arity=max([1, *arities.values()]),
        constants=tuple(domain.constants),
        excluded_parameters={name: _excluded(domain, name, parameters) for name, parameters in spec.untold.items()},
        parameters={name: tuple(each.name for each in schema.parameters) for name, schema in domain.schemas.items()},
        links=tuple(sorted(links)),
    )


def _excluded(domain: Domain, name: str, untold: Sequence[str]) -> frozenset[int]:
    """The numbers of an action's parameters that are untold; `BadInput` where there are no such, or no others."""
    schema = domain.schemas.get(name)
    known = [parameter.name for parameter in schema.parameters] if schema else []
    if not {*untold} < {*known}:
        raise BadInput(
            f"the spec's untold has {', '.join(untold)} of the action '{name}', but these must be some, and not all, "
            f"of its parameters in the domain '{domain.name}': {', '.join(known) or 'it has none'}"
        )
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
    objects: Array  # (steps, rows, object size): arguments, then neighbours; zeros where there are none


def encode_episode(
    encoding: Encoding, scenes: Sequence[Scene], situations: Sequence[Situation], targets: Array, number: int
) -> Samples:
    """The samples of one episode, (steps,) each. Symbols change rarely, so they are encoded once for each stretch."""
    encoding = encoding.for_spec(scenes[0].spec) if scenes else encoding
    steps, encoder = len(scenes), encoding.features
    globals_ = np.zeros((steps, encoding.global_size), np.float32)
    objects = np.zeros((steps, encoding.rows, encoding.object_size), np.float32)
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
            rows, *others = encoding.seen_objects(scenes[start], state, goal, action)
            rows, (mask, about) = rows[: encoding.rows], (part[: encoding.rows] for part in others)
            features = np.stack([encoding.seen(scene, rows) for scene in scenes[start:end]])
            objects[start:end, : len(rows), : encoder.object_size] = encoder.objects(values[start:end], features, mask)
            objects[start:end, : len(rows), encoder.object_size :] = about
        start = end
    return Samples(targets, np.full(steps, number), globals_, schemas, objects).where(schemas >= 0)
