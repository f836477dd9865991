"""What is said about an episode: decisions with their reasons, surprises, and why it failed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bilevel.policies.changes import UNEXPECTED
from bilevel.policies.failures import REASONS
from bilevel.policies.narration import FAILURES, LINES_BELOW, SURPRISES, Decision, Shot
from bilevel.policies.policy_folder import write_policy
from bilevel.rules.matching import Match
from bilevel.rules.rule_file import parse_rules
from bilevel.symbolic.domain import Action
from bilevel.tabletop import opengl, tabletop
from bilevel.tabletop.rendering import Image
from bilevel.video import Video, with_lines_below
from command_line import run
from idle_policy import PICK, PLACE, idle_policy, moving_as_the_expert

BLOCKS = ("blocks", "--objects", "1", "--seed", "4")
WHY_PICK = "Because block1 is clear, place1 is clear, the gripper is free and block1 belongs at place1, pick block1."
WHY_PLACE = "Because you hold block1, place1 is clear and block1 belongs at place1, place block1 at place1."


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    write_policy(tmp_path / "policy", idle_policy())
    return tmp_path / "policy"


@pytest.fixture
def skilled(policy: Path) -> Iterator[Path]:
    """A policy whose network moves as the expert does."""
    with moving_as_the_expert():
        yield policy


def test_each_decision_is_told_with_its_rule_bindings_and_sentence(
    capsys: pytest.CaptureFixture[str], skilled: Path
) -> None:
    code, out, err = run(capsys, "run", *BLOCKS, "--policy", skilled, "--explain")
    lines = out.splitlines()
    assert (code, err.split()[0]) == (0, "success")
    assert lines[0] == "     0  pick(block1)"
    assert lines[4].split(maxsplit=1)[1] == "place(block1, place1)"
    indent = 10 * " "
    assert lines[1:4] == [f"{indent}rule {PICK}", f"{indent}with ?b = block1, ?p = place1", indent + WHY_PICK]
    assert lines[5:] == [f"{indent}rule {PLACE}", f"{indent}with ?b = block1, ?p = place1", indent + WHY_PLACE]
    plain = run(capsys, "run", *BLOCKS, "--policy", skilled)[1]
    assert plain.splitlines() == [lines[0], lines[4]]


def test_the_decisions_are_in_the_json_too(capsys: pytest.CaptureFixture[str], skilled: Path) -> None:
    code, out, err = run(capsys, "run", *BLOCKS, "--policy", skilled, "--explain", "--json")
    found = json.loads(out)
    pick, place = found["decisions"]
    binding = {"?b": "block1", "?p": "place1"}
    assert (code, err, found["policy"], found["unexpected"]) == (0, "", str(skilled), [])
    assert pick == {"step": 0, "action": "pick(block1)", "rule": PICK, "binding": binding, "sentence": WHY_PICK}
    assert place["sentence"] == WHY_PLACE
    assert 0 < place["step"] < found["steps"]
    assert "decisions" not in json.loads(run(capsys, "run", *BLOCKS, "--policy", skilled, "--json")[1])


def test_sentences_stand_below_the_pictures_of_a_video(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, skilled: Path, tmp_path: Path
) -> None:
    shown: list[tuple[str, int]] = []

    def noted(video: Video, picture: Image, caption: str = "", below: int = 0) -> None:
        shown.append((" ".join(caption.splitlines()), below))

    monkeypatch.setattr(Video, "add", noted)
    monkeypatch.setattr(Video, "close", lambda video: None)
    monkeypatch.setattr(tabletop.Tabletop, "render", lambda self: None)
    for explain, below in (("--explain",), LINES_BELOW), ((), 0):
        shown.clear()
        assert run(capsys, "run", *BLOCKS, "--policy", skilled, "--video", tmp_path / "out.mp4", *explain)[0] == 0
        assert shown[0] == (f"pick(block1) {WHY_PICK}" if explain else "pick(block1)", below)
        assert shown[-1] == ("success", below)


def test_lines_below_a_picture_leave_it_whole_and_take_the_same_room_whatever_they_say() -> None:
    picture = np.full((96, 128, 3), (200, 30, 40), np.uint8)
    shown = [with_lines_below(picture, caption, 3) for caption in ("", "one", "one\ntwo\nthree\nfour")]
    assert len({one.shape for one in shown}) == 1
    assert all((one[:96] == picture).all() for one in shown)
    ink = [int((one[96:].max(axis=2) > 128).sum()) for one in shown]
    assert ink[0] == 0 < ink[1] < ink[2]
    assert (shown[2] == with_lines_below(picture, "one\ntwo\nthree", 3)).all()


def test_the_expert_has_no_rules_and_says_so_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "run", *BLOCKS, "--explain")
    assert (code, len(out.splitlines())) == (0, 2)
    assert err.splitlines()[0] == "the expert has no rules to explain what it does"
    decisions = json.loads(run(capsys, "run", *BLOCKS, "--explain", "--json")[1])["decisions"]
    assert [(decision["action"], decision["rule"]) for decision in decisions] == [
        ("pick(block1)", None),
        ("place(block1, place1)", None),
    ]


def test_unexpected_changes_are_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    jostled = ("run", "blocks", "--seed", "2", "--noise", "1.5", "--explain")
    found = json.loads(run(capsys, *jostled, "--json")[1])
    assert len(found["unexpected"]) > 1
    told = [line for line in run(capsys, *jostled)[1].splitlines() if line.startswith("unexpected")]
    assert len(told) == len(found["unexpected"])
    for line, change in zip(told, found["unexpected"], strict=True):
        doing = [one["action"] for one in found["decisions"] if one["step"] < change["step"]][-1]
        assert line == f"unexpected at step {change['step']}: {SURPRISES[change['kind']].format(action=doing)}"
    for number, noun in ((1, "change"), (2, "changes")):
        monkeypatch.setattr("bilevel.policies.narration.MOST_TOLD", len(told) - number)
        assert f"\n{number} more unexpected {noun}\n" in run(capsys, *jostled)[1]


def test_a_rule_without_variables_has_no_bindings_to_tell() -> None:
    (rule,) = parse_rules("1: gripper-free() -> wait()").rules
    decision = Decision(0, Action("wait"), Match(rule, {}))
    assert decision.reasons() == [f"rule {rule}", "Because the gripper is free, wait."]


def test_there_are_words_for_every_failure_and_every_surprise() -> None:
    assert tuple(FAILURES) == REASONS
    assert tuple(SURPRISES) == UNEXPECTED


# Failures


def test_a_policy_that_is_stuck_says_at_what_and_for_how_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, policy: Path
) -> None:
    monkeypatch.setattr(tabletop, "STEPS_PER_OBJECT", 1000)
    code, _, err = run(capsys, "run", *BLOCKS, "--policy", policy)
    why = "it is stuck: nothing that it does has an effect any more; at last it did pick(block1), for 1000 steps"
    assert (code, err.splitlines()) == (1, ["step limit after 1000 steps", why])
    code, out, err = run(capsys, "run", *BLOCKS, "--policy", policy, "--json")
    found: dict[str, Any] = json.loads(out)
    assert (code, err, found["outcome"], found["reason"], found["why"]) == (1, "", "step limit", "stall", why)


def test_where_no_rule_applies_it_says_what_the_nearest_lacks(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    saved = idle_policy()
    write_policy(tmp_path / "policy", replace(saved, rules=saved.rules[:1]))
    code, out, err = run(capsys, "run", *BLOCKS, "--policy", tmp_path / "policy", "--explain")
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        "no action after 0 steps",
        "it does not know what to do: no rule applies",
        "  rule 1 place(block1, place1): holding(block1) does not hold",
    ]


def test_an_expert_that_does_not_know_what_to_do_says_only_that(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bilevel.tabletop.expert.Expert.choose", lambda *_: None)
    code, _, err = run(capsys, "run", *BLOCKS)
    assert (code, err.splitlines()) == (1, ["no action after 0 steps", "it does not know what to do"])


def test_a_world_that_breaks_is_named_and_a_sheet_ends_before_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    texts: list[str] = []

    def noted(stage: object, shots: list[Shot], *headings: str) -> bytes:
        texts.extend(shot.text for shot in shots)
        return b""

    monkeypatch.setattr("bilevel.tabletop.simulation.Simulation.stable", property(lambda simulation: False))
    monkeypatch.setattr(opengl, "backend", lambda: "any")
    monkeypatch.setattr("bilevel.policies.narration.draw_sheet", noted)
    code, _, err = run(capsys, "run", *BLOCKS, "--sheet", tmp_path / "out.png")
    assert (code, texts) == (1, ["pick(block1)"])
    assert err.splitlines() == [
        "unstable simulation after 1 steps",
        "the simulation became unstable; at last it did pick(block1), for 1 steps",
    ]


def test_a_policy_for_another_domain_is_refused_in_one_line(capsys: pytest.CaptureFixture[str], policy: Path) -> None:
    code, out, err = run(capsys, "run", "gacha", "--policy", policy)
    assert (code, out) == (2, "")
    assert (
        err == f"bilevel: {policy}: a policy for the domain 'blocks', but the task 'gacha' is of the domain 'gacha'\n"
    )
    assert (
        "Factory takes 1 to 10 objects, not 11"
        in run(capsys, "run", "factory", "--policy", policy, "--objects", "11")[2]
    )
