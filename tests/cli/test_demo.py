"""The demo at tiny size, which is also a test of the whole way from demonstrations to pictures of a learned policy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bilevel.policies.folder import read_policy
from drawing import can_draw

DEMO = Path(__file__).parents[2] / "examples" / "demo.sh"
TINY = {"EPISODES": 6, "OBJECTS": 1, "LEARNING": "--epochs 60 --dagger-rounds 0", "SIZES": 1, "EVALUATED": 1}


def demo(folder: Path, **settings: object) -> subprocess.CompletedProcess[str]:
    """Run the demo by the commands of this interpreter."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, **{name: str(value) for name, value in settings.items()}}
    return subprocess.run(["bash", DEMO, folder], env=environment, capture_output=True, text=True)


def test_the_demo_learns_measures_shows_and_solves(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "results.jsonl").write_text("of an earlier demo")
    done = demo(tmp_path, **TINY, SHOWN=1, BLOCKS=20)
    assert done.returncode == 0, done.stderr
    assert "If you hold block b, place p is clear and it is a goal that b is at p, do place(b, p)." in done.stdout
    assert "blocks, bison: 1 episode\n" in done.stdout
    assert "Because block1 is clear" in done.stdout
    assert "solved in 40 steps" in done.stderr
    assert read_policy(tmp_path / "policy").card.task == "blocks"
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 1
    assert (tmp_path / "mine").is_dir()
    assert (tmp_path / "episode.mp4").exists() == can_draw()


def test_it_stops_where_a_command_cannot_go_on(tmp_path: Path) -> None:
    done = demo(tmp_path, OBJECTS=21)
    assert (done.returncode, done.stdout.count("$ bilevel")) == (2, 1)
    assert done.stderr == "error: the task 'blocks' takes 1 to 20 objects, not 21\n"
