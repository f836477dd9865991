"""The benchmark of proposed predicates runs, at its smallest: from demonstrations to policies that are measured."""

from __future__ import annotations

from pathlib import Path

import proposed_predicates
import pytest

import tiny_task
from tiny_demonstrations import QUICK


def test_policies_are_learned_with_proposed_predicates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = proposed_predicates.Setting(f"{tiny_task.__file__}:TINY", sizes=(1, 2))
    monkeypatch.setitem(proposed_predicates.SETTINGS, "tiny", setting)
    rows = list(proposed_predicates.run("tiny", 10, 1, 1, tmp_path, QUICK))
    assert [(row["task"], row["objects"], row["episodes"]) for row in rows] == [("tiny", 1, 1), ("tiny", 2, 1)]
    for row in rows:
        assert {"near(parcel, spot)", "holding(parcel)"} <= set(row["predicates"])
        held_out = row["held_out"]
        assert held_out["agreeing"] == held_out["actions"] >= 10
        assert held_out["solved"] == 2
        assert str(tmp_path) not in str(row)
    assert (tmp_path / "policy" / "rules.txt").read_text(encoding="utf-8").count("near(") >= 2
