"""`bilevel run` with an end-to-end policy: it says what changes, and that there are no rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_demonstrations import QUICK, dataset

from bilevel.baselines.end_to_end import EndToEndPolicy
from bilevel.baselines.end_to_end_folder import saved_end_to_end
from bilevel.baselines.learning import learn_end_to_end
from bilevel.cli import main
from bilevel.policies.policies import Control
from bilevel.policies.policy_folder import write_policy
from bilevel.tabletop import tabletop
from bilevel.tabletop.observation import Observation
from bilevel.video import Video


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (learned,) = learn_end_to_end(dataset(), "pddl-nn", [0], QUICK)
    write_policy(tmp_path / "policy", saved_end_to_end(dataset(), learned, QUICK, recipe="paper", seconds=1.0))
    return tmp_path / "policy"


@pytest.fixture
def skilled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its hand is that of the expert."""

    def act(policy: EndToEndPolicy, observation: Observation) -> Control | None:
        policy.reset(observation)
        return dataset().task.expert(policy.labels.slots).act(observation)

    monkeypatch.setattr(EndToEndPolicy, "act", act)


def run(task: str, folder: Path, *arguments: str) -> int:
    """The exit code."""
    with pytest.raises(SystemExit) as stopped:
        main(["run", task, "--policy", str(folder), *arguments])
    return int(stopped.value.code or 0)


@pytest.mark.usefixtures("skilled")
def test_it_says_what_changes_and_that_there_are_no_rules(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("blocks", folder, "--objects", "1", "--explain") == 0
    said = capsys.readouterr()
    changes = [line.split(maxsplit=1)[1] for line in said.out.splitlines()]
    assert changes == ["holding(block1); no longer clear(block1), gripper-free()"]  # after the last, nobody acts
    first, last = said.err.splitlines()
    assert first == "an end-to-end policy has no rules to explain what it does"
    assert last.startswith("success after ")


def test_a_failure_is_told_and_shown(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    captions: set[str] = set()
    monkeypatch.setattr(tabletop, "STEPS_PER_OBJECT", 20)
    monkeypatch.setattr(tabletop.Tabletop, "render", lambda self: None)
    monkeypatch.setattr(Video, "add", lambda self, picture, text, below: captions.add(text))
    monkeypatch.setattr(Video, "close", lambda self: None)
    arguments = ["--objects", "1", "--json", "--explain", "--video", str(tmp_path / "film.mp4")]
    assert run("blocks", folder, *arguments) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["outcome"], told["steps"], told["decisions"]) == ("step limit", 20, [])
    assert captions == {"", "step limit"}


def test_a_policy_for_another_domain_is_bad_input(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("gacha", folder) == 2
    assert "a policy for the domain 'blocks', but the task 'gacha'" in capsys.readouterr().err
