"""Damage to what a report is made from: every file of a folder, and every value in it, one at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import asdict, replace
from synthetic import MACHINE, VERSIONS, large_problems, run_like

from bilevel.experiments.records import Record, timing_line, timings_path
from bilevel.experiments.reproduction.films import Timeline
from bilevel.experiments.reproduction.folder import Experiment, open_folder
from bilevel.files import write_atomically
from bilevel.policies.changes import ChangeCounts
from bilevel.seeds import evaluation_seed
from bilevel.viewer.live import Beat, Fired
from blocks_policies import idle_policy

DEEP = 100_000
# What a whole file may be instead. A folder stands for none of these: there is then a folder of that name.
CONTENTS: dict[str, Callable[[bytes], bytes] | None] = {
    "empty": lambda _: b"",
    "cut in half": lambda content: content[: len(content) // 2],
    "binary": lambda _: bytes(range(256)) * 8,
    "zeros": lambda content: bytes(len(content)),
    "an object": lambda _: b"{}\n",
    "a list": lambda _: b"[]\n",
    "null": lambda _: b"null\n",
    "twice": lambda content: content + content,
    "deep": lambda _: b"[" * DEEP + b"]" * DEEP + b"\n",
    "a folder": None,
}
# What a value may be instead, as JSON or nearly so.
VALUES: dict[str, str] = {
    "a text": '"twelve"',
    "a number in a text": '"12"',
    "a lone surrogate": '"\\ud800"',
    "an escape": '"\\u001b[31m<script>{{ 1 }}"',
    "too large for a float": "1e400",
    "nearly so": "1e308",
    "of 400 digits": "1" + "0" * 400,
    "of 5,000 digits": "1" + "0" * 5000,
    "not a number": "NaN",
    "negative": "-1",
    "zero": "0",
    "a fraction": "0.5",
    "null": "null",
    "true": "true",
    "a list": "[]",
    "an object": "{}",
    "a list of objects": "[{}]",
    "deep": "[" * DEEP + "]" * DEEP,
    "rather deep": "[" * 900 + "]" * 900,
}
GONE = "@gone@"  # stands for what is not there any more
HERE = "@here@"  # stands for a value until the text of the file is known


class Damage(NamedTuple):
    """What is wrong with one file of a folder."""

    file: str
    what: str
    content: bytes | None  # of the file now; `None` where it is a folder

    def __str__(self) -> str:
        return f"{self.file}, {self.what}"

    def inflict(self, folder: Path) -> None:
        """Damage the file in this folder."""
        path = folder / self.file
        path.unlink()
        if self.content is None:
            path.mkdir()
        else:
            path.write_bytes(self.content)


def damages(folder: Path) -> Iterator[Damage]:
    """Yield all that may be wrong with a folder, a file at a time."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name, content = str(path.relative_to(folder)), path.read_bytes()
        for what, change in CONTENTS.items():
            yield Damage(name, what, change(content) if change else None)
        if path.suffix in (".json", ".jsonl"):
            yield from _value_damages(name, content.decode(), by_line=path.suffix == ".jsonl")


def _value_damages(name: str, text: str, by_line: bool) -> Iterator[Damage]:
    lines = text.splitlines() if by_line else [text]
    for number, line in enumerate(lines):
        for where, changed in _holes(json.loads(line)):
            torn = json.dumps(changed)
            for what, value in VALUES.items() if GONE not in torn else [("missing", "")]:
                mended = torn.replace(f'"{HERE}"', value)
                rest = "\n".join([*lines[:number], mended, *lines[number + 1 :]])
                yield Damage(name, f"line {number + 1}, {where}: {what}", f"{rest}\n".encode())


def _holes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield a value with something else in the place of each part of it, or without that part; of lists, the first."""
    parts: dict[Any, Any] = value if isinstance(value, dict) else {}
    if isinstance(value, list):
        parts = dict(enumerate(value[:1]))
    for key, part in parts.items():

        def put(new: Any, key: Any = key) -> Any:
            if isinstance(value, list):
                return [new, *value[1:]]
            return {**value, key: new}

        yield str(key), put(HERE)
        if isinstance(value, dict):
            yield f"{key} gone", {**{name: kept for name, kept in value.items() if name != key}, GONE: 0}
        for inside, changed in _holes(part):
            yield f"{key}.{inside}", put(changed)


# A folder to damage


def make_folder(path: Path) -> Path:
    """Make a small folder as `bilevel reproduce` would leave it, with everything that it may have in it."""
    open_folder(path, Experiment(quick=True))
    policy = idle_policy()
    card = replace(policy.card, settings={"preset": "best", "training": {"epochs": 2}}, seed=0)
    policy = type(policy)(card, policy.domain, policy.weights, policy.rules)
    policy.write(path / "policies/blocks/bison-best-0")
    for method, digest in (("bison", policy.digest), ("expert", None)):
        records = [_record(method, digest, episode) for episode in range(2)]
        results = path / f"episodes/blocks/{method}-0/01.jsonl"
        write_atomically(results, "".join(record.line() for record in records))
        write_atomically(timings_path(results), b"".join(timing_line(record) for record in records))
    others: dict[str, Any] = {
        "costs/blocks/bison-best-0.json": {"seconds": 2.5, "peak_mebibytes": 400.0, "device": "cpu", "networks": 1},
        "memory/blocks/bison.json": {"objects": 1, "peak_mebibytes": 200.0},
        "runs/one.json": {"date": "2026-07-31"},
    }
    for name, content in others.items():
        write_atomically(path / name, json.dumps({**content, "machine": MACHINE}) + "\n")
    failure = {"unit": "film blocks", "error": "OSError: no display", "traceback": "Traceback"}
    write_atomically(path / "failures/film+blocks.json", json.dumps(failure))
    for one in (large_problems()[0], large_problems()[-1]):
        name, line = f"scaling/blocks-{one.solver}-{one.objects}.json", {"kind": "scaling", **asdict(one)}
        write_atomically(path / name, json.dumps(line))
    write_atomically(path / "films/blocks.json", _timeline().text())
    write_atomically(path / "films/blocks.mp4", b"film")
    findings = run_like(["blocks"], ["bison"], (1,), (0,), 2)
    write_atomically(path / "findings.jsonl", replace(findings, scaling=findings.scaling[:1]).lines())
    return path


def _record(method: str, digest: str | None, episode: int) -> Record:
    failed = episode == 1
    return Record(
        task="blocks",
        method=method,
        policy=digest and "policies/blocks/bison-best-0",
        policy_digest=digest,
        policy_seed=0 if digest else None,
        objects=1,
        episode=episode,
        seed=evaluation_seed(0, 1, episode),
        noise=0.0,
        arguments={},
        outcome="truncated" if failed else "success",
        reason="stall" if failed else None,
        detail="it stands still" if failed else None,
        steps=80,
        changes=ChangeCounts(own=2),
        versions=VERSIONS,
        seconds={"policy": 0.01, "physics": 0.02},
        settings={"recovery": "wait=20"} if digest else {},
        peak_mebibytes=200.0,
    )


def _timeline() -> Timeline:
    fired = Fired(2, "2: clear(?b) -> pick(?b)", {"?b": "block0"}, "Because block0 is clear, pick block0.")
    beats = [
        Beat(0, "pick(block0)", fired, [], [], ["at(block0, place0)"], []),
        Beat(40, None, None, ["holding(block0)"], ["clear(block0)"], [], ["teleport of block0"]),
    ]
    return Timeline(
        task="blocks",
        variant="bison",
        objects=1,
        seed=5,
        outcome="success",
        steps=80,
        steps_per_second=40.0,
        pictures_per_second=20.0,
        seconds=2.0,
        beats=beats,
    )
