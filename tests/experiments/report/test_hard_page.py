"""The page of the hard suite: every curve is drawn and told in numbers, whatever was measured and whatever was not."""

from __future__ import annotations

import csv
import io
import json
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest
from msgspec.structs import replace
from synthetic import run_like
from synthetic_curves import curves_like

from bilevel.experiments.hard.axes import AXES
from bilevel.experiments.hard.curves import Curves, read_curves
from bilevel.experiments.report.drawing import SETTINGS, panel_sheet, panel_svg
from bilevel.experiments.report.hard_figures import hard_figures
from bilevel.experiments.report.hard_page import hard_page_html
from bilevel.experiments.report.hard_results import TIMES, HardResults, first_beyond, least_for, score
from bilevel.experiments.report.hard_tables import BEHIND, NEEDED, hard_tables
from bilevel.experiments.report.tables import as_csv, as_latex, as_markdown
from bilevel.experiments.report.writing import write_report
from bilevel.experiments.reproduction.variants import VARIANTS
from bilevel.symbolic.domain import BadInput

METHODS = ["bison", "expert", "det-replan"]
SMALL = curves_like(["teleports", "perception-noise", "demonstrations", "symbols", "deciding"], ["blocks"], METHODS)
RESULTS = HardResults(SMALL)


def write(path: Path, curves: Curves) -> Path:
    path.write_text(curves.lines(), encoding="utf-8")
    return path


def test_curves_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert read_curves(write(tmp_path / "curves.jsonl", SMALL)).lines() == SMALL.lines()


def test_every_axis_and_measure_has_a_figure_and_a_table() -> None:
    names = {"hard-teleports", "hard-perception-noise", "hard-demonstrations", "hard-symbols", "hard-symbols-seconds"}
    names |= {"hard-symbols-pause", "hard-deciding-decision", "hard-deciding-pause"}
    assert set(hard_figures(RESULTS)) == names
    pooled = {f"{name}-pooled" for name in names if name.count("-") == 1 or name == "hard-perception-noise"}
    assert set(hard_tables(RESULTS)) == {*names, *pooled, NEEDED, BEHIND}


@pytest.mark.parametrize("name", AXES)
def test_texts_along_axes_do_not_meet(name: str) -> None:
    for figure in hard_figures(HardResults(curves_like([name]))).values():
        with matplotlib.rc_context(SETTINGS):
            sheet = panel_sheet(figure)
            sheet.draw_without_rendering()
            ticks = [axes.get_xticklabels() for axes in sheet.axes]
            rows = [[axes.xaxis.label for axes in sheet.axes], *ticks]
            for row in rows:
                boxes = sorted((box.x0, box.x1) for box in (text.get_window_extent() for text in row))
                assert all(right < left for (_, right), (left, _) in pairwise(boxes)), figure.name
            assert all(text.get_window_extent().x0 >= 0 for text in rows[0])
            assert all(text.get_window_extent().x1 <= sheet.bbox.x1 for text in rows[0])


def test_the_expert_is_the_ceiling_also_where_it_has_to_see() -> None:
    for name, expert in (("hard-teleports", "expert"), ("hard-perception-noise", "expert-estimating")):
        (panel,) = hard_figures(RESULTS)[name].panels
        assert [series.key for series in panel.series if series.is_ceiling] == [expert]


def test_a_mark_has_an_interval_and_says_it() -> None:
    (panel,) = hard_figures(RESULTS)["hard-teleports"].panels
    for series in panel.series:
        assert [panel.x.name(mark.x) for mark in series.marks] == ["1/4000", "1/2000", "1/1000", "1/500", "1/250"]
        for mark in series.marks:
            assert mark.range is not None
            assert mark.range[0] <= mark.y <= mark.range[1]
    first = panel.series[0].marks[0]
    assert first.tip.startswith("1.00 (30 of 30; 0.")


def test_limits_are_lines_that_are_no_methods() -> None:
    (panel,) = hard_figures(RESULTS)["hard-deciding-pause"].panels
    assert [series.key for series in panel.series] == ["bison", "det-replan", "det-replan-search", "limit"]
    assert {mark.y for mark in panel.series[-1].marks} == {1.0}
    drawn = ElementTree.fromstring(panel_svg(panel, "small"))
    assert "limit" in {element.get("data-series") for element in drawn.iter()}


def test_where_curves_pass_a_limit() -> None:
    places = RESULTS.curves(AXES["deciding"]).values()
    (curves,) = places
    assert first_beyond(TIMES["pause"], curves[VARIANTS["det-replan"]]) == 8  # 0.2 s for each object
    assert first_beyond(TIMES["pause"], curves[VARIANTS["bison"]]) is None
    behind = hard_tables(RESULTS)[BEHIND]
    assert ["blocks, BISON, our preset", "not up to 20", "not up to 20", "not up to 1,000"] in behind.lines
    assert ["blocks, DetReplan, built-in search", "not up to 20", "not up to 20", "30"] in behind.lines
    (learned,) = RESULTS.curves(AXES["demonstrations"]).values()
    ours = VARIANTS["bison-without-dagger"]
    points = learned[ours]
    assert least_for(ours, points) is None
    assert least_for(ours, dict.fromkeys(points, points[1])) == 1
    assert least_for(ours, {1: points[1], 5: points[200], 20: points[1], 50: points[1]}) == 20


def test_all_tasks_together_are_the_sum_of_each() -> None:
    both = HardResults(curves_like(["objects"], ["blocks", "factory"], ["bison", "expert"]))
    tables = hard_tables(both)
    pooled = tables["hard-objects-pooled"]
    assert pooled.header == ["method", "1", "2", "3", "5", "8", "10"]  # there is no room for more in factory
    for record in pooled.records:
        same = [
            one
            for one in tables["hard-objects"].records
            if (one["method"], one["value"]) == (record["method"], record["value"])
        ]
        assert len(same) == 2
        for name in ("successes", "episodes"):
            assert record[name] == sum(int(one[name] or 0) for one in same)


def test_methods_are_compared_in_pairs_where_they_run_on_the_same_networks() -> None:
    (curves,) = HardResults(curves_like(["teleports"], ["blocks"])).curves(AXES["teleports"]).values()
    networks = {variant.name: score(variant, points[1 / 500]).networks for variant, points in curves.items()}
    assert networks["bison-paper"] == networks["det-replan"] == networks["ndt-replan"]
    assert len({networks[name] for name in ("bison", "bison-paper", "pddl-nn", "expert")}) == 4


@pytest.mark.parametrize(("seeds", "said"), [(1, "intervals (Wilson) of these policies"), (2, "over training seeds")])
def test_intervals_say_of_what_they_are(seeds: int, said: str) -> None:
    found = hard_tables(HardResults(curves_like(["teleports"], ["blocks"], seeds=seeds)))
    assert said in found["hard-teleports-pooled"].caption


def test_a_method_that_was_run_on_some_tasks_alone_says_on_which() -> None:
    results = HardResults(curves_like(["symbols"], ["blocks", "gacha"], ["bison", "det-replan"]))
    titles = [line[0] for line in hard_tables(results)["hard-symbols-pooled"].lines]
    assert titles == ["BISON, our preset", "DetReplan", "DetReplan, built-in search (blocks)"]


@pytest.mark.parametrize("name", ["hard-teleports", "hard-teleports-pooled", "hard-symbols-seconds", NEEDED, BEHIND])
def test_tables_have_all_values_in_every_format(name: str) -> None:
    table = hard_tables(RESULTS)[name]
    rows = list(csv.DictReader(io.StringIO(as_csv(table))))
    assert len(rows) == len(table.records)
    assert {row["method"] for row in rows} <= set(VARIANTS)
    for line in table.lines:
        assert len(line) == len(table.header)
    assert as_markdown(table).count("\n| ") == len(table.lines) + 1
    assert "\\toprule" in as_latex(table)


def test_the_page_has_a_section_for_each_axis_and_nothing_of_others() -> None:
    page = hard_page_html(SMALL, "report-files")
    for axis in RESULTS.axes:
        assert f'<section id="{axis.name}">' in page
        assert axis.about in page.replace("&#39;", "'")
    assert 'id="objects"' not in page
    assert "report-files" in page
    assert "Small version." not in page
    assert page.count("<figure class") == len(hard_figures(RESULTS))
    quick = replace(SMALL, about=replace(SMALL.about, experiment=replace(SMALL.about.experiment, quick=True)))
    assert "Small version." in hard_page_html(quick)


def test_several_numbers_of_objects_have_panels_of_their_own() -> None:
    more = [replace(curve, objects=5) for curve in SMALL.curves if curve.axis == "teleports"]
    both = HardResults(replace(SMALL, curves=[*SMALL.curves, *more]))
    titles = [panel.title for panel in hard_figures(both)["hard-teleports"].panels]
    assert titles == ["blocks-noisy, 10 objects", "blocks-noisy, 5 objects"]


def test_a_report_is_written_from_a_file_of_curves(tmp_path: Path) -> None:
    few = replace(SMALL, curves=[curve for curve in SMALL.curves if curve.axis == "teleports"])
    source = write(tmp_path / "hard.jsonl", few)
    files = write_report(source, tmp_path / "page.html", tmp_path / "files")
    tables = [f"hard-teleports{ending}.{suffix}" for ending in ("", "-pooled") for suffix in ("csv", "md", "tex")]
    assert set(files) == {*tables, "hard-teleports.pdf", "hard-teleports.png"}
    assert "hard suite" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_folder_with_both_has_two_pages_that_know_each_other(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    few = replace(SMALL, curves=[curve for curve in SMALL.curves if curve.axis == "teleports"])
    write(folder / "curves.jsonl", few)
    (folder / "findings.jsonl").write_text(run_like(["blocks"], ["bison"], (1,), (0,), 2).lines(), encoding="utf-8")
    write_report(folder, tmp_path / "page.html", None)
    assert 'href="page-hard.html"' in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert 'href="page.html"' in (tmp_path / "page-hard.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"axis": "gravity"}, "unknown axis 'gravity'"),
        ({"method": "magic"}, "unknown method 'magic'"),
        ({"points": []}, "not a line that `bilevel benchmark hard` wrote"),
    ],
)
def test_curves_that_nobody_wrote_are_refused(tmp_path: Path, change: dict[str, object], said: str) -> None:
    about, first, *rest = SMALL.lines().splitlines()
    path = tmp_path / "hard.jsonl"
    path.write_text("\n".join([about, json.dumps({**json.loads(first), **change}), *rest]), encoding="utf-8")
    with pytest.raises(BadInput, match=said):
        write_report(path, tmp_path / "page.html", None)
    path.write_text("\n".join([about, first, first]), encoding="utf-8")
    with pytest.raises(BadInput, match="two lines for"):
        write_report(path, tmp_path / "page.html", None)
