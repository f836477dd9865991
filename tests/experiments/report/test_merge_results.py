"""What several runs found, in one file: as if one run had done it all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from merge_results import main, merge_curves, merge_findings
from msgspec.structs import replace
from synthetic import MACHINE, about, row, size
from synthetic_curves import curves_like

from bilevel.experiments.hard.curves import Curves, read_curves
from bilevel.experiments.reproduction.findings import Findings, read_findings
from bilevel.experiments.reproduction.folder import Experiment
from bilevel.symbolic.domain import BadInput

ROWS = [
    row(task, variant, seed, [size(1, 10), size(3, 8 + seed)])
    for task in ("blocks", "colour")
    for variant in ("bison", "expert")
    for seed in (0, 1)
]


def test_parts_of_findings_make_the_whole() -> None:
    whole = Findings(about(), ROWS, [])
    halves = [Findings(about(), ROWS[1::2], []), Findings(about(), ROWS[::2], [])]
    assert merge_findings(halves).lines() == whole.lines()
    few = [replace(one, sizes=one.sizes[:1]) for one in ROWS]
    assert merge_findings([Findings(about(), few, []), halves[0], halves[1]]).lines() == whole.lines()


def test_parts_of_curves_make_the_whole() -> None:
    made_up = curves_like(["teleports", "objects"], ["blocks", "gacha"])
    whole = merge_curves([made_up])  # in the order of a run
    assert sorted(whole.lines().splitlines()) == sorted(made_up.lines().splitlines())
    parts = [Curves(whole.about, whole.curves[::3]), Curves(whole.about, [*whole.curves[1::3], *whole.curves[2::3]])]
    assert merge_curves(parts).lines() == whole.lines()
    points = [
        replace(whole.curves[0], points=part) for part in (whole.curves[0].points[3:], whole.curves[0].points[:3])
    ]
    pieces = [Curves(whole.about, [one]) for one in (*points, *whole.curves[1:])]
    assert merge_curves(pieces).lines() == whole.lines()


def test_how_all_of_it_came_about_is_told() -> None:
    other = {**MACHINE, "cores": 16}
    later = about(command="bilevel reproduce --methods pure-nn", machines=[MACHINE, other], dates=["2026-11-18"])
    merged = merge_findings([Findings(about(), ROWS[:1], []), Findings(later, ROWS[1:2], [])]).about
    assert merged.command == "bilevel reproduce --output build/all; bilevel reproduce --methods pure-nn"
    assert (merged.machines, merged.dates) == ([MACHINE, other], ["2026-11-18"])


def test_what_does_not_go_together_is_refused() -> None:
    other = about(experiment=Experiment(epochs=3))
    with pytest.raises(BadInput, match="different experiments"):
        merge_findings([Findings(about(), ROWS, []), Findings(other, ROWS, [])])
    with pytest.raises(BadInput, match="bison on blocks, seed 0: two different policies"):
        merge_findings([Findings(about(), [one], []) for one in (ROWS[0], replace(ROWS[0], digest="other"))])


def test_files_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    whole, curves = Findings(about(), ROWS, []), curves_like(["teleports"], ["blocks"])
    paths = {name: tmp_path / name for name in ("a", "b", "c", "d", "merged")}
    paths["a"].write_text(Findings(about(), ROWS[:3], []).lines())
    paths["b"].write_text(Findings(about(), ROWS[3:], []).lines())
    paths["c"].write_text(curves.lines())
    monkeypatch.setattr(sys, "argv", ["merge_results.py", *map(str, (paths["a"], paths["b"], paths["merged"]))])
    main()
    assert read_findings(paths["merged"]).lines() == whole.lines()
    monkeypatch.setattr(sys, "argv", ["merge_results.py", *map(str, (paths["c"], paths["merged"]))])
    main()
    assert read_curves(paths["merged"]).lines() == merge_curves([curves]).lines()
    monkeypatch.setattr(sys, "argv", ["merge_results.py", *map(str, (paths["c"], paths["a"], paths["merged"]))])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "not a line that `bilevel benchmark hard` wrote" in capsys.readouterr().err
