"""Where things come to rest: near others, on or under them, in line with them, in a box around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from bilevel.domain_learning.predicates.definitions import (
    Constant,
    Definition,
    Quantified,
    feature,
    identifier,
    variables_of,
)
from bilevel.domain_learning.predicates.evidence import Evidence
from bilevel.domain_learning.predicates.thresholds import Floats, Gap, largest_gap, modes, rounded
from bilevel.domain_learning.predicates.tracks import has_place

PLANE = 2  # so many of three coordinates make the plane, the third is the height


def resting(evidence: Evidence, kind: str, other: str, held: Mapping[str, str]) -> Iterator[Definition]:
    """Yield how things of one type rest near, on or under those of another, or else in line with them.

    `held` names by types the predicates that say that a thing is in the hand: what is does not rest.
    """
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
            test = (tests[-1],)
            yield Definition(f"in-line-{axis}", types, test, guards, {name: constants[name]}, comment, is_weak=True)
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
