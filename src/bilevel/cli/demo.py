"""`make demo`: from demonstrations to a policy that runs the robot, by the commands that anybody can give.

It begins afresh every time; of what is in its folder it removes only what it writes itself.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

from bilevel.cli.commands import run
from bilevel.seeds import evaluation_seed
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.opengl import backend

FOLDER = Path("build/demo")
EXPLAINED = 8  # lines of the explanation that are shown; all of them are in a file
CONTENTS = {  # everything that the demo writes
    "demonstrations": "the expert's episodes",
    "policy": "the learned policy: rules.txt, weights.safetensors, policy.json, domain.pddl; and training.png",
    "results.jsonl": "the evaluation, one line for each episode",
    "results.timings.jsonl": "how long each of these took here",
    "episode.mp4": "one episode, with the reason for every action",
    "episode.png": "the same in a dozen pictures",
    "episode.txt": "the same in words",
    "blocks-domain.pddl": "the domain",
    "blocks.pddl": "a large problem",
    "blocks.plan": "its solution by the learned rules",
}


def demonstrate(
    folder: Path,
    *,
    objects: int = 3,
    episodes: int = 200,
    learning: Sequence[object] = (),
    sizes: str = "1-10",
    evaluated: int = 10,
    shown: int = 10,
    blocks: int = 10_000,
    workers: int | None = None,
) -> None:
    """Run the whole demo; `SystemExit` where a command cannot go on."""
    began, workers = time.perf_counter(), workers or os.cpu_count() or 1
    for path in (folder / name for name in CONTENTS):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
    data, policy, rules = folder / "demonstrations", folder / "policy", folder / "policy" / "rules.txt"
    all_workers = ("--workers", workers)
    _stage(1, f"An expert demonstrates Blocks with {objects} objects, {episodes} times")
    _command("collect", "blocks", "--objects", objects, "--episodes", episodes, *all_workers, "--output", data)
    _stage(2, "Both levels are learned: rules that decide, and a network that moves the hand")
    _command("learn", data, "--output", policy, *all_workers, *learning)
    _stage(3, "The rules in plain English")
    _command("rules", "show", rules, "--format", "english")
    _stage(4, f"The policy in episodes that it has never seen, with {sizes.replace('-', ' to ')} objects")
    measured = ("--objects", sizes, "--episodes", evaluated, *all_workers)
    _command("evaluate", "--policy", policy, *measured, "--output", folder / "results.jsonl")
    _stage(5, f"One of these episodes, with {shown} objects, and why each thing is done")
    pictures = ("--video", folder / "episode.mp4", "--sheet", folder / "episode.png") if _can_draw() else ()
    episode = ("--objects", shown, "--seed", evaluation_seed(0, shown, 0), "--explain", *pictures)
    _command("run", "blocks", "--policy", policy, *episode, copy=folder / "episode.txt")
    _stage(6, f"The same rules on a problem with {blocks:,} blocks, without a robot")
    _command("problem", "blocks", "--objects", blocks, "--output", folder / "blocks.pddl")
    files = (policy / "domain.pddl", folder / "blocks.pddl")
    _command("solve", *files, "--rules", rules, "--plan", folder / "blocks.plan")
    _command("validate", *files, folder / "blocks.plan")
    print(f"\nAll of it took {time.perf_counter() - began:.0f} s, with {workers} processes. Written:")
    for name, what in CONTENTS.items():
        if (folder / name).exists():
            print(f"  {folder / name!s:{len(str(folder)) + 20}}  {what}")
    print("\nTry next, after `source .venv/bin/activate`:")
    print(f"  bilevel run blocks --policy {policy} --objects 20 --noise 0.7 --explain")
    print(f"  bilevel evaluate factory --policy {policy} --output build/factory.jsonl")
    print("  bilevel collect gacha --output build/gacha && bilevel learn build/gacha --output build/gacha-policy")


def _stage(number: int, title: str) -> None:
    print(f"\n{number}. {title}\n", flush=True)


def _command(*arguments: object, copy: Path | None = None) -> None:
    """Print and run a command; with `copy`, put what it prints there, and show how it begins."""
    words = [str(argument) for argument in arguments]
    print(f"$ bilevel {shlex.join(words)}", flush=True)
    began = time.perf_counter()
    if copy is None:
        code = run(words)
    else:
        with copy.open("w", encoding="utf-8") as file, redirect_stdout(file):
            code = run(words)
        lines = copy.read_text(encoding="utf-8").splitlines()
        print(*lines[:EXPLAINED], *(["        ... and so on"] if len(lines) > EXPLAINED else []), sep="\n")
    if code not in (0, 1):  # 1 is an answer, if not the one that was hoped for
        sys.exit(code)
    print(f"[{time.perf_counter() - began:.1f} s]", flush=True)


def _can_draw() -> bool:
    try:
        backend()
    except BadInput as error:
        print(f"{error}; the demo goes on without pictures")
        return False
    return True


if __name__ == "__main__":
    demonstrate(FOLDER)
