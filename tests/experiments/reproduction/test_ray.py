"""On a cluster of two nodes: the same results, whoever is killed on the way; and clear words where there is none."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from bilevel.experiments.records import Record
from bilevel.experiments.reproduction.backends import Advanced, Event, Failed, Finished
from bilevel.experiments.reproduction.folder import Experiment, ExperimentFolder
from bilevel.experiments.reproduction.measurements import Evaluate
from bilevel.experiments.reproduction.ray_backend import RayCluster, explain
from bilevel.experiments.reproduction.ray_worker import OtherVersions
from bilevel.experiments.reproduction.units import Collect
from bilevel.experiments.reproduction.variants import VARIANTS
from bilevel.symbolic.domain import BadInput
from command_line import run
from killing import TINY, results, start, survive
from local_cluster import LocalCluster, local_cluster

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")

KILLS = 1
ENDLESS = Evaluate("blocks", VARIANTS["expert"], seed=0, objects=2, episodes=100_000)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with local_cluster() as started:
        yield started


def ended(folder: Path, *arguments: str) -> str:
    """What a run that is left alone says on standard error."""
    process = start(folder, *arguments)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    return errors


def on(cluster: LocalCluster) -> list[str]:
    return ["--backend", "ray", "--address", cluster.address]


def test_two_nodes_come_to_the_same_results(cluster: LocalCluster, undisturbed: Path, tmp_path: Path) -> None:
    errors = ended(tmp_path / "kept", *TINY, *on(cluster))
    assert results(tmp_path / "kept") == results(undisturbed)
    assert not (tmp_path / "kept" / "unfinished" / "blocks-bison-paper-0").exists()
    for folder in cluster.scratch:  # each node has had a place for units, and keeps nothing
        (place,) = folder.glob("bilevel-*")
        assert list(place.iterdir()) == []
    expected = r"checking what is there|\d+ (units of work|of \d+ units)|about "
    assert [line for line in errors.splitlines() if not re.match(expected, line)] == []


def test_killed_runs_are_taken_up_again(cluster: LocalCluster, undisturbed: Path, tmp_path: Path) -> None:
    assert survive(tmp_path, [*TINY, *on(cluster)], results(undisturbed), KILLS, random.Random(0)) == []


def test_another_worker_goes_on_where_one_was_killed(
    cluster: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, reference = (
        ExperimentFolder(tmp_path / "kept", Experiment()),
        ExperimentFolder(tmp_path / "reference", Experiment()),
    )
    with closing(RayCluster(folder, cluster.address, None, 0.0)) as backend:
        assert backend.workers == 2
        backend.start(ENDLESS)
        while not episodes(folder):
            assert all(isinstance(event, Advanced) for event in backend.events(1.0))
        (worker,) = cluster.workers()
        os.kill(worker, signal.SIGKILL)
        failed = last_event(backend)
        assert isinstance(failed, Failed)
        assert failed.error.startswith("its worker was lost: ")

        before = episodes(folder)
        unit = replace(ENDLESS, episodes=len(before) + 3)
        backend.start(unit)
        assert last_event(backend) == Finished(unit)

        while cluster.workers():  # until it has given its core back
            backend.events(0.1)
    assert capsys.readouterr() == ("", "")
    unit.perform(reference, lambda note: None)
    assert episodes(folder) == episodes(reference)
    assert episodes(folder)[:-3] == before


def episodes(folder: ExperimentFolder) -> list[Record]:
    return ENDLESS.records(folder)


def last_event(backend: RayCluster) -> Event:
    """Of the only unit that is being done."""
    while True:
        for event in backend.events(1.0):
            if not isinstance(event, Advanced):
                return event


def test_gpus_that_are_not_there_are_missed_at_once(cluster: LocalCluster, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="the cluster has no GPU"):
        RayCluster(ExperimentFolder(tmp_path, Experiment()), cluster.address, None, 0.5)


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
    words = "--backend ray needs Ray, which is not installed; pip install 'bilevel[cluster]'"
    assert (code, errors) == (2, f"bilevel: {words}\n")


class Raised(Exception):
    """As Ray wraps it."""

    def __init__(self, words: str, cause: Exception | None = None) -> None:
        super().__init__(words)
        self.cause = cause


def test_what_went_wrong_is_told_in_a_line() -> None:
    unit = Collect("blocks")
    assert explain(unit, BadInput("disk full")).error == "disk full"
    assert explain(unit, Raised("…", BadInput("no space there"))).error == "no space there"
    assert explain(unit, Raised("…", KeyError("x"))).error == "KeyError: 'x'"
    assert explain(unit, Raised("actor died")).traceback == "actor died"
    with pytest.raises(OtherVersions, match="numpy"):
        explain(unit, Raised("…", OtherVersions("numpy")))
    with pytest.raises(BadInput, match="a node of the cluster lacks bilevel"):
        explain(unit, Raised("ModuleNotFoundError: No module named 'bilevel'"))
