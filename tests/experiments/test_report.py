"""The report: its tables and figures as files, and its page in a real browser, on a desk and on a phone."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, sync_playwright

from bilevel.experiments import making
from bilevel.experiments.experiment import FINDINGS, Cell
from bilevel.experiments.report import rate, success, write_report
from bilevel.experiments.results import read_results
from bilevel.experiments.rows import NUMBER
from bilevel.json_files import encode
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.tabletop import Tabletop
from blocks_policies import moving_policy
from drawing import can_draw

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
ABOUT: dict[str, Any] = {"experiment": {"quick": True}, "command": "bilevel reproduce --output x"}
RULES = "variables: ?b - block, ?p - place\n\n1: holding(?b) & clear(?p) & goal at(?b, ?p) -> place(?b, ?p)\n"
SMALL: Any = {
    "PICTURES": {"render_mode": "rgb_array", "picture_size": (96, 72)},
    "ENCODER": {"crf": "40", "preset": "ultrafast"},
}


def lines() -> list[dict[str, Any]]:
    """Findings that are made up: our preset always succeeds, a rival with one object of four alone."""
    found = [{**ABOUT, "rules": {"blocks": RULES, "blocks-noisy": RULES}}]
    for task in ("blocks", "blocks-noisy"):
        for row, wins in (("bison", (5, 5)), ("expert", (5, 5)), ("pddl-nn", (5, 0)), ("det-plan", (3, 1))):
            for seed in (0, 1):
                for objects, won in zip((1, 4), wins, strict=True):
                    where = {"task": task, "row": row, "seed": seed, "objects": objects}
                    counts = {"episodes": 5, "successes": won, "reasons": {"stall": 5 - won} if won < 5 else {}}
                    found.append({**where, **counts})
    scaling = {
        "task": "blocks",
        "axis": "symbols",
        "seed": 0,
        "episodes": 1,
        "successes": 1,
        "seconds": 0.5,
        "pause_seconds": 0.5,
    }
    found += [
        {**scaling, "row": row, "objects": size, "value": size} for row in ("bison", "det-replan") for size in (10, 30)
    ]
    found[-1] |= {"successes": 0, "reasons": {"time": 1}}
    return found


def write(folder: Path, content: list[dict[str, Any]]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / FINDINGS).write_text("".join(json.dumps(line) + "\n" for line in content), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a report with a film; where nothing can be drawn, that is grey."""
    folder = write(tmp_path_factory.mktemp("report") / "all", lines())
    policy = moving_policy()
    with pytest.MonkeyPatch.context() as patch:
        if not can_draw():
            patch.setattr(Tabletop, "render", lambda world: np.full((120, 160, 3), 128, np.uint8))
        for name, value in SMALL.items():
            patch.setattr(making, name, value)
        cell = Cell("films", "blocks", "bison", seed=0, objects=1)
        timeline = making.film(policy, cell, folder / "films" / "blocks.mp4")
    assert (timeline["outcome"], timeline["beats"][0].action) == ("success", "pick(block1)")
    (folder / "films" / "blocks.json").write_text(encode(timeline), encoding="utf-8")
    write_report(folder, folder / "report.html", folder / "report-files")
    return folder


def test_rates_are_told_with_their_intervals_and_the_best_are_set_off(report: Path) -> None:
    found = success(read_results(report).along(NUMBER)).set_index(["row", "task"])
    assert found.loc["bison", "successes"].tolist() == [20, 20, 40]
    assert found.loc["pddl-nn", "middle"].tolist() == [0.5, 0.5, 0.5]
    best = found.xs("blocks", level="task")["best"]
    assert best.to_dict() == {"bison": True, "expert": False, "pddl-nn": False, "det-plan": False}
    assert found.loc[("pddl-nn", "blocks"), "paper"] == 0.33
    assert (rate(0.999), rate(0.001), rate(1)) == (">0.99", "<0.01", "1.00")


def test_tables_and_figures_are_files(report: Path) -> None:
    names = {path.name for path in (report / "report-files").iterdir()}
    for name in ("success", "success-by-objects", "hard-symbols"):
        assert {f"{name}.csv", f"{name}.tex"} <= names
    for name in ("success-by-objects", "hard-symbols"):
        assert (report / "report-files" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        assert (report / "report-files" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    with open(report / "report-files" / "success.csv", encoding="utf-8") as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    assert rows["BISON, our preset"]["blocks"] == "20/20, paper 0.99"
    times = (report / "report-files" / "hard-symbols-seconds.csv").read_text(encoding="utf-8")
    assert 'blocks,"BISON, our preset",500 ms,500 ms' in times
    again = write_report(report, report / "again.html", report / "again")
    assert all(
        (report / "again" / name).read_bytes() == (report / "report-files" / name).read_bytes() for name in again
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"task": "blocks"}, "line 2: not a line that"),
        ({**lines()[1], "row": "magic"}, "unknown method 'magic'"),
        ({**lines()[1], "axis": "magic"}, "or axis 'magic'"),
    ],
)
def test_a_file_of_something_else_is_refused_in_a_line(tmp_path: Path, line: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        write_report(write(tmp_path, [ABOUT, line]), tmp_path / "report.html", None)
    with pytest.raises(BadInput, match="no results in it yet"):
        write_report(write(tmp_path, [ABOUT]), tmp_path / "report.html", None)
    assert not (tmp_path / "report.html").exists()


def test_findings_that_are_published_are_read() -> None:
    root = Path(__file__).parents[2] / "results"
    table = read_results(root / "reproduction.jsonl").along(NUMBER)
    assert table[table["row"] == "bison"]["episodes"].sum() >= 240
    assert len(read_results(root / "hard.jsonl").table) > 1000


@pytest.fixture(params=[(1280, 900), (390, 844)], ids=["desk", "phone"])
def page(report: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    if CHROMIUM is None:
        pytest.skip("there is no browser here")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        width, height = request.param
        page = browser.new_page(viewport={"width": width, "height": height})
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.goto((report / "report.html").as_uri())
        yield page
        browser.close()
    assert errors == []


def test_the_page_fits_its_window_sorts_its_table_and_shows_its_films(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".panel img").count() == 2 + 3
    assert "Made with --quick" in page.inner_text(".quick")
    first = page.locator(".results tbody tr").first
    before = first.inner_text()
    page.locator(".results thead button").nth(1).click()
    page.locator(".results thead button").nth(1).click()
    assert first.inner_text() != before
    page.select_option("#task", "blocks-noisy")
    assert page.locator(".stacks:not([hidden])").get_attribute("data-task") == "blocks-noisy"
    assert page.locator(".rules li").count() == 1
    assert "pick(block1)" in page.inner_text(".viewer-episode")
    page.click("#theme")
