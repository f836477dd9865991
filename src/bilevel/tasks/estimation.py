"""State estimation: what the scene is, from what is seen of it, step by step.

    estimator = Estimator(spec, estimation)
    scene = estimator.update(seen)

Objects rest unless the agent is near them or carries them along. So what is seen of them can be averaged over many
steps, and what is hidden can be remembered. How good the sensors are is found out as they are used, their noise from
things at rest, their bias from coordinates that are known: while they are as good as in the demonstrations, everything
that is seen is taken as it is. A scene that is some steps old is brought up to date by the controls given since.
"""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import BadInput
from bilevel.tasks.perception import REMEMBERED, Coordinates
from bilevel.tasks.scene import Array, Roster, Scene
from bilevel.tasks.spec import Spec

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Number = Annotated[float, msgspec.Meta(ge=-1e9, le=1e9)]  # one whose square can be computed with

NORMAL = 0.6745 * 2**0.5  # the median difference of two numbers that are drawn with a standard deviation of 1
_AVERAGED = 200  # measurements of the sensors over which means are taken
_SOON, _SELDOM = 50, 5  # they are taken at each of the first steps, then at every fifth
_ENOUGH = 3  # coordinates that are known along an axis, or one that is not what it was would be taken for a bias
_NEAR, _LOOSE, _SLIP = 4.0, 0.1, 0.02  # near the agent; how far things move there in a step, or held: parts of a jump
_OUTLIER = 5.0  # standard deviations; what is seen further off is not believed before it lasts
_LASTING = 4  # steps
_MEMORY = 25  # steps for which objects are remembered that may have gone
_LATEST = 16  # steps; the oldest scene that is brought up to date


class Carrying(msgspec.Struct, frozen=True):
    """Where an object is, and how the agent is, while the agent carries it."""

    offset: tuple[Number, ...]  # from the agent, along each of its axes, in the mean
    radius: Number  # an object this far from that offset may be carried
    agent: dict[str, tuple[Number, Number]]  # features of the agent are between these bounds
    coupled: dict[str, tuple[Number, ...]]  # numbers of the object that change with its way along each axis


class Motion(msgspec.Struct, frozen=True):
    """How objects of one type move."""

    known: dict[str, Number] = {}  # coordinates that are the same wherever one rests
    bounds: dict[str, tuple[Number, Number]] = {}  # of the numbers that are coupled
    carrying: Carrying | None = None
    gone: Number | None = None  # the nearest to the agent that one was when it vanished; `None` if none does


class AgentMotion(msgspec.Struct, frozen=True):
    """A step of the agent: `momentum` times the step before, and `response` times the control."""

    features: tuple[str, ...]  # of the agent, those that it says something of
    momentum: tuple[tuple[Number, ...], ...]  # (features, features)
    response: tuple[tuple[Number, ...], ...]  # (numbers of a control, features)
    still: Number  # the agent moves if some feature changes more than this within a step


class Estimation(msgspec.Struct, frozen=True):
    """The parameters of state estimation: how things move in demonstrations; see `fit_estimation`."""

    floor: Number  # less noise than this does not matter
    jump: Number  # nothing moves further than this within a step
    types: dict[str, Motion]
    agent: AgentMotion | None = None

    @property
    def digest(self) -> str:
        """Equal for estimations that estimate alike."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()


class _Parameters:
    """The parameters of all objects of a roster."""

    def __init__(self, spec: Spec, estimation: Estimation, coordinates: Coordinates, roster: Roster) -> None:
        motions = [estimation.types.get(kind, Motion()) for kind in roster.objects.values()]
        self.has = coordinates.has(roster)  # (objects, coordinates)
        self.vanishes = np.array([motion.gone is not None for motion in motions], bool) & self.has.any(axis=1)
        self.landmarks: list[tuple[int, NDArray[np.intp], NDArray[np.intp], Floats]] = []  # for an axis, what is known
        known = [
            (row, coordinates.columns[index], motions[row].known[coordinates.names[index]], coordinates.axis[index])
            for row, index in zip(*np.nonzero(self.has), strict=True)
            if coordinates.names[index] in motions[row].known
        ]
        for axis in range(len(coordinates.agent_names)):
            found = [part[:3] for part in known if part[3] == axis]
            if len(found) >= _ENOUGH:
                rows, columns, values = map(np.array, zip(*found, strict=True))
                self.landmarks.append((axis, rows, columns, values))
        self.carriable = [  # rows, how they are carried, and columns: of the agent's features, of the coupled numbers
            (
                roster.rows(kind),
                carrying,
                [(spec.agent_column[name], *bounds) for name, bounds in carrying.agent.items()],
                [(spec.column[name], weights, motion.bounds[name]) for name, weights in carrying.coupled.items()],
            )
            for kind, motion in estimation.types.items()
            if (carrying := motion.carrying) and roster.of_type(kind)
        ]


class _Lateness:
    """Finds out in one episode how late scenes are, and where the agent is by now.

    The agent rests at first, is given its first control, and is seen to move so many steps later.
    """

    def __init__(self, motion: AgentMotion, spec: Spec) -> None:
        self._columns = np.array([spec.agent_column[name] for name in motion.features], np.intp)
        self._momentum, self._response, self._still = np.array(motion.momentum), np.array(motion.response), motion.still
        self._late: int | None = None  # by how many steps a new scene is late, once that is known
        self._controls: deque[Floats] = deque(maxlen=_LATEST)
        self._given = 0  # controls, since the first that must move the agent
        self._since = 0  # controls, since the last new scene
        self._first: int | None = None  # how many had been given when the agent was first seen to move
        self._where: Floats | None = None
        self._step = np.zeros(len(self._columns))

    def act(self, control: object) -> None:
        """Note the control that is given now."""
        numbers = np.asarray(control, float).reshape(-1)
        self._controls.append(numbers)
        self._since += 1
        if self._given or np.abs(numbers @ self._response).max() > 2 * self._still:
            self._given += 1

    def see(self, values: Array) -> None:
        """Note a new scene; the second in which the agent moves shows how often scenes come, and how late."""
        where = values[self._columns].astype(float)
        if self._where is not None and self._since:
            self._step = (where - self._where) / self._since
            if self._first is None and np.abs(self._step).max(initial=0.0) > self._still:
                self._first = self._given
            elif self._first is not None and self._late is None:
                self._late = min(max(0, self._first - self._since), _LATEST)
        self._where, self._since = where, 0

    def now(self, values: Array) -> Array:
        """Return the agent's features as they are by now; the very same where they are not late."""
        if not self._late:
            return values
        where, step = values[self._columns].astype(float), self._step
        for control in list(self._controls)[-self._late :]:
            step = step @ self._momentum + control @ self._response
            where = where + step
        result: Array = values.copy()
        result[self._columns] = where
        return result


@dataclass
class _Known:
    """What is known of each object."""

    where: Floats  # (objects, coordinates)
    features: Array  # (objects, columns)
    relative: Floats  # (objects, coordinates): variances of the estimates, in those of the sensors
    outside: NDArray[np.int64]  # (objects,): steps for which it was seen elsewhere
    unseen: NDArray[np.int64]  # (objects,): steps since it was seen; -1 if that never was
    carried: Bools  # (objects,)

    def of(self, rows: NDArray[np.intp]) -> _Known:
        """Return what is known of the objects in these rows; -1 stands for a new one, whose place is yet unknown."""
        new = {name: np.zeros_like(part, shape=(1, *part.shape[1:])) for name, part in vars(self).items()}
        new["relative"] += np.inf
        new["unseen"] -= 1
        return _Known(**{name: np.concatenate([part, new[name]])[rows] for name, part in vars(self).items()})


class Estimator:
    """Estimates the scenes of one episode after the other; `reset` begins one."""

    def __init__(self, spec: Spec, estimation: Estimation) -> None:
        """`BadInput` where the parameters are not those of such scenes."""
        self.estimation = estimation
        self._use(spec)

    def _use(self, spec: Spec) -> None:
        self._spec, self._coordinates = spec, Coordinates(spec)
        carryings = [motion.carrying for motion in self.estimation.types.values() if motion.carrying]
        vectors = [part for each in carryings for part in (each.offset, *each.coupled.values())]
        if any(len(vector) != len(self._coordinates.agent_points) for vector in vectors):
            raise BadInput("the estimation does not fit the spec: the agent has another number of axes")
        make = lru_cache(REMEMBERED)(lambda roster: _Parameters(spec, self.estimation, self._coordinates, roster))
        self._parameters_of = make
        try:
            make(Roster({kind: kind for kind in spec.objects}))
            self.reset()
        except KeyError as error:
            raise BadInput(f"the estimation does not fit the spec: {error}") from None

    def reset(self) -> None:
        """Forget everything: an episode begins."""
        self._lateness = _Lateness(self.estimation.agent, self._spec) if self.estimation.agent else None
        self._raw: Scene | None = None  # the last scene as it was given
        self._values: Array | None = None  # of the agent, in the last scene
        self._noise = self._variance = 0.0  # of the sensors, a standard deviation; 0 if it does not matter
        self._bias = np.zeros(len(self._coordinates.agent_names))  # along each of the agent's axes; 0 as well
        self._off = np.zeros_like(self._bias)
        self._was_hidden: Bools | None = None  # what was not seen in the scene before
        self._steps = self._noise_steps = self._bias_steps = 0
        self._flickers = False  # whether something has vanished and come back
        self._is_whole = True  # whether all objects that are known are seen

    def update(self, scene: Scene) -> Scene:
        """Return the estimate at this step; the very scene where nothing is wrong with it."""
        if scene is not self._raw:
            if scene.spec is not self._spec:  # a task may show more than the demonstrations did
                self._use(scene.spec)
            self._raw, scene = scene, self._without_bias(scene)
            if self._lateness:
                self._lateness.see(scene.values)
            if self._values is None:
                self._begin(scene)
            else:
                self._go_on(scene, scene.values - self._values)
            self._values = scene.values
        return self._up_to_date()

    def act(self, control: object) -> None:
        """Note the control that is given at this step."""
        if self._lateness:
            self._lateness.act(control)

    def _begin(self, scene: Scene) -> None:
        where = scene.features.take(self._coordinates.columns, axis=1).astype(float)
        counts, flags = np.zeros(len(where), np.int64), np.zeros(len(where), bool)
        self._known = _Known(where, scene.features.copy(), np.ones_like(where), counts, counts.copy(), flags)
        self._roster, self._parameters = scene.roster, self._parameters_of(scene.roster)
        self._estimate = scene

    def _go_on(self, scene: Scene, way: Array) -> None:
        columns = self._coordinates.columns
        features, hidden = self._in_rows(scene)
        known = self._known
        where = features.take(columns, axis=1).astype(float)
        self._measure_noise(where, hidden)
        if known.carried.any():
            self._move_along(way)
        if hidden is not None:
            features[hidden], where[hidden] = known.features[hidden], known.where[hidden]
        known.features = features.copy()
        if self._noise:
            self._smooth(where, hidden, scene.values)
        else:
            known.where, known.relative = where, np.ones_like(where)
        self._notice_carried(scene.values)
        self._estimate = scene
        if hidden is not None:
            gone = self._parameters.vanishes & ~known.carried & (known.unseen > _MEMORY * self._flickers)
            if gone.any():
                pairs = zip(self._roster.objects.items(), gone.tolist(), strict=True)
                self._keep(Roster({name: kind for (name, kind), is_gone in pairs if not is_gone}))
        if self._noise or hidden is not None:
            estimate = self._known.features.copy()
            estimate[:, columns] = self._known.where
            self._estimate = Scene.from_arrays(self._spec, scene.values, estimate, self._roster)

    # The sensors

    def _without_bias(self, scene: Scene) -> Scene:
        """Compare what is seen with what is known, and return it less what everything is off."""
        found, parameters = self._coordinates, self._parameters_of(scene.roster)
        if self._steps <= _SOON or self._steps % _SELDOM == 0:
            self._bias_steps = min(self._bias_steps + 1, _AVERAGED)
            for axis, rows, columns, values in parameters.landmarks:
                off = self._off[axis]
                off += (_median(scene.features[rows, columns] - values) - off) / self._bias_steps
                doubt = self.estimation.floor + self._noise / (len(rows) * self._bias_steps) ** 0.5
                self._off[axis], self._bias[axis] = off, off if 3 * doubt < abs(off) < self.estimation.jump else 0.0
        if not self._bias.any():
            return scene
        features = scene.features.copy()
        features[:, found.columns] -= self._bias[found.axis] * parameters.has
        return Scene.from_arrays(scene.spec, scene.values, features, scene.roster)

    def _measure_noise(self, where: Floats, hidden: Bools | None) -> None:
        """Compare with the last step: most things are at rest, so their median coordinate shows nothing but noise."""
        self._steps += 1
        if self._steps > _SOON and self._steps % _SELDOM:
            return
        before = self._known.features.take(self._coordinates.columns, axis=1)
        both = self._parameters.has
        for missing in (self._was_hidden, hidden):
            both = both if missing is None else both & ~missing[:, None]
        changes = np.abs(where - before)[both]
        if len(changes):
            middle = _median(changes) / NORMAL
            self._noise_steps = min(self._noise_steps + 1, _AVERAGED)
            self._variance += (middle * middle - self._variance) / self._noise_steps
            noise = self._variance**0.5
            self._noise = noise if noise > self.estimation.floor else 0.0

    def _up_to_date(self) -> Scene:
        """The estimate, with the agent, and what it carries, where they are by now."""
        then = self._estimate.values
        now = self._lateness.now(then) if self._lateness else then
        if now is then:
            return self._estimate
        features, found = self._estimate.features.copy(), self._coordinates
        way = (now - then)[found.agent_columns][found.axis]
        features[:, found.columns] += way * (self._parameters.has & self._known.carried[:, None])
        return Scene.from_arrays(self._spec, now, features, self._estimate.roster)

    # Objects that come and go

    def _in_rows(self, scene: Scene) -> tuple[Array, Bools | None]:
        """What is seen, with a row for each object that is known, and which of them are hidden, if any are."""
        if scene.roster is self._roster and self._is_whole:
            self._was_hidden = None
            return scene.features, None
        if not scene.objects.keys() <= self._roster.row.keys():
            types = {**self._roster.objects, **scene.objects}
            order = [*dict.fromkeys(types.values())]
            self._keep(Roster(dict(sorted(types.items(), key=lambda item: order.index(item[1])))))
        if len(scene.objects) == len(self._roster.objects) and scene.roster != self._roster:
            self._keep(scene.roster)  # the same objects in another order
        self._is_whole, unseen = scene.roster == self._roster, self._known.unseen
        rows = slice(None) if self._is_whole else [self._roster.row[name] for name in scene.objects]
        self._was_hidden = unseen != 0
        self._flickers |= bool((unseen[rows] > 0).any())
        unseen += 1
        unseen[rows] = 0
        if self._is_whole:
            return scene.features, None
        features = np.zeros((len(unseen), scene.features.shape[1]), np.float32)
        features[rows] = scene.features
        return features, unseen > 0

    def _keep(self, roster: Roster) -> None:
        """Go on with these objects; nothing is known of new ones."""
        self._known = self._known.of(np.array([self._roster.row.get(name, -1) for name in roster.names], np.intp))
        self._roster, self._parameters = roster, self._parameters_of(roster)

    # Motion

    def _move_along(self, change: Array) -> None:
        """Move what is carried as the agent has moved."""
        found, known = self._coordinates, self._known
        way = change[found.agent_columns].astype(float)
        known.where += way[found.axis] * (self._parameters.has & known.carried[:, None])
        for rows, _, _, coupled in self._parameters.carriable:
            for column, weights, bounds in coupled:
                moved = known.features[rows, column] + np.dot(weights, way[found.point_axes])
                held = known.carried[rows]
                known.features[rows, column][held] = np.clip(moved, *bounds)[held]

    def _notice_carried(self, values: Array) -> None:
        """Find out what the agent carries: what is where such objects are, while the agent is as it is then."""
        found, known, numbers = self._coordinates, self._known, values.tolist()
        known.carried = np.zeros(len(known.carried), bool)
        for rows, carrying, agent, _ in self._parameters.carriable:
            if all(low <= numbers[column] <= high for column, low, high in agent):
                expected = values[found.agent_points] + np.array(carrying.offset)
                off = known.where[rows][:, found.point_indices] - expected
                doubt = 2 * self._noise * np.sqrt(known.relative[rows].max(axis=1))
                known.carried[rows] = np.linalg.norm(off, axis=1) < carrying.radius + doubt

    def _smooth(self, seen: Floats, hidden: Bools | None, values: Array) -> None:
        """Correct the estimates by what is seen, the less the surer they are: a Kalman filter for each coordinate.

        What is seen elsewhere for several steps has moved unexpectedly, and its estimate begins anew.
        """
        found, known, jump = self._coordinates, self._known, self.estimation.jump
        offsets = known.where.take(found.point_indices, axis=1) - values[found.agent_points]
        is_near = np.einsum("ij,ij->i", offsets, offsets) < (_NEAR * jump) ** 2
        moves = np.where(known.carried, _SLIP, np.where(is_near, _LOOSE, 0.0)) * jump / self._noise
        relative = known.relative + (moves * moves)[:, None]
        deviation = seen - known.where
        outside = np.abs(deviation) > _OUTLIER * self._noise * np.sqrt(1.0 + relative)
        known.outside = np.where(outside.any(axis=1), known.outside + 1, 0)
        gain = np.where(outside, 0.0, 1.0 - 1.0 / (1.0 + relative))  # which is also what is left of the variance
        gain[known.outside >= _LASTING] = 1.0
        if hidden is not None:
            gain[hidden] = 0.0
        known.where, known.relative = known.where + gain * deviation, np.where(gain > 0, gain, relative)


def _median(values: NDArray[Any]) -> float:
    """The lower median, which is sooner found than NumPy's."""
    half = (len(values) - 1) // 2
    return float(np.partition(values, half)[half])
