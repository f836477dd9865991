"""What a camera is worth: success from pictures and from poses in the same episodes, and how well things are seen.

    python benchmarks/pictures.py                                                 # an hour on 2 cores
    python benchmarks/pictures.py --tasks blocks --objects 3 --episodes 2         # a first impression
    python benchmarks/pictures.py --tasks blocks --policy build/camera/blocks-seen

The detectors are those that `examples/camera_scene/train.py` has left in build/camera/, and so are the policies that
were learned. Rows of the results that are not measured now stay. Each episode is kept in a folder, so that an
interrupted run is taken up where it was.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from bench import RESULTS, ROOT, Row, print_table, read_rows, write_rows

from bilevel import find_task
from bilevel.methods.methods import find_policy
from bilevel.policies.rollout import Transition, rollout
from bilevel.seeds import evaluation_seed
from bilevel.tasks.scene_env import SceneEnv

POLICIES = {
    "blocks": ("camera_scene/from_pictures.py:blocks", "blocks"),
    "colour": ("camera_scene/from_pictures.py:colour", "colour"),
    "cubes": ("ogbench/cubes_from_pictures.py:cubes", "build/camera/cubes-policy"),
}
OBJECTS = {"blocks": (1, 3, 6, 10), "colour": (1, 3, 6, 10), "cubes": (1, 3, 4, 8)}
NEAR = 0.04  # metres; what is seen further off is something else
SEED = 37  # of the episodes


def episodes(name: str, objects: int, wanted: int, policy: str, is_seen: bool, folder: Path) -> list[Row]:
    """Run episodes, from pictures or from poses, and return how each went; those in the folder are read."""
    source = "pictures" if is_seen else "poses"
    path = folder / f"{name}-{objects}-{source}-{Path(policy).name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    known = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    if len(known) >= wanted:
        return known[:wanted]
    task = find_task(f"{ROOT / 'examples'}/{POLICIES[name][0]}")
    recipe: Any = task.make_env
    env = SceneEnv(task if is_seen else recipe.task, objects)
    found = find_policy(policy, task=env.task)
    assert found.make is not None
    acting = found.make(env)
    for episode in range(len(known), wanted):
        compared: list[Row] = []

        def look(transition: Transition) -> None:
            if is_seen and env.info["seen"] is not None:
                rows = recipe.rows(env.env.truth)
                hidden = ~env.env.in_view(rows, env.info["hand"])
                compared.append(compare(rows, hidden, env.info["seen"], list(recipe.kinds)))  # noqa: B023

        wall, cpu = perf_counter(), process_time()
        result = rollout(env, acting, evaluation_seed(SEED, objects, episode), callback=look)
        row: Row = {"outcome": result.outcome, "reason": result.reason, "detail": result.detail, "steps": result.steps}
        row |= {"wall": perf_counter() - wall, "cpu": process_time() - cpu, "pictures": len(compared)}
        known.append(row | {"seen": compared})
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(known[-1], separators=(",", ":")) + "\n")
        print(name, objects, source, episode, row["outcome"], row["reason"], row["steps"], flush=True)
    env.close()
    return known


def compare(true: Any, hidden: Any, seen: Any, kinds: Sequence[str]) -> Row:
    """Return for each kind how many things are missed, hidden by the arm, and false, and errors in millimetres.

    Something is seen if something of its kind and class is seen near it.
    """
    result: Row = {}
    for number, kind in enumerate(kinds):
        left, errors, unseen = list(seen[seen[:, 0] == number]), [], [0, 0]
        for thing, is_hidden in zip(true, hidden, strict=True):
            gaps = [np.linalg.norm(other[2:5] - thing[2:5]) + (other[1] != thing[1]) for other in left]
            if thing[0] == number and min(gaps, default=NEAR) < NEAR:
                other = left.pop(int(np.argmin(gaps)))
                errors.append(np.round(1000 * (other[2:5] - thing[2:5]), 1).tolist())
            elif thing[0] == number:
                unseen[bool(is_hidden)] += 1
        result[kind] = {"missed": unseen[0], "hidden": unseen[1], "false": len(left), "errors": errors}
    return result


def summary(name: str, objects: int, policy: str, is_seen: bool, runs: list[Row]) -> Iterator[Row]:
    """Yield a row about success, and one for each kind of things about how they are seen."""
    source, succeeded = "pictures" if is_seen else "poses", [run for run in runs if run["outcome"] == "success"]
    about = {"task": name, "objects": objects, "policy": Path(policy).name}
    row = {**about, "source": source, "episodes": len(runs), "successes": len(succeeded)}
    row["mean_steps"] = round(float(np.mean([run["steps"] for run in succeeded])), 1) if succeeded else None
    for clock in ("wall", "cpu"):
        row[f"steps_per_{clock}_second"] = round(sum(run["steps"] for run in runs) / sum(run[clock] for run in runs))
    reasons = Counter(run["reason"] for run in runs if run["outcome"] != "success")
    yield {**row, "reasons": dict(reasons)} if reasons else row
    pictures = [picture for run in runs for picture in run["seen"]]
    for kind in pictures[0] if pictures else ():
        parts = [picture[kind] for picture in pictures]
        missed, hidden, false = (sum(part[what] for part in parts) for what in ("missed", "hidden", "false"))
        errors = np.array([error for part in parts for error in part["errors"]]).reshape(-1, 3)
        row = {**about, "kind": kind, "pictures": len(parts), "seen": len(errors), "missed": missed, "false": false}
        row["hidden"] = hidden
        for axis, values in zip("xyz", np.abs(errors).T, strict=True):
            if len(values):
                row |= {f"{axis}_mm": round(float(values.mean()), 2)}
                row |= {f"{axis}_95": round(float(np.quantile(values, 0.95)), 1)}
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=list(OBJECTS), choices=OBJECTS)
    parser.add_argument("--objects", nargs="+", type=int)
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--policy", help="instead of the one that was learned from poses")
    parser.add_argument("--folder", type=Path, default=Path("build/pictures"))
    parser.add_argument("--output", type=Path, default=RESULTS / "pictures.jsonl")
    given = parser.parse_args()
    rows: list[Row] = []
    for name in given.tasks:
        for objects in given.objects or OBJECTS[name]:
            policy = given.policy or POLICIES[name][1]
            for is_seen in (True, False):
                runs = episodes(name, objects, given.episodes, policy, is_seen, given.folder)
                rows += summary(name, objects, policy, is_seen, runs)
    print_table([row for row in rows if "source" in row])
    print_table([row for row in rows if "kind" in row])
    keys = {(row["task"], row["policy"], row["objects"]) for row in rows}
    others = [row for row in read_rows(given.output) if (row["task"], row["policy"], row["objects"]) not in keys]
    write_rows(given.output, [*others, *rows], ("mujoco", "torch"))


if __name__ == "__main__":
    main()
