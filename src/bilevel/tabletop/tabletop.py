"""The tabletop that all worlds share, as a Gymnasium environment.

A world says what it consists of (`make_slots`, `make_simulation`), how an episode begins (`arrange`), what is seen
(`describe`, `look`), what nature does after each step (`react`), and what is wanted (`goal`, `achieved`). Everything
else is here: spaces, controls, the step limit, saving and restoring, pictures.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any, ClassVar, TypeVar, cast

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from bilevel.symbolic.domain import BadInput, Facts
from bilevel.tabletop.furniture import BLOCK
from bilevel.tabletop.layout import WORK_AREA, Floats, clear_of, grid, jittered
from bilevel.tabletop.measurements import holds
from bilevel.tabletop.observation import (
    AGENT_FEATURES,
    FEATURES,
    POSITION,
    Array,
    Bools,
    Observation,
    Slots,
    visible_objects,
)
from bilevel.tabletop.random_state import random_state, set_random_state
from bilevel.tabletop.rendering import Picture, check_choices
from bilevel.tabletop.simulation import PHYSICS, Simulation

STEPS_PER_OBJECT = 2048
ARM_CLEARANCE = 0.1  # metres; nothing appears nearer to the hand, in xy
STEPS_ASTRAY = 8  # a block may be out of reach for so long
YAW = 0.3  # radians; blocks are turned by up to this

SUCCESS, STEP_LIMIT, UNSTABLE = "success", "step limit", "unstable simulation"

Snapshot = dict[str, NDArray[Any]]


@dataclass
class State:
    """What a world remembers besides physics; all of it arrays, so that it can be saved like physics."""

    visible: Bools  # (slots,)


World = TypeVar("World", bound="Tabletop")
Answer = TypeVar("Answer")


def once(method: Callable[[World, Observation], Answer]) -> Callable[[World, Observation], Answer]:
    """Ask a world a question about one observation only once; each step makes another observation."""
    attribute = f"_{method.__name__}_once"

    @wraps(method)
    def answer(world: World, observation: Observation) -> Answer:
        known: tuple[Observation, Answer] | None = world.__dict__.get(attribute)
        if known is None or known[0] is not observation:
            known = world.__dict__[attribute] = observation, method(world, observation)
        return known[1]

    return answer


class Tabletop(gymnasium.Env[Observation, NDArray[np.float32]]):
    """A Sawyer arm at a table. A control moves its hand along x, y, z and closes (1) or opens (-1) its fingers.

    Each step's `info` holds the `goal` so far, the names and types of all visible `objects`, the `events` that no
    action explains, and the `outcome` once the episode is over. The reward is 1 at success and 0 otherwise.
    """

    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array"], "render_fps": 80}  # noqa: RUF012 (as in the base class)
    most_objects: ClassVar[int] = 10

    state_type: ClassVar[type[State]] = State
    state: State
    slots: Slots

    def __init__(
        self, objects: int = 3, *, teleport_rate: float = 0.0, render_mode: str | None = None, quality: str = "fast"
    ) -> None:
        if objects not in range(1, self.most_objects + 1):
            raise BadInput(f"{type(self).__name__} takes 1 to {self.most_objects} objects, not {objects}")
        if not 0 <= teleport_rate <= 1:
            raise BadInput(f"the teleport rate is a probability per object and step, 0 to 1, not {teleport_rate}")
        check_choices(render_mode, quality)
        self.count = int(objects)
        self.teleport_rate = teleport_rate
        self.step_limit = STEPS_PER_OBJECT * self.count
        self.render_mode = render_mode
        self.quality = quality
        self.slots = self.make_slots()
        self._blocks = self.slots.rows("block")
        self._block_names = self.slots.names[self._blocks]
        self.simulation = self.make_simulation()
        self.observation_space = cast(spaces.Space[Observation], _observation_space(len(self.slots)))
        self.action_space = spaces.Box(-1.0, 1.0, (4,), np.float32)
        self._steps = 0
        self._running = False
        self._events: list[str] = []
        self._picture: Picture | None = None

    # What makes a world

    @abstractmethod
    def make_slots(self) -> Slots:
        """What can be seen in this world, in the order of the observation's rows."""

    @abstractmethod
    def make_simulation(self) -> Simulation:
        """The scene with all that is in it."""

    @abstractmethod
    def arrange(self, rng: np.random.Generator) -> State:
        """Reset the simulation and put everything where an episode begins."""

    @abstractmethod
    def describe(self, features: Array) -> None:
        """Fill in what changes only at events, (slots, features), and paint the scene accordingly."""

    def look(self, features: Array, agent: Array) -> None:
        """Fill in what else changes at every step; blocks and what is seen of the arm, `agent`, are there already."""

    @abstractmethod
    def goal(self) -> Facts:
        """What is wanted, as far as it is known by now."""

    @abstractmethod
    def achieved(self, observation: Observation) -> Bools:
        """(goals,): which parts of the goal hold."""

    def react(self, observation: Observation) -> bool:
        """What nature does after a step; whether it did anything that can be seen."""
        return False

    # Gymnasium

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = self.arrange(self.np_random)
        self.simulation.settle()
        self._begin(steps=0)
        if self.render_mode == "human":
            self.render()
        return self._observation, self._info(None)

    def step(self, control: NDArray[np.float32]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Controls out of range are clipped; other than four finite numbers are an error."""
        if not self._running:
            raise BadInput("the episode is over, or none has begun; call reset()")
        self.simulation.step(_checked(control))
        self._steps += 1
        self._events = []
        outcome = self._outcome()
        self._running = outcome is None
        if self.render_mode == "human":
            self.render()
        success = outcome == SUCCESS
        return self._observation, float(success), success, not success and not self._running, self._info(outcome)

    def _outcome(self) -> str | None:
        """Look at the world after a step and let nature react; how the episode ended, if it did."""
        if not self.simulation.stable:
            return UNSTABLE  # what was seen last is still the observation
        self._observation = self._observe()
        if self.react(self._observation):
            self.update()
        if self.achieved(self._observation).all():
            return SUCCESS
        return STEP_LIMIT if self._steps >= self.step_limit else None

    def _begin(self, steps: int) -> None:
        self._steps = steps
        self._events = []
        self._running = True
        self.update()

    def _observe(self) -> Observation:
        features = self._described.copy()
        agent = self.simulation.hand().astype(np.float32)
        features[self._blocks, POSITION] = self.simulation.blocks()
        features[self._hidden] = 0.0
        self.look(features, agent)
        return {"agent": agent, "objects": features, "visible": self._visible.copy()}

    def _info(self, outcome: str | None) -> dict[str, Any]:
        return {"goal": self._goal, "objects": dict(self._objects), "events": tuple(self._events), "outcome": outcome}

    def render(self) -> Any:
        if self.render_mode is None:
            raise BadInput("pictures need a render mode: make the environment with render_mode='rgb_array' or 'human'")
        if self._picture is None:
            self._picture = Picture(self.simulation.model, self.render_mode, self.quality)
        return self._picture.draw(self.simulation.data)

    def close(self) -> None:
        if self._picture is not None:
            self._picture.close()
            self._picture = None

    # For worlds

    def update(self) -> None:
        """Take note of an event: see everything anew."""
        features = np.zeros((len(self.slots), len(FEATURES)), np.float32)
        self.describe(features)
        self._described = features
        self._visible = self.state.visible.astype(np.int8)
        self._hidden = np.flatnonzero(~self.state.visible)
        self._observation = self._observe()
        self._goal = self.goal()
        self._objects = visible_objects(self.slots, self._observation)

    @property
    def is_restless(self) -> bool:
        """Whether the world may do something although nothing moves: only what is at its goal is ever struck."""
        return bool(self.teleport_rate) and bool(self.achieved(self._observation).any())

    def happened(self, event: str) -> None:
        """Record an event that no action explains."""
        self._events.append(event)

    def strayed(self, observation: Observation) -> NDArray[np.intp]:
        """Which blocks are where the arm does not reach them, on the table's rim, say; looked for only now and then."""
        if self._steps % STEPS_ASTRAY:
            return np.empty(0, np.intp)
        blocks = observation["objects"][self._blocks, POSITION]
        loose = ~holds(observation["agent"], blocks) & self.state.visible[self._blocks]
        lowest, highest = WORK_AREA
        outside = ((blocks[:, :2] < lowest) | (blocks[:, :2] > highest)).any(axis=1)
        return np.flatnonzero(loose & outside)

    def move(self, blocks: Iterable[int], why: str) -> bool:
        """Put blocks where nothing is, for a reason that no action explains; whether there were any, and room."""
        moved = False
        for block in blocks:
            for x, y in self.vacancy():
                self.simulation.put(block, (x, y, BLOCK), self.np_random.uniform(-YAW, YAW))
                self.happened(f"{why} {self._block_names[block]}")
                moved = True
        return moved

    def vacancy(self) -> Floats:
        """(places, 2): a free place for a block; none if there is none."""
        return self.free_place(self.simulation.blocks()[:, :2])

    def free_place(self, occupied: Floats, half_widths: float | Floats = 0.0, places: Floats | None = None) -> Floats:
        """(places, 2): one place at random where nothing is, and not under the hand; none if there is none."""
        candidates = jittered(grid() if places is None else places, self.np_random)
        hand = self.simulation.hand()[:2]
        candidates = candidates[np.linalg.norm(candidates - hand, axis=1) > ARM_CLEARANCE]
        candidates = clear_of(candidates, occupied, half_widths)
        return self.np_random.permutation(candidates)[:1]

    # Saving

    def save(self) -> Snapshot:
        """Everything that the rest of the episode depends on, as plain arrays."""
        if not hasattr(self, "state"):
            raise BadInput("there is nothing to save before the first reset()")
        remembered = {field.name: np.array(getattr(self.state, field.name)) for field in fields(self.state)}
        own = {"steps": np.array(self._steps), "random": random_state(self.np_random)}
        return {**self.simulation.save(), **remembered, **own}

    def restore(self, snapshot: Mapping[str, NDArray[Any]]) -> tuple[Observation, dict[str, Any]]:
        """Go on from a snapshot of an environment with the same arguments, bit for bit as that one did."""
        names = [field.name for field in fields(self.state_type)]
        if set(snapshot) != {*PHYSICS, *names, "steps", "random"} or len(snapshot["visible"]) != len(self.slots):
            raise BadInput("the snapshot is of another world, or of one with another number of objects")
        self.simulation.restore(snapshot)
        self.state = self.state_type(**{name: np.array(snapshot[name]) for name in names})
        set_random_state(self.np_random, snapshot["random"])
        self._begin(int(snapshot["steps"]))
        return self._observation, self._info(None)


def _observation_space(slots: int) -> spaces.Dict:
    return spaces.Dict(
        agent=spaces.Box(-10.0, 10.0, (len(AGENT_FEATURES),), np.float32),
        objects=spaces.Box(-100.0, 10_000.0, (slots, len(FEATURES)), np.float32),
        visible=spaces.MultiBinary(slots),
    )


def _checked(control: NDArray[np.float32]) -> list[float]:
    """Four numbers from -1 to 1; plain ones, as so few are sooner added up without numpy."""
    numbers = np.asarray(control, np.float32)
    if numbers.shape != (4,):
        raise BadInput(f"a control is four numbers (x, y, z, fingers), not an array of shape {numbers.shape}")
    plain: list[float] = numbers.tolist()
    if not all(map(math.isfinite, plain)):
        raise BadInput(f"a control must be finite, not {plain}")
    return [min(1.0, max(-1.0, number)) for number in plain]
