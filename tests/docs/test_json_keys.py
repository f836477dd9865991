"""The guide's table of what `--json` prints names every key of it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from page_blocks import ROOT
from page_commands import run

DOMAIN, ROUND = "examples/delivery/domain.pddl", "examples/delivery/round.pddl"
TRAINING = " ".join(f"examples/delivery/training-{number}.pddl" for number in range(1, 6))
TASK = "examples/own_world/own_world.py:task"
COMMANDS = (
    f"rules learn {DOMAIN} {TRAINING} --output my.rules",
    f"rules complete my.rules {DOMAIN} {TRAINING.split()[0]} --output more.rules",
    "rules show my.rules",
    f"rules verify my.rules {DOMAIN} {ROUND}",
    f"solve {DOMAIN} {ROUND} --rules my.rules --plan my.plan",
    f"plan {DOMAIN} {TRAINING.split()[0]}",
    f"validate {DOMAIN} {ROUND} my.plan",
    f"check {TASK} --seeds 1",
    f"collect {TASK} --objects 2 --episodes 6 --output data",
    "rules learn --demonstrations data --output shown.rules",
    "demonstrations check data",
    f"demonstrations replay data --task {TASK}",
    "demonstrations show data --episode 1",
    "domain check examples/own_world/scrapyard.pddl data",
    f"domain learn data --task {TASK} --output learned.pddl",
    f"learn data --task {TASK} --epochs 1 --dagger-rounds 0 --output policy",
    f"run {TASK} --policy expert --objects 1 --explain",
    f"evaluate {TASK} --method expert --objects 1 --episodes 2 --output results.jsonl",
    "compare results.jsonl results.jsonl",
    "methods",
)


def test_the_guide_names_every_key(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    guide = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]*`) \| (.*) \|$", guide, re.MULTILINE)
    for command in COMMANDS:
        code, printed = run([*command.split(), "--json"], tmp_path)
        assert code in (0, 1), printed
        words = command.split()
        name = " ".join(words[:2]) if words[0] in ("rules", "domain") else words[0]
        named = {key for commands, keys in rows if f"`{name}" in commands for key in re.findall(r"`(\w+)`", keys)}
        missing = set(json.loads(printed[-1])) - named
        assert not missing, f"{name} --json prints {missing}, of which the guide says nothing"
