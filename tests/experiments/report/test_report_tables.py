"""Tables say the same numbers in every format."""

from __future__ import annotations

import csv
import io
import re

import pytest
from msgspec.structs import replace
from synthetic import TRAINING, about, large_problems, row, run_like, scaling, size

from bilevel.experiments.intervals import Counts, rate_interval
from bilevel.experiments.paper import TASKS
from bilevel.experiments.report.figures import solving_time
from bilevel.experiments.report.scores import Results
from bilevel.experiments.report.tables import (
    FORMATS,
    Table,
    Text,
    as_csv,
    as_latex,
    as_markdown,
    cost_table,
    main_table,
    markdown_grid,
    scaling_table,
    size_table,
    tables,
)
from bilevel.experiments.reproduction.findings import Findings
from bilevel.experiments.reproduction.variants import PAPERS_ROWS

FINDINGS = run_like(objects=(1, 3), seeds=(0, 1), episodes=4)


def parsed(table: Table) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(as_csv(table))))


def grid(table: Table) -> list[list[str]]:
    """The cells of a Markdown table, without what sets them off."""
    lines = markdown_grid(table).splitlines()
    return [[re.sub(r"[*\\]", "", cell).strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_there_are_all_tables_and_each_in_every_format() -> None:
    found = tables(Results(FINDINGS))
    assert [table.name for table in found] == ["success", "success-by-objects", "costs", "causes", "solving-time"]
    for table in found:
        assert all(len(line) == len(table.header) for line in table.lines)
        for render in FORMATS.values():
            assert table.title in render(table) or render is as_csv


def test_the_main_table_in_csv_has_the_numbers_of_the_findings() -> None:
    found = {(line["method"], line["task"]): line for line in parsed(main_table(Results(FINDINGS)))}
    for variant in PAPERS_ROWS:
        for task in TASKS:
            rows = [row for row in FINDINGS.rows if (row.variant, row.task) == (variant, task)]
            wins, episodes = sum(row.successes for row in rows), sum(row.episodes for row in rows)
            line = found[variant, task]
            assert (int(line["successes"]), int(line["episodes"])) == (wins, episodes)
            assert float(line["rate"]) == wins / episodes
            counts = (
                [Counts(wins, episodes)] if variant == "expert" else [Counts(r.successes, r.episodes) for r in rows]
            )
            assert (float(line["low"]), float(line["high"])) == rate_interval(counts)
    assert found["smolvla", "blocks"]["rate"] == ""
    assert float(found["smolvla", "blocks"]["paper"]) == 0


def test_markdown_and_latex_show_the_same_numbers_as_csv() -> None:
    table = main_table(Results(FINDINGS))
    rates = {(line["method"], line["task"]): line["rate"] for line in parsed(table)}
    header, _, *lines = grid(table)
    shown = {(variant, task): line[1 + column] for variant, line in zip(PAPERS_ROWS, lines, strict=False)
             for column, task in enumerate(header[1:])}  # fmt: skip
    assert len(shown) == len(PAPERS_ROWS) * (len(TASKS) + 1)
    latex = as_latex(table)
    for key, text in shown.items():
        assert text.split()[0] == f"{float(rates[key]):.2f}"
        assert text.split("(")[0].strip() in latex


def test_a_model_that_was_not_run_gets_no_number() -> None:
    for line in grid(main_table(Results(FINDINGS))):
        if line[0].startswith("SmolVLA"):
            assert all(cell == "not run 0.00" for cell in line[1:])


def test_holes_are_dashes() -> None:
    rows = [row("blocks", "bison", 0, [size(1, 4, 4)]), row("blocks-noisy", "expert", 0, [size(1, 4, 4)])]
    findings = Findings(about(), rows, [])
    (bison,) = [line for line in grid(main_table(Results(findings))) if line[0] == "BISON, our preset"]
    assert bison[2] == "– 0.95"
    assert not scaling_table(Results(findings)).records
    assert "solving-time" not in [table.name for table in tables(Results(findings))]


def test_successes_by_size_are_counted_over_seeds() -> None:
    rows = [row("blocks", "bison", seed, [size(1, 4, 4), size(3, 3 - seed, 4)]) for seed in (0, 1)]
    header, _, line = grid(size_table(Results(Findings(about(), rows, []))))
    assert (header[1:], line[1:]) == (["n = 1", "n = 3"], ["8/8", "5/8"])


def test_time_outs_are_told() -> None:
    table = scaling_table(Results(Findings(about(), [], large_problems())))
    rules, lama = grid(table)[2:]
    assert rules[0] == "blocks, Rules (BISON)"
    assert "out of time" not in rules
    assert lama[-2:] == ["out of time", "not run"]
    assert [line["timed_out"] for line in parsed(table)].count("1") == 1


def test_what_a_planner_cannot_do_is_told_apart_from_what_was_not_tried() -> None:
    lama = replace(scaling("gacha", "lama", 3, 0.0), solved=False, reason="no model")
    found = [scaling("gacha", "rules", 3, 0.1), scaling("gacha", "rules", 10, 0.1), lama]
    assert grid(scaling_table(Results(Findings(about(), [], found))))[3:] == [["gacha, LAMA", "no model", "not run"]]
    (panel,) = solving_time(Results(Findings(about(), [], found))).panels
    assert [series.key for series in panel.series] == ["rules"]


def test_odd_characters_break_no_table() -> None:
    odd = "a|b & 50% of_$x$ <i> \\ *c*\nd {e}"
    table = Table("odd", "Odd", odd, ["name", odd], [[Text("x"), Text(odd, odd, odd, strong=True)]], [{"name": odd}])
    lines = as_markdown(table).splitlines()
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines[2:]}) == 1
    assert "<i>" not in re.sub(r"\\<", "", "\n".join(lines))
    assert r"50\% of\_\$x\$" in as_latex(table)
    assert as_latex(table).count("&") - as_latex(table).count(r"\&") == 2
    assert parsed(table) == [{"name": odd}]


@pytest.mark.parametrize("render", FORMATS.values())
def test_tables_are_the_same_every_time(render: object) -> None:
    assert callable(render)
    assert [render(table) for table in tables(Results(FINDINGS))] == [
        render(table) for table in tables(Results(FINDINGS))
    ]


def test_sizes_of_networks_are_told_where_they_are_known() -> None:
    def costs(parameters: int | None) -> Table:
        trained = replace(TRAINING, parameters=parameters)
        rows = [row("blocks", name, 0, [size(1, 4, 4)], training=trained) for name in ("bison", "det-replan-dagger")]
        return cost_table(Results(Findings(about(), [*rows, row("blocks", "expert", 0, [size(1, 4, 4)])], [])))

    table = costs(30_660)
    assert table.header[:3] == ["method", "success", "parameters"]
    assert [line[2] for line in table.lines] == ["30,660", "–", "30,660"]
    assert "that of our preset" in table.caption
    assert "parameters" not in costs(None).header
