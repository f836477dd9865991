"""Where things come to rest: near others, on or under them, in line with them, in a box around them, turned alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import pi

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
from bilevel.tasks.spec import Angle

PLANE = 2  # so many of three coordinates make the plane, the third is the height
LEAST_TURN = 0.02  # of the angle after which a thing looks the same: turns that are less are none


def resting(evidence: Evidence, kind: str, other: str, held: Mapping[str, str]) -> Iterator[Definition]:
    """Yield how things of one type rest near, on or under those of another, or else in line with them.

    `held` names by types the predicates that say that a thing is in the hand: what is does not rest.
    """
    if has_place(evidence.spec, other, evidence.axes):
        guards = tuple(Quantified(held[each], 0, place) for place, each in enumerate((kind, other)) if each in held)
        pair = _Pair(evidence, (kind, other), guards)
        yield from pair.near() if pair.gap else pair.in_line()
        yield from pair.turned()


@dataclass(frozen=True)
class _Pair:
    """Two types of things, and what is said of both while they rest."""

    evidence: Evidence
    types: tuple[str, str]
    guards: tuple[Quantified, ...]

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """(rests, columns) each: things of the first type at the end of a rest, and those of the second then."""
        found: list[tuple[Floats, Floats]] = []
        for track, motion in self.evidence.both:
            rows, others = (track.roster.rows(kind) for kind in self.types)
            numbers = np.arange(others.start, others.stop)
            for now, row in motion.ends:
                if rows.start <= row < rows.stop and track.visible[now, row]:
                    usable = track.visible[now, others] & ~motion.carried[now, others] & (numbers != row)
                    second = track.features[now, others][usable]
                    found.append((np.broadcast_to(track.features[now, row], second.shape), second))
        columns = np.zeros((0, len(self.evidence.spec.columns)))
        first, second = ([columns, *(pair[place] for pair in found)] for place in (0, 1))
        return np.concatenate(first), np.concatenate(second)

    @cached_property
    def offsets(self) -> Floats:
        """(rests, axes): where things of the first type are from those of the second."""
        first, second = self.ends
        columns = [self.evidence.spec.column[axis] for axis in self.evidence.axes]
        return first[:, columns] - second[:, columns]

    @cached_property
    def distances(self) -> Floats:
        """(rests,): how far the two are from each other, in the plane."""
        return np.asarray(np.linalg.norm(self.offsets[:, :PLANE], axis=1))

    @cached_property
    def gap(self) -> Gap | None:
        """The gap in these distances."""
        return largest_gap(self.distances, self.evidence.resolution)

    def label(self, word: str) -> str:
        """Return the name of a threshold."""
        return "_".join(identifier(part).upper() for part in (*self.types, word))

    def difference(self, name: str) -> str:
        """Return the Python text for the difference in a feature."""
        one, two = variables_of(self.types)
        return f"{feature(one, name)} - {feature(two, name)}"

    def defined(
        self, name: str, tests: Mapping[str, tuple[str, Constant]], words: str, *, is_weak: bool = False
    ) -> Definition:
        """Return a definition by tests, each of which compares with a threshold of a name."""
        kind, other = self.types
        texts = tuple(f"{text} < {threshold}" for threshold, (text, _) in tests.items())
        constants = {threshold: constant for threshold, (_, constant) in tests.items()}
        comment = f"The {kind} rests {words.format(other)}."
        return Definition(name, self.types, texts, self.guards, constants, comment, is_weak=is_weak)

    def near(self) -> Iterator[Definition]:
        """Yield that things rest near each other: for each usual difference in height one, if there are heights."""
        assert self.gap is not None
        axes = self.evidence.axes
        text = f"hypot({', '.join(map(self.difference, axes[:PLANE]))})"
        tests = {self.label("near"): (text, _from_gap(self.gap))}
        if len(axes) <= PLANE:
            yield self.defined("near", tests, "at the {}")
            return
        heights = self.offsets[self.distances < self.gap.threshold, PLANE]
        for place, (centre, gap) in enumerate(modes(heights, self.evidence.resolution), 1):
            sign = int(np.sign(round(centre, 4)))
            name, words = {1: ("on", "on top of the {}"), -1: ("under", "under the {}")}.get(sign, ("at", "at the {}"))
            if gap is None:
                yield self.defined(name, tests, words)
                continue
            text, middle = self.difference(axes[PLANE]), self.label(f"height{place if place > 1 else ''}")
            level = Constant(rounded(centre), f"the usual difference along {axes[PLANE]}")
            is_level = abs(centre) < 0.1 * gap.threshold
            further = {f"{middle}_OFF": (f"abs({text})" if is_level else f"abs({text} - {middle})", _from_gap(gap))}
            found = self.defined(name, {**tests, **further}, words)
            yield found if is_level else found.with_constants({middle: level})

    def in_line(self) -> Iterator[Definition]:
        """Yield that things rest in line with others along an axis, and, for several axes, in a box around them."""
        tests: dict[str, tuple[str, Constant]] = {}
        for place, axis in enumerate(self.evidence.axes):
            gap = largest_gap(np.abs(self.offsets[:, place]), self.evidence.resolution)
            if gap is not None:
                test = {self.label(axis): (f"abs({self.difference(axis)})", _from_gap(gap))}
                tests |= test
                yield self.defined(f"in-line-{axis}", test, f"in line with the {{}} along {axis}", is_weak=True)
        if len(tests) > 1:
            yield self.defined("inside", tests, "in a box around the {}")

    def turned(self) -> Iterator[Definition]:
        """Yield that things rest turned like others, for all angles that both have."""
        first, second = self.ends
        roles, others = (self.evidence.spec.object_roles[kind] for kind in self.types)
        for name, role in roles.items():
            if isinstance(role, Angle) and others.get(name) == role:
                column, whole = self.evidence.spec.column[name], 2 * pi / role.symmetry
                turn = first[:, column] - second[:, column]
                gap = largest_gap(np.abs(turn - whole * np.round(turn / whole)), LEAST_TURN * whole)
                if gap is not None:
                    text = f"abs(remainder({self.difference(name)}, {whole:.6g}))"
                    test = {self.label(name): (text, _from_gap(gap))}
                    yield self.defined(f"aligned-{name}", test, "turned like the {}", is_weak=True)


def _from_gap(gap: Gap) -> Constant:
    return Constant(gap.threshold, f"measured at rest: at most {gap.low:.2g}, or at least {gap.high:.2g}")
