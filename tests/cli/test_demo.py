"""The demo at tiny size, which is also a test of the whole way from demonstrations to pictures of a learned policy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bilevel.cli.demo import CONTENTS, demonstrate
from bilevel.policies.folder import read_policy
from bilevel.seeds import evaluation_seed
from drawing import can_draw

PICTURES = {"episode.mp4", "episode.png"}


def test_the_demo_learns_measures_shows_and_solves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "results.jsonl").write_text("of an earlier demo")
    demonstrate(
        tmp_path,
        episodes=6,
        objects=1,
        learning="--epochs 60 --dagger-rounds 0",  # so many that the episode which is drawn is a short one
        sizes="1",
        evaluated=1,
        shown=1,
        blocks=20,
    )
    out, err = capsys.readouterr()
    assert "6 episodes" in out
    assert "-> pick(?b)" in out
    assert "If you hold block b, place p is clear and it is a goal that b is at p, do place(b, p)." in out
    assert "blocks, bison: 1 episode\n" in out
    assert "Because block1 is clear" in out
    assert "solved in 40 steps" in err
    written = {path.name for path in tmp_path.iterdir()} - {"mine"}
    assert written == set(CONTENTS) - (set() if can_draw() else PICTURES)
    assert read_policy(tmp_path / "policy").card.task == "blocks"
    (line,) = (tmp_path / "results.jsonl").read_text().splitlines()
    assert json.loads(line)["seed"] == evaluation_seed(0, 1, 0)


def test_it_stops_where_a_command_cannot_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        demonstrate(tmp_path, objects=21)
    captured = capsys.readouterr()
    assert (stopped.value.code, captured.out.count("$ bilevel")) == (2, 1)
    assert captured.err == "error: the task 'blocks' takes 1 to 20 objects, not 21\n"
