"""On a cluster of two nodes: the same results, whoever is killed on the way; and clear words where there is none."""

from __future__ import annotations

import os
import random
import re
import runpy
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from bilevel.experiments.records import EpisodeRecord
from bilevel.experiments.reproduction import ray_backend
from bilevel.experiments.reproduction.backends import Event, Failed, Finished, Told
from bilevel.experiments.reproduction.folder import Kept
from bilevel.experiments.reproduction.measurements import kept_records
from bilevel.experiments.reproduction.ray_backend import RayCluster, explained
from bilevel.experiments.reproduction.settings import ENTRANTS, Experiment
from bilevel.experiments.reproduction.shipping import Misfit
from bilevel.experiments.reproduction.units import Collect, Evaluate
from bilevel.symbolic.domain import BadInput
from command_line import run
from local_cluster import LocalCluster, local_cluster

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")

KILLING = runpy.run_path(str(Path(__file__).parents[3] / "benchmarks" / "killing.py"))
KILLS = 2  # benchmarks/killing.py --backend ray kills ten times
TINY = KILLING["TINY"]
ENDLESS = Evaluate("blocks", ENTRANTS["expert"], seed=0, objects=2, episodes=100_000)
FURTHER = replace(ENDLESS, objects=1, episodes=1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with local_cluster() as started:
        yield started


@pytest.fixture(scope="module")
def undisturbed() -> Iterator[dict[str, Any]]:
    """Results of the other back-end."""
    with tempfile.TemporaryDirectory() as folder:
        ended(folder, *TINY)
        yield KILLING["results"](Path(folder))


def ended(folder: str | Path, *arguments: str) -> str:
    """What a run that is left alone says on standard error."""
    process = KILLING["start"](Path(folder), *arguments)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    return str(errors)


def on(cluster: LocalCluster) -> list[str]:
    return ["--backend", "ray", "--address", cluster.address]


def test_two_nodes_come_to_the_same_results(cluster: LocalCluster, undisturbed: dict[str, Any], tmp_path: Path) -> None:
    errors = ended(tmp_path / "kept", *TINY, *on(cluster))
    assert KILLING["results"](tmp_path / "kept") == undisturbed
    assert len(undisturbed) == 6
    assert not (tmp_path / "kept" / "unfinished" / "blocks-bison-paper-0").exists()
    for folder in cluster.scratch:  # each node has had a place for units, and keeps nothing
        (place,) = folder.glob("bilevel-*")
        assert list(place.iterdir()) == []
    assert [
        line for line in errors.splitlines() if not re.match(r"\d+ (units of work|of \d+ units)|about ", line)
    ] == []


def test_killed_runs_are_taken_up_again(cluster: LocalCluster, undisturbed: dict[str, Any], tmp_path: Path) -> None:
    survive = KILLING["survive"]
    assert survive(tmp_path, [*TINY, *on(cluster)], undisturbed, KILLS, random.Random(0)) == []


def test_another_worker_goes_on_where_one_was_killed(
    cluster: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, reference = Kept(tmp_path / "kept", Experiment()), Kept(tmp_path / "reference", Experiment())
    with closing(RayCluster(kept, cluster.address, None, 0.0)) as backend:
        assert backend.workers == 2
        backend.start(ENDLESS)
        assert backend.has_room(ENDLESS)
        while not episodes(kept):
            assert all(isinstance(event, Told) for event in backend.events(1.0))
        (worker,) = cluster.workers()
        os.kill(worker, signal.SIGKILL)
        failed = last_event(backend)
        assert isinstance(failed, Failed)
        assert failed.error.startswith("its worker was lost: ")

        before = episodes(kept)
        unit = replace(ENDLESS, episodes=len(before) + 3)
        backend.start(unit)
        assert last_event(backend) == Finished(unit)

        (idle,) = cluster.workers()
        os.kill(idle, signal.SIGKILL)
        backend.start(FURTHER)
        assert last_event(backend) == Finished(FURTHER)

        monkeypatch.setattr(ray_backend, "KEPT_IDLE", 0.0)
        while cluster.workers():  # until it has given its core back
            backend.events(0.1)
    assert capsys.readouterr() == ("", "")
    unit.perform(reference, lambda note: None)
    assert episodes(kept) == episodes(reference)
    assert episodes(kept)[:-3] == before


def episodes(kept: Kept) -> list[EpisodeRecord]:
    return kept_records(kept, ENDLESS.task, ENDLESS.entrant, ENDLESS.seed, ENDLESS.objects)


def last_event(backend: RayCluster) -> Event:
    """Of the only unit that is being done."""
    while True:
        for event in backend.events(1.0):
            if not isinstance(event, Told):
                return event


def test_gpus_that_are_not_there_are_missed_at_once(cluster: LocalCluster, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="the cluster has no GPU"):
        RayCluster(Kept(tmp_path, Experiment()), cluster.address, None, 0.5)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1:{free}", "no Ray cluster answers there: Connection refused; `ray start --head` starts one"),
        ("ray://127.0.0.1:{free}", "no Ray cluster answers there: Connection refused; `ray start --head` starts one"),
        ("http://127.0.0.1:8265", "neither auto, nor like 10.0.0.1:6379, nor like ray://10.0.0.1:10001"),
        ("here", "neither auto, nor like 10.0.0.1:6379, nor like ray://10.0.0.1:10001"),
    ],
)
def test_a_wrong_address(address: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = address.format(free=unused.getsockname()[1])
        arguments = ["reproduce", "--backend", "ray", "--address", address, "--output", tmp_path / "kept"]
        assert run(capsys, *arguments) == (2, "", f"bilevel: --address {address}: {words}\n")


def test_without_ray(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    code, _, errors = run(capsys, "reproduce", "--backend", "ray", "--output", tmp_path / "kept")
    words = "--backend ray needs Ray, which is not installed; pip install 'bilevel[ray]'"
    assert (code, errors) == (2, f"bilevel: {words}\n")


class Raised(Exception):
    """As Ray wraps it."""

    def __init__(self, words: str, cause: Exception | None = None) -> None:
        super().__init__(words)
        self.cause = cause


def test_what_went_wrong_is_told_in_a_line() -> None:
    unit = Collect("blocks")
    assert explained(unit, BadInput("disk full")).error == "disk full"
    assert explained(unit, Raised("…", BadInput("no space there"))).error == "no space there"
    assert explained(unit, Raised("…", KeyError("x"))).error == "KeyError: 'x'"
    assert explained(unit, Raised("actor died")).traceback == "actor died"
    with pytest.raises(Misfit, match="numpy"):
        explained(unit, Raised("…", Misfit("numpy")))
    with pytest.raises(BadInput, match="a node of the cluster lacks bilevel"):
        explained(unit, Raised("ModuleNotFoundError: No module named 'bilevel'"))
