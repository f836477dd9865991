"""The policies that come with the package: one for each task, whole, measured, and as good as it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from bilevel.experiments.evaluate import evaluate
from bilevel.policies.folder import LearnedPolicy, find_folder, pretrained_policies, read_policy
from bilevel.tabletop import TASKS

FILES = {"domain.pddl", "policy.json", "rules.txt", "weights.safetensors"}
SEED = 2605  # of their demonstrations and of the episodes in which they were measured


def test_every_task_has_one() -> None:
    assert {name: folder.name for name, folder in pretrained_policies().items()} == {name: name for name in TASKS}


@pytest.fixture(params=list(TASKS))
def shipped(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LearnedPolicy:
    monkeypatch.chdir(tmp_path)
    return read_policy(find_folder(request.param))


def test_it_is_whole_small_and_fits_its_task(shipped: LearnedPolicy) -> None:
    folder = find_folder(shipped.card.task)
    assert {path.name for path in folder.iterdir()} == FILES
    assert sum(path.stat().st_size for path in folder.iterdir()) < 300_000
    shipped.check_task(TASKS[shipped.card.task])
    assert (shipped.card.seed, shipped.card.objects, shipped.card.settings["preset"]) == (SEED, 3, "best")


def test_an_episode_of_its_evaluation_succeeds_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    records = evaluate("blocks", TASKS["blocks"], objects=[3], episodes=1, seed=SEED)
    assert [record.success for record in records] == [True]
