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

from bilevel.symbolic.domain import BadInput, Facts
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
_RECENT = 0.25  # the weight of the last step among the deviations that may mean a change
_CHANGE = 5.5 * (_RECENT / (2 - _RECENT)) ** 0.5  # standard deviations of that mean that do
_OUTLIER = 5.0  # standard deviations; what is seen further off is not believed before it lasts
_MEMORY = 25  # steps for which objects are remembered that may have gone
_LONG_MEMORY = 200  # where the agent may hide them
_FOREVER = np.iinfo(np.int64).max
_LATEST = 16  # steps; the oldest scene that is brought up to date


class Carrying(msgspec.Struct, frozen=True):
    """Where an object is, and how the agent is, while the agent carries it."""

    offset: tuple[Number, ...]  # from the agent, along each of its axes, in the mean
    spread: tuple[Number, ...]  # the standard deviation of it
    radius: Number  # an object this far from that offset may be carried
    agent: dict[str, tuple[Number, Number]]  # features of the agent are between these bounds
    slip: Number  # how far the object moves within a step, besides moving along
    coupled: dict[str, tuple[Number, ...]]  # numbers of the object that change with its way along each axis


class Motion(msgspec.Struct, frozen=True):
    """How objects of one type move."""

    loose: Number  # how far within a step, near the agent, while they are not carried
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
    near: Number  # objects further from the agent than this are at rest
    jump: Number  # nothing moves further than this within a step
    steps: int  # for which a change of the facts must last to be believed, where the sensors are noisy
    types: dict[str, Motion]
    agent: AgentMotion | None = None

    @property
    def digest(self) -> str:
        """Equal for estimations that estimate alike."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()


@dataclass(frozen=True)
class _Carriable:
    """All objects of one type that the agent may carry, by their rows."""

    rows: slice
    carrying: Carrying
    agent: list[tuple[int, float, float]]  # columns of the agent's features, and their bounds
    coupled: list[tuple[int, tuple[float, ...], tuple[float, float]]]  # columns, weights and bounds


class _Parameters:
    """The parameters of all objects of a roster, as arrays with a row for each object."""

    def __init__(self, spec: Spec, estimation: Estimation, coordinates: Coordinates, roster: Roster) -> None:
        motions = [estimation.types.get(kind, Motion(loose=0.0)) for kind in roster.objects.values()]
        self.has = coordinates.has(roster)  # (objects, coordinates)
        self.loose = np.array([motion.loose for motion in motions])
        gone = np.array([np.inf if motion.gone is None else motion.gone for motion in motions])
        gone[~self.has.any(axis=1)] = np.inf  # what is nowhere does not vanish
        self.square_gone = gone**2
        self.memory = np.where(np.isfinite(gone), _LONG_MEMORY, _FOREVER)  # steps, where the agent may hide them
        where = zip(*np.nonzero(self.has), strict=True)
        known = [(row, index, motions[row].known.get(coordinates.names[index])) for row, index in where]
        self.landmarks: list[tuple[int, NDArray[np.intp], NDArray[np.intp], Floats]] = []  # for an axis, what is known
        for axis in range(len(coordinates.agent_names)):
            found = [part for part in known if coordinates.axis[part[1]] == axis and part[2] is not None]
            if len(found) >= _ENOUGH:
                rows, indices, values = map(np.array, zip(*found, strict=True))
                self.landmarks.append((axis, rows, coordinates.columns[indices], values))
        self.carriable = [
            _Carriable(
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
        self._controls: deque[Floats] = deque(maxlen=2 * _LATEST)
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
    recent: Floats  # (objects, coordinates): by how many standard deviations what was seen lately is off
    unseen: NDArray[np.int64]  # (objects,): steps since it was seen
    carried: Bools  # (objects,)

    def of(self, rows: NDArray[np.intp]) -> _Known:
        """Return what is known of the objects in these rows; -1 stands for a new one, whose place is yet unknown."""
        parts = {
            name: np.concatenate([part, np.zeros_like(part, shape=(1, *part.shape[1:]))])[rows]
            for name, part in vars(self).items()
        }
        parts["relative"][rows < 0] = np.inf
        return _Known(**parts)


class Estimator:
    """Estimates the scenes of one episode after the other; `reset` begins one."""

    def __init__(self, spec: Spec, estimation: Estimation) -> None:
        self.estimation = estimation
        self._use(spec)
        self.reset()

    def _use(self, spec: Spec) -> None:
        """Estimate scenes with these features; `BadInput` where the parameters are not of such."""
        self._spec, self._coordinates = spec, Coordinates(spec)
        carryings = [motion.carrying for motion in self.estimation.types.values() if motion.carrying]
        vectors = [part for each in carryings for part in (each.offset, each.spread, *each.coupled.values())]
        if any(len(vector) != len(self._coordinates.agent_points) for vector in vectors):
            raise BadInput("the estimation does not fit the spec: the agent has another number of axes")
        make = lru_cache(REMEMBERED)(lambda roster: _Parameters(spec, self.estimation, self._coordinates, roster))
        self._parameters_of = make
        try:
            self._begin_lateness()
            make(Roster({kind: kind for kind in spec.objects}))
        except KeyError as error:
            raise BadInput(f"the estimation does not fit the spec: {error}") from None

    def _begin_lateness(self) -> None:
        self._lateness = _Lateness(self.estimation.agent, self._spec) if self.estimation.agent else None

    def reset(self) -> None:
        """Forget everything: an episode begins."""
        self._begin_lateness()
        self._raw: Scene | None = None  # the last scene as it was given
        self._seen: Scene | None = None  # the same without bias
        self.noise = 0.0  # of the sensors, a standard deviation; 0 if it does not matter
        self._bias = np.zeros(len(self._coordinates.agent_names))  # along each of the agent's axes; 0 as well
        self._variance, self._off = 0.0, np.zeros_like(self._bias)
        self._steps = self._noise_steps = self._bias_steps = 0
        self.flickers = False  # whether something has vanished and come back
        self._state: Facts | None = None
        self._doubts = 0  # steps for which the facts have been others

    # What a policy asks

    def update(self, scene: Scene) -> Scene:
        """Return the estimate at this step; the very scene where nothing is wrong with it."""
        if scene is not self._raw:
            if scene.spec is not self._spec:  # a task may show more than the demonstrations did
                self._use(scene.spec)
                self.reset()
            self._raw, before, self._seen = scene, self._seen, self._without_bias(scene)
            if self._lateness:
                self._lateness.see(scene.values)
            if before is None:
                self._begin(self._seen)
            else:
                self._go_on(before, self._seen)
        return self._up_to_date()

    def act(self, control: object) -> None:
        """Note the control that is given at this step."""
        if self._lateness:
            self._lateness.act(control)

    def believe(self, state: Facts) -> Facts:
        """Return the facts of this step; where the sensors are noisy, others than before only once they have lasted."""
        if self._state is None or state == self._state or not self.noise:
            self._state, self._doubts = state, 0
        else:
            self._doubts += 1
            if self._doubts >= self.estimation.steps:
                self._state, self._doubts = state, 0
        return self._state

    # A step

    def _begin(self, scene: Scene) -> None:
        self._roster, self._parameters = scene.roster, self._parameters_of(scene.roster)
        where = scene.features.take(self._coordinates.columns, axis=1).astype(float)
        ones, count = np.ones_like(where), len(where)
        unseen, carried = np.zeros(count, np.int64), np.zeros(count, bool)
        self._known = _Known(where, scene.features.copy(), ones, 0 * ones, unseen, carried)
        self._carries = False  # whether anything is carried
        self._estimate = scene

    def _go_on(self, before: Scene, scene: Scene) -> None:
        self._measure_noise(before, scene)
        columns = self._coordinates.columns
        features, hidden = self._in_rows(scene)
        known = self._known
        if self._carries:
            self._move_along(scene.values - before.values)
        where = features.take(columns, axis=1).astype(float)
        if hidden is not None:
            features[hidden], where[hidden] = known.features[hidden], known.where[hidden]
        known.features = features.copy()
        if self.noise:
            self._smooth(where, hidden, scene.values)
        else:
            known.where, known.relative = where, np.ones_like(where)
        self._notice_carried(scene.values)
        if self.noise or hidden is not None:
            estimate = features.copy()
            estimate[:, columns] = known.where
            self._estimate = Scene.from_arrays(self._spec, scene.values, estimate, self._roster)
        else:
            self._estimate = scene
        if hidden is not None:
            self._forget(scene.values)

    def _measure_noise(self, before: Scene, now: Scene) -> None:
        """Compare two scenes in a row: most things are at rest, so their median coordinate shows nothing but noise."""
        self._steps += 1
        if self._steps > _SOON and self._steps % _SELDOM:
            return
        has = self._coordinates.has(now.roster)
        if now.roster == before.roster:
            changes = (now.features - before.features).take(self._coordinates.columns, axis=1)[has]
        else:
            names = [name for name in now.roster.names if name in before]
            rows = now.rows(names)
            changes = now.features[rows] - before.features[before.rows(names)]
            changes = changes[:, self._coordinates.columns][has[rows]]
        if len(changes):
            middle = _median(np.abs(changes)) / NORMAL
            self._noise_steps = min(self._noise_steps + 1, _AVERAGED)
            self._variance += (middle * middle - self._variance) / self._noise_steps
            noise = self._variance**0.5
            self.noise = noise if noise > self.estimation.floor else 0.0

    def _without_bias(self, scene: Scene) -> Scene:
        """Compare what is seen with what is known, and return it less what everything is off."""
        found, parameters = self._coordinates, self._parameters_of(scene.roster)
        if self._steps <= _SOON or self._steps % _SELDOM == 0:
            self._bias_steps = min(self._bias_steps + 1, _AVERAGED)
            for axis, rows, columns, values in parameters.landmarks:
                middle = _median(scene.features[rows, columns] - values)
                off = self._off[axis] = self._off[axis] + (middle - self._off[axis]) / self._bias_steps
                doubt = self.estimation.floor + self.noise / (len(rows) * self._bias_steps) ** 0.5
                self._bias[axis] = off if 3 * doubt < abs(off) < self.estimation.jump else 0.0
        if not self._bias.any():
            return scene
        features = scene.features.copy()
        features[:, found.columns] -= self._bias[found.axis] * parameters.has
        return Scene.from_arrays(scene.spec, scene.values, features, scene.roster)

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
        unseen = self._known.unseen
        if scene.roster == self._roster:
            self.flickers |= bool(unseen.any())
            unseen[:] = 0
            return scene.features, None
        if not scene.objects.keys() <= self._roster.row.keys():
            types = {**self._roster.objects, **scene.objects}
            order = {kind: place for place, kind in enumerate(dict.fromkeys(types.values()))}
            self._keep(Roster(dict(sorted(types.items(), key=lambda item: order[item[1]]))))
        unseen, rows = self._known.unseen, [*map(self._roster.row.__getitem__, scene.objects)]
        self.flickers |= bool(unseen[rows].any())
        unseen += 1
        unseen[rows] = 0
        if len(rows) == len(unseen):
            self._keep(scene.roster)  # the same objects in another order
            return scene.features, None
        features = np.zeros((len(unseen), scene.features.shape[1]), np.float32)
        features[rows] = scene.features
        return features, unseen > 0

    def _keep(self, roster: Roster) -> None:
        """Go on with these objects; nothing is known of new ones."""
        self._known = self._known.of(np.array([self._roster.row.get(name, -1) for name in roster.names], np.intp))
        self._roster, self._parameters = roster, self._parameters_of(roster)

    def _forget(self, values: Array) -> None:
        """Forget what has vanished: objects of types that do; later, where the agent may hide them."""
        near = self._square_distances(values) < self._parameters.square_gone
        patience = np.where(near, self._parameters.memory, _MEMORY if self.flickers else 0)
        gone = (self._known.unseen > patience) & ~self._known.carried
        if gone.any():
            pairs = zip(self._roster.objects.items(), gone.tolist(), strict=True)
            self._keep(Roster({name: kind for (name, kind), is_gone in pairs if not is_gone}))
            features = self._known.features.copy()
            features[:, self._coordinates.columns] = self._known.where
            self._estimate = Scene.from_arrays(self._spec, values, features, self._roster)

    # Motion

    def _square_distances(self, values: Array) -> Floats:
        """(objects,): how far each estimate is from the agent, squared."""
        found = self._coordinates
        offsets = self._known.where.take(found.point_indices, axis=1) - values[found.agent_points]
        return np.asarray(np.einsum("ij,ij->i", offsets, offsets))

    def _move_along(self, change: Array) -> None:
        """Move what is carried as the agent has moved."""
        found, known = self._coordinates, self._known
        way = change[found.agent_columns].astype(float)
        known.where += way[found.axis] * (self._parameters.has & known.carried[:, None])
        for carriable in self._parameters.carriable:
            for column, weights, (low, high) in carriable.coupled:
                moved = known.features[carriable.rows, column] + np.dot(weights, way[found.point_axes])
                held = known.carried[carriable.rows]
                known.features[carriable.rows, column][held] = np.clip(moved, low, high)[held]

    def _notice_carried(self, values: Array) -> None:
        """Find out what the agent carries: what is where such objects are, while the agent is as it is then.

        What is carried from now on is where such objects are, as well as where it was.
        """
        found, known, noise, numbers = self._coordinates, self._known, self.noise, values.tolist()
        carried, self._carries = np.zeros(len(known.carried), bool), False
        for carriable in self._parameters.carriable:
            if not all(low <= numbers[column] <= high for column, low, high in carriable.agent):
                continue
            rows, carrying = carriable.rows, carriable.carrying
            expected = values[found.agent_points] + np.array(carrying.offset)
            off = known.where[rows][:, found.point_indices] - expected
            doubt = 2 * noise * np.sqrt(known.relative[rows].max(axis=1)) if noise else 0.0
            carried[rows] = np.einsum("ij,ij->i", off, off) < (carrying.radius + doubt) ** 2
            self._carries |= bool(carried[rows].any())
            new = np.flatnonzero(carried[rows] & ~known.carried[rows]) + rows.start
            if noise and len(new):
                point = np.ix_(new, found.point_indices)
                gain = known.relative[point] / (known.relative[point] + (np.array(carrying.spread) / noise) ** 2)
                known.where[point] += gain * (expected - known.where[point])
                known.relative[point] *= 1 - gain
                known.recent[new] = 0.0
        known.carried = carried

    def _smooth(self, seen: Floats, hidden: Bools | None, values: Array) -> None:
        """Correct the estimates by what is seen, the less the surer they are: a Kalman filter for each coordinate.

        Where what is seen is off for several steps, something has moved unexpectedly, and the estimate begins anew.
        """
        known, parameters, noise = self._known, self._parameters, self.noise
        relative, recent = known.relative, known.recent
        near = np.flatnonzero((self._square_distances(values) < self.estimation.near**2) & ~known.carried)
        relative[near] += (parameters.loose[near, None] / noise) ** 2
        for carriable in parameters.carriable if self._carries else ():
            relative[carriable.rows] += (carriable.carrying.slip / noise) ** 2 * known.carried[carriable.rows, None]
        deviation = seen - known.where
        normal = deviation / (noise * np.sqrt(1.0 + relative))  # 0 where nothing is known
        recent += _RECENT * (np.clip(normal, -_OUTLIER, _OUTLIER) - recent)
        gain = 1.0 - 1.0 / (1.0 + relative)  # which is also what is left of the variance
        outside = np.abs(normal) >= _OUTLIER
        gain, left = np.where(outside, 0.0, gain), np.where(outside, relative, gain)
        begins = (np.abs(recent) > _CHANGE).any(axis=1)
        gain[begins], left[begins], recent[begins] = 1.0, 1.0, 0.0
        if hidden is not None:
            left = np.where(hidden[:, None], relative, left)
        known.where, known.relative = known.where + gain * deviation, left


def _median(values: NDArray[Any]) -> float:
    """The lower median, which is sooner found than NumPy's."""
    half = (len(values) - 1) // 2
    return float(np.partition(values, half)[half])
