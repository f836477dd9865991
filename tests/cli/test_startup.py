"""Commands load what they need when they need it: neither help nor `solve` loads numbers, pictures or a simulator."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bilevel.tabletop.problems import domain_text

HEAVY = {"numpy", "torch", "mujoco", "gymnasium", "msgspec", "matplotlib", "pandas", "joblib", "asyncio", "safetensors"}
RULES = """# Rules for the domain blocks
1: holding(?b) & clear(?p) & goal at(?b, ?p) -> place(?b, ?p)
2: clear(?b) & clear(?p) & gripper-free() & goal at(?b, ?p) -> pick(?b)
"""
PROBLEM = """(define (problem small) (:domain blocks) (:objects b1 - block p1 - place)
  (:init (clear b1) (clear p1) (gripper-free)) (:goal (at b1 p1)))"""
PLAN = "(pick b1)\n(place b1 p1)\n"
FILES = {"domain.pddl": domain_text("blocks"), "problem.pddl": PROBLEM, "rules": RULES, "small.plan": PLAN}
FIND = """import sys
from bilevel import cli
try:
    cli.main(sys.argv[1:])
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    "command",
    [
        "--version",
        "--help",
        "evaluate --help",
        "solve domain.pddl problem.pddl --rules rules --plan new.plan",
        "validate domain.pddl problem.pddl small.plan",
        "plan domain.pddl problem.pddl",
        "rules show rules",
    ],
)
def test_what_needs_no_numbers_and_no_pictures_loads_nothing_heavy(tmp_path: Path, command: str) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    words = [sys.executable, "-c", FIND, *command.split()]
    run = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = set(run.stderr.splitlines()[-1].split())
    assert HEAVY & {name.split(".")[0] for name in loaded} == set()
    if command.startswith(("solve", "validate")):
        assert not any(name.startswith(("bilevel.planning", "bilevel.tasks", "bilevel.tabletop")) for name in loaded)


@pytest.mark.parametrize(
    ("typed", "completions"),
    [
        ("bilevel ", {"policies", "evaluate", "rules"}),
        ("bilevel run gacha --", {"--objects", "--video"}),
        ("bilevel learn --preset ", {"best", "paper"}),
    ],
)
def test_bash_completes_commands_options_and_values(typed: str, completions: set[str]) -> None:
    asked = {"_BILEVEL_COMPLETE": "bash_complete", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split(" ")) - 1)}
    command = [sys.executable, "-m", "bilevel"]
    shown = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True, check=True).stdout
    assert completions <= {line.partition(",")[2] for line in shown.splitlines()}
