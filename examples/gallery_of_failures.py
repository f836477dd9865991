"""Films of episodes that fail, and why, as the program says it, for docs/gallery.md:

    python examples/gallery_of_failures.py

It runs the pretrained policies where they cannot succeed, and learns one that is undertrained: a minute in all.
"""

from __future__ import annotations

import argparse
import re
import shutil
import textwrap
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from film import Camera

import bilevel
from bilevel.experiments.methods import find_policy
from bilevel.files import write_atomically
from bilevel.learning.networks import LearningConfig
from bilevel.lowlevel.training import TrainingConfig
from bilevel.methods.methods import RunnablePolicy
from bilevel.policies.episode import Episode
from bilevel.policies.folder import RULES, find_folder
from bilevel.policies.narration import why_failed
from bilevel.policies.policy import Policy
from bilevel.policies.recovery import NO_RECOVERY
from bilevel.policies.rollout import rollout
from bilevel.tasks.perception import read_perception
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Task

ROOT = Path(__file__).parents[1]
PAGE, FILMS = ROOT / "docs" / "gallery.md", ROOT / "docs" / "images" / "films"
SIZE = (480, 360)  # pixels
LINE = 118  # characters of a line on the page


def pretrained(task: Task, folder: Path) -> Path:
    return find_folder(task.name)


def without_closing(task: Task, folder: Path) -> Path:
    """The pretrained policy, but for the rules that close the box."""
    shutil.copytree(pretrained(task, folder), folder, dirs_exist_ok=True)
    rules = (folder / RULES).read_text(encoding="utf-8")
    (folder / RULES).write_text(re.sub(r"^\d+: .* -> close\(.*\n", "", rules, flags=re.MULTILINE), encoding="utf-8")
    return folder


def undertrained(task: Task, folder: Path) -> Path:
    """A policy that three epochs over six demonstrations have made."""
    data = bilevel.collect(task, folder / "data", objects=3, episodes=6, seed=5, draw="empty")
    bilevel.learn(data, folder / "policy", task=task, config=LearningConfig(training=TrainingConfig(epochs=3)))
    return folder / "policy"


@dataclass(frozen=True)
class Failure:
    """One film: of which policy, in which episode, how much of its end, and how fast."""

    task: str
    make_policy: Callable[[Task, Path], Path] = pretrained
    objects: int = 3
    seed: int = 1
    noise: float = 0.0
    perception: str = ""
    estimation: str | None = None
    recovers: bool = True
    last: int = 300  # steps that are shown
    until: int | None = None  # the last of them; that of the episode, unless it is said
    every: int = 5
    names: bool = True  # are written over things

    def policy(self, folder: Path) -> RunnablePolicy:
        found = self.make_policy(bilevel.find_task(self.task), folder)
        return find_policy("bison", found, recovery=None if self.recovers else NO_RECOVERY, estimation=self.estimation)


FAILURES = {
    "missing-rule": Failure("gacha", without_closing, objects=2, recovers=False, last=260, every=4),
    "undertrained": Failure("gacha", undertrained, objects=2, seed=0, last=250, until=2690, every=3),
    "flickering-labels": Failure("blocks", perception="noise=0.01", estimation="off", last=240, every=4),
    "perturbed": Failure("factory-noisy", objects=10, noise=1.0, last=480, every=8, names=False),
}


def attempt(
    failure: Failure, policy: RunnablePolicy, film: Callable[[SceneEnv, Policy], Camera] | None = None
) -> tuple[Episode, str, Camera | None]:
    """Run the episode, and film it where that is asked for; return how it went, and that in words."""
    assert policy.make is not None
    pictures: dict[str, Any] = {"render_mode": "rgb_array", "quality": "smooth", "picture_size": SIZE} if film else {}
    seen = read_perception(failure.perception)
    with closing(SceneEnv(bilevel.find_task(failure.task), failure.objects, perception=seen, **pictures)) as env:
        acting = policy.make(env)
        camera = film(env, acting) if film else None
        episode = rollout(env, acting, failure.seed, noise=failure.noise, callback=camera)
        ending = f"{episode.outcome} after {episode.steps:,} steps"
        if camera:
            camera.take(ending)
        return episode, f"{ending}\n{why_failed(episode)}", camera


def filmed(failure: Failure, policy: RunnablePolicy, output: Path) -> tuple[str, str]:
    """Run the episode to see when it ends, and again to film its end; return why it failed, and how much was filmed."""
    run, why, _ = attempt(failure, policy)
    until = failure.until or run.steps

    def film(env: SceneEnv, acting: Policy) -> Camera:
        begin = max(0, until - failure.last)
        return Camera(env, acting, failure.every, SIZE[0], begin, until, failure.names)

    camera = attempt(failure, policy, film)[2]
    assert camera is not None
    return why, camera.write(output)


def with_reason(page: str, name: str, text: str) -> str:
    """The page with this reason below the film of this name."""
    begin, end = f"<!-- why: {name} -->\n", "<!-- end of why -->\n"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"{PAGE}: the marks of '{name}' are missing: {begin.strip()} and {end.strip()}")
    return f"{before}{begin}\n```\n{wrapped(text)}\n```\n\n{end}{after}"


def wrapped(text: str) -> str:
    """The text in lines that fit the page; those that begin with spaces keep them."""
    return "\n".join(part for line in text.splitlines() for part in textwrap.wrap(line, LINE, subsequent_indent="  "))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=FAILURES, help="only these films")
    parser.add_argument("--folder", type=Path, default=Path("build/failures"), help="for the policies")
    given = parser.parse_args()
    for name in given.only or FAILURES:
        failure = FAILURES[name]
        why, about = filmed(failure, failure.policy(given.folder / name), FILMS / f"{name}.webp")
        print(f"{name}: {about}\n{why}")
        write_atomically(PAGE, with_reason(PAGE.read_text(encoding="utf-8"), name, why))


if __name__ == "__main__":
    main()
