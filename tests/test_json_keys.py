"""The guide's table of what commands print with --json names what they print."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import tiny_task
from command_line import run
from tiny_demonstrations import shown
from tiny_policies import learned_folder

GUIDE = Path(__file__).parents[1] / "docs" / "guide.md"
TINY = f"{tiny_task.__file__}:TINY"
ONE = ("--objects", 1, "--episodes", 1, "--output")


def documented(command: str) -> set[str]:
    """The keys that the guide names, but for those of some options."""
    (cell,) = re.findall(rf"^\| `{command}` \| (.*) \|$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    return set(re.findall(r"`(\w+)`", re.split("; with `--(?:learn-domain|replay)`", cell)[0]))


@pytest.mark.parametrize("name", ["check", "collect", "learn", "run", "evaluate", "methods"])
def test_the_guide_names_the_keys(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = {
        "check": (TINY, "--objects", 1, "--seeds", 1),
        "collect": (TINY, *ONE, tmp_path / "data"),
        "learn": (shown().folder, "--task", TINY, "--epochs", 1, "--dagger-rounds", 0, "--output", tmp_path / "policy"),
        "run": (TINY, "--objects", 1, "--policy", learned_folder(), "--explain"),
        "evaluate": (TINY, "--policy", learned_folder(), *ONE, tmp_path / "results.jsonl"),
        "methods": (),
    }
    found = json.loads(run(capsys, name, *words[name], "--json")[1])
    inner = {"evaluate": found.get("total"), "methods": (found.get("methods") or [None])[0]}
    keys = {*found, *(inner.get(name) or {})}
    if name == "check":
        keys |= {"error", "message"}  # of findings, which there need not be
    assert documented(name) == keys
