"""The records of evaluated episodes: what is kept of each, in a file that an evaluation can take up again.

`results.jsonl` has a line of JSON for each episode, the same bytes on any machine. What the episodes took on the
machine that ran them is in `results.timings.jsonl` beside it; an episode that was run twice, since a kill lost its
record, has two lines there, and the last one counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from bilevel.files import read_bytes, require_writable
from bilevel.json_files import Amount, Count, Name, decode
from bilevel.policies.episode import Incident
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene_env import SUCCESS

Line = TypeVar("Line")
Plain = str | bool | Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)] | float | None  # a value that holds no others

BEGINNING = b'{"task": "'  # of every line

# What records that belong together have in common, and what a person says where they do not.
IDENTITY = {
    "task": "another task",
    "method": "another method",
    "policy_digest": "another policy",
    "settings": "other settings of the method",
    "seed": "another --seed",
    "noise": "another --noise",
    "arguments": "other --env-args",
    "perception": "another --perception",
    "versions": "other versions of bilevel or of what it uses",
}


@dataclass(frozen=True)
class Record:
    """How one episode went, and all that it depends on."""

    task: Name
    method: str
    policy: str | None  # its folder, as it was given
    policy_digest: str | None
    policy_seed: Count | None  # of learning it
    objects: Count
    episode: Count
    seed: int  # of the environment
    noise: float
    arguments: dict[str, Any]  # of the environment, besides the number of objects
    outcome: str
    reason: str | None  # why it did not succeed
    steps: Count
    changes: dict[str, Count]  # of the state, by what brought them about
    versions: dict[str, str]
    settings: dict[str, Plain] = field(default_factory=dict)  # of the method
    perception: str = ""  # what is wrong with what is seen, as `--perception` takes it
    detail: str | None = None  # what the policy itself says about why it did not succeed
    recovery: dict[str, Count] = field(default_factory=dict)  # the number of incidents of each kind
    incidents: list[Incident] | None = None  # the same one by one, where they were to be kept
    # What depends on the machine is not in its line but in that of its timing.
    seconds: dict[str, Amount] = field(default_factory=dict, compare=False)

    @property
    def success(self) -> bool:
        """Whether all goals were achieved."""
        return self.outcome == SUCCESS

    def line(self) -> str:
        """Return it as a line of JSON, without what depends on the machine."""
        incidents = msgspec.to_builtins(self.incidents, order="deterministic")  # facts are always in the same order
        flat = asdict(replace(self, incidents=None))
        del flat["seconds"]
        return json.dumps({**flat, "incidents": incidents}) + "\n"


class Timing(msgspec.Struct, frozen=True):
    """What one episode took on the machine that ran it."""

    objects: Count
    episode: Count
    seconds: dict[str, Amount]  # that the policy and the physics took


def timings_path(records: Path) -> Path:
    """Return where the timings of a file of records are."""
    return records.with_name(f"{records.stem}.timings{records.suffix}")


def read_records(path: Path) -> list[Record]:
    """Read the whole lines of a file of records, with the timings beside it if there are any."""
    timings, records = timings_path(path), _read_lines(path, Record)
    known = _read_lines(timings, Timing) if timings.exists() else []
    seconds = {(timing.objects, timing.episode): timing.seconds for timing in known}
    return [replace(one, seconds=seconds.get((one.objects, one.episode), one.seconds)) for one in records]


def _read_lines(path: Path, kind: type[Line]) -> list[Line]:
    """Return what is in a file, without a last line that a kill has torn."""
    data = read_bytes(path)
    return [
        decode(line, kind, f"{path}, line {number}: not the {kind.__name__.lower()} of an episode")
        for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), 1)
    ]


@contextmanager
def open_records(
    path: Path | None, check: Callable[[Path, Sequence[Record]], None]
) -> Iterator[tuple[list[Record], Callable[[Record], None]]]:
    """Begin a file of records, or take one up if `check` accepts its records; other processes are kept out.

    Give the records that there are, and a function that adds one to them and to the file.
    """
    from filelock import FileLock, Timeout

    if path is None:
        unkept: list[Record] = []
        yield unkept, unkept.append
        return
    if path.exists() and not path.is_file():
        raise BadInput(f"{path}: is no plain file, so an evaluation cannot be taken up there; choose another --output")
    require_writable(path)
    lock = FileLock(path.with_name(f".{path.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        who = "another process is evaluating into it"
        raise BadInput(f"{path}: {who}; wait for it or choose another --output") from None
    try:
        records = _take_up(path, check)

        def add(record: Record) -> None:
            timing = {name: getattr(record, name) for name in ("task", "objects", "episode", "seconds")}
            for file, line in ((timings_path(path), json.dumps(timing) + "\n"), (path, record.line())):
                with open(file, "a", encoding="utf-8") as opened:
                    opened.write(line)
            records.append(record)

        yield records, add
    finally:
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def _take_up(path: Path, check: Callable[[Path, Sequence[Record]], None]) -> list[Record]:
    """Return the records that are there if `check` accepts them, and cut off a last line that is torn."""
    whole = {}
    for file in (file for file in (path, timings_path(path)) if file.exists()):
        data = read_bytes(file)
        whole[file] = data.rfind(b"\n") + 1
        torn = data[whole[file] :]
        if not torn.startswith(BEGINNING) and not BEGINNING.startswith(torn):
            raise BadInput(f"{file}: holds something else than records; choose another --output")
    records = read_records(path) if path in whole else []
    check(path, records)
    for file, size in whole.items():
        os.truncate(file, size)
    return records
