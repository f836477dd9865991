"""State estimation: what the scene is, from what is seen of it, step by step.

    estimator = Estimator(spec, estimation)
    scene = estimator.update(seen)

Objects rest unless the agent is near them or carries them along. So what is seen of them can be averaged over many
steps, and what is hidden can be remembered. How noisy the sensors are is found out as they are used, from things at
rest: while they are as good as in the demonstrations, everything that is seen is taken as it is. A scene that is some
steps old is brought up to date by the controls given since. How things move is fitted to demonstrations.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import BadInput
from bilevel.tasks.perception import Coordinates
from bilevel.tasks.scene import Array, Roster, Scene
from bilevel.tasks.spec import Scalar, Spec

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Number = Annotated[float, msgspec.Meta(ge=-1e9, le=1e9)]  # one whose square can be computed with

NORMAL = 0.6745 * 2**0.5  # the median difference of two numbers that are drawn with a standard deviation of 1
_AVERAGED = 200  # measurements of the sensors over which means are taken
_SOON, _SELDOM = 50, 5  # they are taken at each of the first steps, then at every fifth
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


class ObjectMotion(msgspec.Struct, frozen=True):
    """How objects of one type move."""

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
    types: dict[str, ObjectMotion]
    agent: AgentMotion | None = None

    @property
    def digest(self) -> str:
        """Equal for estimations that estimate alike."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()


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
        self._carryings = [
            (kind, motion.carrying, motion.bounds)
            for kind, motion in self.estimation.types.items()
            if motion.carrying and kind in spec.objects
        ]
        agent, axes = self.estimation.agent, len(self._coordinates.agent_points)
        is_fitting = agent is None or {*agent.features} <= {*spec.agent}
        for _, carrying, bounds in self._carryings:
            is_fitting &= {*carrying.agent} <= {*spec.agent} and {*carrying.coupled} <= {*bounds} & {*spec.columns}
            is_fitting &= all(len(part) == axes for part in (carrying.offset, *carrying.coupled.values()))
        if not is_fitting:
            raise BadInput("the estimation does not fit the spec: it is of other features, or of other axes")
        self.reset()

    def reset(self) -> None:
        """Forget everything: an episode begins."""
        self._lateness = _Lateness(self.estimation.agent, self._spec) if self.estimation.agent else None
        self._last: Scene | None = None  # as it was given
        self._noise = self._variance = 0.0  # of the sensors, a standard deviation; 0 if it does not matter
        self._steps = self._noise_steps = 0
        self._hidden: Bools | None = None  # which objects are not seen now, if any are not
        self._flickers = False  # whether something has vanished and come back

    def update(self, scene: Scene) -> Scene:
        """Return the estimate at this step; the very scene where nothing is wrong with it."""
        if scene is not self._last:
            if scene.spec is not self._spec:  # a task may show more than the demonstrations did
                self._use(scene.spec)
            last, self._last = self._last, scene
            if self._lateness:
                self._lateness.see(scene.values)
            if last is None:
                where = scene.features.take(self._coordinates.columns, axis=1).astype(float)
                counts, flags = np.zeros(len(where), np.int64), np.zeros(len(where), bool)
                self._known = _Known(where, scene.features.copy(), np.ones_like(where), counts, counts.copy(), flags)
                self._roster, self._estimate = scene.roster, scene
            else:
                self._go_on(scene, scene.values - last.values)
        return self._up_to_date()

    def act(self, control: object) -> None:
        """Note the control that is given at this step."""
        if self._lateness:
            self._lateness.act(control)

    def _go_on(self, scene: Scene, way: Array) -> None:
        columns = self._coordinates.columns
        features, was_hidden = self._in_rows(scene)
        known, hidden = self._known, self._hidden
        where = features.take(columns, axis=1).astype(float)
        self._measure_noise(where, was_hidden)
        if known.carried.any():
            self._move_along(way)
        if hidden is not None:
            features[hidden], where[hidden] = known.features[hidden], known.where[hidden]
        known.features = features.copy()
        if self._noise:
            self._smooth(where, scene.values)
        else:
            known.where, known.relative = where, np.ones_like(where)
        self._notice_carried(scene.values)
        self._estimate = scene
        if hidden is not None:
            self._forget_what_has_gone()
        if self._noise or hidden is not None:
            estimate = self._known.features.copy()
            estimate[:, columns] = self._known.where
            self._estimate = Scene.from_arrays(self._spec, scene.values, estimate, self._roster)

    def _measure_noise(self, where: Floats, was_hidden: Bools | None) -> None:
        """Compare with the last step: most things are at rest, so their median coordinate shows nothing but noise."""
        self._steps += 1
        if self._steps > _SOON and self._steps % _SELDOM:
            return
        before = self._known.features.take(self._coordinates.columns, axis=1)
        both = self._coordinates.has(self._roster)
        for missing in (was_hidden, self._hidden):
            both = both if missing is None else both & ~missing[:, None]
        changes = np.abs(where - before)[both]
        if len(changes):
            middle = float(_lower_median(changes)) / NORMAL
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
        features[:, found.columns] += self._along((now - then)[found.agent_columns])
        return Scene.from_arrays(self._spec, now, features, self._estimate.roster)

    # Objects that come and go

    def _in_rows(self, scene: Scene) -> tuple[Array, Bools | None]:
        """What is seen, with a row for each object that is known, and which of them were hidden a step before."""
        if scene.roster is self._roster and self._hidden is None:
            return scene.features, None
        if not scene.objects.keys() <= self._roster.row.keys():
            types = {**self._roster.objects, **scene.objects}
            order = [*dict.fromkeys(types.values())]
            self._keep(Roster(dict(sorted(types.items(), key=lambda item: order.index(item[1])))))
        if len(scene.objects) == len(self._roster.objects) and scene.roster != self._roster:
            self._keep(scene.roster)  # the same objects in another order
        unseen, rows = self._known.unseen, [self._roster.row[name] for name in scene.objects]
        was_hidden = unseen != 0
        self._flickers |= bool((unseen[rows] > 0).any())
        unseen += 1
        unseen[rows] = 0
        self._hidden = unseen > 0 if unseen.any() else None
        features = np.zeros((len(unseen), scene.features.shape[1]), np.float32)
        features[rows] = scene.features
        return features, was_hidden

    def _keep(self, roster: Roster) -> None:
        """Go on with these objects; nothing is known of new ones."""
        self._known = self._known.of(np.array([self._roster.row.get(name, -1) for name in roster.names], np.intp))
        self._roster = roster

    def _forget_what_has_gone(self) -> None:
        """Go on without objects that are not seen, of types of which some vanish, unless they may only flicker."""
        known, placed = self._known, self._coordinates.is_placed(self._roster)
        vanishing = {kind for kind, motion in self.estimation.types.items() if motion.gone is not None}
        gone = placed & ~known.carried & (known.unseen > _MEMORY * self._flickers)
        pairs = zip(self._roster.objects.items(), gone.tolist(), strict=True)
        kept = {name: kind for (name, kind), is_gone in pairs if not is_gone or kind not in vanishing}
        if len(kept) < len(gone):
            self._keep(Roster(kept))

    # Motion

    def _along(self, way: Array) -> Floats:
        """(objects, coordinates): how far each object moves while the agent goes this way."""
        is_moved = self._coordinates.has(self._roster) & self._known.carried[:, None]
        return np.asarray(way[self._coordinates.axis] * is_moved, float)

    def _move_along(self, change: Array) -> None:
        """Move what is carried as the agent has moved."""
        found, known = self._coordinates, self._known
        known.where += self._along(change[found.agent_columns])
        way = change[found.agent_points].astype(float)
        for kind, carrying, bounds in self._carryings:
            rows = self._roster.rows(kind)
            for name, weights in carrying.coupled.items():
                numbers, held = known.features[rows, self._spec.column[name]], known.carried[rows]
                moved = numbers + np.dot(weights, way)
                numbers[held] = np.clip(moved, *bounds[name])[held]

    def _notice_carried(self, values: Array) -> None:
        """Find out what the agent carries: what is where such objects are, while the agent is as it is then."""
        found, known, column = self._coordinates, self._known, self._spec.agent_column
        known.carried = np.zeros(len(known.carried), bool)
        for kind, carrying, _ in self._carryings:
            if all(low <= values.item(column[name]) <= high for name, (low, high) in carrying.agent.items()):
                rows, expected = self._roster.rows(kind), values[found.agent_points] + np.array(carrying.offset)
                off = known.where[rows][:, found.point_indices] - expected
                doubt = 2 * self._noise * np.sqrt(known.relative[rows].max(axis=1))
                known.carried[rows] = np.linalg.norm(off, axis=1) < carrying.radius + doubt

    def _smooth(self, seen: Floats, values: Array) -> None:
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
        if self._hidden is not None:
            gain[self._hidden] = 0.0
        known.where, known.relative = known.where + gain * deviation, np.where(gain > 0, gain, relative)


def _lower_median(values: NDArray[Any]) -> NDArray[Any]:
    """The lower median along the last axis, which is sooner found than NumPy's."""
    half = (values.shape[-1] - 1) // 2
    found: NDArray[Any] = np.partition(values, half)[..., half]
    return found


# What demonstrations show. All numbers are parts of the agent's fastest step, but for the shares and the steps

_MOVING = 0.1  # what moves less is not moved by the agent
_NEGLIGIBLE = 0.01  # what is less does not matter
_JUMP = 1.5  # nothing that the agent moves is faster

_ALONG = 0.2  # what is carried moves as the agent does, but for this part of a step
_LONG = 5  # steps for which an object must move along to be carried
_MARGIN = 0.25  # by which ranges that were seen are widened, as a part of them
_COUPLED = 0.05  # the part of a number's changes that the way of its object may leave unexplained
_AHEAD = 6  # steps over which a prediction of the agent is tried

_Samples = Mapping[str, list[NDArray[Any]]]  # of the objects of one type, by names; arrays with a row for each step


def fit_estimation(spec: Spec, demonstrations: Iterable[tuple[Sequence[Scene], Array | None]]) -> Estimation:
    """Return what demonstrations show of how things move, for an `Estimator`.

    Each has a scene for each timestep, and what was executed in between, (steps, numbers), or `None` where controls
    are no numbers that can be added.
    """
    coordinates, samples = Coordinates(spec), defaultdict[str, _Samples](lambda: defaultdict(list))
    fastest = noise = 0.0
    moves: list[tuple[Floats, Floats]] = []
    for scenes, controls in demonstrations:
        agent = np.stack([scene.values for scene in scenes])[:, coordinates.agent_columns].astype(float)
        step = float(np.linalg.norm(np.diff(agent, axis=0), axis=1).max(initial=0.0))
        fastest = max(fastest, step)
        if controls is not None and len(controls) > _AHEAD + 1:
            moves.append((agent, controls.astype(float).reshape(len(controls), -1)))
        for before, scene in pairwise(scenes):
            distances = coordinates.distances(before)
            for row, (name, kind) in enumerate(before.objects.items()):
                if name not in scene and np.isfinite(distances[row]):
                    samples[kind]["gone"].append(distances[[row]])
        for _, same in groupby(scenes, key=lambda scene: scene.roster):
            noise = max(noise, _note_motion(coordinates, list(same), step, samples))
    return Estimation(
        floor=max(2 * noise / NORMAL, _NEGLIGIBLE * fastest),
        jump=_JUMP * fastest,
        types={kind: _motion(spec, kind, found) for kind, found in samples.items()},
        agent=_agent_motion(coordinates.agent_names, moves) if moves else None,
    )


def _note_motion(
    coordinates: Coordinates, scenes: Sequence[Scene], fastest: float, samples: Mapping[str, _Samples]
) -> float:
    """Note how objects move while the agent carries them, in scenes with the same ones; return how noisy they are.

    What the median coordinate moves in a step is what the noise is, at least.
    """
    roster, points = scenes[0].roster, coordinates.points
    if len(scenes) == 1 or not roster.names:
        return 0.0
    values, features = np.stack([scene.values for scene in scenes]), np.stack([scene.features for scene in scenes])
    agent = values[:, coordinates.agent_points].astype(float)
    way = np.diff(agent, axis=0)
    speed = np.linalg.norm(way, axis=1)
    for row, (kind, is_placed) in enumerate(zip(roster.objects.values(), coordinates.is_placed(roster), strict=True)):
        found, seen = samples[kind], features[:, row].astype(float)
        found["bounds"].append(np.stack([seen.min(axis=0), seen.max(axis=0)])[None])
        if is_placed:
            change, offset = np.diff(seen, axis=0), seen[:-1, points] - agent[:-1]
            slip = np.linalg.norm(change[:, points] - way, axis=1)
            start = 0
            for is_along, same in groupby((speed > _MOVING * fastest) & (slip < _ALONG * speed)):
                end = start + len(list(same))
                if is_along and end - start >= _LONG:
                    for name, part in (("offset", offset), ("agent", values), ("way", way), ("change", change)):
                        found[name].append(part[start:end])
                start = end
    steps = np.abs(np.diff(features[:, :, coordinates.columns], axis=0))[:, coordinates.has(roster)]
    return float(_lower_median(steps).max()) if steps.shape[1] else 0.0


def _motion(spec: Spec, kind: str, samples: _Samples) -> ObjectMotion:
    """Return how objects of the type move, and how the agent carries them if it does."""
    found = {name: np.concatenate(parts) for name, parts in samples.items() if parts}
    gone = float(found["gone"].min()) if "gone" in found else None
    if "offset" not in found:
        return ObjectMotion(gone=gone)
    offsets, agent, way, change = (found[name] for name in ("offset", "agent", "way", "change"))
    middle, within, bounds, coupled = offsets.mean(axis=0), {}, {}, {}
    for name, role in spec.agent_roles.items():
        if isinstance(role, Scalar):
            low, high = np.quantile(agent[:, spec.agent_column[name]], [0.01, 0.99]).tolist()
            within[name] = low - _MARGIN * (high - low), high + _MARGIN * (high - low)
    for name, role in spec.object_roles[kind].items():  # numbers that change with its way, and by how much
        column = spec.column[name]
        changes = change[:, column]
        if isinstance(role, Scalar) and changes.any():
            weights = np.linalg.lstsq(way, changes, rcond=0.05)[0]
            if ((changes - way @ weights) ** 2).sum() < _COUPLED * (changes**2).sum():
                coupled[name] = tuple(weights.tolist())
                bounds[name] = found["bounds"][:, 0, column].min().item(), found["bounds"][:, 1, column].max().item()
    radius = 2 * float(np.linalg.norm(offsets - middle, axis=1).max())
    return ObjectMotion(bounds, Carrying(tuple(middle.tolist()), radius, within, coupled), gone)


def _agent_motion(names: Sequence[str], episodes: Sequence[tuple[Floats, Floats]]) -> AgentMotion | None:
    """Return the motion that explains the agent's way, (timesteps, axes), by its controls; `None` if none does.

    One that does leaves less than half of the way over some steps.
    """
    steps = [np.diff(agent, axis=0) for agent, _ in episodes]
    causes = [np.hstack([step[:-1], controls[1:]]) for step, (_, controls) in zip(steps, episodes, strict=True)]
    weights = np.linalg.lstsq(np.concatenate(causes), np.concatenate([step[1:] for step in steps]), rcond=None)[0]
    momentum, response = weights[: len(names)], weights[len(names) :]
    error = change = 1e-12
    for agent, controls in episodes:
        start, end = np.arange(1, len(controls) - _AHEAD), np.arange(1 + _AHEAD, len(controls))
        step, where = agent[start] - agent[start - 1], agent[start]
        for ahead in range(_AHEAD):
            step = step @ momentum + controls[start + ahead] @ response
            where = where + step
        error, change = error + ((where - agent[end]) ** 2).sum(), change + ((agent[start] - agent[end]) ** 2).sum()
    if error > 0.25 * change:
        return None
    still = 0.01 * max(float(np.abs(step).max()) for step in steps)
    return AgentMotion(tuple(names), tuple(map(tuple, momentum.tolist())), tuple(map(tuple, response.tolist())), still)
