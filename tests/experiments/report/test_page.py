"""The page: whole, self-contained, honest about what is missing; and the files beside it."""

from __future__ import annotations

import json
import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict, replace
from synthetic import BLOCKS_RULES, about, large_problems, row, run_like, size

from bilevel.experiments.paper import ADDRESS
from bilevel.experiments.report.page import page_html, rule_sets
from bilevel.experiments.report.writing import read_films, read_source, write_report
from bilevel.experiments.reproduction.findings import Failure, Findings
from bilevel.experiments.reproduction.folder import QUICK, Experiment, open_folder
from bilevel.files import write_atomically
from bilevel.symbolic.domain import BadInput
from command_line import run

SECTIONS = ("table", "objects", "costs", "scaling", "causes", "rules", "films", "making")
SMALL = run_like(["blocks", "colour"], ["bison", "expert"], objects=(1, 3), seeds=(0, 1), episodes=4)
PAGE = page_html(SMALL)
ODD = "<script>alert('1')</script> & \"x\" </style>"
UNMEASURED = replace(size(2, 1, 1), policy_microseconds=None, peak_mebibytes=None)
VOID = {"meta", "link", "br", "input", "img", "source", "track"}


class Reader(HTMLParser):
    """Collects what a page refers to, its ids, its text, and whether its elements are closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.references: list[str] = []
        self.ids: list[str] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "poster", "action", "data", "srcset", "xlink:href"):
                self.references.append(value or "")
            if name == "id":
                self.ids.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def test_every_section_that_there_is_something_for_is_there_and_elements_are_closed() -> None:
    page = Reader(PAGE)
    sections = [name for name in SECTIONS if name != "films"]
    assert [name for name in page.ids if name in SECTIONS] == sections
    assert len(set(page.ids)) == len(page.ids)
    assert set(sections) <= {reference.removeprefix("#") for reference in page.references}


def test_the_page_loads_nothing() -> None:
    page = Reader(PAGE)
    assert page.references
    assert {one for one in page.references if not one.startswith(("#", "data:"))} == {ADDRESS}, "a link for the reader"
    assert len(re.findall(r"https?://", PAGE)) == 1
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|WebSocket|@font-face", PAGE)
    assert "default-src 'none'" in PAGE


def test_what_was_found_is_escaped_wherever_it_is_shown() -> None:
    odd_rows = [replace(one, settings={ODD: ODD}, versions={ODD: ODD}) for one in SMALL.rows]
    odd = about(
        command=ODD,
        machines=[{ODD: ODD}],
        failures=[Failure(ODD, ODD)],
        dates=[ODD],
        left_out=[ODD],
    )
    html = page_html(Findings(odd, odd_rows, SMALL.scaling))
    assert ODD not in html
    assert html.count("<script") == PAGE.count("<script")
    assert Reader(html).words.count(ODD) >= 8


def test_the_small_version_says_so_and_work_that_failed_is_listed() -> None:
    failures = [Failure("train colour pddl-nn", "RuntimeError: no memory")]
    html = page_html(replace(SMALL, about=about(experiment=QUICK, failures=failures)))
    words = Reader(html).words
    assert "(small version)" in html.partition("</title>")[0]
    assert "Small version." in words
    assert "1 piece of the work failed twice" in words
    assert "train colour pddl-nn RuntimeError: no memory" in words
    assert not re.search("Small version|Work that failed", Reader(PAGE).words)


def test_how_each_method_was_trained_is_told() -> None:
    rows = [row("blocks", "bison", seed, [size(1, 10)]) for seed in (0, 1)]
    words = Reader(page_html(Findings(about(), rows, []))).words
    assert "BISON, our preset 200 epochs; learning rate 0.001; 71,056 samples Versions" in words
    known = [replace(one, training=replace(one.training, parameters=30_660)) for one in rows if one.training]
    words = Reader(page_html(Findings(about(), known, []))).words
    assert "200 epochs; learning rate 0.001; 71,056 samples; 30,660 parameters" in words
    change = {"updates": 5000, "learning_rate": 0.003}
    counted = [replace(one, training=replace(one.training, **change)) for one in rows if one.training]
    words = Reader(page_html(Findings(about(), counted, []))).words
    assert "BISON, our preset 5,000 updates; learning rate 0.003; 71,056 samples Versions" in words


def test_cells_show_ours_and_the_papers() -> None:
    findings = Findings(about(), [row("colour", "det-replan", seed, [size(1, 9 + seed)]) for seed in (0, 1)], [])
    words = Reader(page_html(findings)).words
    assert "0.95 0.73–1.00 19 of 20 seeds 0.90–1.00 paper 0.00" in words
    assert not re.search("SmolVLA|paper 0.97", words), "what was not asked for has neither row nor column"
    whole = Reader(page_html(run_like(objects=(1,), seeds=(0,)))).words
    assert "SmolVLA not run paper 0.00" in whole
    assert "colour 0.95 paper 0.00 Unexplained" in words
    assert "Tasks that were not run: blocks, blocks-noisy" in words


@pytest.mark.parametrize(
    "findings",
    [
        Findings(about(rules={}, machines=[]), [], large_problems()),
        Findings(about(), [row("gacha", "expert", 0, [size(3, 0, 1)])], []),
        Findings(about(), [row("blocks", "pddl-nn-dagger", 7, [size(2, 1, 1)])], []),
        Findings(about(), [row("blocks", "bison", 0, [size(2, 1, 1)], training=None)], []),
        Findings(
            about(), [row("blocks", "bison", 0, [UNMEASURED], training=None), row("swap", "bison", 0, [size(2, 1)])], []
        ),
    ],
)
def test_whatever_there_is_makes_a_page(findings: Findings, tmp_path: Path) -> None:
    (tmp_path / "findings.jsonl").write_text(findings.lines(), encoding="utf-8")
    write_report(tmp_path, tmp_path / "page.html", None)
    page = Reader((tmp_path / "page.html").read_text(encoding="utf-8"))
    shown = [name for name in SECTIONS if name in page.ids]
    assert set(shown) < set(SECTIONS)
    assert shown == [reference[1:] for reference in page.references if reference[1:] in SECTIONS][-len(shown) :]
    assert ("scaling" in shown, "table" in shown) == (bool(findings.scaling), bool(findings.rows))
    assert all(line in page.words for line in ("Not in this report", "Films: there are none in the folder."))


def test_rules_come_with_their_english_and_the_same_ones_once() -> None:
    other = BLOCKS_RULES.replace("2: clear(?b) & ", "2: ")
    first, second = rule_sets({"factory": other, "colour": BLOCKS_RULES, "blocks": BLOCKS_RULES}).values()
    assert (first, second) == (["blocks", "colour"], ["factory"])
    told = (
        "holding(?b) clear(?p) goal at(?b, ?p) → place(?b, ?p) "
        "If you hold a block, a place is clear and the block belongs there, place it there."
    )
    assert told in Reader(PAGE).words


def test_rules_that_are_none_are_refused_by_name() -> None:
    with pytest.raises(BadInput, match="the rules of blocks"):
        rule_sets({"blocks": "1: holding( ->"})


def test_the_page_is_the_same_every_time() -> None:
    assert page_html(SMALL) == PAGE


# The command


def test_the_command_writes_the_page_and_the_files_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    findings = tmp_path / "found.jsonl"
    findings.write_text(run_like(["blocks"], ["bison", "expert"], (1,), (0,), 2).lines(), encoding="utf-8")
    page = tmp_path / "new" / "page.html"
    code, out, _ = run(capsys, "report", findings, "--output", page)
    folder = tmp_path / "new" / "page-files"
    assert code == 0
    assert str(page) in out
    names = {path.name for path in folder.iterdir()}
    for name in ("success", "success-by-objects", "costs", "causes", "solving-time"):
        assert {f"{name}.{suffix}" for suffix in ("csv", "md", "tex")} <= names
    for name in ("success-by-objects", "success-against-costs", "solving-time", "causes-of-failure"):
        assert {f"{name}.pdf", f"{name}.png"} <= names
    assert "made from a file of findings alone" in Reader(page.read_text(encoding="utf-8")).words

    code, out, _ = run(capsys, "report", findings, "--output", tmp_path / "lone.html", "--page-only", "--json")
    assert (code, json.loads(out)["folder"]) == (0, None)
    assert not (tmp_path / "lone-files").exists()

    findings.write_text(Findings(about(), [], large_problems()).lines(), encoding="utf-8")
    code, _, _ = run(capsys, "report", findings, "--output", tmp_path / "page.html", "--files", tmp_path / "there")
    assert code == 0
    assert {path.suffix for path in (tmp_path / "there").iterdir()} == {".csv", ".md", ".tex", ".pdf", ".png"}
    assert not (tmp_path / "page-files").exists()


def test_names_that_are_not_utf_8_are_written_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    findings = tmp_path / "found.jsonl"
    findings.write_text(run_like(["blocks"], ["bison"], (1,), (0,), 2).lines(), encoding="utf-8")
    page = tmp_path / os.fsdecode(b"\xff.html")
    code, _, error = run(capsys, "report", findings, "--output", page)
    assert (code, error) == (0, "")
    assert "\ufffd-files" in page.read_text(encoding="utf-8")


def changed(line: int, **changes: Any) -> str:
    """Findings of which a line has other values."""
    lines = run_like(["blocks"], ["bison"], (1,), (0,), 2).lines().splitlines()
    lines[line] = json.dumps({**json.loads(lines[line]), **changes})
    return "\n".join(lines) + "\n"


SIZE: dict[str, Any] = {"objects": 1, "episodes": 2, "successes": 2, "reasons": {}, "mean_steps": 85.0,
                        "policy_microseconds": 1.0, "physics_microseconds": 1.0, "peak_mebibytes": 1.0}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "a line that says how it was made is missing"),
        ("{", "line 1: not a line that `bilevel reproduce` wrote"),
        (changed(1, entrant="me"), "unknown method 'me'"),
        (changed(1, sizes=[]), "line 2: not a line that"),
        (changed(1, sizes=[{**SIZE, "successes": 3}]), "odd numbers"),
        (changed(1, sizes=[{**SIZE, "successes": "2"}]), "line 2: not a line that"),
        (changed(1, sizes=[{**SIZE, "successes": 1, "reasons": {"bad luck": 1}}]), "odd numbers"),
        (changed(1, sizes=[{**SIZE, "policy_microseconds": float("nan")}]), "line 2: not a line that"),
        (changed(2, solver="me"), "unknown solver 'me'"),
        (changed(2, seconds=None), "line 3: not a line that"),
        (changed(0, experiment=None), "line 1: not a line that"),
        (changed(0, rules={"blocks": "nonsense"}), "the rules of blocks"),
        (changed(1) + changed(1).splitlines()[1], "two lines for bison on blocks with seed 0"),
        (changed(1).splitlines()[0], "no results in it yet"),
    ],
)
def test_what_is_wrong_with_findings_is_one_line(
    text: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "findings.jsonl").write_text(text, encoding="utf-8")
    code, _, error = run(capsys, "report", tmp_path, "--output", tmp_path / "page.html")
    assert code == 2
    assert complaint in error
    assert error.count("\n") == 1
    assert not (tmp_path / "page.html").exists()


def test_what_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for source, complaint in ((tmp_path, "no findings.jsonl"), (tmp_path / "none", "no such file or folder")):
        code, _, error = run(capsys, "report", source, "--output", tmp_path / "page.html")
        assert code == 2
        assert complaint in error
        assert "bilevel reproduce" in error
    code, _, error = run(capsys, "report", tmp_path, "--output", tmp_path)
    assert (code, error.count("\n")) == (2, 1)
    code, _, error = run(capsys, "report", tmp_path, "--output", tmp_path / "a", "--files", tmp_path, "--page-only")
    assert (code, "exclude each other" in error) == (2, True)


def test_a_folder_in_which_nothing_was_measured_yet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_folder(tmp_path / "all", Experiment())
    code, _, error = run(capsys, "report", tmp_path / "all", "--output", tmp_path / "page.html")
    told = "there are no results in it yet; `bilevel reproduce` makes them"
    assert (code, error) == (2, f"error: {tmp_path / 'all'}: {told}\n")


def test_a_folder_is_reported_on_as_it_is_now(tmp_path: Path) -> None:
    """Its findings are written when a run ends, and it may be at work, or have been killed."""
    open_folder(tmp_path, Experiment())
    (one, *others) = large_problems()
    write_atomically(tmp_path / f"scaling/{one.task}-{one.solver}-{one.objects}.json", json.dumps(asdict(one)))
    assert read_source(tmp_path).scaling == [one]
    (tmp_path / "findings.jsonl").write_text(Findings(about(), [], others).lines(), encoding="utf-8")
    found = read_source(tmp_path)
    assert (found.scaling, found.about.command) == ([one], about().command)


def test_what_is_not_installed_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("writing", "drawing"):
        monkeypatch.delitem(sys.modules, f"bilevel.experiments.report.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, error = run(capsys, "report", tmp_path, "--output", tmp_path / "page.html")
    assert code == 2
    assert error == "error: matplotlib is missing; install it with: pip install 'bilevel[report]'\n"


def test_a_film_without_a_timeline_is_not_shown_and_a_broken_timeline_is_refused(tmp_path: Path) -> None:
    (tmp_path / "films").mkdir()
    (tmp_path / "films" / "blocks.mp4").write_bytes(b"film")
    assert read_films(tmp_path / "films") == []
    (tmp_path / "films" / "blocks.json").write_text("{}", encoding="utf-8")
    with pytest.raises(BadInput, match="not the timeline of a film"):
        read_films(tmp_path / "films")


def test_the_day_the_versions_and_the_machines_are_told() -> None:
    words = Reader(page_html(replace(SMALL, about=about(dates=["2026-07-30", "2026-07-31"])))).words
    assert "Run on 2026-07-30 to 2026-07-31." in words
    assert "torch 2.9.0" in words
    assert "cpu: AMD EPYC, cores: 2" in words
    assert "71,056 samples" in words
    assert "71,056 to" not in words
