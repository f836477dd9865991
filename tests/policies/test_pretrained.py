"""Policies that come with a task are found by its name, but a folder of that name goes before them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bilevel.experiments.evaluate import evaluate
from bilevel.methods.methods import load_policy, usual_policy
from bilevel.policies.policy_folder import Measured, read_card
from bilevel.policies.pretrained import find_folder, pretrained_policies, pretrained_policy
from bilevel.symbolic.domain import BadInput
from bilevel.tasks import registry
from bilevel.tasks.registry import register_task
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Task
from tiny_policies import learned_folder, still_folder
from tiny_task import TINY


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Task:
    """A registered task that comes with a policy; and an empty working folder."""
    monkeypatch.setattr(registry, "_REGISTERED", {})
    monkeypatch.chdir(tmp_path)
    return register_task(replace(TINY, pretrained=still_folder()))


def test_a_policy_is_found_by_the_name_of_its_task(shipped: Task) -> None:
    assert pretrained_policies()["tiny"] == find_folder("tiny") == still_folder()
    scene = SceneEnv(TINY, 1).reset(0)
    control = load_policy("tiny").act(scene)
    expected = load_policy(still_folder(), TINY).act(scene)
    assert control is not None
    assert expected is not None
    assert control.tolist() == expected.tolist()


def test_results_name_it_as_it_was_named(shipped: Task) -> None:
    (record,) = evaluate("tiny", shipped, objects=[1], episodes=1)
    assert (record.policy, record.method) == ("tiny", "bison")


def test_a_folder_goes_before_a_policy_of_the_same_name(shipped: Task) -> None:
    Path("tiny").symlink_to(learned_folder())
    assert find_folder("tiny") == Path("tiny")
    assert read_card(find_folder("tiny")).summary != read_card(still_folder()).summary
    assert pretrained_policy(shipped) == still_folder()


def test_it_is_the_usual_policy_of_its_task_for_methods_that_run_on_one_like_it(shipped: Task) -> None:
    usual = {method: usual_policy(shipped, method) for method in (None, "bison", "det-replan", "expert", "pure-nn")}
    named = Path("tiny")
    assert usual == {None: named, "bison": named, "det-replan": named, "expert": None, "pure-nn": None}
    assert usual_policy(TINY) is None


def test_a_task_that_is_not_registered_has_one_as_well(shipped: Task) -> None:
    other = replace(shipped, name="other", pretrained=str(learned_folder()))
    assert pretrained_policy(other) == learned_folder()
    assert pretrained_policy(replace(shipped, pretrained=learned_folder())) == learned_folder()


@pytest.mark.parametrize("name", ["tinny", "file.py:task"])
def test_an_unknown_name_is_one_line_with_those_there_are(shipped: Task, name: str) -> None:
    with pytest.raises(BadInput, match=f"^{name}: there is no such folder; `bilevel learn` makes one.*tiny") as raised:
        load_policy(name)
    assert "\n" not in str(raised.value)


def test_a_path_is_no_name(shipped: Task) -> None:
    with pytest.raises(BadInput, match=r"^build/tiny: there is no such folder; `bilevel learn` makes one$"):
        load_policy("build/tiny")


def test_other_labels_are_those_of_another_task_whose_policy_it_is_not(shipped: Task, tmp_path: Path) -> None:
    labels = tmp_path / "labels.py"
    labels.write_text("def label(scene): return []\ndef goal(scene): return []\n", encoding="utf-8")
    assert registry.find_task(f"tiny+{labels}").pretrained is None


@pytest.mark.parametrize("counts", [(11, 10), (-1, 10), (10**400, 10**400)])
def test_there_cannot_be_more_successes_than_episodes(counts: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="more successes than episodes"):
        Measured({3: counts}, 0, "", {})
