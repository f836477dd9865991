"""State estimation: what the scene is, from what is seen of it, step by step.

    estimator = Estimator(spec, estimation)
    scene = estimator.update(seen)

Objects rest unless the agent is near them or carries them along. So what is seen of them can be averaged over many
steps, and what is hidden can be remembered. How good the sensors are is found out as they are used, from things at
rest: while they are as good as in the demonstrations, everything that is seen is taken as it is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import BadInput, Facts
from bilevel.tasks.agent_motion import Lateness
from bilevel.tasks.estimation import Carrying, Estimation, Motion
from bilevel.tasks.perception import REMEMBERED, Coordinates
from bilevel.tasks.scene import Array, Roster, Scene
from bilevel.tasks.sensors import SensorError
from bilevel.tasks.spec import LabelOnly, Spec

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rows = NDArray[np.intp]

_RECENT = 0.25  # the weight of the last step among the deviations that may mean a change
_CHANGE = 5.5 * (_RECENT / (2 - _RECENT)) ** 0.5  # standard deviations of that mean that do
_OWN_PLACE = 0.25  # of the furthest that anything moves within a step: who is seen so near is where it was
_OUTLIER = 5.0  # standard deviations; what is seen further off is not believed before it lasts
_MEMORY = 25  # steps for which objects are remembered that may have gone
_LONG_MEMORY = 200  # where the agent may hide them
_FOREVER = np.iinfo(np.int64).max
# What is known of each object, and what of one that is new.
_STATE = {"_where": 0.0, "_features": 0.0, "_relative": np.inf, "_recent": 0.0, "_unseen": 0, "_carried": False}


class _Carriable:
    """All objects of one type that the agent may carry, by their rows."""

    def __init__(self, spec: Spec, axes: int, motion: Motion, carrying: Carrying, rows: slice) -> None:
        for numbers in (carrying.offset, carrying.spread, *carrying.coupled.values()):
            if len(numbers) != axes:
                raise ValueError(f"the agent has {axes} axes, but {len(numbers)} numbers are given")
        self.rows, self.slip, self.radius = rows, carrying.slip, carrying.radius
        self.offset, self.spread = np.array(carrying.offset), np.array(carrying.spread)
        self.agent = [(spec.agent_column[name], low, high) for name, (low, high) in carrying.agent.items()]
        self.coupled = [
            (spec.column[name], np.array(weights), motion.bounds[name]) for name, weights in carrying.coupled.items()
        ]


class _Parameters:
    """The parameters of all objects of a roster, as arrays with a row for each object."""

    def __init__(self, spec: Spec, estimation: Estimation, coordinates: Coordinates, roster: Roster) -> None:
        motions = [estimation.types.get(kind, Motion(loose=0.0)) for kind in roster.objects.values()]
        self.has = coordinates.has(roster)  # (objects, coordinates)
        self.loose = np.array([motion.loose for motion in motions])
        gone = np.array([np.inf if motion.gone is None else motion.gone for motion in motions])
        gone[~coordinates.is_placed(roster)] = np.inf
        self.square_gone = gone**2
        self.memory = np.where(np.isfinite(gone), _LONG_MEMORY, _FOREVER)  # steps, where the agent may hide them
        self.carriable = [
            _Carriable(spec, len(coordinates.agent_points), motion, motion.carrying, roster.rows(kind))
            for kind, motion in estimation.types.items()
            if motion.carrying and roster.of_type(kind)
        ]


class Estimator:
    """Estimates the scenes of one episode after the other; `reset` begins one."""

    def __init__(self, spec: Spec, estimation: Estimation) -> None:
        self.estimation = estimation
        self._use(spec)
        self.reset()

    def _use(self, spec: Spec) -> None:
        """Estimate scenes with these features; `BadInput` where the parameters are not of such."""
        estimation, self._spec = self.estimation, spec
        self._coordinates = Coordinates(spec)
        looks = {
            name for roles in spec.object_roles.values() for name, role in roles.items() if isinstance(role, LabelOnly)
        }
        self._looks = [spec.column[name] for name in sorted(looks)]  # columns that only labels see, such as a colour
        self._known: dict[Roster, _Parameters] = {}
        known = {kind: motion.known for kind, motion in estimation.types.items()}
        self._sensors = SensorError(self._coordinates, estimation.floor, estimation.jump, known)
        try:
            self._lateness = Lateness(estimation.agent, spec) if estimation.agent else None
            self._parameters_of(Roster({kind: kind for kind in spec.objects}))
        except (KeyError, ValueError) as error:
            raise BadInput(f"the estimation does not fit the spec: {error}") from None

    def reset(self) -> None:
        """Forget everything: an episode begins."""
        self._raw: Scene | None = None  # the last scene as it was given
        self._seen: Scene | None = None  # the same without bias
        self._sensors.reset()
        if self._lateness:
            self._lateness.reset()
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
            self._raw = scene
            seen = self._sensors.without_bias(scene)
            if self._lateness:
                self._lateness.see(seen.values)
            if self._seen is None:
                self._begin(seen)
            else:
                self._go_on(self._seen, seen)
            self._seen = seen
        return self._up_to_date()

    def believe(self, state: Facts) -> Facts:
        """Return the facts of this step; where the sensors are noisy, others than before only once they have lasted."""
        if self._state is None or state == self._state or not self._sensors.noise:
            self._state, self._doubts = state, 0
        else:
            self._doubts += 1
            if self._doubts >= self.estimation.steps:
                self._state, self._doubts = state, 0
        return self._state

    def act(self, control: object) -> None:
        """Note the control that is given at this step."""
        if self._lateness:
            self._lateness.act(control)

    # A step

    def _begin(self, scene: Scene) -> None:
        self._roster, self._parameters = scene.roster, self._parameters_of(scene.roster)
        self._features = scene.features.copy()
        self._where = scene.features.take(self._coordinates.columns, axis=1).astype(float)  # (objects, coordinates)
        self._relative = np.ones_like(self._where)  # variances of the estimates, in those of the sensors
        self._recent = np.zeros_like(self._where)  # by how many standard deviations what was seen lately is off
        self._unseen = np.zeros(len(self._where), np.int64)  # steps since an object was seen
        self._carried = np.zeros(len(self._where), bool)
        self._carries = False  # whether any of them is
        self._estimate = scene

    def _parameters_of(self, roster: Roster) -> _Parameters:
        found = self._known.get(roster)
        if found is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            found = self._known[roster] = _Parameters(self._spec, self.estimation, self._coordinates, roster)
        return found

    def _go_on(self, before: Scene, scene: Scene) -> None:
        self._sensors.measure_noise(before, scene)
        noise, columns = self._sensors.noise, self._coordinates.columns
        features, hidden = self._in_rows(scene)
        if self._carries:
            self._move_along(scene.values - before.values)
        where = features.take(columns, axis=1).astype(float)
        if hidden is not None:
            features[hidden], where[hidden] = self._features[hidden], self._where[hidden]
        own = self._with_own_names(features, where)
        self._features = own.copy()
        if noise:
            self._smooth(where, hidden, scene.values, noise)
        else:
            self._where = where
            self._relative = np.ones_like(where)
        self._notice_carried(scene.values, noise)
        if noise or own is not scene.features:
            estimate = own.copy()
            estimate[:, columns] = self._where
            self._estimate = Scene.from_arrays(self._spec, scene.values, estimate, self._roster)
        else:
            self._estimate = scene
        if hidden is not None:
            self._forget(scene.values)

    def _up_to_date(self) -> Scene:
        """The estimate, with the agent, and what it carries, where they are by now."""
        then = self._estimate.values
        now = self._lateness.now(then) if self._lateness else then
        if now is then:
            return self._estimate
        features, found = self._estimate.features.copy(), self._coordinates
        way = (now - then)[found.agent_columns][found.axis]
        features[:, found.columns] += way * (self._parameters.has & self._carried[:, None])
        return Scene.from_arrays(self._spec, now, features, self._estimate.roster)

    # Objects that come and go

    def _in_rows(self, scene: Scene) -> tuple[Array, Bools | None]:
        """What is seen, with a row for each object that is known, and which of them are hidden, if any are."""
        if scene.roster is self._roster or scene.roster == self._roster:
            self.flickers |= bool(self._unseen.any())
            self._unseen[:] = 0
            return scene.features, None
        if not scene.objects.keys() <= self._roster.row.keys():
            types = {**self._roster.objects, **scene.objects}
            order = {kind: place for place, kind in enumerate(dict.fromkeys(types.values()))}
            self._keep(Roster(dict(sorted(types.items(), key=lambda item: order[item[1]]))))
        rows = [*map(self._roster.row.__getitem__, scene.objects)]
        self.flickers |= bool(self._unseen[rows].any())
        self._unseen += 1
        self._unseen[rows] = 0
        if len(rows) == len(self._unseen):
            self._keep(scene.roster)  # the same objects in another order
            return scene.features, None
        features = np.zeros((len(self._unseen), scene.features.shape[1]), np.float32)
        features[rows] = scene.features
        return features, self._unseen > 0

    def _keep(self, roster: Roster) -> None:
        """Go on with these objects; nothing is known of new ones."""
        rows = np.array([self._roster.row.get(name, -1) for name in roster.names], np.intp)
        for name, default in _STATE.items():
            array = getattr(self, name)
            kept = np.full((len(rows), *array.shape[1:]), default, array.dtype)
            kept[rows >= 0] = array[rows[rows >= 0]]
            setattr(self, name, kept)
        self._roster, self._parameters = roster, self._parameters_of(roster)

    def _forget(self, values: Array) -> None:
        """Forget what has vanished: objects of types that do; later, where the agent may hide them."""
        patience = _MEMORY if self.flickers else 0
        near = self._square_distances(values) < self._parameters.square_gone
        patient = np.where(near, self._parameters.memory, patience)
        gone = (self._unseen > patient) & ~self._carried
        if gone.any():
            pairs = zip(self._roster.objects.items(), gone.tolist(), strict=True)
            self._keep(Roster({name: kind for (name, kind), is_gone in pairs if not is_gone}))
            features = self._features.copy()
            features[:, self._coordinates.columns] = self._where
            self._estimate = Scene.from_arrays(self._spec, values, features, self._roster)

    def _with_own_names(self, features: Array, where: Floats) -> Array:
        """Exchange the rows of objects of one type that are seen under each other's names.

        Each of them has moved further than anything can, to where another one was, and all of what is seen there is as
        it was. `where` they are seen, (objects, coordinates), is changed, too.
        """
        gate = max(self.estimation.jump, _OUTLIER * self._sensors.noise)
        off = np.abs(where - self._where)
        if off.max(initial=0.0) <= gate:
            return features
        far = np.flatnonzero((off > gate).any(axis=1) & (self._relative[:, 0] < np.inf)).tolist()
        kinds = list(self._roster.objects.values())
        near = max(_OWN_PLACE * self.estimation.jump, _OUTLIER * self._sensors.noise)

        def is_seen_as(index: int, other: int) -> bool:
            is_there = kinds[other] == kinds[index] and (np.abs(where[other] - self._where[index]) < near).all()
            return bool(is_there and (features[other, self._looks] == self._features[index, self._looks]).all())

        names = {index: [other for other in far if other != index and is_seen_as(index, other)] for index in far}
        exchanged = {index: others[0] for index, others in names.items() if len(others) == 1}
        while exchanged and exchanged.keys() != {*exchanged.values()}:  # nobody is left without a place
            exchanged = {index: other for index, other in exchanged.items() if other in exchanged}
            exchanged = {index: other for index, other in exchanged.items() if index in exchanged.values()}
        if not exchanged:
            return features
        own: Array = features.copy()
        rows, seen_in = [*exchanged], [*exchanged.values()]
        own[rows], where[rows] = features[seen_in], where[seen_in]
        return own

    # Motion

    def _square_distances(self, values: Array) -> Floats:
        """(objects,): how far each estimate is from the agent, squared."""
        found = self._coordinates
        offsets = self._where.take(found.point_indices, axis=1) - values[found.agent_points]
        return np.asarray(np.einsum("ij,ij->i", offsets, offsets))

    def _move_along(self, change: Array) -> None:
        """Move what is carried as the agent has moved."""
        found = self._coordinates
        way = change[found.agent_columns].astype(float)
        self._where += way[found.axis] * (self._parameters.has & self._carried[:, None])
        for carriable in self._parameters.carriable:
            for column, weights, (low, high) in carriable.coupled:
                moved = self._features[carriable.rows, column] + weights @ way[found.point_axes]
                held = self._carried[carriable.rows]
                self._features[carriable.rows, column][held] = np.clip(moved, low, high)[held]

    def _notice_carried(self, values: Array, noise: float) -> None:
        """Find out what the agent carries: what is where such objects are, while the agent is as it is then."""
        found, numbers = self._coordinates, values.tolist()
        carried, self._carries = np.zeros(len(self._carried), bool), False
        for carriable in self._parameters.carriable:
            if not all(low <= numbers[column] <= high for column, low, high in carriable.agent):
                continue
            rows, expected = carriable.rows, values[found.agent_points] + carriable.offset
            off = self._where[rows][:, found.point_indices] - expected
            doubt = 2 * noise * np.sqrt(self._relative[rows].max(axis=1)) if noise else 0.0
            carried[rows] = np.einsum("ij,ij->i", off, off) < (carriable.radius + doubt) ** 2
            self._carries |= bool(carried[rows].any())
            new = np.flatnonzero(carried[rows] & ~self._carried[rows]) + rows.start
            if noise and len(new):
                self._take_hold(new, expected, (carriable.spread / noise) ** 2)
        self._carried = carried

    def _take_hold(self, rows: Rows, expected: Floats, variances: Floats) -> None:
        """What is carried from now on is where such objects are, with these variances, as well as where it was."""
        point = np.ix_(rows, self._coordinates.point_indices)
        gain = self._relative[point] / (self._relative[point] + variances)
        self._where[point] += gain * (expected - self._where[point])
        self._relative[point] *= 1 - gain
        self._recent[rows] = 0.0

    def _smooth(self, seen: Floats, hidden: Bools | None, values: Array, noise: float) -> None:
        """Correct the estimates by what is seen, the less the surer they are: a Kalman filter for each coordinate.

        Where what is seen is off for several steps, something has moved unexpectedly, and the estimate begins anew.
        """
        relative, recent, parameters = self._relative, self._recent, self._parameters
        near = np.flatnonzero((self._square_distances(values) < self.estimation.near**2) & ~self._carried)
        if len(near):
            relative[near] += (parameters.loose[near, None] / noise) ** 2
        for carriable in parameters.carriable if self._carries else ():
            relative[carriable.rows] += (carriable.slip / noise) ** 2 * self._carried[carriable.rows, None]
        deviation = seen - self._where
        normal = deviation / (noise * np.sqrt(1.0 + relative))  # 0 where nothing is known
        recent += _RECENT * (np.maximum(np.minimum(normal, _OUTLIER), -_OUTLIER) - recent)
        gain = 1.0 - 1.0 / (1.0 + relative)  # which is also what is left of the variance
        left = gain
        if max(np.abs(normal).max(initial=0.0) / _OUTLIER, np.abs(recent).max(initial=0.0) / _CHANGE) >= 1:
            outside = np.abs(normal) >= _OUTLIER
            gain, left = np.where(outside, 0.0, gain), np.where(outside, relative, left)
            begins = (np.abs(recent) > _CHANGE).any(axis=1)
            gain[begins], left[begins], recent[begins] = 1.0, 1.0, 0.0
        if hidden is not None:
            left = np.where(hidden[:, None], relative, left)
        self._where = self._where + gain * deviation
        self._relative = left
