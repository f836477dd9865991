"""A whole task in NumPy for fast tests: a point carries parcels to spots; a demonstration takes milliseconds.

Parcels arrive one after the other, each with its spot, and with a `slip_rate` one that is carried may slip away.
`TINY` has Box controls (two velocities and a grip, in units of their own), `TINY_DISCRETE` is the same with a Discrete
space (left, right, down, up, and the grip), and `TINY_ACTING` has an expert that does not say what it is doing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from bilevel.symbolic.domain import Action, Atom, Facts
from bilevel.symbolic.pddl import parse_domain
from bilevel.tasks.scene import Scene
from bilevel.tasks.spec import Position, Scalar, Spec
from bilevel.tasks.task import Expert, Snapshot, Task

REACH = 0.08
SPEED = 0.1  # the farthest that a step leads along each axis
ARRIVAL_RATE = 0.02
MOVES = {1: (-SPEED, 0), 2: (SPEED, 0), 3: (0, -SPEED), 4: (0, SPEED)}  # of the Discrete space
GRIP = 5  # opens what is closed, and the other way round

DOMAIN = parse_domain("""
(define (domain delivery)
  (:requirements :strips :typing)
  (:types parcel spot)
  (:predicates (free) (lying ?p - parcel) (carrying ?p - parcel) (at ?p - parcel ?s - spot) (empty ?s - spot))
  (:action pick :parameters (?p - parcel)
    :precondition (and (free) (lying ?p))
    :effect (and (carrying ?p) (not (free)) (not (lying ?p))))
  (:action put :parameters (?p - parcel ?s - spot)
    :precondition (and (carrying ?p) (empty ?s))
    :effect (and (at ?p ?s) (free) (not (carrying ?p)) (not (empty ?s)))))
""")

SPEC = Spec(
    agent={"x": Position, "y": Position, "closed": Scalar},
    objects={
        "parcel": {"x": Position, "y": Position, "held": Scalar},
        "spot": {"x": Position, "y": Position, "radius": Scalar},
    },
)


class Delivery(gymnasium.Env[dict[str, Any], Any]):
    """Parcels begin on the left, spots are on the right; the first parcel is there from the beginning."""

    def __init__(self, objects: int, slip_rate: float, discrete: bool) -> None:
        self.count, self.slip_rate, self.discrete = objects, slip_rate, discrete
        self.observation_space = spaces.Dict(
            agent=spaces.Box(-2, 2, (3,)),
            parcels=spaces.Box(-2, 2, (objects, 3)),
            spots=spaces.Box(-2, 2, (objects, 2)),
            arrived=spaces.Discrete(objects + 1),
        )
        low, high = np.array([-SPEED, -SPEED, 0], np.float32), np.array([SPEED, SPEED, 1], np.float32)
        self.action_space = spaces.Discrete(GRIP, start=1) if discrete else spaces.Box(low, high)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], Any]:
        super().reset(seed=seed)
        self.agent = np.zeros(3)  # x, y, closed
        self.parcels = np.zeros((self.count, 3))  # x, y, held
        self.spots = np.zeros((self.count, 2))
        for places, left in ((self.parcels, -1.0), (self.spots, 0.3)):
            rows = np.argsort(self.np_random.random(self.count))
            places[:, 0] = left + 0.7 * self.np_random.random(self.count)
            places[:, 1] = 2 * (rows + 0.5) / self.count - 1 + 0.02 * self.np_random.random(self.count)
        self.arrived = 1
        return self.observation(), self.info([])

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        move, closed = self._decoded(action)
        self.agent[:2] = np.clip(self.agent[:2] + move, -1.5, 1.5)
        held = self.parcels[:, 2] == 1
        put_down = held.any() and not closed
        if put_down:
            self.parcels[:, 2] = 0
        elif closed and not self.agent[2]:
            distances = np.linalg.norm(self.parcels[: self.arrived, :2] - self.agent[:2], axis=1)
            if distances.min() < REACH:
                self.parcels[distances.argmin(), 2] = 1
        self.agent[2] = closed
        self.parcels[self.parcels[:, 2] == 1, :2] = self.agent[:2]
        events = list(self._surprises(put_down))
        return self.observation(), 0.0, False, False, self.info(events)

    def _decoded(self, action: Any) -> tuple[Any, bool]:
        if self.discrete:
            return MOVES.get(int(action), (0, 0)), bool(self.agent[2]) != (int(action) == GRIP)
        return np.clip(action[:2], -SPEED, SPEED), bool(action[2] > 0.5)

    def _surprises(self, put_down: bool) -> Iterator[str]:
        """What no action explains: a parcel slips away, another one arrives."""
        slips, arrives = self.np_random.random(2)
        held = np.flatnonzero(self.parcels[:, 2])
        if held.size and slips < self.slip_rate:
            self.parcels[held, 0], self.parcels[held, 2] = -1.2, 0
            yield f"slip parcel{held[0] + 1}"
        if self.arrived < self.count and (put_down or arrives < ARRIVAL_RATE):
            self.arrived += 1
            yield f"arrival parcel{self.arrived}"

    def observation(self) -> dict[str, Any]:
        parts = {"agent": self.agent, "parcels": self.parcels, "spots": self.spots}
        return {name: part.astype(np.float32) for name, part in parts.items()} | {"arrived": self.arrived}

    def info(self, events: list[str]) -> dict[str, Any]:
        near = np.linalg.norm(self.parcels[:, :2] - self.spots, axis=1) < REACH
        return {"events": events, "success": bool((near & (self.parcels[:, 2] == 0)).all())}


def make_env(objects: int, slip_rate: float = 0.0) -> Delivery:
    return Delivery(objects, slip_rate, discrete=False)


def make_discrete_env(objects: int, slip_rate: float = 0.0) -> Delivery:
    return Delivery(objects, slip_rate, discrete=True)


def perceive(observation: dict[str, Any], info: dict[str, Any], env: Delivery) -> Scene:
    x, y, closed = observation["agent"]
    seen = range(observation["arrived"])
    parcels, spots = observation["parcels"], observation["spots"]
    return Scene(
        SPEC,
        agent={"x": x, "y": y, "closed": closed},
        objects={
            "parcel": {f"parcel{i + 1}": dict(zip(("x", "y", "held"), parcels[i], strict=True)) for i in seen},
            "spot": {f"spot{i + 1}": {"x": spots[i, 0], "y": spots[i, 1], "radius": REACH} for i in seen},
        },
    )


def label(scene: Scene) -> Iterator[Atom]:
    roster, column = scene.roster, SPEC.column
    parcels, spots = scene.features[roster.rows("parcel")], scene.features[roster.rows("spot")]
    distances = np.linalg.norm(parcels[:, None, :2] - spots[None, :, :2], axis=2)  # (parcels, spots)
    near = distances < spots[:, column["radius"]]
    held = parcels[:, column["held"]] > 0
    if not held.any():
        yield Atom("free")
    taken = set()
    for row, parcel in enumerate(roster.of_type("parcel")):
        if held[row]:
            yield Atom("carrying", (parcel,))
        elif near[row].any():
            spot = roster.of_type("spot")[near[row].argmax()]
            yield Atom("at", (parcel, spot))
            taken.add(spot)
        else:
            yield Atom("lying", (parcel,))
    yield from (Atom("empty", (spot,)) for spot in roster.of_type("spot") if spot not in taken)


def goal(scene: Scene) -> Iterator[Atom]:
    """Each parcel shall be at the spot of the same number."""
    return (Atom("at", (name, name.replace("parcel", "spot"))) for name in scene.roster.of_type("parcel"))


def choose(state: Facts, goal: Facts) -> Action | None:
    for _, (parcel, spot) in sorted(goal - state):
        if Atom("carrying", (parcel,)) in state:
            return Action("put", (parcel, spot))
    return next((Action("pick", fact.terms[:1]) for fact in sorted(goal - state)), None)


def control(scene: Scene, action: Action) -> Any:
    """Move to the last of the action's arguments, then close or open; what is closed must open before it can close."""
    target, agent = scene[action.arguments[-1]], scene.agent
    way = np.array([target.x - agent.x, target.y - agent.y])
    arrived = bool(np.abs(way).max() < SPEED / 4)
    closed = not arrived if action.name == "put" else arrived and not agent.closed
    return np.array([*np.clip(way, -SPEED, SPEED), closed], np.float32)


def control_discrete(scene: Scene, action: Action) -> Any:
    target, agent = scene[action.arguments[-1]], scene.agent
    way = np.array([target.x - agent.x, target.y - agent.y])
    axis = int(np.abs(way).argmax())
    arrived = abs(way[axis]) <= SPEED / 2 + 1e-6
    if arrived or bool(agent.closed) != (action.name == "put"):
        return np.int64(GRIP)
    return np.int64(1 + 2 * axis + (way[axis] > 0))


def act(scene: Scene) -> Any:
    action = choose(frozenset(label(scene)), frozenset(goal(scene)))
    assert action is not None
    return control(scene, action)


def save(env: Delivery) -> Snapshot:
    """The positions and the state of the random numbers."""
    generator: Any = env.np_random.bit_generator.state["state"]
    random = b"".join(generator[part].to_bytes(16, "little") for part in ("state", "inc"))
    return {
        "agent": env.agent.copy(),
        "parcels": env.parcels.copy(),
        "spots": env.spots.copy(),
        "arrived": np.array(env.arrived),
        "random": np.frombuffer(random, np.uint8),
    }


def restore(env: Delivery, snapshot: Snapshot) -> tuple[dict[str, Any], dict[str, Any]]:
    for part in ("agent", "parcels", "spots"):
        setattr(env, part, np.array(snapshot[part]))
    env.arrived = int(snapshot["arrived"])
    state, increment = (int.from_bytes(half.tobytes(), "little") for half in np.split(snapshot["random"], 2))
    generator = np.random.PCG64()
    generator.state = {**generator.state, "state": {"state": state, "inc": increment}}
    env.np_random = np.random.Generator(generator)
    return env.observation(), env.info([])


TINY = Task(
    "tiny",
    domain=DOMAIN,
    make_env=make_env,
    spec=SPEC,
    perceive=perceive,
    label=label,
    goal=goal,
    expert=Expert(choose, control),
    steps_per_object=400,
    max_objects=12,
    switches=(2,),
    save=save,
    restore=restore,
)
TINY_DISCRETE = replace(
    TINY, name="tiny-discrete", make_env=make_discrete_env, expert=Expert(choose, control_discrete), switches=()
)
TINY_ACTING = replace(TINY, name="tiny-acting", expert=Expert(act=act))
