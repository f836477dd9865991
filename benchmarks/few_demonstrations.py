"""How few demonstrations suffice: success of networks that were trained in different ways, from few demonstrations.

    python benchmarks/few_demonstrations.py --workers 2                                # everything: hours on 2 cores
    python benchmarks/few_demonstrations.py --tasks blocks --variants before centre --demonstrations 5 --seeds 1
    python benchmarks/few_demonstrations.py --workers 16 --seconds 500 --estimate      # only says how long it takes

Collects three-object demonstrations of each task once. Then each unit learns a policy from the first of them, by one
variant and from one seed, and runs it in episodes with more objects that it has not seen. A line of JSON for each unit
is written as soon as it is done, and a unit whose line is there is not done again, so an interrupted run can be taken
up. Where few demonstrations do not show all rules, `--rules all` takes those that all demonstrations show, so that what
is measured is the network alone; so does `--recovery off`, with which an episode ends where nothing changes any more.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from few_variants import VARIANTS
from msgspec.structs import replace as changed
from result_files import Row, origin, read_rows

from bilevel.demonstrations.collection import collect
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.learning.learn import learn
from bilevel.learning.study import study
from bilevel.policies.policy import BilevelPolicy, expert_policy
from bilevel.policies.policy_folder import LearnedPolicy
from bilevel.policies.recovery import NO_RECOVERY
from bilevel.policies.rollout import Episode, Transition, rollout
from bilevel.processes import Work, spread
from bilevel.rules.rule_file import domain_line, format_rules, parse_rules
from bilevel.seeds import evaluation_seed
from bilevel.tabletop import TASKS
from bilevel.tasks.scene_env import SceneEnv

WORLDS = ("blocks", "factory", "colour", "gacha")
EIGHT = [name for world in WORLDS for name in (world, f"{world}-noisy")]
EXPERT = "expert"  # the variant that learns nothing: what the others are measured against
PATIENCE = 600  # steps without any change of the symbols before an episode is given up, where there is no recovery
SHOWN = 3  # objects in the demonstrations
LEARNED, ALL = "learned", "all"

# Seconds on one core, measured: of a step of an episode, and of an update
STEP, UPDATE, START = 0.0006, 0.0018, 4.0
STEPS = {"blocks": 900, "factory": 1900, "colour": 2100, "gacha": 8300}  # of an expert, at 10 objects
NOISY = 2  # times as many where there are teleports
BUDGET = 3  # times as many as an expert's mean are the steps of an episode, unless others are given


@dataclass(frozen=True)
class Unit:
    """A policy to be learned and measured."""

    variant: str
    task: str
    demonstrations: int
    seed: int  # of learning; the episodes are the same for all
    objects: int
    episodes: int
    rules: str
    recovery: bool
    longest: int  # steps of an episode

    def key(self) -> tuple[Any, ...]:
        return tuple(asdict(self).values())

    def seconds(self) -> float:
        """Return about how long it takes on one core."""
        steps = expert_steps(self.task, self.objects)
        learning = 0.0
        if self.variant != EXPERT:
            config = VARIANTS[self.variant]
            first = config.training.updates or config.training.epochs * self.demonstrations * steps / 3 / 128
            learning = first * UPDATE + config.dagger.rounds * (config.dagger.episodes * 0.5 + first * UPDATE)
        return START + learning + self.episodes * steps * STEP


def expert_steps(task: str, objects: int) -> int:
    """Return about how many steps an expert takes."""
    return STEPS[task.removesuffix("-noisy")] * objects * (NOISY if "noisy" in task else 1) // 10


def key_of(row: Row) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in Unit.__dataclass_fields__)


# Demonstrations, and the rules that all of them show


def prepare(folder: Path, episodes: int, task: str) -> str:
    """Collect the demonstrations of a task, and learn the rules of all of them, unless they are there."""
    path = rules_path(folder, task)
    if not path.exists():
        data = collect(TASKS[task], folder / task, objects=SHOWN, episodes=episodes)
        rules = study(data, TASKS[task]).rules
        path.write_text(format_rules(rules, [domain_line(data.domain.name)]), encoding="utf-8")
    return task


def rules_path(folder: Path, task: str) -> Path:
    return folder / f"{task}.rules"


def start_preparing(folder: Path, episodes: int, tasks: list[str]) -> Work[str]:
    return lambda number: prepare(folder, episodes, tasks[number])


# Units


def start(folder: Path, units: list[Unit]) -> Work[tuple[int, Row]]:
    return lambda number: (number, measure(folder, units[number]))


def measure(folder: Path, unit: Unit) -> Row:
    """Learn and run a policy."""
    began = time.perf_counter()
    data = Demonstrations.read(folder / unit.task)
    env = SceneEnv(TASKS[unit.task], unit.objects, **data.env_arguments)
    about: Row = {}
    if unit.variant == EXPERT:
        policy = expert_policy(env)
    else:
        learned, about = learn_policy(folder, unit, data)
        policy = learned.bind(env.labels, recovery=None if unit.recovery else NO_RECOVERY, switches=env.task.switches)
    trained = time.perf_counter()
    found = run(env, policy, unit)
    env.close()
    times = {"learning_seconds": round(trained - began, 1), "running_seconds": round(time.perf_counter() - trained, 1)}
    return {**asdict(unit), **found, **about, **times, **origin(("torch", "mujoco"))}


def learn_policy(folder: Path, unit: Unit, data: Demonstrations) -> tuple[LearnedPolicy, Row]:
    """Learn a policy in a folder that nobody needs afterwards; its rules may be those of all demonstrations."""
    scratch = Path(tempfile.mkdtemp(prefix="few-"))
    try:
        few = data.first(unit.demonstrations)
        policy = learn(few, scratch, task=TASKS[unit.task], config=VARIANTS[unit.variant], seed=unit.seed)
    finally:
        shutil.rmtree(scratch)
    text = rules_path(folder, unit.task).read_text(encoding="utf-8")
    complete = parse_rules(text)
    about = {
        "samples": policy.card.summary["samples"],
        "validation_loss": round(policy.card.summary["validation_loss"], 5),
        "learned_rules": len(policy.rules),
        "all_rules": len(complete),
    }
    policy = replace(policy, card=changed(policy.card, estimation=None))  # it sees everything as it is
    return (replace(policy, rules=tuple(complete)) if unit.rules == ALL else policy), about


def run(env: SceneEnv, policy: Any, unit: Unit) -> Row:
    """Run all episodes of a unit; where there is no recovery, those that are stuck are given up."""
    successes, steps, reasons = 0, 0, Counter[str]()
    for number in range(unit.episodes):
        watch = _Watch(policy, unit)
        seed = evaluation_seed(0, unit.objects, number)
        episode = rollout(env, policy, seed, callback=watch, stop=watch.is_over)
        successes += episode.success
        steps += episode.steps
        if not episode.success:
            reasons[reason(episode, policy)] += 1
    return {"successes": successes, "reasons": dict(reasons.most_common()), "steps": steps}


def reason(episode: Episode, policy: BilevelPolicy) -> str:
    """Return how an episode ended, and what the policy was doing."""
    action = getattr(policy, "action", None)
    return f"{episode.outcome}: {action.name}" if action else episode.outcome


class _Watch:
    """Notices where nothing changes any more."""

    def __init__(self, policy: Any, unit: Unit) -> None:
        self._policy, self._unit = policy, unit
        self._last: object = None
        self._steps = self._still = 0

    def __call__(self, transition: Transition) -> None:
        now = self._policy.state, self._policy.action
        self._still = self._still + 1 if now == self._last else 0
        self._last = now
        self._steps += 1

    def is_over(self) -> bool:
        stuck = not self._unit.recovery and self._still >= PATIENCE
        return stuck or self._steps >= self._unit.longest


def units_of(given: argparse.Namespace) -> Iterator[Unit]:
    """All units that are wanted; a run that ends early has done a part of each task and variant."""
    for seed in range(given.seeds):
        for count in given.demonstrations:
            for variant in given.variants:
                if variant == EXPERT and (seed or count != given.demonstrations[0]):
                    continue
                for task in given.tasks:
                    shown = 0 if variant == EXPERT else count
                    longest = given.longest or BUDGET * expert_steps(task, given.objects)
                    measured = given.objects, given.episodes, given.rules, given.recovery == "on", longest
                    yield Unit(variant, task, shown, seed, *measured)


def wanted(given: argparse.Namespace) -> list[Unit]:
    """Return the units that are not done yet, the longest of each seed and number of demonstrations first."""
    done = {key_of(row) for row in read_rows(given.output)}
    return [unit for unit in units_of(given) if unit.key() not in done]


def main() -> None:
    given = arguments()
    units = wanted(given)
    total = sum(unit.seconds() for unit in units)
    about = f"{len(units)} units, about {total:.0f} seconds of a core"
    print(f"{about}, {total / given.workers:.0f} with {given.workers} workers", flush=True)
    if given.estimate:
        return
    ends = time.monotonic() + given.seconds
    given.data.mkdir(parents=True, exist_ok=True)
    preparing = partial(start_preparing, given.data, given.collected, given.tasks)
    with closing(spread(preparing, range(len(given.tasks)), given.workers)) as prepared:
        for task in prepared:
            print(f"{task}: {given.collected} demonstrations", flush=True)
    given.output.parent.mkdir(parents=True, exist_ok=True)
    work = closing(spread(partial(start, given.data, units), range(len(units)), given.workers))
    with given.output.open("a", encoding="utf-8") as file, work as done:
        for _, row in done:
            file.write(f"{json.dumps(row)}\n")
            file.flush()
            print(line(row), flush=True)
            if time.monotonic() > ends:
                print("the time is up; the same command goes on", flush=True)
                break


def line(row: Mapping[str, Any]) -> str:
    what = f"{row['variant']:16} {row['task']:14} {row['demonstrations']:3} demonstrations, seed {row['seed']}"
    times = f"{row['learning_seconds']:.0f} + {row['running_seconds']:.0f} s"
    return f"{what}: {row['successes']}/{row['episodes']} with {row['objects']}  {times}  {row['reasons'] or ''}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variants", nargs="+", choices=[*VARIANTS, EXPERT], default=[*VARIANTS, EXPERT])
    parser.add_argument("--tasks", nargs="+", choices=EIGHT, default=EIGHT)
    parser.add_argument("--demonstrations", type=int, nargs="+", default=[1, 2, 5, 10, 20])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--objects", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--rules", choices=[LEARNED, ALL], default=LEARNED)
    parser.add_argument("--recovery", choices=["on", "off"], default="on")
    parser.add_argument("--longest", type=int, help="steps of an episode (by default three times an expert's)")
    parser.add_argument("--collected", type=int, default=50, help="demonstrations of each task in all")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing after so long")
    parser.add_argument("--estimate", action="store_true", help="only say how long it takes")
    parser.add_argument("--data", type=Path, default=Path("build/few_demonstrations"))
    parser.add_argument("--output", type=Path, default=Path("results/few-demonstrations.jsonl"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
