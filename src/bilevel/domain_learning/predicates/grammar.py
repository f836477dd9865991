"""The grammar of candidates: what could be said of the things that a spec declares, with thresholds from the data.

- in the hand: near the point at which carried things are, with the agent's own features as they are while it carries;
- near, on, under, in line with, turned like another thing: where things come to rest;
- a feature of a thing, or of the agent, above a threshold, or below;
- two things agree in features that are for labels alone, or in their numbers (these do not change: they are for goals);
- of all these, that there is none: nothing is on it, nothing is held, it is neither held nor on anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bilevel.demonstrations.demonstration import Demonstration
from bilevel.domain_learning.predicates.definitions import (
    AGENT,
    Constant,
    Definition,
    Quantified,
    feature,
    identifier,
    variables_of,
)
from bilevel.domain_learning.predicates.thresholds import FEWEST, Floats, Gap, gap_around, largest_gap, modes, rounded
from bilevel.domain_learning.predicates.tracks import Bools, Motion, Pace, Track, common_axes, has_place, motion_of
from bilevel.tasks.spec import Angle, LabelOnly, Position, Scalar, Spec

EDGE = 3  # timesteps at either end of carrying, of which it is not clear that it is held
AROUND = 10  # timesteps before and after something is carried, of which it is not clear that it is not held
PLANE = 2  # so many of three coordinates make the plane, the third is the height
SAME = 0.02  # in features that agree


@dataclass(frozen=True)
class Evidence:
    """The tracks of all demonstrations, and how everything moved in each."""

    spec: Spec
    axes: tuple[str, ...]
    tracks: Sequence[Track]
    motions: Sequence[Motion]
    resolution: float  # the least distance that counts

    @classmethod
    def of(cls, demonstrations: Iterable[Demonstration], spec: Spec) -> Evidence:
        """Look at all demonstrations."""
        axes = common_axes(spec)
        tracks = [Track(demonstration, spec, axes) for demonstration in demonstrations]
        pace = Pace.of(tracks)
        return cls(spec, axes, tracks, [motion_of(track, pace) for track in tracks], pace.resolution)

    @cached_property
    def carried(self) -> tuple[str, ...]:
        """The types of objects that were ever carried."""
        return tuple(kind for kind in self.spec.objects if any(self._has(m.carried, t, kind) for t, m in self.both))

    @cached_property
    def moving(self) -> tuple[str, ...]:
        """The types of objects that move from place to place, rather than to be here at one timestep, there at the next."""
        return tuple(
            kind for kind in self.spec.objects if any(self._has(m.moved & ~m.leapt, t, kind) for t, m in self.both)
        )

    @property
    def both(self) -> list[tuple[Track, Motion]]:
        return list(zip(self.tracks, self.motions, strict=True))

    @staticmethod
    def _has(flags: Bools, track: Track, kind: str) -> bool:
        return bool(flags[:, track.roster.rows(kind)].any())


def candidates(evidence: Evidence) -> list[Definition]:
    """Return all candidates that the data does not speak against, those by which others are defined first."""
    found = _named(list(filter(None, (_held(evidence, kind) for kind in evidence.carried))))
    held = {definition.types[0]: definition.name for definition in found}
    for kind in evidence.moving:
        for other in evidence.spec.objects:
            found += _named(_relations(evidence, kind, other, held), found)
    return [*found, *_named(_feature_thresholds(evidence), found)]


def statics(evidence: Evidence) -> list[Definition]:
    """Return what two things have in common that never changes: features for labels alone, and their numbers."""
    spec, found = evidence.spec, list[Definition]()
    for kind in spec.objects:
        for other in spec.objects:
            if list(spec.objects).index(other) <= list(spec.objects).index(kind):
                continue
            roles, others = spec.object_roles[kind], spec.object_roles[other]
            common = [name for name, role in roles.items() if isinstance(role, LabelOnly) and name in others]
            one, two = variables_of((kind, other))
            if common:
                tests = tuple(f"abs({feature(one, name)} - {feature(two, name)}) < SAME" for name in common)
                constants = {"SAME": Constant(SAME, "features that agree differ by less")}
                comment = f"The same {', '.join(common)}."
                found.append(
                    Definition("same", (kind, other), tests, constants=constants, comment=comment, static=True)
                )
            test = (f"number({one}) == number({two})",)
            found.append(Definition("same-number", (kind, other), test, comment="The same number.", static=True))
    return found


# In the hand


def _held(evidence: Evidence, kind: str) -> Definition | None:
    """Return what tells the carried things of a type from the others, in a single scene."""
    (thing,) = variables_of((kind,))
    inside, outside, offsets = [], [], []
    for track, motion in evidence.both:
        rows = track.roster.rows(kind)
        carried = ~_widened(~motion.carried[:, rows], EDGE)
        offsets.append((track.hand[:, None] - track.places[:, rows])[carried])
        busy = _widened(motion.carried.any(axis=1), AROUND)
        inside.append(track.agent[carried.any(axis=1)])
        outside += [track.agent[~busy & _settled(track)], track.agent[-1:][~motion.carried[-1:].any(axis=1)]]
    if sum(map(len, offsets)) < FEWEST:
        return None
    grasp = np.median(np.concatenate(offsets), axis=0)
    tests, constants = _agent_tests(evidence, np.concatenate(inside), np.concatenate(outside), kind)
    gap = _reach(evidence, kind, grasp)
    if gap is None:
        return None
    reach, name = f"{identifier(kind).upper()}_REACH", f"{identifier(kind).upper()}_GRASP"
    parts = []
    for axis, value in zip(evidence.axes, grasp, strict=True):
        shift = rounded(float(value), 2) if abs(value) > 0.1 * gap.threshold else 0.0
        difference = f"{feature(AGENT, axis)} - {feature(thing, axis)}"
        parts.append(f"{difference} - {name}_{identifier(axis).upper()}" if shift else difference)
        if shift:
            comment = f"how far the agent is from the {kind} that it holds, along {axis}"
            constants[f"{name}_{identifier(axis).upper()}"] = Constant(shift, comment)
    constants[reach] = Constant(
        gap.threshold, f"held ones are within {gap.low:.2g} of there, others beyond {gap.high:.2g}"
    )
    comment = f"The {kind} is in the hand: it moves with the agent."
    return Definition(
        "holding", (kind,), (f"hypot({', '.join(parts)}) < {reach}", *tests), (), constants, comment, held=True
    )


def _agent_tests(
    evidence: Evidence, inside: Floats, outside: Floats, kind: str
) -> tuple[list[str], dict[str, Constant]]:
    """Return how the agent's own features tell that it carries a thing of a type."""
    tests, constants = [], dict[str, Constant]()
    for name, role in evidence.spec.agent_roles.items():
        if not isinstance(role, Scalar):
            continue
        column = evidence.spec.agent_column[name]
        centre = float(np.median(inside[:, column]))
        far = outside[:, column]
        far = far[np.abs(far - centre) > np.quantile(np.abs(inside[:, column] - centre), 0.99)]
        gap = gap_around(inside[:, column], far, centre) if len(far) > len(outside) / 2 else None
        if gap is None:
            continue
        is_above = float(np.median(far)) < centre
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
        near.append(distance[~_widened(~carried, EDGE)])
        carrying = motion.carried.any(axis=1, keepdims=True)
        others = carrying & seen & ~_widened(carried, AROUND)
        far += [distance[others], distance[0][seen[0]]]
    return gap_around(np.concatenate(near), np.concatenate(far), 0.0)


def _widened(flags: Bools, steps: int) -> Bools:
    """(timesteps, …): which timesteps are at most so many from a true one."""
    found = flags.copy()
    for step in range(1, min(steps, len(flags) - 1) + 1):
        found[step:] |= flags[:-step]
        found[:-step] |= flags[step:]
    return found


def _settled(track: Track) -> Bools:
    """(timesteps,): where the agent's own features are as they were a step before."""
    columns = [
        track.spec.agent_column[name] for name, role in track.spec.agent_roles.items() if isinstance(role, Scalar)
    ]
    steps = np.abs(np.diff(track.agent[:, columns], axis=0))
    usual = 0.02 * np.ptp(track.agent[:, columns], axis=0)
    return np.append(True, (steps <= usual).all(axis=1))


# Where things come to rest


def _relations(evidence: Evidence, kind: str, other: str, held: dict[str, str]) -> Iterator[Definition]:
    """Yield how things of one type rest beside, on or under those of another, and aligned with them."""
    if not has_place(evidence.spec, other, evidence.axes):
        return
    offsets = _resting_offsets(evidence, kind, other)
    one, two = variables_of((kind, other))
    guards = tuple(Quantified(held[each], 0, place) for place, each in enumerate((kind, other)) if each in held)
    label = f"{identifier(kind)}_{identifier(other)}".upper()
    axes, plane = evidence.axes, evidence.axes[:PLANE] if len(evidence.axes) > PLANE else evidence.axes
    gap = largest_gap(np.linalg.norm(offsets[:, : len(plane)], axis=1), evidence.resolution)
    about = (kind, other)
    if gap is not None:
        near = f"hypot({', '.join(f'{feature(one, axis)} - {feature(two, axis)}' for axis in plane)}) < {label}_NEAR"
        constant = {f"{label}_NEAR": _from_gap(gap)}
        close = offsets[np.linalg.norm(offsets[:, : len(plane)], axis=1) < gap.threshold]
        if len(axes) <= PLANE:
            yield Definition("near", about, (near,), guards, constant, f"The {kind} rests at the {other}.")
            return
        for place, (centre, height) in enumerate(modes(close[:, PLANE], evidence.resolution), 1):
            height_label = f"{label}_HEIGHT{place if place > 1 else ''}"
            yield _at_height(about, (near,), guards, constant, height_label, axes[PLANE], centre, height)
        return
    yield from _in_line(evidence, about, offsets, guards, label)


def _in_line(
    evidence: Evidence, types: tuple[str, str], offsets: Floats, guards: tuple[Quantified, ...], label: str
) -> Iterator[Definition]:
    """Yield that things rest in line with others along an axis, and, for several axes, in a box around them."""
    (kind, other), (one, two) = types, variables_of(types)
    tests, constants = [], dict[str, Constant]()
    for place, axis in enumerate(evidence.axes):
        gap = largest_gap(np.abs(offsets[:, place]), evidence.resolution)
        if gap is not None:
            name = f"{label}_{identifier(axis).upper()}"
            tests.append(f"abs({feature(one, axis)} - {feature(two, axis)}) < {name}")
            constants[name] = _from_gap(gap)
            comment = f"The {kind} rests in line with the {other} along {axis}."
            yield Definition(f"in-line-{axis}", types, (tests[-1],), guards, {name: constants[name]}, comment)
    if len(tests) > 1:
        yield Definition("inside", types, tuple(tests), guards, constants, f"The {kind} rests in a box at the {other}.")


def _at_height(
    types: tuple[str, str],
    tests: tuple[str, ...],
    guards: tuple[Quantified, ...],
    constants: dict[str, Constant],
    label: str,
    axis: str,
    centre: float,
    gap: Gap | None,
) -> Definition:
    """Return the relation of things that rest near each other, with a usual difference in height."""
    (kind, other), (one, two) = types, variables_of(types)
    if gap is not None:
        middle = rounded(centre) if abs(centre) > 0.1 * gap.threshold else 0.0
        difference = f"{feature(one, axis)} - {feature(two, axis)}"
        constants = {**constants, f"{label}_OFF": _from_gap(gap)}
        if middle:
            constants[label] = Constant(middle, f"the usual difference along {axis}")
        tests = (*tests, f"abs({difference} - {label}) < {label}_OFF" if middle else f"abs({difference}) < {label}_OFF")
    words = {1: ("on", "on top of"), -1: ("under", "under")}
    name, text = words.get(int(np.sign(round(centre, 4))), ("at", "at"))
    return Definition(name, types, tests, guards, constants, f"The {kind} rests {text} the {other}.")


def _resting_offsets(evidence: Evidence, kind: str, other: str) -> Floats:
    """(rests, axes): where things of one type came to rest, from each of another that was not being carried."""
    found = [np.zeros((0, len(evidence.axes)))]
    for track, motion in evidence.both:
        rows, others = track.roster.rows(kind), track.roster.rows(other)
        for now, row in motion.ends:
            if rows.start <= row < rows.stop and track.visible[now, row]:
                offsets = track.places[now, row] - track.places[now, others]
                usable = track.visible[now, others] & ~motion.carried[now, others]
                if rows == others:
                    usable[row - rows.start] = False
                found.append(offsets[usable])
    return np.concatenate(found)


def _from_gap(gap: Gap) -> Constant:
    return Constant(gap.threshold, f"measured at rest: at most {gap.low:.2g}, or at least {gap.high:.2g}")


# Features above thresholds


def _feature_thresholds(evidence: Evidence) -> Iterator[Definition]:
    """Yield for each feature that is no coordinate and has two sorts of values, that it is above, and that it is below."""
    spec = evidence.spec
    for name, role in spec.agent_roles.items():
        if isinstance(role, Scalar | LabelOnly):
            values = [track.agent[:, spec.agent_column[name]] for track in evidence.tracks]
            yield from _two_sorts(name, (), AGENT, np.concatenate([_turns(column) for column in values]))
    for kind, roles in spec.object_roles.items():
        for name, role in roles.items():
            if isinstance(role, Position | Angle) or (isinstance(role, LabelOnly) and role.role is None):
                continue
            columns = [
                _turns(track.features[:, row, spec.column[name]][track.visible[:, row]])
                for track in evidence.tracks
                for row in range(*track.roster.rows(kind).indices(len(track.roster.names)))
            ]
            if any(len(np.unique(column)) > 1 for column in columns):
                yield from _two_sorts(name, (kind,), *variables_of((kind,)), np.concatenate(columns))


def _turns(values: Floats) -> Floats:
    """Return the values at which a series begins, ends, stays or turns."""
    if len(values) < 3:
        return values
    steps = np.diff(values)
    kept = (steps[1:] * steps[:-1] <= 0) & ~((steps[1:] == 0) & (steps[:-1] == 0))
    return np.asarray(values[np.concatenate([[True], kept, [True]])])


def _two_sorts(name: str, types: tuple[str, ...], thing: str, values: Floats) -> Iterator[Definition]:
    """Yield that a feature is above the widest gap in its values, and that it is below."""
    ordered = np.unique(values)
    if len(ordered) < 2:
        return
    widest = int(np.diff(ordered).argmax())
    low, high = float(ordered[widest]), float(ordered[widest + 1])
    if high - low < 0.25 * (ordered[-1] - ordered[0]):
        return
    label = "_".join(identifier(word).upper() for word in (*types, name, "threshold"))
    constant = {label: Constant(rounded((low + high) / 2, 3), f"measured: at most {low:.3g}, or at least {high:.3g}")}
    whose = f"the {types[0]}'s" if types else "the agent's"
    for word, sign in (("high", ">"), ("low", "<=")):
        test = f"{feature(thing, name)} {sign} {label}"
        yield Definition(f"{name}-{word}", types, (test,), (), constant, f"{whose.capitalize()} {name} is {word}.")


# That there is none


def absences(found: Sequence[Definition]) -> list[Definition]:
    """Return the quantified negations: nothing is held, nothing is on it, it is neither held nor on anything."""
    result, held = [], sorted(definition.name for definition in found if definition.held)
    if held:
        absent = tuple(map(Quantified, held))
        result.append(Definition("free", (), (), absent, comment="Nothing is in the hand."))
    for definition in found:
        if len(definition.types) == 2:
            kind, other = definition.types
            comment = f"No {kind} is {definition.name} it."
            result.append(Definition("clear", (other,), (), (Quantified(definition.name, 1),), comment=comment))
    for kind in dict.fromkeys(definition.types[0] for definition in found if len(definition.types) == 2):
        about = [each for each in found if kind in each.types[:1] and (len(each.types) == 2 or each.held)]
        absent = tuple(Quantified(each.name, 0) for each in about)
        words = " nor ".join(each.name for each in about)
        result.append(Definition("loose", (kind,), (), absent, comment=f"The {kind} is neither {words}."))
    return _named(result, found)


def _named(found: Iterable[Definition], known: Sequence[Definition] = ()) -> list[Definition]:
    """Return the definitions with names of their own: a second `on` is called after the types that it is about."""
    taken, result = {definition.name for definition in known}, list[Definition]()
    for definition in found:
        name, types = definition.name, definition.types
        tried = [name, "-".join((name, *types[1:])), "-".join((name, *types))]
        tried += [f"{tried[-1]}-{number}" for number in range(2, 100)]
        name = next(name for name in tried if name not in taken)
        taken.add(name)
        result.append(replace(definition, name=name))
    return result
