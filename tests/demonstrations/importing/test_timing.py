"""Every k-th timestep, and what becomes of the controls in between."""

from __future__ import annotations

import numpy as np
import pytest

from bilevel.demonstrations.importing.conversion import Combine, every, thin
from bilevel.demonstrations.importing.recorded import RecordedEpisode
from bilevel.symbolic.domain import BadInput

EPISODE = RecordedEpisode("one", list("abcdefgh"), np.array([[1.0, 0], [2, 0], [3, 1], [4, 1], [5, 0], [6, 0], [7, 1]]))


@pytest.mark.parametrize(("combine", "numbers"), [("mean", [2, 5, 7]), ("sum", [6, 15, 7]), ("last", [3, 6, 7])])
def test_controls_are_combined_and_the_end_is_kept(combine: Combine, numbers: list[float]) -> None:
    found = thin(EPISODE, 3, combine, switches=[1])
    assert found.observations == ["a", "d", "g", "h"]
    assert found.controls is not None
    assert found.controls[:, 0].tolist() == numbers
    assert found.controls[:, 1].tolist() == [1, 0, 1]


def test_choices_are_the_last_ones() -> None:
    episode = RecordedEpisode("one", list("abcde"), np.array([3, 1, 4, 1]))
    found = thin(episode, 2, "mean")
    assert found.controls is not None
    assert found.controls.tolist() == [1, 1]


def test_infos_are_thinned_too_and_controls_may_be_missing() -> None:
    episode = RecordedEpisode("one", list("abcd"), None, [{"now": now} for now in range(4)])
    found = thin(episode, 2, "mean")
    assert found.infos == [{"now": 0}, {"now": 2}, {"now": 3}]
    assert found.controls is None


def test_rates() -> None:
    assert every(None, None) == every(30, None) == 1
    assert every(30, 10) == 3
    for recorded, wanted, reason in (
        (None, 10, "give --recorded-rate HZ"),
        (30, 0, "more than 0, not 0"),
        (30, 20, "20 Hz is no whole part of the recorded 30 Hz; that would be: 30, 15, 10, 7.5, 6, ..."),
        (30, 60, "60 Hz is no whole part"),
    ):
        with pytest.raises(BadInput, match=reason.replace(".", r"\.")):
            every(recorded, wanted)
