"""Commands that are killed at random times end with the same bytes; see benchmarks/kills.py for more of them."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from kills import CODES, INTERRUPTED, KILLED, TOLD, WORKER, complaints, kill, torment_all

SLEEPER = "import time; print('up', flush=True); time.sleep(60)"


def test_commands_survive(tmp_path: Path) -> None:
    reports = torment_all(tmp_path, 4, 1, 1, ["collect", "evaluate"], lambda line: None)
    assert {name: report.wrong for name, report in reports.items()} == {"collect": [], "evaluate": []}
    assert sum(sum(report.kills.values()) for report in reports.values()) == 4


@pytest.mark.parametrize("kind", [KILLED, TOLD, INTERRUPTED, WORKER])
def test_what_is_done_to_a_command_is_done_and_its_traceback_noticed(kind: str) -> None:
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPER], stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    assert kill(process, kind, random.Random(0)) == (kind != WORKER)  # it has none
    if kind == WORKER:
        process.kill()
    errors = process.communicate()[1]
    assert not kill(process, kind, random.Random(0))
    assert any("traceback" in one for one in complaints(process, kind, errors)) == (kind == INTERRUPTED)
    assert (process.returncode in CODES[kind]) == (kind in (KILLED, TOLD, INTERRUPTED))
