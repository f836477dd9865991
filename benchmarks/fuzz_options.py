"""Words for every option of every command, read from the commands themselves: right ones, wrong ones, and none."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple

from fuzz_corpus import TASK

from bilevel import cli

# What a command needs, so that more than the first missing word is said of it. Others get what their types allow.
NEEDED: Mapping[str, str] = {
    "check": TASK,
    "collect": f"{TASK} --output out --episodes 1 --objects 1 --workers 1",
    "import": f"arrays.npz --task {TASK} --output out",
    "demonstrations check": "demos",
    "demonstrations replay": f"demos --task {TASK} --workers 1",
    "demonstrations show": "demos",
    "demonstrations export": "demos --lerobot out",
    "demonstrations thresholds": f"demos --perception noise=0.01 --task {TASK}",
    "domain check": "delivery.pddl demos",
    "domain show": "delivery.pddl",
    "domain learn": f"demos --output out --task {TASK}",
    "domain predicates": f"demos --output out --task {TASK}",
    "learn": f"demos --output out --task {TASK} --epochs 1 --dagger-rounds 0 --completion off --workers 1",
    "run": f"{TASK} --policy policy --objects 1",
    "evaluate": f"{TASK} --policy policy --output out --objects 1 --episodes 1 --workers 1",
    "compare": "results.jsonl other.jsonl",
    "reproduce": "--output out",
    "benchmark hard": "--output out",
    "report": "findings.jsonl --output out.html --page-only",
    "rules learn": "delivery.pddl two.pddl --output out",
    "rules complete": "rules.txt delivery.pddl two.pddl --output out",
    "rules show": "rules.txt",
    "rules verify": "rules.txt delivery.pddl two.pddl",
    "solve": "delivery.pddl two.pddl --rules rules.txt",
    "plan": "delivery.pddl two.pddl --timeout 1",
    "validate": "delivery.pddl two.pddl two.plan",
    "problem": "blocks --output out --objects 3",
}
# What fuzzing would not come back from: these commands and options are read, and not carried out.
ONLY_READ = {"vla set-up", "vla fetch", "reproduce", "benchmark hard"}
NEVER = {"view", "workers", "backend", "address", "device", "video", "sheet", "wandb", "tensorboard", "log"}
SLOW = {
    "learn": 0.05,
    "report": 0.05,
    "domain learn": 0.2,
    "domain predicates": 0.1,
    "rules complete": 0.3,
    "check": 0.2,
    "policies": 0.2,
    "collect": 0.5,
    "evaluate": 0.5,
    "run": 0.5,
}

NUMBERS = ("0", "1", "2", "-1", "3", "007", "1_0", "1e3", "0x10", "nan", "inf", "-inf", "1e400", "-0.5", "0.5", "٣")
HUGE = ("9" * 30, str(2**31), str(2**63), "9" * 5000, "1e308")
TEXTS = (
    *("", " ", "x", "-", "--", "é", "\udcff\udcfe", "\n", "a\nb", "\x1b[31m", "x" * 5000, "{}", "[" * 2000),
    *("%s", "../..", "~"),
    *("noise=0.01,missed=0.05", "noise=", "noise=nan", "noise=1e400", "delay=-1", "=", "wait=20,plan,retry=3"),
    *("off", "on"),
    *("wait=", "wait=-1", "1-3", "3-1", "1-", "1,2,", "1-999999999", "blocks", "blocks+task.py", "task.py:"),
    *(":x", "a=b", "a=[[1]"),
    *("task.py:TINY_DISCRETE", "task.py:nothing", "nothing.py:x", "slip_rate=2", "slip_rate=0.5", "objects=3"),
    *("=3", "expert"),
)  # fmt: skip
PATHS = (
    *("out", "out/deeper/still", "", ".", "..", "/proc", "/proc/none/x", "/dev/null", "/dev/full", "/proc/self/status"),
    *("user", "user/notes.txt", "user/data.jsonl", "user/loop", "user/empty", "\udcff", "x" * 300, "x/" * 3000),
    *("-", "é"),
    *("delivery.pddl", "two.pddl", "two.plan", "rules.txt", "policy", "demos", "results.jsonl"),
    *("findings.jsonl", "reproduction"),
    *("arrays.npz", "unfinished", "task.py", "demos/manifest.json", "policy/policy.json", "robomimic.hdf5", "lerobot"),
)  # fmt: skip


class Option(NamedTuple):
    """An option of a command, and what it takes."""

    name: str  # with its dashes; "" for a positional one
    kind: type  # int, float, str, Path or bool
    choices: Sequence[str]


def options_of(command: str) -> list[Option]:
    """Return the options of a command, positional ones included, as its dataclass has them."""
    kind = cli.load(command)
    hints = typing.get_type_hints(kind, include_extras=True)
    return [_option(field.name, hints[field.name]) for field in dataclasses.fields(kind) if field.name not in NEVER]


def _option(name: str, hint: Any) -> Option:
    is_positional = "Positional" in repr(hint)
    while typing.get_origin(hint) in (typing.Annotated, typing.Union):
        hint = next(part for part in typing.get_args(hint) if part is not type(None))
    choices = [str(choice) for choice in typing.get_args(hint)] if typing.get_origin(hint) is Literal else []
    kind = hint if hint in (int, float, bool, Path) else str
    return Option("" if is_positional else f"--{name.replace('_', '-')}", kind, choices)


def value(option: Option, rng: Random) -> str:
    """Return a word for an option: often one of its kind."""
    if option.choices and rng.random() < 0.5:
        return rng.choice(option.choices)
    pools: Mapping[type, Sequence[str]] = {int: NUMBERS, float: NUMBERS, Path: PATHS}
    pool = pools.get(option.kind, TEXTS) if rng.random() < 0.8 else rng.choice((NUMBERS, TEXTS, PATHS))
    return rng.choice(HUGE) if option.kind in (int, float) and rng.random() < 0.1 else rng.choice(pool)


def words(command: str, rng: Random) -> list[str]:
    """Return words that ask for a command, with some that it may not understand."""
    options = options_of(command)
    needed = NEEDED.get(command, "").split()
    if needed and rng.random() < 0.3:
        place = rng.randrange(len(needed))
        needed[place : place + 1] = rng.choice(([], [rng.choice(PATHS)], [rng.choice(TEXTS)], [needed[place]] * 2))
    given = [word for _ in range(rng.choice((0, 1, 1, 1, 2, 3))) for word in _given(rng.choice(options), rng)]
    if rng.random() < 0.08:
        given.append(
            rng.choice(("--nothing", "--jsno", "-j", "--json=1", "--", "--help", "-h", "--objects", "-", "--tyro-x"))
        )
    return [*command.split(), *needed, *given]


def _given(option: Option, rng: Random) -> Iterator[str]:
    word = value(option, rng)
    if not option.name:
        yield word
    elif option.kind is bool:
        yield option.name
        if rng.random() < 0.1:
            yield word
    elif rng.random() < 0.2:
        yield f"{option.name}={word}"
    else:
        name = (
            option.name if rng.random() < 0.95 else option.name[:-1] + rng.choice(("x", "", "-", option.name[-1] * 2))
        )
        yield from (name, word) if rng.random() < 0.97 else (name,)


COMMANDS = list(cli.COMMANDS)
