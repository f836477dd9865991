"""Learning a policy with one command, at tiny size: what it writes and says, and how it goes on when it was stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

import pytest

from bilevel.commands.policy_commands import Learn
from bilevel.demonstrations.collection import open_collection
from bilevel.demonstrations.recording import make_recipe
from bilevel.files import taken_by_another
from bilevel.learning.bilevel import RECIPES, LearningConfig
from bilevel.lowlevel.dagger import DaggerConfig
from bilevel.lowlevel.training import Epoch, Training, TrainingConfig
from bilevel.policies.policy_folder import POLICY, UNFINISHED, WEIGHTS, read_policy
from bilevel.processes import WorkerDied
from command_line import run

EPISODES = 3
EPOCHS = 6
BRIEF = ("--recipe", "paper", "--epochs", EPOCHS)

# The command in a process that ends itself by a signal when it has written so many checkpoints.
ENDING = """
import os, sys
from bilevel import cli
from bilevel.learning import bilevel as learning

number, checkpoints, *arguments = sys.argv[1:]
write, written = learning.write_checkpoint, []

def write_and_end(*given):
    write(*given)
    written.append(given)
    if len(written) == int(checkpoints):
        os.kill(os.getpid(), int(number))

learning.write_checkpoint = write_and_end
cli.main(arguments)
"""
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


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demonstrations")
    recipe, slots = make_recipe("blocks", 1)
    with open_collection(folder, recipe, slots, EPISODES) as collection:
        list(collection.collect(workers=1))
    return folder


def run_program(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def small_practice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best recipe, but with little of everything."""
    practice = DaggerConfig(rounds=2, episodes=2, epochs=2, patience=20)
    small = LearningConfig(hidden=16, training=TrainingConfig(epochs=3), dagger=practice)
    monkeypatch.setattr("bilevel.learning.bilevel.RECIPES", {"best": small})


def test_it_knows_all_recipes() -> None:
    assert set(get_args(get_type_hints(Learn)["recipe"])) == set(RECIPES)


def test_it_learns_a_policy_and_says_so(dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "new" / "policy"
    code, out, err = run(capsys, "learn", dataset, "--output", output, *BRIEF, "--seed", 5)
    assert (code, err) == (0, "")
    saved = read_policy(output)
    assert out.startswith(saved.rules_text)
    assert f"2 rules, a network of {saved.architecture.size} parameters; 3 demonstrations, " in out
    assert f"written to {output} in " in out
    assert sorted(file.name for file in output.iterdir()) == [
        "domain.pddl",
        "policy.json",
        "rules.txt",
        "training.jsonl",
        "weights.safetensors",
    ]
    assert (saved.task, saved.seed, saved.settings["recipe"]) == ("blocks", 5, "paper")
    assert saved.settings["training"]["epochs"] == EPOCHS
    assert saved.summary["demonstrations"]["episodes"] == EPISODES
    assert {"torch", "safetensors", "mujoco", "bilevel"} <= saved.versions.keys()


@pytest.mark.usefixtures("small_practice")
def test_it_practises_and_keeps_the_losses_of_every_epoch(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "policy"
    code, out, _ = run(capsys, "learn", dataset, "--output", output, "--dagger-rounds", "1", "--json")
    assert code == 0
    found, saved = json.loads(out), read_policy(output)
    assert found["digest"] == saved.digest
    assert (found["output"], found["rules"]) == (str(output), [str(rule) for rule in saved.rules])
    assert found.items() >= saved.summary.items()
    lines = [json.loads(line) for line in (output / "training.jsonl").read_text().splitlines()]
    assert [(line["round"], line["epoch"]) for line in lines] == [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2)]
    last = [line["validation_loss"] for line in lines if line["round"] == 1]
    assert min(last) == pytest.approx(saved.summary["validation_loss"])
    assert saved.settings["dagger"]["rounds"] == 1


@pytest.mark.usefixtures("small_practice")
def test_the_same_seed_gives_the_same_policy_for_any_number_of_workers(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, further in (("one", ()), ("two", ("--workers", 2)), ("other", ("--seed", 1))):
        arguments = ("learn", dataset, "--output", tmp_path / name, "--dagger-rounds", 1, *further)
        assert run(capsys, *arguments)[0] == 0
    one, two, other = ((tmp_path / name / WEIGHTS).read_bytes() for name in ("one", "two", "other"))
    assert one == two
    assert one != other


# Stopping and going on


@pytest.fixture(scope="module")
def uninterrupted(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The weights that training without a stop gives."""
    output = tmp_path_factory.mktemp("whole") / "policy"
    done = run_program("-m", "bilevel.cli", "learn", dataset, "--output", output, *BRIEF)
    assert (done.returncode, done.stderr) == (0, "")
    return (output / WEIGHTS).read_bytes()


@pytest.mark.parametrize(
    ("number", "code", "message"),
    [
        (signal.SIGKILL, -signal.SIGKILL, ""),
        (signal.SIGINT, 130, "bilevel: interrupted at training, 3 of 6; run the same command again to go on\n"),
    ],
    ids=["killed", "interrupted"],
)
def test_killed_or_interrupted_it_goes_on_to_the_same_weights(
    number: signal.Signals,
    code: int,
    message: str,
    dataset: Path,
    uninterrupted: bytes,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = tmp_path / "policy"
    arguments = ("learn", dataset, "--output", output, *BRIEF)
    ended = run_program("-c", ENDING, int(number), 4, *arguments)
    assert (ended.returncode, ended.stderr) == (code, message)
    assert [path.name for path in output.iterdir()] == [UNFINISHED]
    trained = count_epochs(monkeypatch)
    assert run(capsys, *arguments)[0] == 0
    assert len(trained) == EPOCHS - 4
    assert (output / WEIGHTS).read_bytes() == uninterrupted
    assert not (output / UNFINISHED).exists()
    assert len((output / "training.jsonl").read_text().splitlines()) == EPOCHS


def count_epochs(monkeypatch: pytest.MonkeyPatch, last: int | None = None) -> list[Epoch]:
    """A list of the epochs trained from now on; after the `last` one comes Ctrl-C."""
    trained: list[Epoch] = []
    learn = Training.learn

    def counted(training: Training, seconds: float) -> Epoch | None:
        if len(trained) == last:
            raise KeyboardInterrupt
        if epoch := learn(training, seconds):
            trained.append(epoch)
        return epoch

    monkeypatch.setattr(Training, "learn", counted)
    return trained


@pytest.mark.usefixtures("small_practice")
def test_stopped_after_practice_it_goes_on_to_the_same_weights(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "learn", dataset, "--output", tmp_path / "whole")[0] == 0
    arguments = ("learn", dataset, "--output", tmp_path / "stopped")
    with pytest.MonkeyPatch.context() as patch:
        count_epochs(patch, last=6)  # of 3 + 2 + 2
        code, _, err = run(capsys, *arguments)
    assert code == 130
    assert err == "bilevel: interrupted at training, round 2, 1 of 2; run the same command again to go on\n"
    with pytest.MonkeyPatch.context() as patch:
        trained = count_epochs(patch)
        assert run(capsys, *arguments)[0] == 0
    assert len(trained) == 1
    weights, same = ((tmp_path / name / WEIGHTS).read_bytes() for name in ("whole", "stopped"))
    assert weights == same


@pytest.mark.usefixtures("small_practice")
def test_a_worker_that_dies_is_no_reason_to_begin_anew(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise WorkerDied("a worker process ended early")

    monkeypatch.setattr("bilevel.learning.bilevel.practise", die)
    code, _, err = run(capsys, "learn", dataset, "--output", tmp_path / "policy")
    assert (code, err) == (2, "bilevel: a worker process ended early; run the same command again to go on\n")


# What is refused


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--epochs", "0"), "--epochs must be at least 1, but is 0"),
        (("--seed", "-1"), "--seed must be at least 0, but is -1"),
        (("--workers", "0"), "--workers must be at least 1, but is 0"),
        (("--dagger-rounds", "-1"), "--dagger-rounds must be at least 0, but is -1"),
    ],
)
def test_arguments_that_make_no_sense_are_one_line(
    arguments: tuple[str, ...], reason: str, dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "learn", dataset, "--output", tmp_path / "policy", *arguments)
    assert (code, err) == (2, f"bilevel: {reason}\n")
    assert not (tmp_path / "policy").exists()


def test_only_new_folders_and_unfinished_policies_are_written_to(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "finished").mkdir()
    (tmp_path / "finished" / POLICY).write_text("{}")
    for output, reason in (
        (tmp_path / "file", "this is a file; choose a new folder as --output"),
        (tmp_path / "file" / "policy", "cannot be written: Not a directory"),
        (tmp_path, "holds other files; choose a new folder as --output"),
        (tmp_path / "finished", "already holds a policy; choose another --output or remove it"),
    ):
        code, _, err = run(capsys, "learn", dataset, "--output", output)
        assert (code, err) == (2, f"bilevel: {output}: {reason}\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "finished"]


def test_a_policy_is_learned_by_one_process_at_a_time(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "policy"
    (output / UNFINISHED).mkdir(parents=True)
    handle = os.open(output, os.O_RDONLY)
    try:
        assert not taken_by_another(handle)
        code, _, err = run(capsys, "learn", dataset, "--output", output, *BRIEF)
    finally:
        os.close(handle)
    told = "another process is learning here; wait for it or choose another --output"
    assert (code, err) == (2, f"bilevel: {output}: {told}\n")
    assert run(capsys, "learn", dataset, "--output", output, *BRIEF)[0] == 0


def test_demonstrations_that_cannot_be_learned_from_are_one_line(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "learn", tmp_path / "none", "--output", tmp_path / "policy")
    assert (code, err) == (2, f"bilevel: {tmp_path / 'none'}: no data set: there is no manifest.json in it\n")
    broken = Path(shutil.copytree(dataset, tmp_path / "broken"))
    (broken / "episode-00001.npz").unlink()
    code, _, err = run(capsys, "learn", broken, "--output", tmp_path / "policy")
    assert (code, err) == (2, f"bilevel: {broken / 'episode-00001.npz'}: missing\n")


def test_training_that_diverges_gives_no_policy(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wild = LearningConfig(hidden=8, training=TrainingConfig(epochs=1, learning_rate=float("inf")))
    monkeypatch.setattr("bilevel.learning.bilevel.RECIPES", {"best": wild})
    code, _, err = run(capsys, "learn", dataset, "--output", tmp_path / "policy")
    assert code == 2
    assert "training diverged" in err
    assert not (tmp_path / "policy" / POLICY).exists()


def test_without_torch_it_names_the_extra(dataset: Path, tmp_path: Path) -> None:
    found = run_program("-c", WITHOUT_TORCH, "learn", dataset, "--output", tmp_path / "policy")
    assert found.returncode == 2
    assert found.stderr == "bilevel: torch is missing; install it with: pip install 'bilevel[learning]'\n"


# TensorBoard


def test_without_tensorboard_it_names_the_extra_before_it_begins(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    monkeypatch.delitem(sys.modules, "torch.utils.tensorboard", raising=False)
    code, _, err = run(capsys, "learn", dataset, "--output", tmp_path / "policy", "--tensorboard", tmp_path / "board")
    assert code == 2
    assert err == "bilevel: tensorboard is missing; install it with: pip install 'bilevel[tensorboard]'\n"
    assert not list(tmp_path.iterdir())


class Board:
    """Takes the place of TensorBoard's writer."""

    notes: list[tuple[str, float, int]]

    def __init__(self, folder: str) -> None:
        Board.notes = []
        Path(folder).mkdir()

    def __enter__(self) -> Board:
        return self

    def __exit__(self, *_: object) -> None: ...

    def flush(self) -> None: ...

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        Board.notes.append((tag, value, step))


@pytest.mark.usefixtures("small_practice")
def test_tensorboard_is_told_the_losses_of_every_epoch(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module: Any = ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = Board
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    output, board = tmp_path / "policy", tmp_path / "board"
    assert run(capsys, "learn", dataset, "--output", output, "--dagger-rounds", 1, "--tensorboard", board)[0] == 0
    lines = [json.loads(line) for line in (output / "training.jsonl").read_text().splitlines()]
    stages = {0: "training", 1: "training, round 1"}
    assert Board.notes == [
        (f"{stages[line['round']]}/{kind} loss", line[f"{kind}_loss"], line["epoch"])
        for line in lines
        for kind in ("training", "validation")
    ]
