"""Whether giving up episodes in which everything has come to rest changes a result:

    python benchmarks/settled_episodes.py                 # a quarter of an hour on one core
    python benchmarks/settled_episodes.py --tasks blocks --episodes 5
    python benchmarks/settled_episodes.py --experiment build/reproduction --objects 3 5 10 --seeds 3

End-to-end networks, which have no memory, are trained from a few demonstrations, so that they stall often, or they are
those of the table, from the folder of `bilevel reproduce`. Their episodes are run as `bilevel evaluate` runs them.
Those that are given up as "settled" are run once more from the same seed, to their step limit. (Until it is given up,
an episode is the same in both cases: nothing but the end differs. So those that are not given up need not be run
twice.) Each line says how many episodes were given up, and how many of these succeed, or fail for another reason, when
they are not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace
from result_files import Row, origin, replace_row

from bilevel.baselines.end_to_end import read_end_to_end
from bilevel.demonstrations.collection import collect
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.experiments.reproduction.folder import read_experiment
from bilevel.learning.networks import PRESETS, LearningOptions
from bilevel.methods.methods import train
from bilevel.policies.episode_run import run_episode
from bilevel.policies.policy import ObservedPolicy
from bilevel.policies.rollout import SETTLED
from bilevel.seeds import evaluation_seed
from bilevel.tabletop import TASKS
from bilevel.tasks.scene_env import SceneEnv

METHODS = ("pddl-nn", "pure-nn")
DEFAULT_TASKS = ("blocks", "colour", "gacha")


@dataclass(frozen=True)
class Settings:
    """What is learned, and what is run."""

    demonstrations: int
    epochs: int
    seeds: int
    sizes: tuple[int, ...]
    episodes: int
    experiment: Path | None  # whose networks are run, where they are not trained here


def trained(task: str, method: str, seed: int, settings: Settings, folder: Path) -> Path:
    """Return the folder of a quickly trained policy, or of one that is there already."""
    if settings.experiment:
        return settings.experiment / "policies" / task / f"{method}-paper-{seed}"
    data, output = folder / task, folder / f"{task}-{method}-{seed}"
    if not data.exists():
        collect(TASKS[task], data, objects=3, episodes=settings.demonstrations)
    usual = PRESETS["paper"]
    config = replace(usual, training=replace(usual.training, epochs=settings.epochs))
    train(Demonstrations.read(data), output, method, LearningOptions(TASKS[task], "paper", config, seed))
    return output


class Persistent:
    """Acts as its policy does, and is not known to have no memory, so that nobody gives it up."""

    is_memoryless = False

    def __init__(self, policy: ObservedPolicy) -> None:
        self._policy = policy

    def __getattr__(self, name: str) -> object:
        return getattr(self._policy, name)


def measured(task: str, method: str, settings: Settings, folder: Path) -> Row:
    """Return what became of the episodes of a method on a task."""
    found: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for seed in range(settings.seeds):
        learned = read_end_to_end(trained(task, method, seed, settings, folder), method)
        for objects in settings.sizes:
            env = SceneEnv(TASKS[task], objects)
            for outcome in outcomes(env, learned.for_environment(env), seed, objects, settings.episodes):
                found.update(outcome)
                reasons.update([name for name in outcome if "→" in name])
            env.close()
    names = ("episodes", "successes", "settled", "successes_to_the_end", "other_reasons_to_the_end", "saved_steps")
    about = {"task": task, "method": method, "demonstrations": settings.demonstrations, "epochs": settings.epochs}
    about |= {
        "of_the_table": settings.experiment is not None,
        "networks": settings.seeds,
        "objects": list(settings.sizes),
    }
    return {**about, **{name: found[name] for name in names}, "reasons": dict(reasons)}


def outcomes(env: SceneEnv, policy: ObservedPolicy, seed: int, objects: int, episodes: int) -> Iterator[dict[str, int]]:
    """Yield for each episode what is to be counted."""
    for episode in range(episodes):
        world = evaluation_seed(seed, objects, episode)
        run = run_episode(env, policy, world)
        counted = {"episodes": 1, "successes": int(run.outcome == "success")}
        if run.outcome == SETTLED:
            whole = run_episode(env, Persistent(policy), world)  # type: ignore[arg-type]
            counted |= {"settled": 1, "successes_to_the_end": int(whole.reason is None)}
            counted |= {"saved_steps": whole.steps - run.steps}
            if whole.reason != run.reason:
                counted |= {"other_reasons_to_the_end": 1, f"{run.reason} → {whole.reason}": 1}
        yield counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(DEFAULT_TASKS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--demonstrations", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--objects", nargs="+", type=int, default=[3])
    parser.add_argument("--episodes", type=int, default=10, help="of each network with each number of objects")
    parser.add_argument("--experiment", type=Path, help="a folder of `bilevel reproduce` with networks to be run")
    parser.add_argument("--output", type=Path, default=Path("results/settled-episodes.jsonl"))
    given = parser.parse_args()
    demonstrations, epochs = given.demonstrations, given.epochs
    if given.experiment:
        experiment = read_experiment(given.experiment)
        demonstrations, epochs = experiment.demonstrations, experiment.epochs
    settings = Settings(demonstrations, epochs, given.seeds, tuple(given.objects), given.episodes, given.experiment)
    command = " ".join(["python benchmarks/settled_episodes.py", *sys.argv[1:]])
    with tempfile.TemporaryDirectory() as name:
        for task in given.tasks:
            for method in given.methods:
                row = {
                    **measured(task, method, settings, Path(name)),
                    **origin(TASKS[task].packages),
                    "command": command,
                }
                replace_row(given.output, row, ("task", "method", "of_the_table"))
                print(f"{task}, {method}: {row['settled']} of {row['episodes']} settled", flush=True)


if __name__ == "__main__":
    main()
