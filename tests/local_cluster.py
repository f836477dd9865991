"""A Ray cluster of two nodes on this machine, which knows of no other one and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

SHARED_MEMORY = 80_000_000  # bytes, the least that Ray accepts
PATIENCE = 60.0  # seconds


@dataclass(frozen=True)
class LocalCluster:
    address: str
    scratch: tuple[Path, Path]  # where the temporary files of each node are

    def workers(self) -> list[int]:
        """The processes that units are done for."""
        return [pid for pid, words in _processes() if words.startswith("ray::RemoteWorker") and self._has(pid)]

    def _has(self, pid: int) -> bool:
        with suppress(OSError):
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            return any(f"TMPDIR={folder}".encode() in variables for folder in self.scratch)
        return False


@contextmanager
def local_cluster() -> Iterator[LocalCluster]:
    """Each node has a core, and folders of its own for temporary files."""
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as name:
        folder, port = Path(name), _free_port()  # names of sockets, which are in the folder, must be short
        address = f"127.0.0.1:{port}"
        scratch = (folder / "a", folder / "b")
        head = ["--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={folder / 'ray'}"]
        nodes = []
        try:
            nodes.append(_start_node(folder, scratch[0], *head))
            _wait_for(port)
            nodes.append(_start_node(folder, scratch[1], f"--address={address}"))
            _wait_for_nodes(address, len(nodes))
            yield LocalCluster(address, scratch)
        finally:
            for node in nodes:
                _end(node)


def _start_node(folder: Path, scratch: Path, *options: str) -> subprocess.Popen[bytes]:
    scratch.mkdir()
    usual = ["--num-cpus=1", "--num-gpus=0", f"--object-store-memory={SHARED_MEMORY}", "--disable-usage-stats"]
    ports = ["--min-worker-port=0", "--max-worker-port=0", "--dashboard-agent-listen-port=0"]
    others = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    with open(folder / f"{scratch.name}.log", "wb") as log:
        return subprocess.Popen(
            [Path(sys.executable).with_name("ray"), "start", "--block", *options, *usual, *ports],
            env={**others, "TMPDIR": str(scratch)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _wait_for(port: int) -> None:
    end = time.monotonic() + PATIENCE
    while not _listens(port):
        assert time.monotonic() < end, "Ray does not start"
        time.sleep(0.2)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wait_for_nodes(address: str, number: int) -> None:
    """Asked in another process, so that this one is not connected to a cluster."""
    program = f"""
import time, ray
ray.init(address="{address}", log_to_driver=False, logging_level="CRITICAL")
while sum(node["Alive"] for node in ray.nodes()) < {number}:
    time.sleep(0.2)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=PATIENCE, capture_output=True)


def _end(node: subprocess.Popen[bytes]) -> None:
    """With all that it started: they are in its session."""
    for pid, _ in _processes():
        with suppress(OSError):
            if os.getsid(pid) == node.pid:
                os.kill(pid, signal.SIGKILL)
    node.wait()


def _processes() -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                yield int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
