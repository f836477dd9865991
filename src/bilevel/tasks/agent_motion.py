"""How the agent moves, and where it is by now if what is seen of it is late.

The agent of the demonstrations moves on as it did a step before, and as its control says. With that, a scene that is
some steps old can be brought up to date by the controls that were given since. How late scenes are is found out at the
beginning of an episode: the agent rests, is given its first control, and is seen to move so many steps later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from bilevel.tasks.scene import Array
from bilevel.tasks.spec import Spec

Floats = NDArray[np.float64]

LATEST = 32  # steps; the oldest scene that is brought up to date
_AHEAD = 6  # steps over which a prediction is tried
_BETTER = 0.5  # a feature is predicted if that leaves less of its change than this


Number = Annotated[float, msgspec.Meta(ge=-1e9, le=1e9)]  # one whose square can be computed with


class AgentMotion(msgspec.Struct, frozen=True):
    """A step of the agent: `momentum` times the step before, and `response` times the control."""

    features: tuple[str, ...]  # of the agent, those that it says something of
    momentum: tuple[tuple[Number, ...], ...]  # (features, features)
    response: tuple[tuple[Number, ...], ...]  # (numbers of a control, features)
    still: Number  # the agent moves if some feature changes more than this within a step


def fit_agent_motion(spec: Spec, episodes: Sequence[tuple[Array, Array]]) -> AgentMotion | None:
    """Return the motion that explains some episodes best: the agent at each timestep, and the controls executed.

    Features that it does not explain are left out; `None` if there is no other.
    """
    features = list(range(len(spec.agent)))
    shown = [
        (agent.astype(float), controls.astype(float)) for agent, controls in episodes if len(controls) > _AHEAD + 1
    ]
    while shown and features:
        parts = [_steps(agent[:, features], controls) for agent, controls in shown]
        weights = np.linalg.lstsq(
            np.concatenate([before for before, _ in parts]), np.concatenate([step for _, step in parts]), rcond=None
        )[0]
        motion = weights[: len(features)], weights[len(features) :]
        left = _unexplained(motion, [(agent[:, features], controls) for agent, controls in shown])
        explained = [feature for feature, part in zip(features, left, strict=True) if part < _BETTER]
        if explained == features:
            names = tuple(list(spec.agent)[feature] for feature in features)
            fastest = max(float(np.abs(np.diff(agent[:, features], axis=0)).max()) for agent, _ in shown)
            momentum, response = (tuple(map(tuple, part.tolist())) for part in motion)
            return AgentMotion(names, momentum, response, 0.01 * fastest)
        features = explained
    return None


def _steps(agent: Floats, controls: Floats) -> tuple[Floats, Floats]:
    """What each step depends on, (steps, features and numbers of a control), and the steps, (steps, features)."""
    steps = np.diff(agent, axis=0)
    return np.hstack([steps[:-1], controls[1:]]), steps[1:]


def _unexplained(motion: tuple[Floats, Floats], episodes: Sequence[tuple[Floats, Floats]]) -> list[float]:
    """For each feature, the part of its change over some steps that a prediction leaves."""
    error, change = np.zeros(motion[0].shape[1]), np.full(motion[0].shape[1], 1e-12)
    for agent, controls in episodes:
        start, end = np.arange(1, len(controls) - _AHEAD), np.arange(1 + _AHEAD, len(controls))
        step, where = agent[start] - agent[start - 1], agent[start]
        for ahead in range(_AHEAD):
            step = step @ motion[0] + controls[start + ahead] @ motion[1]
            where = where + step
        error = error + ((where - agent[end]) ** 2).sum(axis=0)
        change = change + ((agent[start] - agent[end]) ** 2).sum(axis=0)
    return [float(part) for part in np.sqrt(error / change)]


class Lateness:
    """Finds out how late scenes are, and where the agent is by now."""

    def __init__(self, motion: AgentMotion, spec: Spec) -> None:
        self._columns = np.array([spec.agent_column[name] for name in motion.features], np.intp)
        self._momentum, self._response, self._still = np.array(motion.momentum), np.array(motion.response), motion.still
        features = len(motion.features)
        if self._momentum.shape != (features, features) or self._response.shape[1:] != (features,):
            raise ValueError(f"the motion of the agent is not one of {features} features")
        self.reset()

    def reset(self) -> None:
        """Forget everything: an episode begins."""
        self.steps = 0  # by how many steps a new scene is late
        self._controls: deque[Floats] = deque(maxlen=LATEST)
        self._given = 0  # controls, since the first that must move the agent
        self._since = 0  # controls, since the last new scene
        self._first: int | None = None  # how many had been given when the agent was first seen to move
        self._is_known = False
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
        """Note a new scene, of which these are the agent's features."""
        where = values[self._columns].astype(float)
        if self._where is not None and self._since:
            self._step = (where - self._where) / self._since
            if not self._is_known:
                self._compare()
        self._where, self._since = where, 0

    def _compare(self) -> None:
        """When the second scene comes in which the agent moves, it is clear how often scenes come, and how late."""
        if self._first is not None:
            self.steps, self._is_known = min(max(0, self._first - self._since), LATEST // 2), True
        elif np.abs(self._step).max(initial=0.0) > self._still:
            self._first = self._given

    def now(self, values: Array) -> Array:
        """Return the agent's features as they are by now; the very same where they are not late."""
        if not self.steps:
            return values
        where, step = values[self._columns].astype(float), self._step
        for control in list(self._controls)[-self.steps :]:
            step = step @ self._momentum + control @ self._response
            where = where + step
        result: Array = values.copy()
        result[self._columns] = where
        return result
