"""The time that is left is guessed well in the end, and without jumps on the way."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from bilevel.experiments.reproduction.folder import QUICK
from bilevel.experiments.reproduction.forecast import Forecast
from bilevel.experiments.reproduction.selection import Selection, select_units
from bilevel.experiments.reproduction.units import Unit
from bilevel.experiments.reproduction.variants import PAPERS_ROWS, VARIANTS

ROWS = [VARIANTS[name] for name in PAPERS_ROWS]
UNITS = select_units(Selection(("blocks", "gacha"), ROWS, objects=(1, 3, 6), episodes=3, seeds=(0,)))


class Clock:
    """A time that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def predicted_totals(seconds: Callable[[Forecast, Unit], float]) -> list[float]:
    """What one worker is said to take in all, after each unit of which this says how long it really takes."""
    clock = Clock()
    forecast = Forecast(QUICK, clock=clock)
    forecast.expect(UNITS)
    left = sorted(UNITS, key=forecast.rank)
    totals = [forecast.seconds_left(left, 1)]
    while left:
        unit = left.pop(0)
        forecast.begin(unit)
        clock.now += seconds(forecast, unit)
        forecast.finish(unit)
        totals.append(clock.now + forecast.seconds_left(left, 1))
    return totals


def test_what_is_guessed_right_stays_so() -> None:
    totals = predicted_totals(lambda forecast, unit: forecast.guess(unit))
    assert totals == pytest.approx([totals[0]] * len(totals))


def test_a_first_unit_that_takes_long_does_not_turn_minutes_into_hours() -> None:
    first = min(UNITS, key=Forecast(QUICK).rank)
    totals = predicted_totals(lambda forecast, unit: forecast.guess(unit) * (10 if unit == first else 1))
    assert max(totals) < 2 * totals[-1]
    assert min(totals) > 0.7 * totals[-1]


@pytest.mark.parametrize("slowness", [0.3, 4.0])
def test_the_speed_of_a_machine_is_learned_without_a_jump(slowness: float) -> None:
    totals = predicted_totals(lambda forecast, unit: forecast.guess(unit) * slowness)
    assert totals[-1] == pytest.approx(slowness * totals[0])
    middle = totals[len(totals) // 2]
    assert middle == pytest.approx(totals[-1], rel=0.3)
    steps = [max(after / before, before / after) for before, after in pairwise(totals)]
    assert max(steps) < 2.5  # at the first training, which is a quarter of all that there is to do
