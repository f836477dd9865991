"""From two demonstrations of each task come the same rules on every machine, and the expert succeeds in both.

`python tests/conformance/test_golden_rules.py` writes the golden files anew.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import bilevel
from bilevel.tabletop import TASKS

GOLDEN = Path(__file__).parent / "golden"


def learned_rules(name: str, folder: Path) -> str:
    bilevel.collect(TASKS[name], folder / "data", objects=2, episodes=2, seed=0)
    words = "rules", "learn", "--demonstrations", folder / "data", "--output", folder / "rules"
    subprocess.run([sys.executable, "-m", "bilevel", *map(str, words)], check=True, capture_output=True)
    lines = (folder / "rules").read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("#"))


@pytest.mark.parametrize("name", TASKS)
def test_the_rules_of_a_task_stay_the_same(name: str, tmp_path: Path) -> None:
    assert learned_rules(name, tmp_path) == (GOLDEN / f"{name}.rules").read_text(encoding="utf-8")


if __name__ == "__main__":
    import tempfile

    for task in TASKS:
        with tempfile.TemporaryDirectory() as scratch:
            (GOLDEN / f"{task}.rules").write_text(learned_rules(task, Path(scratch)), encoding="utf-8")
