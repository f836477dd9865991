"""Learning a policy with one command, at tiny size: what it writes and says, and how it goes on when it was stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import tiny_task
from bilevel.commands.policy_commands import Learn
from bilevel.files import taken_by_another
from bilevel.learning.dagger import DaggerConfig
from bilevel.learning.networks import PRESETS, LearningConfig
from bilevel.lowlevel.training import Epoch, Training, TrainingConfig
from bilevel.metrics import LOGS, Log
from bilevel.policies.policy_folder import POLICY, UNFINISHED, WEIGHTS, read_policy
from bilevel.policies.recovery import Recovery
from bilevel.processes import WorkerDied
from command_line import run
from tiny_demonstrations import EPISODES, shown
from tiny_task import TINY_ACTING

EPOCHS = 6
GO_ON = "run the same command again to go on"
TASK = ("--task", f"{tiny_task.__file__}:TINY")
BRIEF = ("--preset", "paper", "--epochs", EPOCHS)

# The command in a process that ends itself by a signal when it has written so many checkpoints.
ENDING = """
import os, sys
from bilevel import cli
from bilevel.learning import networks

number, checkpoints, *arguments = sys.argv[1:]
write, written = networks.write_checkpoint, []

def write_and_end(*given):
    write(*given)
    written.append(given)
    if len(written) == int(checkpoints):
        os.kill(os.getpid(), int(number))

networks.write_checkpoint = write_and_end
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
def dataset() -> Path:
    folder = shown().folder
    assert folder is not None
    return folder


def run_program(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best preset, but with little of everything."""
    dagger = DaggerConfig(rounds=2, episodes=2, epochs=2, patience=15)
    small = LearningConfig(hidden=8, training=TrainingConfig(epochs=3), dagger=dagger)
    monkeypatch.setattr("bilevel.learning.networks.PRESETS", {"best": small})


def test_it_knows_all_presets() -> None:
    assert set(get_args(get_type_hints(Learn)["preset"])) == set(PRESETS)


def test_a_seed_may_be_larger_than_torch_takes(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = 10**30
    code, _, err = run(capsys, "learn", dataset, "--output", tmp_path / "policy", *TASK, *BRIEF, "--seed", seed)
    assert (code, err) == (0, "")
    assert read_policy(tmp_path / "policy").card.seed == seed


def test_it_learns_a_policy_and_says_so(dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "new" / "policy"
    code, out, err = run(capsys, "learn", dataset, "--output", output, *TASK, *BRIEF, "--seed", 5)
    assert (code, err) == (0, "")
    found = read_policy(output)
    assert out.startswith(found.texts()["rules.txt"])
    assert f"2 rules, a network of {found.parameters} parameters; {EPISODES} demonstrations, " in out
    assert f"written to {output} in " in out
    assert sorted(file.name for file in output.iterdir()) == [
        "domain.pddl",
        "policy.json",
        "rules.txt",
        "training.jsonl",
        "training.png",
        "weights.safetensors",
    ]
    assert (found.card.task, found.card.seed, found.card.settings["preset"]) == ("tiny", 5, "paper")
    assert found.card.settings["training"]["epochs"] == EPOCHS
    assert (found.card.recovery, found.card.switches) == (Recovery(), [2])
    assert set(found.card.longest) == {"pick", "put"}
    assert min(found.card.longest.values()) > 3
    assert {"torch", "safetensors", "numpy", "bilevel"} <= found.card.versions.keys()


@pytest.mark.usefixtures("little")
def test_dagger_is_part_of_it_and_all_is_in_the_json(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "policy"
    code, out, _ = run(capsys, "learn", dataset, "--output", output, *TASK, "--dagger-rounds", "1", "--json")
    assert code == 0
    told, found = json.loads(out), read_policy(output)
    assert told["digest"] == found.digest
    assert (told["output"], told["rules"]) == (str(output), [str(rule) for rule in found.rules])
    assert told.items() >= found.card.summary.items()
    lines = [json.loads(line) for line in (output / "training.jsonl").read_text().splitlines()]
    found_at = [(line["round"], line.get("number")) for line in lines]
    assert found_at == [(0, 1), (0, 2), (0, 3), (1, None), (1, 1), (1, 2)]
    assert (lines[3]["rollouts"], lines[3].keys()) == (2, {"round", "rollouts", "successes"})
    assert found.card.settings["dagger"]["rounds"] == 1


@pytest.mark.usefixtures("little")
def test_without_the_task_or_an_expert_that_can_be_asked_it_says_that_there_is_no_dagger(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "learn", dataset, "--output", tmp_path / "policy")
    assert (code, err) == (
        0,
        "the task 'tiny' is not registered here (see --task): learning without DAgger\n",
    )
    lines = [json.loads(line) for line in (tmp_path / "policy" / "training.jsonl").read_text().splitlines()]
    assert {line["round"] for line in lines} == {0}
    assert run(capsys, "learn", dataset, "--output", tmp_path / "quiet", "--dagger-rounds", 0)[2] == ""

    acting, folder = f"{tiny_task.__file__}:TINY_ACTING", shown(TINY_ACTING).folder
    code, _, err = run(capsys, "learn", folder, "--output", tmp_path / "acting", "--task", acting)
    assert (code, err) == (
        0,
        "the expert of the task 'tiny-acting' cannot be asked for controls: learning without DAgger\n",
    )


# Stopping and going on


@pytest.mark.parametrize(
    ("number", "code", "message"),
    [
        (signal.SIGKILL, -signal.SIGKILL, ""),
        (signal.SIGINT, 130, f"bilevel: interrupted; learning came to training, 3 of 6; {GO_ON}\n"),
    ],
    ids=["killed", "interrupted"],
)
def test_killed_or_interrupted_it_goes_on_to_the_same_weights(
    number: signal.Signals,
    code: int,
    message: str,
    dataset: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = tmp_path / "policy"
    arguments = ("learn", dataset, *TASK, *BRIEF, "--output")
    ended = run_program("-c", ENDING, int(number), 4, *arguments, output)
    assert (ended.returncode, ended.stderr) == (code, message)
    assert [path.name for path in output.iterdir()] == [UNFINISHED]
    trained = count_epochs(monkeypatch)
    assert run(capsys, *arguments, output)[0] == 0
    assert len(trained) == EPOCHS - 4
    assert run(capsys, *arguments, tmp_path / "uninterrupted")[0] == 0
    assert (output / WEIGHTS).read_bytes() == (tmp_path / "uninterrupted" / WEIGHTS).read_bytes()
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


@pytest.mark.usefixtures("little")
def test_stopped_after_dagger_it_goes_on_to_the_same_weights(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "learn", dataset, *TASK, "--output", tmp_path / "whole")[0] == 0
    arguments = ("learn", dataset, *TASK, "--output", tmp_path / "stopped")
    with pytest.MonkeyPatch.context() as patch:
        count_epochs(patch, last=6)  # of 3 + 2 + 2
        code, _, err = run(capsys, *arguments)
    assert code == 130
    assert err == f"bilevel: interrupted; learning came to training, round 2, 1 of 2; {GO_ON}\n"
    with pytest.MonkeyPatch.context() as patch:
        trained = count_epochs(patch)
        assert run(capsys, *arguments)[0] == 0
    assert len(trained) == 1
    weights, same = ((tmp_path / name / WEIGHTS).read_bytes() for name in ("whole", "stopped"))
    assert weights == same


@pytest.mark.usefixtures("little")
def test_a_worker_that_dies_is_no_reason_to_begin_anew(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise WorkerDied("a worker process ended early")

    monkeypatch.setattr("bilevel.learning.networks.dagger_rollouts", die)
    code, _, err = run(capsys, "learn", dataset, *TASK, "--output", tmp_path / "policy")
    assert (code, len(err.splitlines())) == (2, 1)
    assert err.startswith("bilevel: a worker process ended early; ")
    assert err.endswith("run the same command again to go on\n")


def test_one_that_is_killed_after_the_policy_and_before_the_rest_is_ended(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = "learn", dataset, "--output", tmp_path / "policy", *TASK, *BRIEF
    with monkeypatch.context() as patched:
        patched.setattr("bilevel.commands.unfinished.finish", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        assert run(capsys, *command)[0] == 130
    written = {path.name: path.read_bytes() for path in (tmp_path / "policy").iterdir() if path.is_file()}
    (tmp_path / "policy" / "training.png").unlink(missing_ok=True)
    code, _, err = run(capsys, *command, "--hidden", "8")
    assert (code, "begun here with hidden 64 instead of 8" in err) == (2, True), err
    assert run(capsys, *command)[0] == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "policy").iterdir()} == written
    assert "already holds a policy" in run(capsys, *command)[2]


# What is refused


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--epochs", "0"), "--epochs must be at least 1, but is 0"),
        (("--seed", "-1"), "--seed must be at least 0, but is -1"),
        (("--workers", "0"), "--workers must be at least 1, but is 0"),
        (("--dagger-rounds", "-1"), "--dagger-rounds must be at least 0, but is -1"),
        (("--task", "nowhere:task"), "nowhere:task: there is no module 'nowhere'; is it installed?"),
        (("--method", "magic"), "unknown method 'magic'; known methods: bison, "),
        (("--from-episodes", "nowhere.jsonl"), "nowhere.jsonl: there is no such file"),
        (
            ("--method", "expert"),
            "the method 'expert' is not learned: `bilevel evaluate --method expert` runs it as it is",
        ),
    ],
)
def test_arguments_that_make_no_sense_are_one_line(
    arguments: tuple[str, ...], reason: str, dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "learn", dataset, "--output", tmp_path / "policy", *arguments)
    assert (code, len(err.splitlines())) == (2, 1)
    assert err.startswith(f"bilevel: {reason}")
    assert not (tmp_path / "policy").exists()


def test_only_new_folders_and_unfinished_policies_are_written_to(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "finished").mkdir()
    (tmp_path / "finished" / POLICY).write_text("{}")
    (tmp_path / UNFINISHED).mkdir()  # a folder of this name, but of somebody else
    for output, reason in (
        (tmp_path / "file", "this is a file; choose a new folder as --output"),
        (tmp_path / "file" / "policy", "cannot be written: Not a directory"),
        (tmp_path, "holds other files; choose a new folder as --output"),
        (tmp_path / "finished", "already holds a policy; choose another --output or remove it"),
    ):
        code, _, err = run(capsys, "learn", dataset, *TASK, "--output", output)
        assert (code, err) == (2, f"bilevel: {output}: {reason}\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "finished", UNFINISHED]


def test_a_policy_is_learned_by_one_process_at_a_time(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "policy"
    (output / UNFINISHED).mkdir(parents=True)
    handle = os.open(output, os.O_RDONLY)
    try:
        assert not taken_by_another(handle)
        code, _, err = run(capsys, "learn", dataset, "--output", output, *TASK, *BRIEF)
    finally:
        os.close(handle)
    told = "another process is learning here; wait for it or choose another --output"
    assert (code, err) == (2, f"bilevel: {output}: {told}\n")
    assert run(capsys, "learn", dataset, "--output", output, *TASK, *BRIEF)[0] == 0


def test_demonstrations_that_cannot_be_learned_from_are_one_line(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "learn", tmp_path / "none", "--output", tmp_path / "policy")
    assert (code, err) == (2, f"bilevel: {tmp_path / 'none'}: no data set: there is no manifest.json in it\n")
    broken = Path(shutil.copytree(dataset, tmp_path / "broken"))
    (broken / "episode-00001.npz").unlink()
    code, _, err = run(capsys, "learn", broken, "--output", tmp_path / "policy", *TASK)
    assert (code, err) == (2, f"bilevel: {broken / 'episode-00001.npz'}: missing\n")


def test_without_torch_it_names_the_extra(dataset: Path, tmp_path: Path) -> None:
    found = run_program("-c", WITHOUT_TORCH, "learn", dataset, "--output", tmp_path / "policy")
    assert found.returncode == 2
    assert found.stderr == "bilevel: torch is missing; install it with: pip install 'bilevel[learning]'\n"


# Options of training


def test_options_of_training_are_used_and_kept(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--hidden", 8, "--batch-size", 16, "--learning-rate", 0.01, "--device", "cpu")
    assert run(capsys, "learn", dataset, "--output", tmp_path / "policy", *TASK, *BRIEF, *options)[0] == 0
    card = read_policy(tmp_path / "policy").card
    assert (card.network.hidden, card.settings["hidden"], card.summary["device"]) == (8, 8, "cpu")
    training = {"epochs": EPOCHS, "updates": 0, "batch": 16, "learning_rate": 0.01, "device": "cpu"}
    assert training.items() <= card.settings["training"].items()
    first, *_, last = (json.loads(line) for line in (tmp_path / "policy" / "training.jsonl").read_text().splitlines())
    assert 0 < last["learning_rate"] < first["learning_rate"] < 0.01


def test_options_for_few_demonstrations_are_used_and_kept(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"put": frozenset([0])}
    monkeypatch.setattr("bilevel.learning.study.irrelevant_arguments", lambda samples, encoding: found)
    options = ("--updates", 200, "--hidden", 4, "--symmetries", "on", "--relevance", "on")
    code, out, _ = run(capsys, "learn", dataset, "--output", tmp_path / "policy", *TASK, *BRIEF, *options)
    card = read_policy(tmp_path / "policy").card
    assert code == 0
    assert card.settings["relevance"]
    assert {"updates": 200, "symmetries": True}.items() <= card.settings["training"].items()
    assert card.summary["irrelevant"] == card.spec["untold"] == {"put": ["?p"]}
    assert "\nleft out, as it plays no part in how the action is done: ?p in put\n" in out


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--updates", -1), "--updates must be at least 0, but is -1"),
        (("--hidden", 0), "--hidden must be at least 1, but is 0"),
        (("--hidden", 10**9), "--hidden must be at most 100000, but is 1000000000"),
        (("--batch-size", 0), "--batch-size must be at least 1, but is 0"),
        (("--learning-rate", 0), "--learning-rate must be more than 0, but is 0"),
        (("--learning-rate", "nan"), "--learning-rate must be more than 0, but is nan"),
        (("--device", "tpu"), "--device takes auto, cpu or cuda, not 'tpu'; see bilevel learn --help"),
        (("--log", "wandb"), "--log takes tensorboard=DIR or wandb=PROJECT, not 'wandb'"),
        (("--log", "paper=here"), "--log takes tensorboard=DIR or wandb=PROJECT, not 'paper=here'"),
    ],
)
def test_options_of_training_that_make_no_sense_are_one_line(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[object, ...], reason: str
) -> None:
    found = run(capsys, "learn", dataset, "--output", tmp_path / "policy", *TASK, *options)
    assert found == (2, "", f"bilevel: {reason}\n")
    assert not list(tmp_path.iterdir())


def test_without_a_gpu_there_is_none(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    found = run(capsys, "learn", dataset, "--output", tmp_path / "policy", *TASK, "--device", "cuda")
    assert found == (2, "", "bilevel: there is no GPU here that torch can use; train on cpu or auto\n")


def test_training_that_diverges_says_so(dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--output", tmp_path / "policy", *TASK, "--preset", "paper", "--epochs", 2, "--learning-rate", 1e30)
    code, _, err = run(capsys, "learn", dataset, *options)
    assert (code, err.startswith("bilevel: training diverged: "), err.count("\n")) == (2, True, 1)


def test_with_other_options_it_does_not_go_on(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("learn", dataset, *TASK, *BRIEF, "--output", tmp_path / "policy")
    with monkeypatch.context() as patched:
        count_epochs(patched, last=2)
        assert run(capsys, *command)[0] == 130
    code, _, err = run(capsys, *command, "--hidden", 8, "--seed", 1)
    told = "learning was begun here with seed 0 instead of 1, hidden 64 instead of 8"
    remedy = "give the same options again, remove the folder, or choose another --output"
    assert (code, err) == (2, f"bilevel: {tmp_path / 'policy'}: {told}; {remedy}\n")
    assert run(capsys, *command, "--workers", 1)[0] == 0  # which changes nothing


def test_before_the_first_checkpoint_other_options_may_be_given(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("learn", dataset, *TASK, *BRIEF, "--output", tmp_path / "policy")
    with monkeypatch.context() as patched:
        count_epochs(patched, last=0)
        assert run(capsys, *command)[0] == 130
    assert run(capsys, *command, "--seed", 1)[0] == 0


# The curve and the log


def test_the_training_is_drawn_where_there_is_matplotlib(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bilevel.commands.policy_commands.find_spec", lambda name: None)
    assert run(capsys, "learn", dataset, "--output", tmp_path / "policy", *TASK, *BRIEF)[0] == 0
    assert not (tmp_path / "policy" / "training.png").exists()


@pytest.mark.usefixtures("little")
def test_the_log_is_told_of_every_epoch_and_every_round(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[tuple[dict[str, float], int]] = []

    @contextmanager
    def noted(place: str, settings: Mapping[str, Any]) -> Iterator[Log]:
        assert (place, settings["task"], settings["training"]["epochs"]) == ("here", "tiny", 3)
        yield lambda values, step: notes.append((dict(values), step))

    monkeypatch.setitem(LOGS, "tensorboard", noted)
    output = tmp_path / "policy"
    options = ("--output", output, *TASK, "--dagger-rounds", 1, "--log", "tensorboard=here")
    assert run(capsys, "learn", dataset, *options)[0] == 0
    lines = [json.loads(line) for line in (output / "training.jsonl").read_text().splitlines()]
    (found,) = (line for line in lines if "rollouts" in line)
    assert (found["round"], found["rollouts"]) == (1, 2)
    epochs = [line for line in lines if line is not found]
    assert [step for _, step in notes] == [1, 2, 3, 3, 4, 5]
    assert notes.pop(3) == ({"DAgger/success rate": found["successes"] / 2, "DAgger/round": 1}, 3)
    assert [(values["loss/training"], values["loss/validation"], values["learning rate"]) for values, _ in notes] == [
        (line["training_loss"], line["validation_loss"], line["learning_rate"]) for line in epochs
    ]
    assert lines.index(found) == 3
