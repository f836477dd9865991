"""Who does what: runs that share a folder, on one machine or on many, do not do the same work.

Whoever begins a piece of work claims it by a file that only one can make. A run shows that it is alive by a file of its
own, in which it counts. If it stops counting for a minute, or its process is known to be gone, its claims are void, and
somebody else makes one with the next number. Whoever has made a claim looks for others before it holds: of two who see
each other's, neither does, and both try again later. Should a run come back to life after its work was taken, both do
it, and write the same files; nothing is lost but time.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from bilevel.experiments.machines import machine
from bilevel.experiments.reproduction.folder import Kept, read_json
from bilevel.files import write_atomically

BEAT = 5.0  # seconds between signs of life
PATIENCE = 60.0  # seconds without one before a run on another machine is taken for dead


class Claims:
    """The claims of this run, and what is known of those of others."""

    def __init__(self, kept: Kept) -> None:
        self._claims, self._runs = kept.claims, kept.runs
        self._run = uuid.uuid4().hex
        self._held: dict[str, Path] = {}  # our claims
        self._heard: dict[str, tuple[Any, float]] = {}  # of each run, how far it has counted, and since when
        self._about = {"host": _host(), "pid": os.getpid(), "started": _started(os.getpid()), "machine": machine()}
        self._count = 0
        self._over = threading.Event()
        self._claims.mkdir(parents=True, exist_ok=True)
        self._beat()
        self._heart = threading.Thread(target=self._live, daemon=True)
        self._heart.start()

    def take(self, keys: tuple[str, ...]) -> bool:
        """Claim all of these, or none."""
        for number, key in enumerate(keys):
            if not self._take(key):
                self.release(keys[:number])
                return False
        return True

    def release(self, keys: tuple[str, ...]) -> None:
        """Done, or given up."""
        for key in keys:
            if key in self._held:
                self._remove(key, self._held.pop(key))

    def close(self) -> None:
        self._over.set()
        self._heart.join()
        self.release(tuple(self._held))
        with suppress(Exception):
            self._remove_void()
            self._beat(ended=True)

    def _take(self, key: str) -> bool:
        made = self._made(key)
        if any(not self._is_void(path) for _, path in made):
            return False
        ours = self._claims / f"{_file_name(key)}.{made[-1][0] + 1 if made else 1}"
        if not self._make(ours):
            return False
        if any(path != ours and not self._is_void(path) for _, path in self._made(key)):
            ours.unlink(missing_ok=True)
            return False
        self._held[key] = ours
        return True

    def _make(self, path: Path) -> bool:
        """Unless somebody was faster."""
        part = self._claims / f".{self._run}.part"
        part.write_text(json.dumps({"run": self._run, **self._about}), encoding="utf-8")
        try:
            os.link(part, path)
        except FileExistsError:
            return part.stat().st_nlink > 1  # over NFS, an answer that was lost makes it look as if somebody was faster
        except FileNotFoundError:  # another run that is ending saw the part before it was whole, and cleaned up
            return False
        finally:
            part.unlink(missing_ok=True)
        return True

    def _remove(self, key: str, ours: Path) -> None:
        """Our claim, and void ones from before; if ours was taken for void, the later one stays."""
        for _, path in self._made(key):
            path.unlink(missing_ok=True)
            if path == ours:
                break

    def _remove_void(self) -> None:
        """What is left of runs that were killed: nobody asks for something again that is there."""
        for path in self._claims.iterdir():
            if self._is_void(path):
                path.unlink(missing_ok=True)

    def _made(self, key: str) -> list[tuple[int, Path]]:
        """All claims to something, in the order of their numbers."""
        found = self._claims.glob(f"{_file_name(key)}.*")
        return sorted((int(path.suffix[1:]), path) for path in found if path.suffix[1:].isdecimal())

    def _is_void(self, path: Path) -> bool:
        claim = read_json(path)
        if claim is None:  # it is gone, or nobody can tell whose it is
            return True
        name, pid = str(claim.get("run")), claim.get("pid")
        if claim.get("host") == _host() and not (isinstance(pid, int) and _started(pid) == claim.get("started")):
            return True
        run = read_json(self._runs / f"{name}.json")
        if run is None or run.get("ended"):
            return True
        count, since = self._heard.get(name, (None, 0.0))
        if name not in self._heard or count != run.get("count"):
            self._heard[name] = run.get("count"), time.monotonic()
            return False
        return time.monotonic() - since > PATIENCE

    def _live(self) -> None:
        while not self._over.wait(BEAT):
            with suppress(Exception):  # a full disk, say, is for the work itself to report
                self._beat()

    def _beat(self, ended: bool = False) -> None:
        self._count += 1
        content = {"count": self._count, "ended": ended, **self._about}
        write_atomically(self._runs / f"{self._run}.json", json.dumps(content))


def _file_name(key: str) -> str:
    return key.replace("/", "+")


def _host() -> str:
    """Equal for processes that see each other's numbers."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return platform.node()


def _started(pid: int) -> str | None:
    """Tells a process from a later one of the same number; `None` where there is none."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return None if after_name[0] == "Z" else after_name[19]
    except OSError:
        pass
    if Path("/proc/self").exists():
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        return "running"
    return "running"
