"""`bilevel policies`: the list of pretrained policies, and the card of one."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from bilevel.json_files import encode
from bilevel.policies.folder import POLICY, Measured, read_card
from bilevel.tasks import registry
from bilevel.tasks.registry import register_task
from command_line import run
from tiny_policies import RULES, learned_folder, moving_as_the_expert, still_folder
from tiny_task import TINY

COMMAND = "bilevel evaluate --policy tiny --objects 3,10 --episodes 20 --seed 5 --output build/tiny.jsonl"


@pytest.fixture(autouse=True)
def shipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A task with a policy that was measured, and nothing else."""
    monkeypatch.setattr(registry, "_REGISTERED", {})
    monkeypatch.setattr(registry, "GROUP", "nothing")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "shipped"
    shutil.copytree(still_folder(), folder)
    measured = Measured({3: (20, 20), 10: (19, 20)}, 5, COMMAND, {"bilevel": "0.2.0"})
    (folder / POLICY).write_text(encode(msgspec.structs.replace(read_card(folder), measured=measured)))
    register_task(replace(TINY, pretrained=folder))


def test_the_list_has_sizes_and_successes(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "policies")
    head, line, note = out.splitlines()
    assert (code, err) == (0, "")
    assert head.split() == ["policy", "rules", "parameters", "KB", "with", "3", "objects", "with", "10", "objects"]
    assert line.split()[:2] == ["tiny", "2"]
    assert "Wilson" in note
    assert line.endswith("20/20 (83.9–100.0%)  19/20 (76.4–99.1%)")
    (row,) = json.loads(run(capsys, "policies", "--json")[1])["policies"]
    assert row["successes"]["10"] == {"successes": 19, "episodes": 20, "interval": [0.7639, 0.9911]}
    assert (row["name"], row["task"], row["rules"]) == ("tiny", "tiny", 2)


def test_the_card_of_one_says_how_it_came_about(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "policies", "tiny")
    assert code == 0
    assert all(text in out for text in (COMMAND, "19/20 (76.4–99.1%)", "bilevel 0.2.0", "--seed 7", *RULES))
    shown = json.loads(run(capsys, "policies", "tiny", "--json")[1])
    assert (shown["name"], shown["evaluation"]) == ("tiny", {"seed": 5, "command": COMMAND})


def test_the_card_of_a_policy_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "policies", learned_folder())
    assert code == 0
    assert "nothing yet; see `bilevel evaluate`" in out
    assert "demonstrations with" in out


def test_an_unknown_policy_is_one_line_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "policies", "tinny")
    assert (code, out) == (2, "")
    assert err == (
        "error: tinny: there is no such folder; `bilevel learn` makes one, or name a pretrained policy: tiny\n"
    )


def test_where_no_task_has_a_policy_the_list_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    register_task(TINY)
    assert run(capsys, "policies")[:2] == (0, "no task here has a pretrained policy\n")


def test_a_run_without_a_policy_takes_the_pretrained_one_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with moving_as_the_expert():
        code, _, err = run(capsys, "run", "tiny", "--objects", 1)
        quiet = run(capsys, "run", "tiny", "--objects", 1, "--json")
        named = run(capsys, "run", "tiny", "--objects", 1, "--policy", "tiny")
    first, second = err.splitlines()
    assert (code, first) == (0, "the pretrained policy of 'tiny' acts; for the expert, add --policy expert")
    assert named[2].splitlines() == [second]
    assert (quiet[2], json.loads(quiet[1])["policy"]) == ("", "tiny")


def test_a_run_without_any_learned_policy_takes_the_expert_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    register_task(TINY)
    assert run(capsys, "run", "tiny", "--objects", 1)[2].startswith(
        "the expert acts: 'tiny' has no pretrained policy\nsuccess after "
    )
    named = run(capsys, "run", "tiny", "--objects", 1, "--method", "expert")[2]
    assert named.startswith("success after ")
    refused = run(capsys, "run", "tiny", "--method", "det-replan")
    assert refused[0] == 2
    assert "needs a --policy" in refused[2]


def test_an_evaluation_without_a_policy_takes_the_pretrained_one(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("evaluate", "tiny", "--objects", 1, "--episodes", 1, "--workers", 1, "--output")
    with moving_as_the_expert():
        code, out, _ = run(capsys, *words, "usual.jsonl")
        run(capsys, *words, "named.jsonl", "--policy", "tiny")
    assert (code, out.splitlines()[0]) == (0, "tiny, bison with the pretrained policy: 1 episode")
    assert Path("usual.jsonl").read_bytes() == Path("named.jsonl").read_bytes()
