"""`make demo`: from demonstrations to a policy that runs the robot, by the commands that anybody can give.

Each stage prints its commands and runs them, so that the demo shows nothing that a user could not do. It begins afresh
every time; of what is in its folder it removes only what it writes itself.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bilevel.seeds import evaluation_seed
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.opengl import backend

FOLDER = Path("build/demo")
FAILED = 1  # the exit code of a command whose answer is no
ANSWERING = ("run", "solve", "validate")  # the commands that may say so; the demo goes on
EXPLAINED = 8  # lines of the explanation that are shown; all of them are in a file


@dataclass(frozen=True)
class Size:
    """How much there is to do."""

    episodes: int = 200  # demonstrations
    objects: int = 3  # in each of them
    learning: tuple[str, ...] = ()  # further arguments of `bilevel learn`
    sizes: str = "1-10"  # numbers of objects in the evaluation
    evaluated: int = 10  # episodes for each of them
    shown: int = 10  # objects in the episode that is shown
    blocks: int = 10_000  # in the problem that the rules alone solve
    workers: int = os.cpu_count() or 1


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


def demonstrate(folder: Path, size: Size) -> None:
    """Run the whole demo; `CalledProcessError` where a command says that it cannot go on."""
    began = time.perf_counter()
    _remove_old(folder)
    policy, rules, workers = folder / "policy", folder / "policy" / "rules.txt", ("--workers", size.workers)
    with _stage(1, f"An expert demonstrates Blocks with {size.objects} objects, {size.episodes} times"):
        wanted = ("--objects", size.objects, "--episodes", size.episodes, *workers)
        _run("collect", "blocks", *wanted, "--output", folder / "demonstrations")
    with _stage(2, "Both levels are learned: rules that decide, and a network that moves the hand"):
        _run("learn", folder / "demonstrations", "--output", policy, *workers, *size.learning)
    with _stage(3, "The rules in plain English"):
        _run("rules", "show", rules, "--format", "english")
    with _stage(4, f"The policy in episodes that it has never seen, with {size.sizes} objects".replace("-", " to ")):
        measured = ("--objects", size.sizes, "--episodes", size.evaluated, *workers)
        _run("evaluate", "--policy", policy, *measured, "--output", folder / "results.jsonl")
    with _stage(5, f"One of these episodes, with {size.shown} objects, and why each thing is done"):
        pictures = ("--video", folder / "episode.mp4", "--sheet", folder / "episode.png") if _can_draw() else ()
        episode = ("--objects", size.shown, "--seed", evaluation_seed(0, size.shown, 0), "--explain", *pictures)
        _run("run", "blocks", "--policy", policy, *episode, copy=folder / "episode.txt")
    with _stage(6, f"The same rules on a problem with {size.blocks:,} blocks, without a robot"):
        _run("problem", "blocks", "--objects", size.blocks, "--output", folder / "blocks.pddl")
        files = (policy / "domain.pddl", folder / "blocks.pddl")
        _run("solve", *files, "--rules", rules, "--plan", folder / "blocks.plan")
        _run("validate", *files, folder / "blocks.plan")
    print(f"\nAll of it took {time.perf_counter() - began:.0f} s, with {size.workers} processes. Written:")
    for name, what in CONTENTS.items():
        if (folder / name).exists():
            print(f"  {folder / name!s:{len(str(folder)) + 20}}  {what}")
    _suggest(policy)


def _remove_old(folder: Path) -> None:
    """Remove what an earlier demo has written, and nothing else."""
    for path in (folder / name for name in CONTENTS):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)


def _suggest(policy: Path) -> None:
    print("\nTry next, after `source .venv/bin/activate`:")
    print(f"  bilevel run blocks --policy {policy} --objects 20 --noise 0.7 --explain")
    print(f"  bilevel evaluate factory --policy {policy} --output build/factory.jsonl")
    print("  bilevel collect gacha --output build/gacha && bilevel learn build/gacha --output build/gacha-policy")


@contextmanager
def _stage(number: int, title: str) -> Iterator[None]:
    began = time.perf_counter()
    print(f"\n{number}. {title}\n", flush=True)
    yield
    print(f"[{time.perf_counter() - began:.1f} s]", flush=True)


def _run(*arguments: object, copy: Path | None = None) -> None:
    """Print and run a command of ours; with `copy`, show how it begins, and put all that it says there."""
    words = [str(argument) for argument in arguments]
    print(f"$ bilevel {shlex.join(words)}", flush=True)
    command = [sys.executable, "-m", "bilevel.cli", *words]
    code = subprocess.run(command).returncode if copy is None else _run_briefly(command, copy)
    if code and not (code == FAILED and words[0] in ANSWERING):
        raise subprocess.CalledProcessError(code, command)


def _run_briefly(command: Sequence[str], copy: Path) -> int:
    """Actions and reasons are indented; what is not, tells how it ended, and is shown with all that follows."""
    with (
        copy.open("w", encoding="utf-8") as file,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process,
        Console().status("beginning") as status,
    ):
        assert process.stdout is not None
        ended = False
        for number, line in enumerate(process.stdout):
            text = line.decode(errors="replace")
            file.write(text)
            ended = ended or not text.startswith(" ")
            if number < EXPLAINED or ended:
                print(text, end="", flush=True)
            elif number == EXPLAINED:
                print("        ... and so on", flush=True)
            if ended or text[:6].strip():
                status.update("finishing the pictures" if ended else text.strip())
    return process.returncode


def _can_draw() -> bool:
    try:
        backend()
    except BadInput as error:
        print(f"{error}; the demo goes on without pictures")
        return False
    return True


def main() -> None:
    """Make the demonstration in its folder, and end with the exit code of what failed."""
    try:
        demonstrate(FOLDER, Size())
    except subprocess.CalledProcessError as failure:
        sys.exit(failure.returncode)
    except OSError as error:
        sys.exit(f"demo: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
