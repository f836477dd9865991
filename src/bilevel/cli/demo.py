"""`make demo`: from demonstrations to a policy that runs the robot, by the commands that a user gives.

It begins afresh every time; of what is in its folder it removes only what it writes itself.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from bilevel.cli.commands import run
from bilevel.seeds import evaluation_seed
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.opengl import backend

FOLDER = Path("build/demo")
CONTENTS = {  # everything that the demo writes
    "demonstrations": "the expert's episodes",
    "policy": "the learned policy: rules.txt, weights.safetensors, policy.json, domain.pddl; and training.png",
    "results.jsonl": "the evaluation, one line for each episode",
    "results.timings.jsonl": "how long each of these took here",
    "episode.mp4": "one episode, with the reason for every action",
    "episode.png": "the same in a dozen pictures",
    "blocks-domain.pddl": "the domain",
    "blocks.pddl": "a large problem",
    "blocks.plan": "its solution by the learned rules",
}
COMMANDS = """
# An expert demonstrates Blocks with {objects} objects, {episodes} times
collect blocks --objects {objects} --episodes {episodes} --output {folder}/demonstrations
# Both levels are learned: rules that decide, and a network that moves the hand
learn {folder}/demonstrations --output {folder}/policy {learning}
# The rules in plain English
rules show {folder}/policy/rules.txt --format english
# The policy in episodes that it has never seen, with {sizes} objects
evaluate --policy {folder}/policy --objects {sizes} --episodes {evaluated} --output {folder}/results.jsonl
# One of these episodes, with {shown} objects, and why each thing is done
run blocks --policy {folder}/policy --objects {shown} --seed {seed} --explain {pictures}
# The same rules on a problem with {blocks} blocks, without a robot
problem blocks --objects {blocks} --output {folder}/blocks.pddl
solve {folder}/blocks-domain.pddl {folder}/blocks.pddl --rules {folder}/policy/rules.txt --plan {folder}/blocks.plan
validate {folder}/blocks-domain.pddl {folder}/blocks.pddl {folder}/blocks.plan
"""
NEXT = """
Try next, after `source .venv/bin/activate`:
  bilevel run blocks --policy {folder}/policy --objects 20 --noise 0.7 --explain
  bilevel evaluate factory --policy {folder}/policy --output build/factory.jsonl
  bilevel collect gacha --output build/gacha && bilevel learn build/gacha --output build/gacha-policy"""


def demonstrate(
    folder: Path,
    *,
    objects: int = 3,
    episodes: int = 200,
    learning: str = "",
    sizes: str = "1-10",
    evaluated: int = 10,
    shown: int = 5,
    blocks: int = 10_000,
) -> None:
    """Run the whole demo; `SystemExit` where a command cannot go on."""
    for path in (folder / name for name in CONTENTS):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
    place = shlex.quote(str(folder))
    pictures = f"--video {place}/episode.mp4 --sheet {place}/episode.png" if _can_draw() else ""
    text = COMMANDS.format(
        folder=place, objects=objects, episodes=episodes, learning=learning, sizes=sizes, evaluated=evaluated,
        shown=shown, blocks=blocks, pictures=pictures, seed=evaluation_seed(0, shown, 0),
    )  # fmt: skip
    for line in text.strip().splitlines():
        if line.startswith("#"):
            print(f"\n{line}\n")
            continue
        print(f"$ bilevel {line}", flush=True)
        code = run(shlex.split(line))
        if code not in (0, 1):  # 1 is an answer, if not the one that was hoped for
            sys.exit(code)
    print("\nWritten:")
    for name, what in CONTENTS.items():
        if (folder / name).exists():
            print(f"  {folder / name!s:{len(str(folder)) + 24}}  {what}")
    print(NEXT.format(folder=place))


def _can_draw() -> bool:
    try:
        backend()
    except BadInput as error:
        print(f"{error}; the demo goes on without pictures")
        return False
    return True


if __name__ == "__main__":
    demonstrate(FOLDER)
