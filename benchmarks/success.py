"""How often policies succeed, from demonstrations to evaluated episodes, in one of these experiments:

    python benchmarks/success.py worlds                                              # hours on 2 cores
    python benchmarks/success.py ogbench --tasks cube --seeds 1 --episodes 2         # a first impression

worlds, trays, clutter, towers, robustness, perception, few-demonstrations, learned-domains, own-worlds, recorded-play,
ogbench, kinder, robosuite, pretrained. Each is a list of policies and of conditions under which they are run. It is all
done by the commands `collect`, `learn` and `evaluate` and kept in a folder, so an interrupted run is taken up where it
was. The results are a line for each policy, condition and number of objects.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from bench import RESULTS, ROOT, Row, print_table, run, write_rows

WORLDS = [f"{world}{noisy}" for world in ("blocks", "factory", "colour", "gacha") for noisy in ("", "-noisy")]
EXAMPLES = ROOT / "examples"
PACKAGED = ROOT / "src" / "bilevel" / "tabletop" / "pretrained"
PACKAGED_SEED = 2605  # of the policies that come with the package; no other experiment has seen their episodes


@dataclass(frozen=True)
class Policy:
    """How a policy is learned."""

    task: str
    objects: int = 3
    demonstrations: int = 200
    seed: int = 0
    collect: str = ""  # further options of the commands
    learn: str = ""

    @property
    def data(self) -> str:
        return _name("data", self.task, self.objects, self.demonstrations, self.collect)

    @property
    def name(self) -> str:
        return _name(self.data.removeprefix("data-"), self.learn, f"seed{self.seed}")


@dataclass(frozen=True)
class Condition:
    """Episodes of a policy, or of the expert, and what the results say of them beside the task."""

    policy: Policy
    objects: str
    about: Mapping[str, object] = field(default_factory=dict)
    options: str = ""  # of `bilevel evaluate`
    expert: bool = False
    episodes: float = 1.0  # times as many as asked for

    @property
    def name(self) -> str:
        who = _name("expert", self.policy.task) if self.expert else self.policy.name
        return _name(who, self.objects, self.options, f"seed{self.policy.seed}")


def _name(*parts: object) -> str:
    """Return a name for a file that says all parts."""
    text = "-".join(str(part) for part in parts if part != "").replace(str(EXAMPLES), "").replace("{policies}", "")
    return "".join(letter if letter.isalnum() or letter in "-.=" else "_" for letter in text).strip("_")


# The experiments


def worlds(seed: int) -> Iterator[Condition]:
    for task in (*WORLDS, "swap"):
        yield Condition(Policy(task, seed=seed), "1-10,15,20", {"noise": 0.0})
        yield Condition(Policy(task, seed=seed), "3", {"noise": 0.7}, "--noise 0.7", episodes=3)
        yield Condition(Policy(task, seed=seed), "1,3,10", {"noise": 0.0, "method": "expert"}, expert=True)
        yield Condition(Policy(task, seed=seed, learn="--preset paper"), "1-10", {"noise": 0.0, "preset": "paper"})


def robustness(seed: int) -> Iterator[Condition]:
    shown = "--completion off --dagger-rounds 0"
    for task in WORLDS:
        policy = Policy(task, seed=seed)
        for noise in (0.0, 0.7, 1.0, 1.5):
            about = {"noise": noise}
            yield Condition(policy, "10", about, f"--noise {noise}")
            yield Condition(policy, "10", {**about, "method": "expert"}, f"--noise {noise}", expert=True)
            incomplete = Policy(task, seed=seed, learn=shown)
            without = f"--noise {noise} --recovery off"
            yield Condition(incomplete, "10", {**about, "method": "bison, rules shown"}, without)
    for policy, options in ((Policy("swap", seed=seed), ""), (Policy("blocks", seed=seed), "--env-args start=circle")):
        yield Condition(policy, "3,10", {"noise": 0.0, "start": "circle"}, options)


def perception(seed: int) -> Iterator[Condition]:
    values = {"noise": (0.005, 0.01, 0.015), "missed": (0.01, 0.05, 0.1), "occluded": (0.04,), "delay": (3, 6, 10)}
    flaws = ["", *(f"{name}={value:g}" for name, each in values.items() for value in each)]
    for task in ("blocks", "factory", "colour", "gacha"):
        policy = Policy(task, seed=seed)
        for flaw in flaws:
            options = f"--perception {flaw}" if flaw else ""
            for method, estimation in (("policy", "on"), ("policy without estimation", "off")):
                about = {"perception": flaw, "method": method}
                yield Condition(policy, "3,10", about, f"{options} --estimation {estimation}")
            about = {"perception": flaw, "method": "expert with estimation"}
            yield Condition(policy, "3,10", about, f"{options} --estimation {{policies}}/{policy.name}", expert=True)


def trays(seed: int) -> Iterator[Condition]:
    fixed = "--env-args tray_position=fixed"
    for task in WORLDS[4:]:
        policy = Policy(task, seed=seed, collect=fixed)
        plain = Policy(task, seed=seed, collect=fixed, learn="--relevance off")
        yield Condition(plain, "1-10", {"noise": 0.0, "method": "plain network"}, fixed)
        yield Condition(policy, "1-10", {"noise": 0.0}, fixed)
        yield Condition(policy, "1-10", {"noise": 0.0, "method": "expert"}, fixed, expert=True)
        for noise in (0.7, 1.0):
            pushed = f"{fixed} --noise {noise}"
            yield Condition(policy, "10", {"noise": noise}, pushed)
            yield Condition(policy, "10", {"noise": noise, "method": "expert"}, pushed, expert=True)


def clutter(seed: int) -> Iterator[Condition]:
    task = f"{EXAMPLES / 'clutter' / 'clutter.py'}:task"
    plain = Policy(task, seed=seed, learn="--relevance off")
    for posts in range(7):
        about, options = {"posts": posts}, f"--env-args posts={posts}"
        yield Condition(Policy(task, seed=seed), "1-10", about, options)
        yield Condition(plain, "1-10", {**about, "method": "plain network"}, options)
        yield Condition(plain, "1-10", {**about, "method": "expert"}, options, expert=True)


def few_demonstrations(seed: int) -> Iterator[Condition]:
    for task in WORLDS:
        for number in (2, 5, 10, 25, 50, 100, 200):
            policy = Policy(task, demonstrations=number, seed=seed)
            yield Condition(policy, "10", {"demonstrations": number})


def learned_domains(seed: int) -> Iterator[Condition]:
    cubes = str(EXAMPLES / "ogbench" / "cubes.py:task")
    for task in (*WORLDS, "swap", cubes):
        for number in (20, 50, 200):
            for domain, learn in (("written", ""), ("learned", "--learn-domain")):
                policy = Policy(task, demonstrations=number, seed=seed, learn=learn)
                about = {"domain": domain, "demonstrations": number}
                yield Condition(policy, "3,8" if task == cubes else "3,10", about)


def own_worlds(seed: int) -> Iterator[Condition]:
    for path in ("own_world/own_world.py", "minigrid/minigrid_sorting.py"):
        yield Condition(Policy(f"{EXAMPLES / path}:task", seed=seed), "1,3,9", episodes=5)


def towers(seed: int) -> Iterator[Condition]:
    yield from _sizes(_suite("towers/towers.py", 3, 200, seed), "Towers", "1-8")


def recorded_play(seed: int) -> Iterator[Condition]:
    """Learn from play alone; the data are made by a program of their own, see `collect`."""
    task = f"{EXAMPLES / 'ogbench' / 'first_cubes.py'}:task"
    yield Condition(
        Policy(task, demonstrations=60, seed=seed, collect=PLAY, learn="--dagger-rounds 0 --epochs 30"), "1,3,8"
    )


PLAY = "recorded play"


def ogbench(seed: int) -> Iterator[Condition]:
    cubes = {"cube-single": 1, "cube-double": 2, "cube-triple": 3, "cube-quadruple": 4, "cube-octuple": 8}
    puzzles = {"puzzle-3x3": 9, "puzzle-4x4": 16, "puzzle-4x5": 20, "puzzle-4x6": 24}
    of_puzzles = "--noise 0.5"
    families = (
        (_suite("ogbench/cubes.py", 3, 200, seed), cubes, ""),
        (_suite("ogbench/scene.py", 1, 300, seed), {"scene": 1}, ""),
        (_suite("ogbench/puzzle.py", 9, 60, seed, of_puzzles, 60), puzzles, "--method det-replan --planner search"),
    )
    for policy, environments, options in families:
        for name, objects in environments.items():
            for number in range(1, 6):
                arguments = f"--env-args task_id={number}"
                about = {"setting": f"{name}-task{number}"}
                yield Condition(policy, str(objects), about, f"{arguments} {options}")
                yield Condition(policy, str(objects), {**about, "method": "expert"}, arguments, expert=True)


def kinder(seed: int) -> Iterator[Condition]:
    yield from _sizes(_suite("kinder/stick_button.py", 3, 200, seed, epochs=60), "StickButton2D", "1,2,3,5,10")
    yield from _sizes(_suite("kinder/shelf.py", 3, 60, seed, epochs=30), "KinematicShelf3D", "1,2,3,5,10")
    yield from _sizes(_suite("kinder/motion.py", 3, 60, seed, epochs=60), "Motion2D", "1-5")


def robosuite(seed: int) -> Iterator[Condition]:
    bins = "robosuite_bins/pick_place.py"
    yield from _sizes(_suite(bins, 2, 60, seed, epochs=40), "PickPlace", "2,4")
    two_kinds = _suite(bins, 2, 60, seed, "--env-args kinds=Cereal,Bread", 40)
    yield from _sizes(two_kinds, "PickPlace, two kinds never shown", "4")


def pretrained(seed: int) -> Iterator[Condition]:
    for task in (*WORLDS, "swap", "swap-noisy"):
        yield Condition(Policy(task, seed=PACKAGED_SEED), "3,5,10", {"seed": PACKAGED_SEED}, episodes=5)


def _suite(path: str, objects: int, number: int, seed: int, collect: str = "", epochs: int | None = None) -> Policy:
    learn = f"--epochs {epochs}" if epochs else ""
    return Policy(f"{EXAMPLES / path}:task", objects, number, seed, collect, learn)


def _sizes(policy: Policy, name: str, objects: str) -> Iterator[Condition]:
    yield Condition(policy, objects, {"setting": name})
    yield Condition(policy, objects, {"setting": name, "method": "expert"}, expert=True)


EXPERIMENTS: Mapping[str, Callable[[int], Iterator[Condition]]] = {
    experiment.__name__.replace("_", "-"): experiment
    for experiment in (
        worlds,
        trays,
        clutter,
        robustness,
        perception,
        few_demonstrations,
        learned_domains,
        own_worlds,
        towers,
        recorded_play,
        ogbench,
        kinder,
        robosuite,
        pretrained,
    )
}


# What is done


def collect(policy: Policy, folder: Path) -> None:
    data = folder / policy.data
    if policy.collect == PLAY:
        program = EXAMPLES / "ogbench" / "recorded_play.py"
        play = data.with_suffix(".npz")
        if not play.exists():
            os.spawnv(os.P_WAIT, sys.executable, [sys.executable, str(program), str(play)])
        functions = ("--perceive", f"{program}:from_vector", "--hindsight", f"{program}:hindsight")
        if not data.exists():
            run("import", play, "--task", policy.task, *functions, "--output", data)
        return
    size = ("--objects", policy.objects, "--episodes", policy.demonstrations)
    seed = PACKAGED_SEED if policy.seed == PACKAGED_SEED else 0
    run("collect", policy.task, *size, "--seed", seed, "--workers", 1, *shlex.split(policy.collect), "--output", data)


def learn(policy: Policy, folder: Path, further: str) -> None:
    target = folder / policy.name
    if not (target / "policy.json").exists():
        options = (*shlex.split(policy.learn), *shlex.split(further), "--seed", policy.seed, "--workers", 1)
        run("learn", folder / policy.data, "--task", policy.task, *options, "--output", target)


def evaluate(condition: Condition, folder: Path, episodes: int) -> list[Row]:
    """Return a row for each number of objects."""
    policy, output = condition.policy, folder / f"{condition.name}.jsonl"
    options = shlex.split(condition.options.format(policies=folder))
    who = ("--method", "expert") if condition.expert else ("--policy", folder / policy.name)
    about = ("--objects", condition.objects, "--episodes", max(1, round(condition.episodes * episodes)))
    run("evaluate", policy.task, *who, *about, "--seed", policy.seed, "--workers", 1, *options, "--output", output)
    records = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    task = policy.task.removesuffix(":task").rpartition("/")[2].removesuffix(".py")
    head = {"task": task, "method": "bison", "seed": policy.seed, **condition.about}
    return [
        {**head, "objects": objects, **summary([record for record in records if record["objects"] == objects])}
        for objects in sorted({record["objects"] for record in records})
    ]


def summary(records: list[Row]) -> Row:
    """Return how many episodes succeeded, in how many steps on average, and why the others failed."""
    steps = [record["steps"] for record in records if record["outcome"] == "success"]
    reasons = Counter(record["reason"] for record in records if record["outcome"] != "success")
    row: Row = {"episodes": len(records), "successes": len(steps)}
    row["mean_steps"] = round(sum(steps) / len(steps), 1) if steps else None
    return {**row, "reasons": dict(reasons)} if reasons else row


def run_all(conditions: Iterable[Condition], folder: Path, episodes: int, further: str, workers: int) -> Iterator[Row]:
    """Collect, learn and evaluate, as much at the same time as there are workers; yield the rows in their order."""
    conditions = list(conditions)
    policies = dict.fromkeys(each.policy for each in conditions)  # experts need one for its state estimation
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda policy: collect(policy, folder), {policy.data: policy for policy in policies}.values()))
        list(pool.map(lambda policy: learn(policy, folder, further), policies))
        for rows in pool.map(lambda condition: evaluate(condition, folder, episodes), conditions):
            print_table(rows)
            yield from rows


def install(folder: Path, rows: Iterable[Row]) -> None:
    """Put the policies into the package, with how often each succeeded."""
    rows = list(rows)
    for condition in pretrained(0):
        task = condition.policy.task
        successes = {str(row["objects"]): [row["successes"], row["episodes"]] for row in rows if row["task"] == task}
        shutil.rmtree(PACKAGED / task, ignore_errors=True)
        unwanted = shutil.ignore_patterns("training.*", "checkpoints")
        shutil.copytree(folder / condition.policy.name, PACKAGED / task, ignore=unwanted)
        path = PACKAGED / task / "policy.json"
        card = json.loads(path.read_text(encoding="utf-8"))
        command = f"bilevel evaluate --policy {task} --objects 3,5,10 --episodes 100 --seed {PACKAGED_SEED}"
        card["measured"] |= {"successes": successes, "seed": PACKAGED_SEED, "command": command}
        path.write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=EXPERIMENTS)
    parser.add_argument("--tasks", nargs="+", default=[""], help="only tasks and settings whose names begin so")
    parser.add_argument("--seeds", type=int, default=3, help="of learning")
    parser.add_argument("--episodes", type=int, default=20, help="for each policy, condition and number of objects")
    parser.add_argument("--learn", default="", metavar="OPTIONS", help="further options of bilevel learn")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, default=Path("build/success"))
    parser.add_argument("--output", type=Path, help="results/EXPERIMENT.jsonl unless given")
    parser.add_argument("--install", action="store_true", help="put the pretrained policies into the package")
    given = parser.parse_args()
    seeds = 1 if given.experiment == "pretrained" else given.seeds
    conditions = [
        condition
        for seed in range(seeds)
        for condition in EXPERIMENTS[given.experiment](seed)
        if str(condition.about.get("setting", condition.policy.task.rpartition("/")[2])).startswith(tuple(given.tasks))
    ]
    rows = list(run_all(conditions, given.folder, given.episodes, given.learn, given.workers))
    write_rows(given.output or RESULTS / f"{given.experiment}.jsonl", rows)
    if given.install:
        install(given.folder, rows)


if __name__ == "__main__":
    main()
