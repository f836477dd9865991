"""The tabletop that all worlds share, as a Gymnasium environment.

A world says what it consists of (`name_objects`, `furnish`), how an episode begins (`arrange`), what is seen
(`describe`, `look`), what nature does after each step (`react`), and which parts of the goal are `achieved`. Everything
else is here: spaces, controls, the step limit, saving and restoring, pictures. MuJoCo is imported when a world is made,
so that labels and policies do without it.
"""

from __future__ import annotations

import inspect
import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, cast

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.furniture import BLOCK, Furnishing
from bilevel.tabletop.layout import WORK_AREA, Floats, clear_of, grid, jittered
from bilevel.tabletop.measurements import holds
from bilevel.tabletop.observation import POSITION, Bools, Observation, Slots
from bilevel.tasks.scene import Array
from bilevel.tasks.spec import Spec
from bilevel.tasks.task import STEPS_PER_OBJECT, Snapshot

if TYPE_CHECKING:
    from bilevel.tabletop.rendering import Canvas, Image
    from bilevel.tabletop.simulation import Simulation

ARM_CLEARANCE = 0.1  # metres; nothing appears nearer to the hand, in xy
STEPS_ASTRAY = 8  # a block may be out of reach for so long
YAW = 0.3  # radians; blocks are turned by up to this

UNSTABLE = "unstable simulation"  # an outcome

_NONE = np.empty(0, np.intp)


@dataclass
class State:
    """What a world remembers besides physics; all of it arrays, so that it can be saved like physics."""

    visible: Bools  # (slots,)


Options = Mapping[str, Sequence[Any]]


def teleporting(rng: np.random.Generator, at_goal: Bools, rate: float) -> NDArray[np.intp]:
    """Draw which of the objects at their goals teleport at this step; each of them with the same small probability."""
    count = int(np.count_nonzero(at_goal))
    if count == 0 or rate == 0 or rng.random() < (1 - rate) ** count:  # none of them, as nearly always
        return _NONE
    while True:
        struck = rng.random(count) < rate
        if struck.any():
            return np.flatnonzero(at_goal)[struck]


class Tabletop(gymnasium.Env[Observation, NDArray[np.float32]]):
    """A Sawyer arm at a table. A control moves its hand along x, y, z and closes (1) or opens (-1) its fingers.

    Each step's `info` says whether it was a `success` and which `events` happened that no action explains; `outcome` is
    `None` unless the simulation became unstable. The reward is 1 at success and 0 otherwise.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 80}  # noqa: RUF012 (as in the base class)
    max_objects: ClassVar[int] = 10
    scene_spec: ClassVar[Spec]
    instruction: ClassVar[str] = ""  # in words; SmolVLA reads the first 48 tokens and drops the rest
    disturbance: ClassVar[str] = "Blocks that are in place may jump elsewhere."  # of the noisy twin, in words
    options: ClassVar[Options] = {}  # its further arguments, with what each may be, the usual first

    state_type: ClassVar[type[State]] = State
    __signature__: ClassVar[inspect.Signature]
    state: State

    def __init_subclass__(cls) -> None:
        """Say in the signature of a world which options it has."""
        super().__init_subclass__()
        _, objects, *others, _ = inspect.signature(Tabletop.__init__).parameters.values()
        own = [inspect.Parameter(name, others[0].kind, default=known[0]) for name, known in cls.options.items()]
        cls.__signature__ = inspect.Signature([objects, *own, *others])

    def __init__(
        self,
        objects: int = 3,
        *,
        teleport_rate: float = 0.0,
        render_mode: str | None = None,
        quality: str = "fast",
        camera: str = "front",
        picture_size: tuple[int, int] | None = None,
        **options: Any,
    ) -> None:
        from bilevel.tabletop.rendering import check_choices
        from bilevel.tabletop.simulation import Simulation

        if objects not in range(1, self.max_objects + 1):
            raise BadInput(f"{type(self).__name__} takes 1 to {self.max_objects} objects, not {objects}")
        if not 0 <= teleport_rate <= 1:
            raise BadInput(f"the teleport rate is a probability per object and step, 0 to 1, not {teleport_rate}")
        check_choices(render_mode, quality, camera, picture_size)
        for name, known in self.options.items():
            chosen = options.pop(name, known[0])
            if chosen not in known:
                raise BadInput(f"unknown {name} '{chosen}'; known ones: {', '.join(map(str, known))}")
            setattr(self, name, known[known.index(chosen)])
        if options:
            raise TypeError(f"{type(self).__name__} takes no argument '{min(options)}'")
        self.count = int(objects)
        self.teleport_rate = teleport_rate
        self.step_limit = STEPS_PER_OBJECT * self.count
        self.render_mode = render_mode
        self.quality = quality
        self.picture_size = picture_size
        self.camera = camera
        self.slots = Slots(self.scene_spec, self.name_objects())
        self._blocks = self.slots.rows("block")
        self._block_names = self.slots.of_type("block")
        self.simulation: Simulation = Simulation(self.furnish())
        shown = spaces.Dict(
            agent=spaces.Box(-10.0, 10.0, (len(self.scene_spec.agent),), np.float32),
            objects=spaces.Box(-100.0, 10_000.0, (len(self.slots), len(self.scene_spec.columns)), np.float32),
            visible=spaces.MultiBinary(len(self.slots)),
        )
        self.observation_space = cast(spaces.Space[Observation], shown)
        self.action_space = spaces.Box(-1.0, 1.0, (4,), np.float32)
        self._steps = 0
        self._running = False
        self._events: list[str] = []
        self._canvas: Canvas | None = None

    # What makes a world

    @abstractmethod
    def name_objects(self) -> Mapping[str, Iterable[str]]:
        """Return the names of all that can be seen in this world, by type, in the order of the observation's rows."""

    @abstractmethod
    def furnish(self) -> Furnishing:
        """Return what stands on the table."""

    @abstractmethod
    def arrange(self, rng: np.random.Generator) -> State:
        """Reset the simulation and put everything where an episode begins."""

    @abstractmethod
    def describe(self, features: Array) -> None:
        """Fill in what changes only at events, (slots, features), and paint the scene accordingly."""

    def look(self, features: Array, agent: Array) -> None:
        """Fill in what else changes at every step; blocks and what is seen of the arm, `agent`, are there already."""

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
        """Begin an episode: arrange the table at random and let everything settle."""
        super().reset(seed=seed)
        self.state = self.arrange(self.np_random)
        self.simulation.settle()
        self._begin(steps=0)
        return self._observation, self._info()

    def step(self, control: NDArray[np.float32]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Controls out of range are clipped; other than four finite numbers are an error."""
        if not self._running:
            raise BadInput("the episode is over, or none has begun; call reset()")
        self.simulation.step(_checked(control))
        self._steps += 1
        self._events = []
        outcome = self.broken()  # if it is, what was seen last is still the observation
        success = outcome is None and self._look_and_react()
        truncated = not success and (outcome is not None or self._steps >= self.step_limit)
        self._running = not (success or truncated)
        return self._observation, float(success), success, truncated, self._info(success, outcome)

    def broken(self) -> str | None:
        """Return the outcome for which the episode cannot go on, if there is one."""
        return None if self.simulation.stable else UNSTABLE

    def _look_and_react(self) -> bool:
        """Look at the world after a step and let nature react; return whether the whole goal is achieved."""
        self._observation = self._observe()
        if self.react(self._observation):
            self.update()
        return bool(self.achieved(self._observation).all())

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

    def _info(self, success: bool = False, outcome: str | None = None) -> dict[str, Any]:
        return {"success": success, "is_success": success, "events": tuple(self._events), "outcome": outcome}

    def render(self) -> Image:
        """Return a picture of what is there."""
        if self.render_mode is None:
            raise BadInput("pictures need a render mode: make the environment with render_mode='rgb_array'")
        if self._canvas is None:
            from bilevel.tabletop.rendering import Canvas

            self._canvas = Canvas(self.simulation.model, self.quality, self.camera, self.picture_size)
        return self._canvas.draw(self.simulation.data)

    def locate(self, points: Floats) -> Floats:
        """Return (points, 2): where in the picture that was drawn last these points, (points, 3), are."""
        if self._canvas is None:
            raise BadInput("things are located in a picture: draw one first, with render_mode='rgb_array'")
        return self._canvas.locate(points)

    def close(self) -> None:
        """Free what pictures were drawn with, if any were."""
        if self._canvas is not None:
            self._canvas.close()
            self._canvas = None

    # For worlds

    def update(self) -> None:
        """Take note of an event: see everything anew."""
        features = np.zeros((len(self.slots), len(self.scene_spec.columns)), np.float32)
        self.describe(features)
        self._described = features
        self._visible = self.state.visible.astype(np.int8)
        self._hidden = np.flatnonzero(~self.state.visible)
        self._observation = self._observe()

    @property
    def is_restless(self) -> bool:
        """Whether the world may do something although nothing moves: only what is at its goal is ever struck."""
        return bool(self.teleport_rate) and bool(self.achieved(self._observation).any())

    def happened(self, event: str) -> None:
        """Record an event that no action explains."""
        self._events.append(event)

    def blocks_and_held(self, observation: Observation) -> tuple[Array, Bools]:
        """Where the blocks are, and which of them is held."""
        blocks = observation["objects"][self._blocks, POSITION]
        return blocks, holds(observation["agent"], blocks)

    def strayed(self, observation: Observation) -> NDArray[np.intp]:
        """Which blocks are where the arm does not reach them, on the table's rim, say; looked for only now and then."""
        if self._steps % STEPS_ASTRAY:
            return _NONE
        _, held = self.blocks_and_held(observation)
        return np.flatnonzero(~held & self.state.visible[self._blocks] & ~self.within_reach(observation))

    def within_reach(self, observation: Observation) -> Bools:
        """(blocks,): which blocks are where the arm can get at them."""
        where, (lowest, highest) = observation["objects"][self._blocks, :2], WORK_AREA
        return np.asarray(((where >= lowest) & (where <= highest)).all(axis=1))

    def move(self, blocks: Iterable[int], why: str) -> bool:
        """Put blocks where nothing is, for a reason that no action explains; whether there were any, and room."""
        moved = False
        for block in blocks:
            for x, y in self.vacancy():
                self.simulation.put(block, (x, y, BLOCK), self.np_random.uniform(-YAW, YAW))
                self.happened(f"{why} {self._block_names[block]}")
                moved = True
        return moved

    def teleport(self, at_goal: Bools) -> bool:
        """Let some of the blocks at their goals teleport to where nothing is; return whether one did."""
        return self.move(teleporting(self.np_random, at_goal, self.teleport_rate), "teleport")

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
        """Return everything that the rest of the episode depends on, as plain arrays."""
        if not hasattr(self, "state"):
            raise BadInput("there is nothing to save before the first reset()")
        remembered = {field.name: np.array(getattr(self.state, field.name)) for field in fields(self.state)}
        own = {"steps": np.array(self._steps), "random": random_state(self.np_random)}
        return {**self.simulation.save(), **remembered, **own}

    def restore(self, snapshot: Snapshot) -> tuple[Observation, dict[str, Any]]:
        """Go on from a snapshot of an environment with the same arguments, bit for bit as that one did."""
        names = [field.name for field in fields(self.state_type)]
        if set(snapshot) != {*self.simulation.PARTS, *names, "steps", "random"} or len(snapshot["visible"]) != len(
            self.slots
        ):
            raise BadInput("the snapshot is of another world, or of one with another number of objects")
        self.simulation.restore(snapshot)
        self.state = self.state_type(**{name: np.array(snapshot[name]) for name in names})
        set_random_state(self.np_random, snapshot["random"])
        self._begin(int(snapshot["steps"]))
        return self._observation, self._info()


def _checked(control: NDArray[np.float32]) -> list[float]:
    """Four numbers from -1 to 1; plain ones, as so few are sooner added up without numpy."""
    numbers = np.asarray(control, np.float32)
    if numbers.shape != (4,):
        raise BadInput(f"a control is four numbers (x, y, z, fingers), not an array of shape {numbers.shape}")
    plain: list[float] = numbers.tolist()
    if not all(map(math.isfinite, plain)):
        raise BadInput(f"a control must be finite, not {plain}")
    return [min(1.0, max(-1.0, number)) for number in plain]


def random_state(rng: np.random.Generator) -> NDArray[np.uint64]:
    """(6,): a generator's two numbers of 128 bits, high word first, and what is left of the last draw of 32 bits."""
    state = rng.bit_generator.state
    wide = state["state"]["state"], state["state"]["inc"]
    words = [word for number in wide for word in divmod(number, 2**64)]
    return np.array([*words, state["has_uint32"], state["uinteger"]], np.uint64)


def set_random_state(rng: np.random.Generator, saved: NDArray[np.uint64]) -> None:
    """Set a generator to a state that was saved as 64-bit words."""
    high, low, inc_high, inc_low, has_uint32, uinteger = (int(word) for word in saved)
    wide = {"state": high * 2**64 + low, "inc": inc_high * 2**64 + inc_low}
    words = {"state": wide, "has_uint32": has_uint32, "uinteger": uinteger}
    rng.bit_generator.state = {**rng.bit_generator.state, **words}
