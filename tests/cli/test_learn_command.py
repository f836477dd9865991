"""`bilevel learn`, at tiny size: its options reach the policy, it goes on where it was stopped, and what it refuses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tiny_task
from bilevel.policies.folder import UNFINISHED, WEIGHTS, read_policy
from command_line import refused, run_json, run_well
from tiny_demonstrations import shown

TASK = ("--task", f"{tiny_task.__file__}:TINY")
BRIEF = ("--preset", "paper", "--epochs", 6)
WITHOUT_TORCH = """
import sys
from bilevel import cli

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name=name)

sys.meta_path.insert(0, NoTorch())
cli.main(sys.argv[1:])
"""


def test_options_of_training_are_used_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "policy"
    options = ("--hidden", 8, "--batch-size", 16, "--learning-rate", 0.01, "--symmetries", "on", "--seed", 2**62)
    told = run_json(capsys, "learn", shown().folder, "--output", output, *TASK, *BRIEF, *options)
    found = read_policy(output)
    card = found.card
    assert (told["digest"], told["rules"]) == (found.digest, [str(rule) for rule in found.rules])
    assert (card.task, card.seed, card.settings["preset"]) == ("tiny", 2**62, "paper")
    assert (card.network.hidden, card.settings["hidden"]) == (8, 8)
    training = {"epochs": 6, "updates": 0, "batch": 16, "learning_rate": 0.01, "symmetries": True}
    assert training.items() <= card.settings["training"].items()
    assert {path.name for path in output.iterdir()} >= {"domain.pddl", "rules.txt", "training.jsonl", WEIGHTS}


def test_a_killed_command_goes_on_to_the_same_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("learn", shown().folder, *TASK, "--preset", "paper", "--epochs", 30, "--output")
    command = [sys.executable, "-m", "bilevel", *map(str, words), str(tmp_path / "killed")]
    process = subprocess.Popen(command, start_new_session=True)
    while process.poll() is None and not (tmp_path / "killed" / UNFINISHED).exists():
        time.sleep(0.01)
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for name in ("killed", "whole"):
        run_well(capsys, *words, tmp_path / name)
    assert (tmp_path / "killed" / WEIGHTS).read_bytes() == (tmp_path / "whole" / WEIGHTS).read_bytes()
    assert "already holds a policy" in refused(capsys, *words, tmp_path / "whole")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--task", "nowhere:task"), "nowhere:task: there is no module 'nowhere'; is it installed?"),
        (("--method", "magic"), "unknown method 'magic'; known methods: bison, "),
        (("--method", "expert"), "the method 'expert' is not learned"),
        (("--hidden", 10**9), "--hidden must be "),
        (("--log", "paper=here"), "--log takes tensorboard=DIR or wandb=PROJECT, not 'paper=here'"),
        ((*TASK, "--preset", "paper", "--epochs", 2, "--learning-rate", 1e30), "training diverged: "),
    ],
)
def test_what_makes_no_sense_is_one_line(
    options: tuple[object, ...], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reason in refused(capsys, "learn", shown().folder, "--output", tmp_path / "policy", *options)


def test_without_torch_it_names_the_extra(tmp_path: Path) -> None:
    words = ["learn", str(shown().folder), "--output", str(tmp_path / "policy")]
    command = [sys.executable, "-c", WITHOUT_TORCH, *words]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    line = "error: No module named 'torch'; install it with: pip install 'bilevel[learning]'\n"
    assert (found.returncode, found.stderr) == (2, line)
