"""The benchmarks of rules run, check what they measure, and can be taken up; the import graph has its cycles."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from import_drawing import draw, levels
from import_graph import cycles, read_parts

from bilevel.tabletop.problems import UNTANGLED

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
BLOCKS_RULES = """
variables: ?b - block, ?p - place
1: holding(?b) & clear(?p) & goal at(?b, ?p) -> place(?b, ?p)
2: clear(?b) & clear(?p) & gripper-free() & goal at(?b, ?p) -> pick(?b)
"""


def run(script: str, *arguments: str) -> str:
    command = [sys.executable, str(BENCHMARKS / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def records(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]


def test_small_sizes_are_measured_once_and_drawn(tmp_path: Path) -> None:
    output, figure = tmp_path / "results.jsonl", tmp_path / "figure.png"
    options = ["--quick", "--output", str(output), "--figure", str(figure)]

    first = run("rule_scaling.py", "--sizes", "10", "30", "--shapes", "blocks", "gacha", *options)
    assert len(records(output)) == 12
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert "SQLite/rules" in first

    run("rule_scaling.py", "--sizes", "10", *options)
    found = records(output)
    measured = {(record["method"], record["shape"], record["size"]) for record in found}
    wanted = {(shape, 10) for shape in UNTANGLED} | {("blocks", 30), ("gacha", 30)}
    assert measured == {(method, *problem) for method in ("rules", "written", "sqlite") for problem in wanted}
    assert len(found) == len(measured)
    assert all(record["solved"] and record["valid"] for record in found)
    assert str(tmp_path) not in output.read_text(encoding="utf-8")

    run("rule_scaling.py", "--sizes", "10", "--shapes", "blocks", "--methods", "rules", "--fresh", *options)
    again = {(record["method"], record["shape"], record["size"]) for record in records(output)}
    assert again == measured - {("rules", "blocks", 30)}


def measured(method: str, rules: str, folder: Path, limit: str = "60") -> dict[str, Any]:
    rule_file = folder / "blocks.rules"
    rule_file.write_text(rules, encoding="utf-8")
    printed = run("measurement.py", method, "blocks", "300", "--rules", str(rule_file), "--limit", limit)
    result: dict[str, Any] = json.loads(printed)
    return result


@pytest.mark.parametrize("method", ["rules", "written", "sqlite", "command"])
def test_every_way_of_following_rules_takes_two_actions_a_block(method: str, tmp_path: Path) -> None:
    result = measured(method, BLOCKS_RULES, tmp_path)
    assert result["solved"]
    assert result["valid"]
    assert result["actions"] == 600
    assert result["seconds"] > 0
    assert result["peak_mebibytes"] > 1


def test_a_goal_that_no_rule_serves_is_reported(tmp_path: Path) -> None:
    without_picking = BLOCKS_RULES.replace("2: ", "# ")
    for method in ("rules", "sqlite"):
        result = measured(method, without_picking, tmp_path)
        assert not result["solved"]
        assert result["valid"] is False


def test_a_planner_is_ended_when_its_time_is_up(tmp_path: Path) -> None:
    result = measured("lama", BLOCKS_RULES, tmp_path, limit="0.5")
    assert result["timed_out"]
    assert not result["solved"]


def test_the_families_are_proved_and_the_printed_rule_refuted(tmp_path: Path) -> None:
    output = tmp_path / "verification.jsonl"
    command = [sys.executable, "benchmarks/verification_families.py", "--output", str(output)]
    subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).parents[1])
    records = [json.loads(line) for line in output.read_text().splitlines()]
    refuted = [record for record in records if record["answer"] != "solved always"]
    assert [(record["rules"], record["starts"]) for record in refuted] == [
        ("learned", "at-rest"),
        ("as printed", "initial"),
    ]
    assert len(records) == 7


def test_every_kind_of_import_is_drawn_and_cycles_are_found(tmp_path: Path) -> None:
    modules = {
        "low/one.py": "import numpy",
        "left/one.py": "from bilevel.low.one import x\nfrom bilevel import right",
        "right/one.py": "def run() -> None:\n    import bilevel.left.one",
        "cli.py": "from bilevel.left.one import x",
    }
    for name, text in modules.items():
        (tmp_path / "bilevel" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "bilevel" / name).write_text(text, encoding="utf-8")
    parts = read_parts(tmp_path)
    assert {name: part.imports for name, part in parts.items()} == {
        "low": set(),
        "left": {"low", "right"},
        "right": {"left"},
        "commands": {"left"},
    }
    assert cycles(parts) == [["left", "right"]]
    assert levels(parts, cycles(parts)) == {"low": 0, "left": 1, "right": 1, "commands": 2}
    draw({"here": (parts, cycles(parts))}, tmp_path / "graph.png")
    assert (tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")


def test_rules_are_learned_and_tried_on_classical_domains(tmp_path: Path) -> None:
    output = tmp_path / "results.jsonl"
    printed = run("generalised_planning.py", "--quick", "--output", str(output))
    found = records(output)
    assert [row["domain"] for row in found] == ["ferry", "transport"]
    assert all(test["valid"] for row in found for test in row["solved"])
    assert printed.count("rules in") == 2
    assert str(tmp_path) not in output.read_text(encoding="utf-8")
    assert run("generalised_planning.py", "--quick", "--output", str(output)) == ""


def test_large_problems_are_solved_alike_by_all_that_is_compared(tmp_path: Path) -> None:
    output = tmp_path / "large.jsonl"
    options = ["--shapes", "blocks", "--sizes", "20", "--repeats", "1", "--before", "HEAD"]
    run("large_problems.py", *options, "--output", str(output))
    (record,) = records(output)
    assert (record["size"], record["actions"]) == (20, 40)
    assert {
        f"{command}_seconds_{which}" for command in ("solve", "validate") for which in ("before", "pure", "now")
    } <= {*record}
