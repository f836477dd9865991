"""What findings come to: rates, intervals, ranks, costs, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace
from synthetic import about, row, run_like, size

from bilevel.experiments.intervals import Counts, rate_interval
from bilevel.experiments.paper import RATES, TASKS, paper_rate
from bilevel.experiments.report.scores import Cell, Results, Score, score
from bilevel.experiments.report.wording import (
    OF_METHODS,
    OF_POLICIES,
    interval_note,
    numbers,
    outcome,
    scope,
)
from bilevel.experiments.reproduction.findings import Findings
from bilevel.experiments.reproduction.variants import USUAL
from bilevel.experiments.statistics import wilson_interval


def table(findings: Findings) -> dict[tuple[str, str | None], Cell]:
    return {(cell.variant.name, cell.task): cell for line in Results(findings).cells for cell in line}


def test_a_score_is_over_all_sizes_and_seeds_or_over_one_size() -> None:
    rows = [row("blocks", "bison", seed, [size(1, 10), size(3, 7 - seed)]) for seed in (0, 1)]
    whole, large = score(rows), score(rows, 3)
    assert whole is not None
    assert large is not None
    assert (whole.successes, whole.episodes, whole.seed_rates) == (33, 40, (0.85, 0.8))
    assert (large.successes, large.episodes, large.seed_rates) == (13, 20, (0.7, 0.6))
    assert score(rows, 2) is None
    assert score([]) is None


@pytest.mark.parametrize(
    ("successes", "low", "high"),
    [(0, 0.0, 0.2775), (10, 0.7225, 1.0), (5, 0.2366, 0.7634)],  # as published for the interval of Wilson
)
def test_intervals_of_one_policy_are_those_of_wilson(successes: int, low: float, high: float) -> None:
    found = score([row("blocks", "bison", 0, [size(1, successes)])])
    assert found is not None
    assert found.interval == pytest.approx((low, high), abs=5e-5)


def test_the_interval_of_a_method_is_over_seeds_and_that_of_the_expert_over_episodes() -> None:
    def found(variant: str) -> Score:
        known = score([row("blocks", variant, seed, [size(1, 10)]) for seed in (0, 1, 2)])
        assert known
        return known

    assert found("bison").interval == rate_interval([Counts(10, 10)] * 3)
    assert found("expert").interval == wilson_interval(30, 30)
    told = {variant: interval_note(Results(run_like(["blocks"], [variant], [1]))) for variant in ("bison", "expert")}
    assert told == {"bison": OF_METHODS, "expert": OF_POLICIES}
    assert interval_note(Results(run_like(["blocks"], ["bison", "expert"], [1]))).startswith(OF_METHODS)
    assert interval_note(Results(run_like(["blocks"], ["bison", "expert"], [1], [0]))) == OF_POLICIES


def best(wins: Mapping[str, Sequence[int]]) -> set[str]:
    rows = [
        row("blocks", name, seed, [size(1, won, 100)]) for name, all in wins.items() for seed, won in enumerate(all)
    ]
    found = table(Findings(about(), rows, []))
    return {name for name in wins if found[name, "blocks"].is_best}


def test_the_best_is_set_off_with_all_that_cannot_be_told_from_it_but_not_the_expert() -> None:
    rates = {"expert": [100] * 3, "bison": [92, 95, 97], "pddl-nn": [60, 95, 80], "pure-nn": [20, 10, 40]}
    assert best(rates) == {"bison", "pddl-nn"}
    assert best({**rates, "pddl-nn": [50, 60, 55]}) == {"bison"}


def test_methods_on_the_same_networks_are_compared_in_pairs() -> None:
    rates = {"bison-paper": [60, 80, 100], "det-replan": [45, 66, 84], "pddl-nn": [45, 66, 84]}
    assert best(rates) == {"bison-paper", "pddl-nn"}


def test_nobody_is_praised_for_next_to_nothing() -> None:
    assert best({"pure-nn": [2, 1, 3], "pddl-nn": [0, 0, 0]}) == set()
    assert best({"pddl-nn": [0, 0, 0]}) == set()
    assert best({"pure-nn": [20, 25, 22], "pddl-nn": [0, 0, 0]}) == {"pure-nn"}


def test_a_total_needs_all_tasks_that_were_begun() -> None:
    rows = [row(task, "bison", 0, [size(1, 10)]) for task in ("blocks", "colour")]
    found = table(Findings(about(), [*rows, row("blocks", "expert", 0, [size(1, 10)])], []))
    assert found["bison", None].score is not None
    assert found["expert", "blocks"].score is not None
    assert found["expert", None].score is None
    assert found["bison", None].paper is None, "the paper's total is over other tasks"
    assert table(run_like())["bison", None].paper == 0.79


def test_published_models_have_a_row_without_a_score_in_the_whole_table_alone() -> None:
    cell = table(run_like(objects=[1], seeds=[0]))["smolvla", "blocks"]
    assert (cell.score, cell.paper) == (None, 0.0)
    assert set(table(run_like(["blocks"], ["bison"], [1], [0]))) == {("bison", "blocks"), ("bison", None)}


def test_the_papers_totals_are_about_its_means() -> None:
    for *rates, total in RATES.values():
        assert len(rates) == len(TASKS)
        assert sum(rates) / len(rates) == pytest.approx(total, abs=0.011)
    assert paper_rate("bison", "gacha-noisy") == 0.64
    assert paper_rate("expert", "blocks") is None


def test_a_task_that_is_not_the_papers_has_a_column_but_no_figure_of_the_papers() -> None:
    found = table(run_like([*TASKS, "swap"], ["bison"], [1], [0]))
    cell = found["bison", "swap"]
    assert (cell.score is not None, cell.paper) == (True, None)
    assert found["bison", None].paper is None


def test_costs_are_medians_and_inference_is_with_the_largest_number_of_objects() -> None:
    sizes = [[size(1, 10, microseconds=999), size(10, 5, microseconds=time)] for time in (100, 300, 120)]
    findings = Findings(about(), [row("blocks", "bison", seed, each) for seed, each in enumerate(sizes)], [])
    (found,) = Results(findings).costs()
    assert (found.objects, found.measured["policy_microseconds"], found.measured["training_seconds"]) == (10, 120, 60.0)
    assert found.largest is not None
    assert (found.largest.rate, found.score.rate) == (0.5, 0.75)


def test_what_is_missing_is_told() -> None:
    assert Results(run_like(variants=USUAL)).missing() == []
    rows = [row("blocks", "bison", seed, [size(1, 10)]) for seed in (0, 1)]
    told = Results(Findings(about(), [*rows, row("blocks", "expert", 0, [size(1, 10)])], [])).missing()
    assert any("colour" in line and "gacha-noisy" in line for line in told)
    assert any("PureNN" in line for line in told)
    assert "Expert on blocks: 10 of 20 episodes." in told
    assert any("LAMA" in line for line in told)


def test_the_outcome_is_one_sentence_about_what_there_is() -> None:
    told = outcome(Results(run_like()))
    assert told.startswith("BISON in the paper's setting solves 2,400 of 2,400 episodes of the 8 tasks")
    assert "DetReplan and NdtReplan, 75% of as many" in told
    assert [value for value, _ in numbers(Results(run_like()))] == ["1.00", "0.79", "0.75", "21,600"]
    assert outcome(Results(run_like(["blocks"], ["expert"], [1], [0]))) == "Only the expert has been run."
    torn = run_like(["blocks", "colour"], ["bison"], [1], [0])
    assert "no total yet" in outcome(
        Results(replace(torn, rows=[torn.rows[0], replace(torn.rows[1], variant="expert")]))
    )


@pytest.mark.parametrize(
    ("episodes", "told"), [({1}, "1 episode of"), ({10}, "10 episodes of"), ({1, 2}, "1 and 2 episodes of")]
)
def test_how_much_was_run_is_told(episodes: set[int], told: str) -> None:
    rows = [row("blocks", "bison", 0, [size(number, 1, number) for number in episodes])]
    assert f"objects, {told} each size with one seed" in scope(Results(Findings(about(), rows, [])))
