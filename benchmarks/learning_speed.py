"""How long learning takes, and how long a step of the learned policy, next to the physics of that step.

    python benchmarks/learning_speed.py                  # all of it: 10 minutes on 2 cores
    python benchmarks/learning_speed.py --parts steps    # only the steps
    python benchmarks/learning_speed.py --parts training --device cuda

`training` goes over 200 demonstrations of Blocks 200 times, as the paper does, with one network and with three at once.
`recipe` is the whole of `bilevel learn` with our recipe. `steps` runs a policy with 10 objects on one core and measures
labels, choice and control together, and the world's own step, in the same episodes.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from bilevel.demonstrations.collection import open_collection
from bilevel.demonstrations.dataset import Dataset, read_dataset
from bilevel.demonstrations.manifest import versions
from bilevel.demonstrations.recording import make_recipe
from bilevel.experiments.evaluation import run_episode
from bilevel.experiments.machines import machine
from bilevel.files import write_atomically
from bilevel.learning.bilevel import RECIPES, LearningConfig, learn_policies, study
from bilevel.lowlevel.architecture import Architecture
from bilevel.lowlevel.dagger import DaggerConfig
from bilevel.lowlevel.encoding import encoding_of
from bilevel.lowlevel.gnn_policy import GnnPolicy
from bilevel.lowlevel.training import Training, TrainingConfig
from bilevel.policies.policies import BilevelPolicy
from bilevel.rules.rule_policy import RulePolicy
from bilevel.seeds import evaluation_seed
from bilevel.tabletop.tabletop import SUCCESS
from bilevel.tabletop.tasks import TASKS

LEARNED_ON = "blocks"
DEMONSTRATIONS = 200
STEP_DEMONSTRATIONS = 40  # are enough where only the time of a step counts
NETWORKS = (1, 3)  # trained at once
OBJECTS = 10
EPISODES = 3

Row = dict[str, Any]


def dataset(folder: Path, task: str, episodes: int) -> Dataset:
    recipe, slots = make_recipe(task, 3)
    with open_collection(folder / task, recipe, slots, episodes) as collection:
        list(collection.collect(os.cpu_count() or 1))
    return read_dataset(folder / task)


def training(folder: Path, device: str) -> Iterator[Row]:
    import torch

    data = dataset(folder, LEARNED_ON, DEMONSTRATIONS)
    architecture = Architecture(encoding_of(data.task.domain))
    samples = study(data, architecture, lambda progress: None).samples
    for networks in NETWORKS:
        started = time.perf_counter()
        run = Training(samples, architecture, range(networks), TrainingConfig(), device=torch.device(device))
        while not run.done:
            run.one_epoch()
        seconds = time.perf_counter() - started
        name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
        yield {
            "part": "training",
            "task": LEARNED_ON,
            "device": name,
            "networks": networks,
            "parameters": architecture.size,
            "samples": len(samples),
            "epochs": run.epoch,
            "seconds": round(seconds, 1),
            "validation_losses": [round(network.validation_loss, 6) for network in run.result()],
        }


def recipe(folder: Path, _: str) -> Iterator[Row]:
    data = dataset(folder, LEARNED_ON, DEMONSTRATIONS)
    started = time.perf_counter()
    (learned,) = learn_policies(data, [0], RECIPES["best"], workers=os.cpu_count() or 1)
    seconds = round(time.perf_counter() - started, 1)
    samples, rules = learned.samples, len(learned.rules)
    yield {
        "part": "recipe",
        "task": LEARNED_ON,
        "recipe": "best",
        "samples": samples,
        "rules": rules,
        "seconds": seconds,
    }


def steps(folder: Path, _: str) -> Iterator[Row]:
    """Who learned from a few demonstrations acts no faster or slower than who learned from many."""
    config = LearningConfig(training=TrainingConfig(epochs=40), dagger=DaggerConfig(rounds=0))
    for name, task in TASKS.items():
        (learned,) = learn_policies(dataset(folder, name, STEP_DEMONSTRATIONS), [0], config)
        environment = task.make(OBJECTS)
        low = GnnPolicy(learned.architecture, learned.network.weights, environment.slots)
        policy = BilevelPolicy(task.labels(environment.slots), RulePolicy(learned.rules, task.domain), low)
        runs = [run_episode(environment, policy, evaluation_seed(0, episode)) for episode in range(EPISODES)]
        taken = sum(run.steps for run in runs)
        micros = {part: 1e6 * sum(getattr(run.seconds, part) for run in runs) / taken for part in ("policy", "physics")}
        yield {
            "part": "steps",
            "task": name,
            "objects": OBJECTS,
            "steps": taken,
            "successes": [sum(run.outcome == SUCCESS for run in runs), EPISODES],
            "microseconds": {part: round(value, 1) for part, value in micros.items()},
            "policy_over_physics": round(micros["policy"] / micros["physics"], 3),
        }


PARTS: dict[str, Callable[[Path, str], Iterator[Row]]] = {"training": training, "recipe": recipe, "steps": steps}
KEYS = ("part", "task", "device", "networks")


def write(path: Path, new: Row, keys: Sequence[str] = KEYS) -> None:
    """Put a row in the place of the one that measured the same, by these keys."""
    old = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    kept = [entry for entry in old if any(entry.get(key) != new.get(key) for key in keys)]
    write_atomically(path, "".join(json.dumps(entry) + "\n" for entry in [*kept, new]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="for the part `training`")
    parser.add_argument("--output", type=Path, default=Path("results/learning.jsonl"))
    given = parser.parse_args()
    found = {**versions(), "torch": metadata.version("torch")}
    origin = {"command": "python benchmarks/learning_speed.py", "versions": found, "machine": machine()}
    for part in given.parts:
        with tempfile.TemporaryDirectory() as folder:
            for row in PARTS[part](Path(folder), given.device):
                print(json.dumps(row), flush=True)
                write(given.output, {**row, **origin})


if __name__ == "__main__":
    main()
