"""Charts: where things are, what they say, and that paper and page show the same."""

from __future__ import annotations

import re
from itertools import pairwise
from math import log
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace
from synthetic import about, large_problems, row, run_like, scaling, size

from bilevel.experiments.intervals import Counts, rate_interval
from bilevel.experiments.report.charts import Axis, Figure, Mark, Panel, Series, log_axis
from bilevel.experiments.report.coincidence import band_runs, line_runs, side_by_side
from bilevel.experiments.report.drawing import figure_bytes, panel_svg, swatch
from bilevel.experiments.report.figures import (
    against_costs,
    by_objects,
    causes_of_failure,
    figures,
    rate_panel,
    solving_time,
)
from bilevel.experiments.report.looks import CAUSES, SERIES, palette
from bilevel.experiments.report.scores import Results, score
from bilevel.experiments.report.wording import interval, mebibytes, microseconds, ranges, rate, seconds, spread
from bilevel.experiments.reproduction.findings import Findings
from bilevel.experiments.reproduction.variants import VARIANTS
from bilevel.policies.episode import REASONS

SMALL = run_like(["blocks", "gacha"], objects=(1, 3, 10), seeds=(0, 1), episodes=4)


def test_everything_has_a_style() -> None:
    assert set(VARIANTS) <= set(SERIES)
    assert set(REASONS) < set(CAUSES)
    looks = [(style.marker, style.full, style.light) for style in SERIES.values()]
    assert len(set(looks)) == len(looks) - 1, "only BISON's rules look like BISON"


def test_a_curve_is_the_rate_with_the_band_of_its_interval() -> None:
    rows = [row("blocks", "bison", seed, [size(3, wins)]) for seed, wins in enumerate((10, 4, 7))]
    (panel,) = by_objects(Results(Findings(about(), rows, []))).panels
    (mark,) = panel.series[0].marks
    assert (mark.x, mark.y) == (3, 0.7)
    assert mark.range == rate_interval([Counts(wins, 10) for wins in (10, 4, 7)])
    assert mark.tip == f"0.70 (21 of 30; {interval(mark.range)}; seeds 0.40–1.00)"


def curve(key: str, *heights: float) -> Series:
    return Series(key, key, [Mark(x, height, "") for x, height in enumerate(heights)])


LINE = Axis("x", 0, 3, {})


def test_curves_that_coincide_take_turns_just_there() -> None:
    first, second, third = curve("bison", 1, 1, 1, 0.5), curve("det-plan", 1, 1, 1, 0), curve("pure-nn", 0, 1, 0, 0)
    panel = Panel("", LINE, LINE, [first, second, third])
    found = [[(run.place, run.number, len(run.marks)) for run in line_runs(panel, one)] for one in (first, second)]
    assert found == [[(0, 2, 3), (0, 1, 2)], [(1, 2, 3), (0, 1, 2)]]
    assert [(place, number) for _, place, number in side_by_side(panel, second)] == [(1, 2), (1, 3), (1, 2), (0, 2)]
    assert [run.number for run in band_runs(panel, third)] == [1]


def test_every_value_is_drawn_where_it_is() -> None:
    """Markers that coincide differ in where they are along the axis, and never in their height."""
    panel = Panel("", LINE, Axis("y", 0, 1.1, {1.0: "1"}), [curve(key, 1, 1, 1) for key in list(SERIES)[:6]])
    root = ElementTree.fromstring(panel_svg(panel, "small"))
    marks = [one for group in root.iter("g") if group.get("class") == "series" for one in group.iter("use")]
    assert len({one.get("y") for one in marks}) == 1
    assert len({one.get("x") for one in marks}) == len(marks) == 18


def test_the_expert_is_the_ceiling_of_curves() -> None:
    scores = {1.0: score([row("blocks", "expert", 0, [size(3, 9)])])}
    known = {x: one for x, one in scores.items() if one}
    panel = rate_panel("", LINE, {VARIANTS["expert"]: known, VARIANTS["bison"]: known, VARIANTS["pddl-nn"]: {}})
    assert [(one.key, one.is_ceiling) for one in panel.series] == [("expert", True), ("bison", False)]
    assert figure_bytes(Figure("sweep", [panel]), "png").startswith(b"\x89PNG")


def test_costs_have_a_large_mark_for_all_and_a_faint_one_for_each_task() -> None:
    training, *_ = against_costs(Results(SMALL)).panels
    bison = next(series for series in training.series if series.key == "bison")
    assert [mark.faint for mark in bison.marks] == [True, True, False]
    assert "expert" not in [series.key for series in training.series], "it is not trained"


def test_a_time_of_training_that_networks_share_is_told_as_such() -> None:
    rows = [replace(one, training=replace(one.training, networks=3)) for one in SMALL.rows if one.training]
    training, *_ = against_costs(Results(Findings(about(), rows, []))).panels
    assert "60 s on cpu, 3 networks side by side" in training.series[0].marks[-1].tip
    alone, *_ = against_costs(Results(SMALL)).panels
    assert "side by side" not in alone.series[0].marks[-1].tip


def test_what_ran_out_of_time_is_marked() -> None:
    (panel,) = solving_time(Results(Findings(about(), [], large_problems()))).panels
    lama = next(series for series in panel.series if series.key == "lama")
    assert [mark.gave_up for mark in lama.marks] == [False, False, True]
    assert lama.marks[-1].tip == "out of time after 100 s"
    assert panel.x.log
    assert panel.y.log


def test_what_was_stopped_took_all_the_time_there_was() -> None:
    """The CPU time of a planner that is killed is not counted."""
    found = [scaling("blocks", "lama", 300, 0.02, timed_out=True)]
    (panel,) = solving_time(Results(Findings(about(), [], found))).panels
    (mark,) = panel.series[0].marks
    assert (mark.y, mark.tip) == (50.0, "out of time after 50 s")


def test_problems_that_were_solved_more_than_once_have_one_mark() -> None:
    found = [scaling("blocks", "rules", 10, time) for time in (1.0, 3.0, 2.0)]
    (panel,) = solving_time(Results(Findings(about(), [], found))).panels
    (mark,) = panel.series[0].marks
    assert mark.y == 2.0


def test_causes_of_all_tasks_come_first_and_add_up() -> None:
    bars = causes_of_failure(Results(SMALL)).bars
    assert bars is not None
    assert list(bars) == ["all tasks", "blocks", "gacha"]
    for variant, counts in bars["all tasks"].items():
        assert counts == bars["blocks"][variant] + bars["gacha"][variant]


@pytest.mark.parametrize("name", ["success-by-objects", "success-against-costs", "solving-time"])
def test_svg_is_well_formed_and_has_every_series_and_every_value(name: str) -> None:
    for panel in figures(Results(SMALL))[name].panels:
        text = panel_svg(panel, figures(Results(SMALL))[name].size)
        tree = ElementTree.fromstring(text)
        drawn = {element.get("data-series") for element in tree.iter() if element.get("class") == "series"}
        assert drawn == {series.key for series in panel.series}
        hits = [element for element in tree.iter() if element.get("class") == "hit"]
        assert sum(element.get("tabindex") == "0" for element in hits) == 1
        told = "\n".join(element.findtext("title", "") for element in hits)
        assert all(mark.tip in told for series in panel.series for mark in series.marks)
        named = set(re.findall(r"var\(--(series-[a-z-]+)\)", text))
        assert named <= set(re.findall(r"--([a-z-]+):", palette(dark=True)))
        assert not re.findall(r"#[0-9a-f]{6}", text), "every colour is the page's"


def test_titles_are_escaped() -> None:
    axis = Axis("<x>", 0, 1, {0.5: "<&>"})
    panel = Panel("<t>", axis, axis, [Series("bison", '"<b>', [Mark(0.5, 0.5, "<i>'\"")])], joined=False)
    tree = ElementTree.fromstring(panel_svg(panel, "small"))
    assert [title.text for title in tree.iter("title")] == ["<i>'\""]
    assert ElementTree.fromstring(swatch("bison")).get("id") == "swatch-bison"


@pytest.mark.parametrize("values", [(0.001, 80.0), (40.0, 900.0), (300.0, 310.0), (2.0, 2.0), (5000.0, 90_000.0)])
def test_axes_have_some_ticks_which_are_apart(values: tuple[float, float]) -> None:
    for axis in (log_axis("", values, show) for show in (seconds, mebibytes, str)):
        places = [log(tick / axis.low) / log(axis.high / axis.low) for tick in axis.ticks]
        assert 3 <= len(places) <= 8
        assert all(0 <= place <= 1 for place in places)
        assert all(b - a > 0.1 for a, b in pairwise(places))
        assert all(axis.low < value < axis.high for value in values)


@pytest.mark.filterwarnings("error")  # as where there is no room for a panel
@pytest.mark.parametrize("suffix", ["pdf", "png"])
def test_pictures_are_the_same_every_time_and_say_not_when_they_were_made(suffix: str) -> None:
    findings = run_like(["blocks"], ["bison", "det-plan"], (1, 3), (0, 1), 4)
    for figure in (by_objects(Results(findings)), causes_of_failure(Results(findings))):
        content = figure_bytes(figure, suffix)
        assert content.startswith({"pdf": b"%PDF", "png": b"\x89PNG"}[suffix])
        assert content == figure_bytes(figure, suffix)
        assert b"CreationDate" not in content


def test_a_figure_without_results_is_left_out() -> None:
    assert list(figures(Results(Findings(about(), [], large_problems())))) == ["solving-time"]
    assert "solving-time" not in figures(Results(Findings(about(), SMALL.rows, [])))


def test_numbers_are_told_as_people_read_them() -> None:
    assert [rate(value) for value in (0, 0.004, 0.5, 0.996, 1)] == ["0.00", "<0.01", "0.50", ">0.99", "1.00"]
    assert interval((0.991, 1.0)) == "0.99–1.00"
    assert interval((0.998, 1.0)) == "0.998–1.000"
    assert interval((1.0, 1.0)) == "1.00–1.00"
    assert [seconds(value) for value in (0.012, 3.21, 600, 9000)] == ["12 ms", "3.21 s", "10 min", "2.5 h"]
    assert [microseconds(value) for value in (110.4, 999.6, 1500, 12_345)] == ["110 µs", "1 ms", "1.5 ms", "12.3 ms"]
    assert [mebibytes(value) for value in (400, 1023.9, 1024, 12_390)] == ["400 MiB", "1 GiB", "1 GiB", "12.1 GiB"]
    assert [spread(values, "sample") for values in ([7], [1], [1000, 30_000])] == [
        "7 samples", "1 sample", "1,000 to 30,000 samples",
    ]  # fmt: skip
    assert [ranges(numbers) for numbers in ([1, 2, 3, 10], [3, 1], [5], [1, 2], [])] == [
        "1–3 and 10", "1 and 3", "5", "1 and 2", "",
    ]  # fmt: skip
