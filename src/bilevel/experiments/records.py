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
from typing import Any, TypeVar

import msgspec

from bilevel.files import require_writable
from bilevel.json_files import Amount, Count, Name, Plain, decode, read_bytes
from bilevel.policies.changes import ChangeCounts
from bilevel.policies.episode import Incident
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene_env import SUCCESS

Line = TypeVar("Line")

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
    changes: ChangeCounts
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
        incidents = None if self.incidents is None else [incident.as_json() for incident in self.incidents]
        flat = asdict(replace(self, incidents=None))
        del flat["seconds"]
        return json.dumps({**flat, "changes": counts_of(self.changes), "incidents": incidents}) + "\n"

    def timing(self) -> str:
        """Return what it took on this machine as a line of JSON."""
        names = ("task", "objects", "episode", "seconds")
        return json.dumps({name: getattr(self, name) for name in names}) + "\n"


def counts_of(changes: ChangeCounts) -> dict[str, int]:
    """Return the numbers of changes of each kind, and of all that were unexpected."""
    return {**asdict(changes), "unexpected": changes.unexpected}


class Timing(msgspec.Struct, frozen=True):
    """What one episode took on the machine that ran it."""

    objects: Count
    episode: Count
    seconds: dict[str, Amount]  # that the policy and the physics took


def timings_path(records: Path) -> Path:
    """Return where the timings of a file of records are."""
    return records.with_name(f"{records.stem}.timings{records.suffix}")


# Reading


def read_records(path: Path) -> list[Record]:
    """Read a file of records, with the timings beside it if there are any."""
    return _with_timings(path, _decode_lines(read_bytes(path), Record, path))


def _with_timings(path: Path, records: Sequence[Record]) -> list[Record]:
    timings = timings_path(path)
    known = _decode_lines(_whole_lines(read_bytes(timings)), Timing, timings) if timings.exists() else []
    seconds = {(timing.objects, timing.episode): timing.seconds for timing in known}
    return [replace(one, seconds=seconds.get((one.objects, one.episode), one.seconds)) for one in records]


def _decode_lines(data: bytes, kind: type[Line], path: Path) -> list[Line]:
    return [
        decode(line, kind, f"{path}, line {number}: not the {kind.__name__.lower()} of an episode")
        for number, line in enumerate(data.splitlines(), 1)
    ]


def _whole_lines(data: bytes) -> bytes:
    """Return the data without a last line that a kill has torn."""
    return data[: data.rfind(b"\n") + 1]


# Writing


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
    lock = path.with_name(f".{path.name}.lock")
    try:
        with FileLock(lock, timeout=0):
            try:
                records = _with_timings(path, _take_up(path, check))

                def add(record: Record) -> None:
                    for file, line in ((timings_path(path), record.timing()), (path, record.line())):
                        with open(file, "a", encoding="utf-8") as opened:
                            opened.write(line)
                    records.append(record)

                yield records, add
            finally:
                lock.unlink(missing_ok=True)
    except Timeout:
        raise BadInput(
            f"{path}: another process is evaluating into it; wait for it or choose another --output"
        ) from None


def _take_up(path: Path, check: Callable[[Path, Sequence[Record]], None]) -> list[Record]:
    """Return the records that are there if `check` accepts them, and cut off a last line that is torn."""
    files = [file for file in (path, timings_path(path)) if file.exists()]
    kept = {file: _whole_lines(read_bytes(file)) for file in files}
    for file in files:
        torn = read_bytes(file)[len(kept[file]) :]
        if not torn.startswith(BEGINNING) and not BEGINNING.startswith(torn):
            raise BadInput(f"{file}: holds something else than records; choose another --output")
    records = _decode_lines(kept.get(path, b""), Record, path)
    check(path, records)
    for file in files:
        os.truncate(file, len(kept[file]))
    return records
