"""`bilevel policies`: the list of pretrained policies, the card of one, and who acts where none is named."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from bilevel.json_files import encode
from bilevel.policies.folder import POLICY, Measured, read_card
from bilevel.tasks import registry
from bilevel.tasks.registry import register_task
from command_line import refused, run, run_json, run_well
from tiny_policies import RULES, moving_as_the_expert, still_folder
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


def test_the_list_and_the_card_say_how_often_a_policy_succeeds(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = run_well(capsys, "policies").splitlines()
    assert line.split()[:3] == ["tiny", "2", "rules,"]
    assert line.endswith("n = 3: 20/20 (83.9–100.0%), n = 10: 19/20 (76.4–99.1%)")
    (row,) = run_json(capsys, "policies")["policies"]
    assert row["successes"]["10"] == {"successes": 19, "episodes": 20, "interval": [0.7639, 0.9911]}
    out = run_well(capsys, "policies", "tiny")
    assert all(text in out for text in (COMMAND, "19/20 (76.4–99.1%)", "bilevel 0.2.0", "--seed 7", *RULES))
    assert run_json(capsys, "policies", "tiny")["evaluation"] == {"seed": 5, "command": COMMAND}
    told = refused(capsys, "policies", "tinny")
    assert told == "tinny: there is no such folder; `bilevel learn` makes one, or name a pretrained policy: tiny"


def test_without_a_policy_the_pretrained_one_acts(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("evaluate", "tiny", "--objects", 1, "--episodes", 1, "--output")
    with moving_as_the_expert():
        code, _, err = run(capsys, "run", "tiny", "--objects", 1)
        assert run_well(capsys, *words, "usual.jsonl").startswith("tiny, bison with the pretrained policy: 1 episode")
        run_well(capsys, *words, "named.jsonl", "--policy", "tiny")
    assert (code, err.splitlines()[0]) == (
        0,
        "the pretrained policy of 'tiny' acts; for the expert, add --policy expert",
    )
    assert Path("usual.jsonl").read_bytes() == Path("named.jsonl").read_bytes()
