"""Learning a policy with one command, at tiny size: what it writes and says, and how it goes on when it was stopped."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import tiny_task
from bilevel.learning.dagger import DaggerConfig
from bilevel.learning.networks import PRESETS, LearningConfig
from bilevel.lowlevel.training import TrainingConfig
from bilevel.metrics import LOGS, Log
from bilevel.policies.folder import UNFINISHED, WEIGHTS, read_policy
from command_line import run
from tiny_demonstrations import EPISODES, shown

TASK = ("--task", f"{tiny_task.__file__}:TINY")
BRIEF = ("--preset", "paper", "--epochs", 6)

# The command in a process that ends itself by a signal when it has written a checkpoint.
ENDING = """
import os, sys
from bilevel import cli
from bilevel.learning import networks

write = networks._write_round

def write_and_end(*given):
    write(*given)
    os.kill(os.getpid(), int(sys.argv[1]))

networks._write_round = write_and_end
cli.main(sys.argv[2:])
"""


@pytest.fixture(scope="module")
def dataset() -> Path:
    folder = shown().folder
    assert folder is not None
    return folder


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best preset, but with little of everything."""
    dagger = DaggerConfig(rounds=2, episodes=2, epochs=2, patience=15)
    small = LearningConfig(hidden=8, training=TrainingConfig(epochs=3), dagger=dagger)
    monkeypatch.setitem(PRESETS, "best", small)


def test_it_learns_a_policy_and_says_so(dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output, seed = tmp_path / "new" / "policy", 10**30  # larger than torch takes
    options = ("--hidden", 8, "--batch-size", 16, "--learning-rate", 0.01, "--device", "cpu", "--seed", seed)
    code, out, err = run(capsys, "learn", dataset, "--output", output, *TASK, *BRIEF, *options)
    assert (code, err) == (0, "")
    found = read_policy(output)
    assert out.startswith(found.texts()["rules.txt"])
    assert f"2 rules, a network of {found.parameters} parameters; {EPISODES} demonstrations, " in out
    assert f"written to {output} in " in out
    files = ["domain.pddl", "policy.json", "rules.txt", "training.jsonl", "training.png", "weights.safetensors"]
    assert sorted(file.name for file in output.iterdir()) == files
    card = found.card
    assert (card.task, card.seed, card.settings["preset"], card.switches) == ("tiny", seed, "paper", [2])
    assert (card.network.hidden, card.settings["hidden"], card.summary["device"]) == (8, 8, "cpu")
    training = {"epochs": 6, "updates": 0, "batch": 16, "learning_rate": 0.01, "device": "cpu"}
    assert training.items() <= card.settings["training"].items()
    assert min(card.longest["pick"], card.longest["put"]) > 3
    assert {"torch", "safetensors", "numpy", "bilevel"} <= card.versions.keys()


@pytest.mark.usefixtures("little")
def test_dagger_is_part_of_it_and_all_is_in_the_json_and_the_log(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[tuple[dict[str, float], int]] = []

    @contextmanager
    def noted(place: str, settings: Mapping[str, Any]) -> Iterator[Log]:
        assert (place, settings["task"], settings["training"]["epochs"]) == ("here", "tiny", 3)
        yield lambda values, step: notes.append((dict(values), step))

    monkeypatch.setitem(LOGS, "tensorboard", noted)
    output = tmp_path / "policy"
    options = ("--output", output, *TASK, "--dagger-rounds", 1, "--log", "tensorboard=here", "--json")
    code, out, _ = run(capsys, "learn", dataset, *options)
    assert code == 0
    told, found = json.loads(out), read_policy(output)
    assert (told["output"], told["digest"]) == (str(output), found.digest)
    assert told["rules"] == [str(rule) for rule in found.rules]
    assert told.items() >= found.card.summary.items()
    lines = [json.loads(line) for line in (output / "training.jsonl").read_text().splitlines()]
    assert [(line["round"], line.get("number")) for line in lines] == [
        (0, 1),
        (0, 2),
        (0, 3),
        (1, None),
        (1, 1),
        (1, 2),
    ]
    assert [step for _, step in notes] == [1, 2, 3, 3, 4, 5]
    dagger = lines.pop(3)
    assert notes.pop(3) == ({"DAgger/success rate": dagger["successes"] / 2, "DAgger/round": 1}, 3)
    assert [(values["loss/training"], values["loss/validation"], values["learning rate"]) for values, _ in notes] == [
        (line["training_loss"], line["validation_loss"], line["learning_rate"]) for line in lines
    ]


def test_options_for_few_demonstrations_are_used_and_kept(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"put": frozenset([0])}
    monkeypatch.setattr("bilevel.learning.learn.irrelevant_arguments", lambda samples, encoding: found)
    options = ("--updates", 200, "--hidden", 4, "--symmetries", "on", "--relevance", "on")
    code, out, _ = run(capsys, "learn", dataset, "--output", tmp_path / "policy", *TASK, *BRIEF, *options)
    card = read_policy(tmp_path / "policy").card
    assert code == 0
    assert {"updates": 200, "symmetries": True}.items() <= card.settings["training"].items()
    assert card.summary["irrelevant"] == card.spec["untold"] == {"put": ["?p"]}
    assert "\nleft out, as it plays no part in how the action is done: ?p in put\n" in out


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_killed_or_interrupted_it_goes_on_to_the_same_weights(
    number: signal.Signals, code: int, dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("learn", dataset, *TASK, *BRIEF, "--output", tmp_path / "policy")
    command = [sys.executable, "-c", ENDING, str(int(number)), *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, len(ended.stderr.splitlines())) == (code, number is signal.SIGINT), ended.stderr
    assert [path.name for path in (tmp_path / "policy").iterdir()] == [UNFINISHED]
    assert "begun here with hidden 64 instead of 8" in run(capsys, *arguments, "--hidden", 8)[2]
    assert run(capsys, *arguments)[0] == 0
    assert run(capsys, *arguments[:-1], tmp_path / "uninterrupted")[0] == 0
    assert (tmp_path / "policy" / WEIGHTS).read_bytes() == (tmp_path / "uninterrupted" / WEIGHTS).read_bytes()
    assert not (tmp_path / "policy" / UNFINISHED).exists()
    assert "already holds a policy" in run(capsys, *arguments)[2]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--epochs", 0), "epochs"),
        (("--learning-rate", "nan"), "learning-rate"),
        (("--hidden", 10**9), "--hidden must be from 1 to 100000"),
        (("--device", "tpu"), "tpu"),
        (("--log", "paper=here"), "--log takes tensorboard=DIR or wandb=PROJECT, not 'paper=here'"),
        (("--method", "magic"), "unknown method 'magic'; known methods: bison, "),
        (("--method", "expert"), "the method 'expert' is not learned: `bilevel evaluate --method expert` runs it"),
        (("--from-episodes", "nowhere.jsonl"), "--from-episodes is for completing rules: add --completion on"),
        (("--learning-rate", 1e30), "training diverged: its loss is not finite"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[object, ...], reason: str
) -> None:
    command = ("learn", dataset, "--output", tmp_path / "policy", *TASK, "--preset", "paper", "--epochs", 2)
    code, _, err = run(capsys, *command, *options)
    assert (code, err.count("\n"), reason in err) == (2, 1, True), err
    assert not (tmp_path / "policy" / "policy.json").exists()


def test_without_a_gpu_there_is_none(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    err = run(capsys, "learn", dataset, "--output", tmp_path / "policy", *TASK, "--device", "cuda")[2]
    assert "there is no GPU here that torch can use; train on cpu or auto\n" in err
