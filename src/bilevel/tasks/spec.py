"""What is seen, and the role in which the network is told of it.

    SPEC = Spec(
        agent={"x": Position, "y": Position, "z": Position(absolute=True), "opening": Scalar},
        objects={"cube": {"x": Position, "y": Position, "z": Position, "yaw": Angle(symmetry=4), "red": LabelOnly}},
    )

A role that needs no settings may be given as its class. Scales are not declared: they come from the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from bilevel.symbolic.domain import BadInput


class Position(msgspec.Struct, frozen=True, tag="position", omit_defaults=True):
    """A coordinate. Of an object, the network is told how far it is from the agent's coordinate of the same name.

    An agent's own coordinates are the origin, so they are not told, unless they are `absolute`, as the height of a hand
    above its table may be. A coordinate with a name of its own, such as a tray's left end, says which one of the
    agent's it is measured `along`; it is not turned into a frame.
    """

    absolute: bool = False
    along: str | None = None


class Angle(msgspec.Struct, frozen=True, tag="angle", omit_defaults=True):
    """An angle in radians, told as sine and cosine of a multiple: a cube looks the same from 4 sides, so 4 times.

    It is relative to the agent's angle of the same name, if the agent has one.
    """

    symmetry: int = 1


class Scalar(msgspec.Struct, frozen=True, tag="scalar"):
    """Any other number, told as it is."""


class LabelOnly(msgspec.Struct, frozen=True, tag="label-only", omit_defaults=True):
    """For labels and experts alone. A method that has no labels is told it in this `role`, if there is one."""

    role: Position | Angle | Scalar | None = Scalar()


class Mirror(msgspec.Struct, frozen=True, tag="mirror", omit_defaults=True):
    """What is seen could be its mirror image, and the right control would be that of the control.

    These features and these numbers of a control change their signs; an angle turns the other way.
    """

    features: tuple[str, ...]
    controls: tuple[int, ...]
    except_for: tuple[str, ...] = ()  # actions for which it does not hold, such as opening something to the right


class Transpose(msgspec.Struct, frozen=True, tag="transpose", omit_defaults=True):
    """What is seen could be mirrored at a diagonal: two features, and two numbers of a control, change places.

    Together with a mirror, that makes quarter turns. Angles turn the other way.
    """

    features: tuple[str, str]
    controls: tuple[int, int]
    except_for: tuple[str, ...] = ()
    angles: tuple[str, ...] = ()


Symmetry = Mirror | Transpose

InputRole = Position | Angle | Scalar  # of a number that a network is told
Role = InputRole | LabelOnly
ROLES = (Position, Angle, Scalar, LabelOnly)

if TYPE_CHECKING:
    Features = Mapping[str, Role | type[Role]]  # as users give them
else:
    Features = Mapping[str, Role]  # as they are kept, also in files


@dataclass(frozen=True)
class Spec:
    """The features of the agent and of each type of object, by their names, with their roles; files have it as JSON.

    With a `frame`, two coordinates of the agent and its heading, such as ("x", "y", "theta"), positions are told as the
    agent sees them, ahead and to its left. Of `untold` parameters of actions, such as {"pick": ("?from",)}, the network
    is told nothing, so that it cannot be misled by what plays no part in how the action is done. With `symmetries`,
    such as [Mirror(("x",), controls=(0,))], training may show a demonstration as its mirror image, too.
    """

    agent: Features
    objects: Mapping[str, Features]
    frame: tuple[str, str, str] | None = None
    untold: Mapping[str, Sequence[str]] = field(default_factory=dict)
    symmetries: Sequence[Symmetry] = ()

    @cached_property
    def agent_roles(self) -> dict[str, Role]:
        """The roles of the agent's features, by their names."""
        return _roles("the agent", self.agent)

    @cached_property
    def object_roles(self) -> dict[str, dict[str, Role]]:
        """By type and feature."""
        return {kind: _roles(f"the type '{kind}'", features) for kind, features in self.objects.items()}

    def __post_init__(self) -> None:
        untold = {name: tuple(parameters) for name, parameters in self.untold.items()}
        values = {"agent": self.agent_roles, "objects": self.object_roles, "untold": untold}
        for name, value in (values | {"symmetries": tuple(self.symmetries)}).items():
            object.__setattr__(self, name, value)
        agent, (x, y, _) = self.agent_roles, self.frame or ("", "", "")
        for kind, features in self.object_roles.items():
            for name, role in features.items():
                told = input_role(role)
                if isinstance(told, Position) and (told.along or name) not in agent:
                    what = f"the type '{kind}' has the Position '{name}', but the agent has no '{told.along or name}'"
                    raise BadInput(f"{what} for it to be relative to: add that, or declare '{name}' as a Scalar")
            if _position(features.get(x)) != _position(features.get(y)):
                raise BadInput(f"the type '{kind}' needs both '{x}' and '{y}' as Positions, or neither: see its frame")
        known = {*agent, *self.columns}
        for symmetry in self.symmetries:
            for name in (*symmetry.features, *(symmetry.angles if isinstance(symmetry, Transpose) else ())):
                if name not in known:
                    raise BadInput(f"a symmetry names the feature '{name}', but neither agent nor objects have it")
        for name in self.frame or ():
            if name not in agent:
                raise BadInput(f"the frame names '{name}', but the agent has no such feature")

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of all features of objects, in the order in which scenes keep them."""
        return tuple(dict.fromkeys(name for features in self.objects.values() for name in features))

    @cached_property
    def column(self) -> Mapping[str, int]:
        """The column of each feature of objects."""
        return {name: index for index, name in enumerate(self.columns)}

    @cached_property
    def agent_column(self) -> Mapping[str, int]:
        """The place of each feature of the agent."""
        return {name: index for index, name in enumerate(self.agent)}


def input_role(role: Role) -> InputRole | None:
    """Return the role in which a number is told, if it is told at all, and not for labels alone."""
    return role.role if isinstance(role, LabelOnly) else role


def _position(role: Role | None) -> type[Role] | None:
    """How a feature is a coordinate, if it is one: for all, or for labels alone."""
    return type(role) if role is not None and isinstance(input_role(role), Position) else None


def _roles(whose: str, features: Features) -> dict[str, Role]:
    made = {}
    for name, role in features.items():
        made[name] = role() if isinstance(role, type) and issubclass(role, ROLES) else role
        if not isinstance(made[name], ROLES):
            raise BadInput(f"{whose} has the feature '{name}' as {role!r}; roles: Position, Angle, Scalar, LabelOnly")
    return made
