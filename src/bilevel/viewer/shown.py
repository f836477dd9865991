"""What the low level sees and does at one step, as numbers with names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bilevel.policies.rollout import Transition
from bilevel.symbolic.domain import Action
from bilevel.tasks.controls import BoxControls, Control, Controls
from bilevel.tasks.scene import Scene, Thing
from bilevel.tasks.spec import LabelOnly, Role
from bilevel.viewer.board import ControlNumber, SeenThing

AGENT = "agent"


def control_numbers(transition: Transition, controls: Controls, switches: Sequence[int]) -> list[ControlNumber]:
    """Return each number of a control between its bounds, as the policy wants it and as it is executed."""
    wanted, executed = (
        np.asarray(one, np.float64).reshape(-1).tolist() for one in (transition.control, transition.executed)
    )
    if not isinstance(controls, BoxControls):
        last = controls.start + controls.n - 1
        return [ControlNumber(controls.start, last, wanted[0], executed[0], is_choice=True)]
    columns = zip(controls.low, controls.high, wanted, executed, strict=True)
    return [ControlNumber(*column, is_switch=place in switches) for place, column in enumerate(columns)]


def held_control(control: Control, controls: Controls, held: Mapping[int, float]) -> Control:
    """Return the control with some of its numbers, by their places, held at values within their bounds."""
    if not isinstance(controls, BoxControls):
        chosen = round(held.get(0, int(control)))
        return np.int64(min(max(chosen, controls.start), controls.start + controls.n - 1))
    flat = np.array(control, controls.dtype).reshape(-1)
    for place, value in held.items():
        flat[place] = min(max(value, controls.low[place]), controls.high[place])
    return flat.reshape(controls.shape)


def seen_things(scene: Scene, action: Action | None) -> list[SeenThing]:
    """Return what the network is told about: the agent, and the objects that the action names."""
    named = [name for name in dict.fromkeys(action.arguments if action else ()) if name in scene]
    spec = scene.spec
    things = [_seen(scene[name], spec.object_roles[scene[name].type]) for name in named]
    return [_seen(scene.agent, spec.agent_roles, AGENT), *things]


def _seen(thing: Thing, roles: Mapping[str, Role], kind: str | None = None) -> SeenThing:
    told = [name for name, role in roles.items() if not isinstance(role, LabelOnly)]
    return SeenThing(thing.name, kind or thing.type, {name: thing[name] for name in told})
