"""The programs in `benchmarks/` run, at the smallest size."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
QUICK = "--episodes 1 --seeds 1 --workers 1"
PROGRAMS = {
    "rules.py": "--shapes blocks --sizes 10 --methods rules --folder work",
    "planning.py": "collection --work work",
    "speed.py": "--repeats 1 --folder work",
    "success.py": f"own-worlds --tasks minigrid {QUICK} --learn=--epochs=1 --folder work",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_benchmark_writes_its_results(program: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "delivery", tmp_path / "collection" / "delivery")
    shutil.copytree(ROOT / "examples" / "camera", tmp_path / "collection" / "camera")
    command = [sys.executable, str(ROOT / "benchmarks" / program), *PROGRAMS[program].split(), "--output", "rows.jsonl"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    origin, *rows = map(json.loads, (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines())
    assert origin["command"].startswith(f"python benchmarks/{program}")
    assert rows
