"""What `bilevel demonstrations check` says of a data set that is whole, and of one whose labels are wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bilevel.demonstrations.collect import collect
from bilevel.demonstrations.dataset import Demonstrations
from command_line import run
from recorded_episodes import import_arrays
from tiny_task import TINY

FORGETFUL = """
from dataclasses import replace
from bilevel import Atom
from tiny_task import TINY, label

def forgetful(scene):
    yield from (fact for fact in label(scene) if fact.predicate != "empty")
    yield from (Atom("empty", (spot,)) for spot in scene.roster.of_type("spot"))

task = replace(TINY, label=forgetful)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sets") / "tiny"
    collect(TINY, folder, objects=2, episodes=5)
    return folder


def test_a_good_data_set_ends_with_two_good_verdicts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "demonstrations", "check", folder)
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith("tiny: 5 episodes, ")
    assert "objects: parcel 2, spot 2" in lines
    assert "goals that hold at the end: at 10 of 10" in lines
    assert any(line.endswith(" × +empty(?spot) +lying(?parcel) (events)") for line in lines)
    whole, rules, network = lines[-3:]
    assert whole == "all files are whole"
    assert rules == "rules: yes: 2 rules, which do what the demonstrators did at 20 of 20 decisions"
    assert network.startswith("network: yes: ")
    assert run(capsys, "demonstrations", "check", folder)[1] == out


def test_a_goal_that_is_not_seen_to_be_reached_is_told(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in recordings without what was seen last."""
    scenes = [[*each.scenes(TINY.spec)][:-1] for each in Demonstrations.read(folder)]
    controls = [each.controls[:-1] for each in Demonstrations.read(folder)]
    import_arrays(
        scenes, controls, task=TINY, output=tmp_path / "short", successes=[True] * 5, demonstrators=[*"aabbb"]
    )
    lines = run(capsys, "demonstrations", "check", tmp_path / "short")[1].splitlines()
    assert "goals that hold at the end: at 5 of 10" in lines
    assert "  5 of these are said to be successes: is what was seen last on record?" in lines
    shown_by = "; ".join(line for line in lines if line.startswith("shown by"))
    assert shown_by.startswith("shown by a, success: 2 episodes, ")
    assert "shown by b, success: 3 episodes, " in shown_by


def test_wrong_labels_are_told_with_the_action_that_they_spoil(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "forgetful.py").write_text(FORGETFUL)
    labelled_by = ("--task", f"{tmp_path / 'forgetful.py'}:task")
    code, out, _ = run(capsys, "demonstrations", "check", folder, *labelled_by)
    assert code == 0
    assert " × +at(?parcel, ?spot) +free() -carrying(?parcel)\n      first in episode 0 at step " in out
    assert "\n      nearest: put(parcel1, spot1), but empty(spot1) did not become false\n" in out
    assert "\nrules: no: no fact of a goal becomes true by the effects of an action" in out
    found = json.loads(run(capsys, "demonstrations", "check", folder, *labelled_by, "--json")[1])
    assert found["verdicts"]["rules"]["answer"] == "no"
    spoilt = next(kind for kind in found["unexplained_changes"] if kind["change"].startswith("+at"))
    assert spoilt["nearest"].startswith("put(")
    assert (found["goals"], found["groups"][0]["episodes"]) == ({"at": {"wanted": 10, "reached": 10}}, 5)
