"""`bilevel run --view` as a program of its own: its page, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from urllib.request import Request, urlopen

import pytest
from live_episode import eventually

import drawn_task

WATCHED = ["run", f"{drawn_task.__file__}:DRAWN", "--objects", "1", "--seed", "1", "--policy", "expert", "--view"]


@pytest.mark.parametrize(("end", "code", "told"), [
    ("page", 0, r"success after \d+ steps\n"),
    ("Ctrl-C", 130, "error: interrupted\n"),
])  # fmt: skip
def test_an_episode_is_watched_and_ended(end: str, code: int, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    command = [sys.executable, "-m", "bilevel", *WATCHED]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    found = re.fullmatch(
        r"watch it at (http://127\.0\.0\.1:\d+/[\w-]+/) \(Ctrl-C ends it\)\n", process.stderr.readline()
    )
    assert found

    def send(**request: object) -> None:
        headers = {"Content-Type": "application/json"}
        urlopen(Request(f"{found[1]}request", json.dumps(request).encode(), headers), timeout=60)

    with urlopen(f"{found[1]}news?version=0", timeout=60) as news:
        assert json.load(news)["about"]["no_pictures"] is None
    if end != "Ctrl-C":
        send(type="pace", speed=0)
        eventually(lambda: json.load(urlopen(f"{found[1]}news?version=0", timeout=60))["ending"])
    if end == "page":
        send(type="quit")
    else:
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert re.fullmatch(told, err)
