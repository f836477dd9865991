"""Thresholds from demonstrations: what agreement is, which values are found, and that they help where they should."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.learning import thresholds
from bilevel.learning.estimation import fit_estimation
from bilevel.learning.thresholds import FACTORS, USUAL, Sample, agreement, fit_thresholds
from bilevel.symbolic.domain import Atom, BadInput, Facts
from bilevel.tasks.perception import PERFECT, Perception
from bilevel.tasks.task import Labels, Thresholds
from tiny_demonstrations import shown
from tiny_task import REACH, TINY, TINY_MEASURED

NOISY = Perception(noise=0.04)


def facts(text: str) -> Facts:
    return frozenset(Atom(predicate) for predicate in text.split())


def agreement_of(*pairs: tuple[str, str]) -> float:
    """The agreement of labels, of what holds and what they say; here a scene is the text of what is said of it."""
    labels = Labels(facts, facts)  # type: ignore[arg-type]
    return agreement(labels, [Sample(seen, facts(true)) for true, seen in pairs])  # type: ignore[arg-type]


def test_agreement_is_1_where_labels_are_always_right() -> None:
    assert agreement_of(("a b", "a b"), ("a", "a")) == 1
    assert agreement_of(("a", "b")) == 0


def test_rare_facts_count_as_much_as_others() -> None:
    often = [("a", "a")] * 99
    missed, imagined = agreement_of(*often, ("a b", "a")), agreement_of(*often, ("a", "a b"))
    assert missed == imagined == 0.5
    assert agreement_of(*often, ("a b", "")) == pytest.approx((2 * 99 / 199 + 0) / 2)


# The search


def best(score: Callable[[float], float], default: float = 1.0) -> float:
    def of(found: Thresholds) -> float:
        assert found["other"] == 5.0
        return score(found["near"])

    return thresholds._best("near", default, {"near": default, "other": 5.0}, of)


def test_a_default_that_is_as_good_as_any_is_kept() -> None:
    assert best(lambda value: 1.0) == 1.0
    assert best(lambda value: float(0.9 < value < 3)) == 1.0
    assert best(lambda value: 0.9 - 0.001 * abs(value - 1.2)) == 1.0


def test_else_it_is_the_middle_of_the_values_that_are_as_good() -> None:
    """Those between 1.4 and 2.9 are 2^(2/4) to 2^(6/4)."""
    assert best(lambda value: float(1.4 < value < 2.9)) == 2.0
    assert best(lambda value: float(0.9 < value < 1.1), default=3.0) == pytest.approx(3 * 2 ** (-6 / 4), rel=1e-3)


def test_where_there_is_no_end_to_them_it_is_the_next_one() -> None:
    assert best(lambda value: float(value > 1.3)) == pytest.approx(FACTORS[USUAL + 2], rel=1e-3)
    assert best(lambda value: float(value < 0.6)) == pytest.approx(FACTORS[USUAL - 3], rel=1e-3)


# Demonstrations


def measured() -> Demonstrations:
    return shown(TINY_MEASURED)


def test_with_noise_wider_thresholds_are_right_more_often() -> None:
    progress = []
    fit = fit_thresholds(measured(), TINY_MEASURED, NOISY, callback=lambda done, total: progress.append((done, total)))
    assert fit.fitted["near"] > 1.5 * REACH
    assert fit.changed == fit.fitted
    assert fit.defaults == {"near": REACH}
    assert fit.before < fit.after <= 1
    assert fit.without == {"near": fit.before}
    assert (fit.demonstrations, fit.held_out) == (2, 1)
    assert progress[0] == (1, thresholds.ROUNDS)
    assert fit_thresholds(measured(), TINY_MEASURED, NOISY) == fit


def test_with_perfect_perception_nothing_changes() -> None:
    fit = fit_thresholds(measured(), TINY_MEASURED, PERFECT)
    assert (fit.fitted, fit.changed, fit.before, fit.after) == ({"near": REACH}, {}, 1.0, 1.0)


def test_what_does_not_help_held_out_demonstrations_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "_search", lambda *_: {"near": REACH / 100})
    fit = fit_thresholds(measured(), TINY_MEASURED, NOISY)
    assert not fit.changed
    assert fit.before == fit.after


def test_estimates_are_labelled_where_there_are_some() -> None:
    """They are much better than what is seen, even with the defaults."""
    plain = fit_thresholds(measured(), TINY_MEASURED, NOISY)
    estimated = fit_thresholds(measured(), TINY_MEASURED, NOISY, fit_estimation(measured()))
    assert estimated.before > plain.before


def test_what_cannot_be_fitted_is_refused() -> None:
    with pytest.raises(BadInput, match="the task 'tiny' has no thresholds; declare them"):
        fit_thresholds(shown(), TINY, NOISY)
    data = measured()
    about = {"task": data.task, "spec": data.spec, "domain": data.domain, "controls": data.controls}
    with pytest.raises(BadInput, match="needs at least 2 demonstrations"):
        fit_thresholds(Demonstrations([data[0]], **about), TINY_MEASURED, NOISY)  # type: ignore[arg-type]
    assert data.manifest is not None
    settings = msgspec.structs.replace(data.manifest.settings, perception=NOISY)
    blurred = Demonstrations(
        list(data),
        manifest=msgspec.structs.replace(data.manifest, settings=settings),
        **about,  # type: ignore[arg-type]
    )
    with pytest.raises(BadInput, match=r"recorded as seen with noise=0\.04; collect others"):
        fit_thresholds(blurred, TINY_MEASURED, NOISY)


def test_thresholds_that_do_not_matter_stay() -> None:
    task = replace(TINY_MEASURED, thresholds={"near": REACH, "unused": 1.0})
    fit = fit_thresholds(measured(), task, NOISY)
    assert fit.fitted["unused"] == 1.0
    assert fit.without["unused"] == fit.after
