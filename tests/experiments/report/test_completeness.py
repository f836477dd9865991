"""Findings know what was asked for, and so whether they are complete."""

from __future__ import annotations

from msgspec.structs import replace
from synthetic import about, large_problems, row, run_like, size

from bilevel.experiments.report.page import page_html
from bilevel.experiments.report.scores import Results
from bilevel.experiments.report.wording import completeness
from bilevel.experiments.reproduction.completeness import Asked
from bilevel.experiments.reproduction.findings import Findings, parse_findings

ASKED = Asked(
    rows={"blocks": ["bison", "expert"]},
    sizes={"blocks": [1, 3]},
    episodes=10,
    seeds=[0, 1],
    memory={"blocks": ["bison"]},
    problems={"blocks": {"rules": [10, 100], "search": [10]}},
)


def found(*asked: Asked, **changes: object) -> Findings:
    rows = [row("blocks", name, seed, [size(1, 10), size(3, 10)]) for name in ("bison", "expert") for seed in (0, 1)]
    return replace(Findings(about(asked=asked), rows, large_problems()), **changes)


def test_what_was_asked_for_and_is_not_there_is_told() -> None:
    whole = found(ASKED)
    assert whole.missing() == ["Large problems of blocks, search: 10 objects."]
    few = [replace(one, sizes=one.sizes[: 1 + (one.seed == 0)]) for one in whole.rows if one.variant == "bison"]
    without_memory = [replace(one, sizes=[replace(each, peak_mebibytes=None) for each in one.sizes]) for one in few]
    assert found(ASKED, rows=without_memory).missing() == [
        "bison on blocks: 30 of 40 episodes.",
        "expert on blocks: none of 40 episodes.",
        "Memory on blocks: bison.",
        "Large problems of blocks, search: 10 objects.",
    ]


def test_several_runs_may_have_asked_for_different_things() -> None:
    more = replace(ASKED, rows={}, memory={}, problems={"gacha": {"rules": [3, 10]}})
    assert found(ASKED, more).missing()[-1] == "Large problems of gacha, rules: 3, 10 objects."
    assert found(ASKED, ASKED).missing() == found(ASKED).missing()


def test_pages_and_tables_say_whether_it_is_complete() -> None:
    assert completeness(run_like(["blocks"])).startswith("Whether that is all")
    assert "search: 10 objects" in completeness(found(ASKED))
    assert "search: 10 objects" in page_html(found(ASKED))
    assert any("search: 10 objects" in line for line in Results(found(ASKED)).missing())
    whole = found(replace(ASKED, problems={}))
    assert completeness(whole) == "Complete: all that was asked for is there."
    assert parse_findings(whole.lines().splitlines(), "").missing() == []
