"""`bilevel run --view` as a program of its own: its page, how it ends, and what goes with it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from live_episode import eventually

import drawn_task
import tiny_task
from bilevel.policies.folder import RULES
from bilevel.tasks.scene_env import SceneEnv
from bilevel.viewer.live import rules_file, why_no_pictures
from command_line import run
from tiny_policies import still_folder

TINY = f"{tiny_task.__file__}:TINY"
DRAWN = f"{drawn_task.__file__}:DRAWN"
PATIENCE = 60.0  # seconds


class Program(NamedTuple):
    process: subprocess.Popen[str]
    address: str

    def news(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.address}news?version=0", timeout=PATIENCE) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def send(self, **request: object) -> None:
        data, headers = json.dumps(request).encode(), {"Content-Type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(f"{self.address}request", data, headers), timeout=PATIENCE)

    def ended(self) -> tuple[int, str, str]:
        """The exit code, and what it printed since."""
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, err


@contextmanager
def started(*arguments: object) -> Iterator[Program]:
    words = [sys.executable, "-m", "bilevel", "run", *map(str, arguments), "--policy", "expert", "--view"]
    hidden = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    pipe = subprocess.PIPE
    process = subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, env=hidden)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.fullmatch(r"watch it at (http://127\.0\.0\.1:\d+/[\w-]+/) \(Ctrl-C ends it\)\n", line)
        assert found, line
        yield Program(process, found[1])
    finally:
        process.kill()
        process.wait()


def test_an_episode_is_watched_to_its_end_and_ended_from_the_page() -> None:
    with started(TINY, "--objects", 1, "--seed", 1) as program:
        assert program.news()["about"]["no_pictures"].startswith("the environment of 'tiny' gives no pictures")
        program.send(type="pace", speed=0)
        eventually(lambda: program.news()["ending"])
        program.send(type="quit")
        code, out, err = program.ended()
    assert code == 0
    assert [line.split(maxsplit=1)[1] for line in out.splitlines()] == ["pick(parcel1)", "put(parcel1, spot1)"]
    assert re.fullmatch(r"success after \d+ steps\n", err)


def test_ctrl_c_in_the_middle_is_one_line_and_after_the_end_nothing() -> None:
    with started(DRAWN, "--objects", 12, "--seed", 1) as program:
        assert program.news()["about"]["no_pictures"] is None
        program.process.send_signal(signal.SIGINT)
        code, _, err = program.ended()
        assert (code, err) == (130, "error: interrupted\n")
    with started(TINY, "--objects", 1, "--seed", 1) as program:
        program.send(type="pace", speed=0)
        eventually(lambda: program.news()["ending"])
        program.process.send_signal(signal.SIGINT)
        code, _, err = program.ended()
        assert (code, len(err.splitlines())) == (0, 1)


def test_the_page_says_why_there_are_no_pictures() -> None:
    with closing(SceneEnv(tiny_task.TINY, 1)) as env:
        assert "takes no render_mode" in str(why_no_pictures(env))
    with closing(SceneEnv(drawn_task.DRAWN, 1)) as env:
        assert "gives no pictures" in str(why_no_pictures(env))
    with closing(SceneEnv(drawn_task.DRAWN, 1, render_mode="rgb_array")) as env:
        assert why_no_pictures(env) is None


@pytest.mark.parametrize("option", [("--video",), ("--sheet",), ("--json",)])
def test_a_page_does_not_go_with_files(capsys: pytest.CaptureFixture[str], option: tuple[str, ...]) -> None:
    code, out, err = run(capsys, "run", TINY, "--view", *option)
    assert (code, out) == (2, "")
    assert err == "error: --view does not go together with --video, --sheet or --json; choose one\n"


def test_rules_are_saved_to_folders_of_the_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rules_file(None) is None
    assert rules_file(str(tmp_path)) is None
    assert rules_file(str(still_folder())) == still_folder() / RULES
    monkeypatch.setattr("bilevel.viewer.live.PACKAGE", still_folder().resolve().parent)
    assert rules_file(str(still_folder())) is None
