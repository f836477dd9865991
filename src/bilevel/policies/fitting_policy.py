"""A policy that finds out by itself how many objects there are."""

from __future__ import annotations

from bilevel.policies.policies import BilevelPolicy, Control
from bilevel.policies.policy_folder import POLICY, SavedPolicy
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.observation import Observation, Slots


class FittingPolicy(BilevelPolicy):
    """Binds itself to the environment of its task that shows as many rows as are seen, and again when they change."""

    def __init__(self, saved: SavedPolicy) -> None:
        self._saved = saved
        bound = saved.bind(_slots(saved, saved.arguments["objects"]))
        super().__init__(bound.labels, bound.high, bound.low)

    def reset(self, observation: Observation) -> None:
        if not self._fits(observation):
            bound = self._saved.bind(find_slots(self._saved, len(observation["objects"])))
            self.labels, self.high, self.low = bound.labels, bound.high, bound.low
        super().reset(observation)

    def act(self, observation: Observation) -> Control | None:
        if not self._fits(observation):
            self.reset(observation)
        return super().act(observation)

    def _fits(self, observation: Observation) -> bool:
        return len(observation["objects"]) == len(self.labels.slots)


def find_slots(saved: SavedPolicy, rows: int) -> Slots:
    """Those of the environment with so many rows, among all numbers of objects; more objects have more rows."""
    least, most = 1, saved.known_task.most_objects
    while least < most:
        middle = (least + most) // 2
        if len(_slots(saved, middle)) < rows:
            least = middle + 1
        else:
            most = middle
    found = _slots(saved, least)
    if len(found) != rows:
        raise BadInput(
            f"no environment of the task '{saved.task}' with {dict(saved.arguments)}, but any number of objects, "
            f"shows {rows} rows; pass slots=env.unwrapped.slots"
        )
    return found


def _slots(saved: SavedPolicy, objects: int) -> Slots:
    task = saved.known_task
    try:
        environment = task.make(**{**task.given(**saved.arguments), "objects": objects})
    except BadInput as error:
        raise BadInput(f"{POLICY}: {error}") from None
    try:
        return environment.slots
    finally:
        environment.close()
