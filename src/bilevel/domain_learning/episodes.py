"""What a domain is learned from: labelled states in their order and, where there is a robot, how everything moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.traces import label
from bilevel.symbolic.domain import Facts
from bilevel.tasks.controls import Controls
from bilevel.tasks.scene import Array
from bilevel.tasks.spec import Position, Spec
from bilevel.tasks.task import Task


@dataclass(frozen=True)
class Motion:
    """Where the agent and the objects were at every timestep, and what was done from one to the next.

    Coordinates are those that agent and objects have in common; they are not a number where an object is not visible,
    or has no such coordinate.
    """

    agent: Array  # (timesteps, coordinates)
    places: Array  # (timesteps, objects, coordinates), in the order of the episode's objects
    visible: NDArray[np.bool_]  # (timesteps, objects)
    controls: Array  # (steps, size), normalised; of no size where nobody recorded any


@dataclass(frozen=True)
class Episode:
    """Labelled states, one for each timestep, and the types of all objects in them.

    Without `motion`, as of a plan, nothing but symbols is known. `goals` are those of each timestep, if there are any.
    """

    states: Sequence[Facts]
    objects: Mapping[str, str]
    goals: Sequence[Facts] = ()
    motion: Motion | None = None

    def present(self) -> Iterator[frozenset[str]]:
        """Give the objects that are there at every timestep.

        These are those that are visible or, where that is not known, those that have been in a fact by then, or never
        are in any.
        """
        if self.motion is not None:
            names = list(self.objects)
            for row in self.motion.visible:
                yield frozenset(name for name, is_visible in zip(names, row.tolist(), strict=True) if is_visible)
            return
        facts = frozenset().union(*self.states)
        there = self.objects.keys() - {term for fact in facts for term in fact.terms}
        for state in self.states:
            there |= {term for fact in state for term in fact.terms} & self.objects.keys()
            yield frozenset(there)


def episodes_of(demonstrations: Demonstrations, task: Task | None = None) -> Iterator[Episode]:
    """Give the episodes of a data set, labelled anew where the task is given."""
    for demonstration in demonstrations:
        states, goals = label(demonstration, task)
        motion = motion_of(demonstration, demonstrations.spec, demonstrations.controls)
        yield Episode(states, demonstration.objects, goals, motion)


def motion_of(demonstration: Demonstration, spec: Spec, controls: Controls) -> Motion:
    """Return how everything moved in a demonstration."""
    names = [name for name, role in spec.agent_roles.items() if isinstance(role, Position)]
    places = np.full((*demonstration.features.shape[:2], len(names)), np.nan, np.float32)
    for row, kind in enumerate(demonstration.objects.values()):
        for column, name in enumerate(names):
            if isinstance(spec.object_roles[kind].get(name), Position):
                places[:, row, column] = demonstration.features[:, row, spec.column[name]]
    places[~demonstration.visible] = np.nan
    agent = demonstration.agent[:, [spec.agent_column[name] for name in names]]
    done = controls.encode(demonstration.controls) if demonstration.has_controls else np.zeros((0, 0), np.float32)
    return Motion(agent, places, demonstration.visible, done)
