"""What is in the hand: things that move with the agent, and what tells them from others in a single scene."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bilevel.domain_learning.predicates.definitions import (
    AGENT,
    Constant,
    Definition,
    feature,
    identifier,
    measure,
    variables_of,
)
from bilevel.domain_learning.predicates.evidence import Evidence
from bilevel.domain_learning.predicates.thresholds import FEWEST, Floats, Gap, gap_around, rounded
from bilevel.domain_learning.predicates.tracks import Bools, Track
from bilevel.tasks.spec import Scalar

EDGE = 3  # timesteps at either end of carrying, of which it is not clear that it is held
USUALLY = 0.9  # of the timesteps of carrying: such values of the agent's features are those of closed hands, too
MOSTLY = 0.6  # of the timesteps at which a feature tells that a thing is held, it is carried
AROUND = 10  # timesteps before and after something is carried, of which it is not clear that it is not held


def holding(evidence: Evidence, kind: str, features: Sequence[Definition]) -> Definition | None:
    """Return what tells the carried things of a type from the others; `None` where the data has no gap for it.

    One of these `features`, with thresholds, is told of just those things that are carried; or they are near a point
    that moves with the agent, and the agent's own features are as they are while it carries.
    """
    found = next((each for each in features if _tells(each, evidence, kind)), None) or _by_place(evidence, kind)
    comment = f"The {kind} is in the hand: it moves with the agent."
    return found and replace(found, name="holding", comment=comment, held=True)


def _tells(definition: Definition, evidence: Evidence, kind: str) -> bool:
    """Return whether a feature of things of a type is told of those that are carried, and hardly of any other."""
    if definition.types != (kind,):
        return False
    right, missed, wrong = 0, 0, 0
    for track, motion in evidence.both:
        told, carried = measure(definition, track, {}), motion.carried[:, track.roster.rows(kind)]
        right += int((told & carried).sum())
        missed += int((~told & _narrowed(carried, EDGE)).sum())
        wrong += int((told & ~_widened(carried, AROUND)).sum())
    return right * (1 - MOSTLY) > MOSTLY * (missed + wrong)


def _by_place(evidence: Evidence, kind: str) -> Definition | None:
    """Return how places and the agent's own features tell things that are carried."""
    inside, settled, last, offsets = [], [], [], []
    for track, motion in evidence.both:
        rows = track.roster.rows(kind)
        carried = _narrowed(motion.carried[:, rows], EDGE)
        offsets.append((track.hand[:, None] - track.places[:, rows])[carried])
        busy = _widened(np.asarray(motion.carried.any(axis=1)), AROUND)
        inside.append(track.agent[carried.any(axis=1)])
        settled.append(track.agent[~busy & _settled(track)])
        last.append(track.agent[-1:][~motion.carried[-1:].any(axis=1)])
    if sum(map(len, offsets)) < FEWEST:
        return None
    grasp = np.median(np.concatenate(offsets), axis=0)
    gap = _reach(evidence, kind, grasp)
    if gap is None:
        return None
    near, constants = _near_grasp(evidence, kind, grasp, gap)
    outside = np.concatenate(settled), np.concatenate(last)
    tests, further = _agent_tests(evidence, np.concatenate(inside), outside, kind)
    return Definition("holding", (kind,), (near, *tests), (), {**constants, **further})


def _near_grasp(evidence: Evidence, kind: str, grasp: Floats, gap: Gap) -> tuple[str, dict[str, Constant]]:
    """Return the test that a thing is near the point at which things are held."""
    (thing,), label, parts = variables_of((kind,)), identifier(kind).upper(), []
    constants = dict[str, Constant]()
    for axis, value in zip(evidence.axes, grasp, strict=True):
        difference = f"{feature(AGENT, axis)} - {feature(thing, axis)}"
        if abs(value) > 0.1 * gap.threshold:
            name = f"{label}_GRASP_{identifier(axis).upper()}"
            constants[name] = Constant(
                rounded(float(value)), f"how far the agent is from a {kind} it holds, along {axis}"
            )
            difference = f"{difference} - {name}"
        parts.append(difference)
    about = f"held ones are within {gap.low:.2g} of there, others beyond {gap.high:.2g}"
    constants[f"{label}_REACH"] = Constant(gap.threshold, about)
    return f"hypot({', '.join(parts)}) < {label}_REACH", constants


def _agent_tests(
    evidence: Evidence, inside: Floats, outside: Sequence[Floats], kind: str
) -> tuple[list[str], dict[str, Constant]]:
    """Return how the agent's own features tell that it carries a thing of a type."""
    tests, constants = [], dict[str, Constant]()
    for name, role in evidence.spec.agent_roles.items():
        if not isinstance(role, Scalar):
            continue
        column = evidence.spec.agent_column[name]
        centre = float(np.median(inside[:, column]))
        usual = np.quantile(np.abs(inside[:, column] - centre), USUALLY)
        far = [values[np.abs(values[:, column] - centre) > usual, column] for values in outside]
        gap = gap_around(inside[:, column], far, centre) if 2 * len(far[0]) > len(outside[0]) else None
        if gap is None:
            continue
        is_above = float(np.median(far[0])) < centre
        label = f"{identifier(kind).upper()}_HELD_{identifier(name).upper()}"
        value = rounded(centre - gap.threshold if is_above else centre + gap.threshold)
        around = (
            f"while a {kind} is carried it is {centre:.2g} ± {gap.low:.2g}, else at least {gap.high:.2g} from there"
        )
        tests.append(f"{feature(AGENT, name)} {'>' if is_above else '<'} {label}")
        constants[label] = Constant(value, around)
    return tests, constants


def _reach(evidence: Evidence, kind: str, grasp: Floats) -> Gap | None:
    """Return the gap between how far carried things are from where they are held, and all others of their type."""
    near, far = [], []
    for track, motion in evidence.both:
        rows = track.roster.rows(kind)
        distance = np.linalg.norm(track.hand[:, None] - track.places[:, rows] - grasp, axis=2)
        carried, seen = motion.carried[:, rows], track.visible[:, rows]
        near.append(distance[_narrowed(carried, EDGE)])
        carrying = motion.carried.any(axis=1, keepdims=True)
        others = carrying & seen & ~_widened(carried, AROUND)
        far += [distance[others], distance[0][seen[0]]]
    return gap_around(np.concatenate(near), [np.concatenate(far)], 0.0, evidence.resolution)


def _widened(flags: Bools, steps: int) -> Bools:
    """(timesteps, …): which timesteps are at most so many from a true one."""
    found: Bools = flags.copy()
    for step in range(1, min(steps, len(flags) - 1) + 1):
        found[step:] |= flags[:-step]
        found[:-step] |= flags[step:]
    return found


def _narrowed(flags: Bools, steps: int) -> Bools:
    """(timesteps, …): which timesteps are more than so many from any that is not true."""
    return np.logical_not(_widened(np.logical_not(flags), steps))


def _settled(track: Track) -> Bools:
    """(timesteps,): where the agent's own features are as they were a step before."""
    columns = [
        track.spec.agent_column[name] for name, role in track.spec.agent_roles.items() if isinstance(role, Scalar)
    ]
    steps = np.abs(np.diff(track.agent[:, columns], axis=0))
    usual = 0.02 * np.ptp(track.agent[:, columns], axis=0)
    return np.asarray(np.append(True, (steps <= usual).all(axis=1)), bool)
