"""The process that runs a model: what it cannot do is one line, and it never survives us."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bilevel.baselines.vla import SERVER, ServerProcess
from bilevel.symbolic.domain import BadInput

LARGE = {"ask": "act", "pixels": bytes(6_000_000)}  # more than a pipe holds
FAKE = Path(__file__).with_name("fake_vla_server.py")


def start() -> ServerProcess:
    return ServerProcess([sys.executable, str(FAKE)], os.environ)


def load(folder: Path, behaviour: str) -> dict[str, Any]:
    return {"ask": "load", "model": str(folder / behaviour), "backbone": "none", "device": "auto"}


def runs(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def eventually(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def test_it_answers(tmp_path: Path) -> None:
    server = start()
    assert server.ask(load(tmp_path, "well"), 60) == {"action_size": 3}
    assert server.ask({"ask": "reset", "seed": 1}, 60) == {}
    server.close()
    assert not server.alive


def test_more_than_a_pipe_holds_gets_through(tmp_path: Path) -> None:
    server = start()
    server.ask(load(tmp_path, "well"), 60)
    server.ask(LARGE, 60)
    server.close()
    assert '"bytes": 6000000' in (tmp_path / "well.log").read_text()


def test_an_error_is_told_and_is_not_the_end(tmp_path: Path) -> None:
    server = start()
    with pytest.raises(BadInput, match="the model cannot be run: no GPU: there is none"):
        server.ask(load(tmp_path, "refuses"), 60)
    assert server.alive
    server.close()


def test_the_last_words_of_one_that_dies_are_told(tmp_path: Path) -> None:
    server = start()
    server.ask(load(tmp_path, "dies"), 60)
    with pytest.raises(BadInput, match="ended: exit code 1: Killed by a lack of memory"):
        server.ask(LARGE, 60)
    assert not server.alive


def test_one_that_hangs_is_ended(tmp_path: Path) -> None:
    server = start()
    server.ask(load(tmp_path, "hangs"), 60)
    with pytest.raises(BadInput, match=r"has not answered within 0\.2 s"):
        server.ask({"ask": "act"}, 0.2)
    assert not server.alive


def test_a_python_that_is_not_there_is_told() -> None:
    with pytest.raises(BadInput, match="/nowhere/python: cannot be run: No such file"):
        ServerProcess(["/nowhere/python"], os.environ)


def test_closing_ends_its_children_too(tmp_path: Path) -> None:
    server = start()
    child = server.ask(load(tmp_path, "with a child"), 60)["child"]
    assert runs(child)
    server.close()
    assert eventually(lambda: not runs(child))


def test_it_ends_with_its_owner(tmp_path: Path) -> None:
    server = start()
    child = server.ask(load(tmp_path, "with a child"), 60)["child"]
    del server
    assert eventually(lambda: not runs(child))


OWNER = """
import os, signal, sys, time
from bilevel.baselines.vla import ServerProcess
signal.signal(signal.SIGINT, signal.default_int_handler)  # which may be ignored where tests run in the background
server = ServerProcess([sys.executable, sys.argv[1]], os.environ)
print(server._process.pid, flush=True)
if sys.argv[2] == "stays":
    time.sleep(600)
"""


@pytest.mark.parametrize(("stays", "ending"), [("stays", signal.SIGKILL), ("stays", signal.SIGINT), ("leaves", None)])
def test_it_does_not_survive_us_however_we_end(stays: str, ending: signal.Signals | None) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(SERVER), stays], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    if ending is not None:
        assert runs(pid)
        owner.send_signal(ending)
    owner.wait(20)
    owner.stdout.close()
    assert eventually(lambda: not runs(pid))


def test_a_worker_whose_first_process_is_killed_ends_and_so_does_its_server(tmp_path: Path) -> None:
    """With episodes that never end, so that it does not end for another reason."""
    script = Path(__file__).with_name("endless_worker.py")
    first = subprocess.Popen([sys.executable, script, tmp_path / "well"], stdout=subprocess.PIPE)
    assert first.stdout is not None
    worker = int(first.stdout.readline())
    log = tmp_path / "well.log"
    assert eventually(lambda: log.exists() and '"act"' in log.read_text())
    server = int(json.loads(log.read_text().splitlines()[0])["pid"])
    assert runs(worker)
    assert runs(server)
    first.kill()
    first.wait()
    first.stdout.close()
    assert eventually(lambda: not runs(worker) and not runs(server))


def test_the_real_server_says_that_lerobot_is_missing(tmp_path: Path) -> None:
    server = ServerProcess([sys.executable, "-S", str(SERVER)], os.environ)  # without any installed package
    with pytest.raises(BadInput, match=f"the model cannot be run: lerobot is not installed for {sys.executable}"):
        server.ask(load(tmp_path, "any"), 60)
    with pytest.raises(BadInput, match="the model cannot be run: no model is loaded"):
        server.ask({"ask": "reset", "seed": 1}, 60)
    server.close()
