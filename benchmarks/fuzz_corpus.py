"""What is damaged by the fuzzer: small, whole files of every format that a command reads, and the commands that do."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_pddl import ADL_DOMAIN, ADL_PROBLEM, RICH_DOMAIN, RICH_PROBLEM
from msgspec.structs import replace as changed

from bilevel.demonstrations.collection import collect
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.experiments.evaluation import Evaluation, open_results
from bilevel.experiments.hard.curves import CURVES, Curves, FoundCurve, FoundPoint
from bilevel.experiments.methods import find_policy
from bilevel.experiments.reproduction.findings import read_findings
from bilevel.experiments.reproduction.folder import EXPERIMENT, FINDINGS, QUICK, ExperimentFolder
from bilevel.experiments.reproduction.summary import summarise
from bilevel.json_files import encode
from bilevel.learning.learn import learn
from bilevel.learning.networks import LearningConfig, Progress
from bilevel.lowlevel.training import TrainingConfig
from bilevel.symbolic.pddl import write_domain
from bilevel.tasks.registry import find_task

TASK = "task.py:TINY"
QUICKLY = LearningConfig(hidden=4, training=TrainingConfig(epochs=2))
DELIVERY_PROBLEM = """
(define (problem two) (:domain delivery)
  (:objects a b - parcel s t - spot)
  (:init (free) (lying a) (lying b) (empty s) (empty t))
  (:goal (and (at a s) (at b t))))
"""


@dataclass(frozen=True)
class Format:
    """Files of one kind, by a pattern within the corpus, and the words of commands that read them.

    `{path}` is the file, `{folder}` the folder it is in. `weight` is how often it is damaged, compared with others.
    """

    name: str
    files: str
    commands: Sequence[str]
    weight: float = 1.0
    is_json: bool = False
    package: str = ""  # without which nobody reads it


SHOW = ("demonstrations show demos", "demonstrations check demos")
EVALUATE = f"evaluate {TASK} --policy policy --objects 1 --workers 1 --keep-incidents --episodes"
LEARN = f"learn demos --task {TASK} --workers 1 --epochs"
IMPORT = f"import {{path}} --task {TASK} --output out"
REPORT = ("report reproduction --page-only --output out.html",)
VALIDATE = "validate delivery.pddl two.pddl two.plan"
FORMATS = (
    Format("PDDL domain", "delivery.pddl", ["domain show {path}", VALIDATE], 15),
    Format("PDDL domain, rich", "rich.pddl", ["domain show {path}", "validate {path} rich-problem.pddl two.plan"], 8),
    Format("PDDL problem", "two.pddl", [VALIDATE], 15),
    Format("PDDL problem, rich", "rich-problem.pddl", ["validate rich.pddl {path} two.plan"], 8),
    Format("ADL", "adl*.pddl", ["plan adl.pddl adl-problem.pddl --timeout 1 --json"], 2),
    Format("rules", "rules.txt", ["rules show {path}", "solve delivery.pddl two.pddl --rules {path}"], 15),
    Format("rules of a policy", "policy/rules.txt", ["rules show {path}"], 5),
    Format("plan", "two.plan", [VALIDATE, f"{VALIDATE} --json"], 15),
    Format("policy.json", "policy/policy.json", [f"{EVALUATE} 1 --output out"], 3, True),
    Format("weights", "policy/*.safetensors", [f"run {TASK} --policy policy --objects 1 --json"], 1),
    Format("domain of a policy", "policy/domain.pddl", [f"run {TASK} --policy policy --objects 1 --json"], 0.5),
    Format("checkpoints", "unfinished/unfinished/*", [f"{LEARN} 2 --output unfinished --preset paper"], 0.1),
    Format("manifest", "demos/manifest.json", SHOW, 10, True),
    Format("manifest, continued", "demos/manifest.json",
           [f"collect {TASK} --episodes 2 --objects 2 --output demos"], 2, True),
    Format("episodes", "demos/*.npz", [SHOW[0], f"demonstrations replay demos --task {TASK}"], 6),
    Format("domain of data", "demos/domain.pddl", SHOW, 3),
    Format("results", "results.jsonl", [f"{EVALUATE} 2 --output results.jsonl", "compare {path} other.jsonl"], 8, True),
    Format("replayed", "results.jsonl", [f"run {TASK} --replay {{path}} --objects 1 --episode 1 --json"], 2, True),
    Format("timings", "results.timings.jsonl",
           ["compare results.jsonl other.jsonl", f"{EVALUATE} 2 --output results.jsonl"], 4, True),
    Format("incidents", "results.jsonl",
           [f"{LEARN} 1 --dagger-rounds 0 --from-episodes {{path}} --output out"], 0.1, True),
    Format("recorded arrays", "arrays.npz", [IMPORT], 4),
    Format("robomimic", "robomimic.hdf5", [IMPORT], 3, package="h5py"),
    Format("Minari", "minari/data/*", [f"import minari --task {TASK} --format minari --output out"], 1, True, "minari"),
    Format("LeRobot", "lerobot/*/*", [f"import lerobot --task {TASK} --output out"], 2, True, "pyarrow"),
    Format("LeRobot's tables", "lerobot/*/*/*", [f"import lerobot --task {TASK} --output out"], 2, package="pyarrow"),
    Format("curves", "curves.jsonl",
           ["report curves.jsonl --page-only --output out.html"], 0.2, True, "matplotlib"),
    Format("findings", "findings.jsonl",
           ["report findings.jsonl --page-only --output out.html"], 0.2, True, "matplotlib"),
    Format("experiment", "reproduction/experiment.json", REPORT, 0.1, True, "matplotlib"),
    Format("reproduction", "reproduction/*/*.json*", REPORT, 0.2, True, "matplotlib"),
    Format("reproduction, deeper", "reproduction/*/*/*.json", REPORT, 0.2, True, "matplotlib"),
    Format("reproduction's episodes", "reproduction/episodes/*/*/*", REPORT, 0.2, True, "matplotlib"),
)  # fmt: skip


def has(package: str) -> bool:
    """Return whether a package is installed, if one is needed."""
    if not package:
        return True
    try:
        import_module(package)
    except ImportError:
        return False
    return True


def make_corpus(folder: Path, task_file: Path) -> None:
    """Write whole files of all formats into a folder."""
    shutil.copy(task_file, folder / "task.py")
    task = find_task(f"{folder / 'task.py'}:TINY")
    texts = {
        "delivery.pddl": write_domain(task.domain), "two.pddl": DELIVERY_PROBLEM,
        "rich.pddl": RICH_DOMAIN, "rich-problem.pddl": RICH_PROBLEM,
        "adl.pddl": ADL_DOMAIN, "adl-problem.pddl": ADL_PROBLEM,
        "two.plan": "pick(a)\nput(a, s)\npick(b)\nput(b, t)\n",
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    demonstrations = collect(task, folder / "demos", objects=2, episodes=2)
    learn(demonstrations, folder / "policy", task=task, preset="paper", config=QUICKLY)
    shutil.copy(folder / "policy" / "rules.txt", folder / "rules.txt")
    _begin_learning(demonstrations, folder / "unfinished", task)
    for name, seed in (("results.jsonl", 0), ("other.jsonl", 0)):
        policy = replace(find_policy("bison", folder / "policy"), policy="policy")
        evaluation = Evaluation(policy, task, (1,), 2, seed, keep_incidents=True)
        with open_results(folder / name, evaluation) as results:
            list(results.collect())
    _write_recordings(demonstrations, folder)
    _write_reproduction(folder)


def _begin_learning(demonstrations: Demonstrations, folder: Path, task: Any) -> None:
    """Leave learning after its first epoch, with a checkpoint."""

    def stop(progress: Progress) -> None:
        if progress.epoch:
            raise KeyboardInterrupt

    unfinished = folder / "unfinished"
    unfinished.mkdir(parents=True)
    config = replace_epochs(2)
    with suppress(KeyboardInterrupt):
        learn(demonstrations, folder, task=task, preset="paper", config=config, checkpoints=unfinished, callback=stop)


def replace_epochs(epochs: int) -> LearningConfig:
    """Return the paper's setting with so many epochs, as the command has it."""
    from msgspec.structs import replace as changed

    from bilevel.learning.networks import PRESETS

    usual = PRESETS["paper"]
    return changed(usual, training=changed(usual.training, epochs=epochs))


def _write_recordings(demonstrations: Demonstrations, folder: Path) -> None:
    """Write the demonstrations as others keep theirs, as far as the packages for that are there."""
    first = next(iter(demonstrations))
    parcels, spots = (first.features[:, rows] for rows in (slice(0, 2), slice(2, 4)))
    seen = {"agent": first.agent, "parcels": parcels[..., :3], "spots": spots[..., :2]}
    seen["arrived"] = np.full(len(first.agent), 2)
    before = {f"observations/{name}": array[:-1] for name, array in seen.items()}
    after = {f"next_observations/{name}": array[1:] for name, array in seen.items()}
    arrays: dict[str, Any] = {"actions": first.controls, **before, **after}
    np.savez(folder / "arrays.npz", **arrays)
    if has("h5py"):
        import h5py

        with h5py.File(folder / "robomimic.hdf5", "w") as file:
            group = file.create_group("data/demo_0")
            file["data"].attrs["env_args"] = json.dumps({"env_name": "Lift", "env_kwargs": {}})
            for name, array in before.items():
                group[name.replace("observations", "obs")] = array
            group["actions"], group["rewards"] = first.controls, np.ones(len(first.controls))
    if has("pyarrow"):
        from bilevel.demonstrations.lerobot_export import export_to_lerobot

        export_to_lerobot(demonstrations, folder / "lerobot")
    if has("minari"):
        from bilevel.demonstrations.minari_export import export_to_minari

        with tempfile.TemporaryDirectory() as root, patched("MINARI_DATASETS_PATH", root):
            export_to_minari(demonstrations, "fuzz/data-v0")
            shutil.copytree(Path(root) / "fuzz" / "data-v0", folder / "minari")


@contextmanager
def patched(name: str, value: str) -> Iterator[None]:
    """Set an environment variable for a while."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _write_reproduction(folder: Path) -> None:
    """Write the folder of a reproduction by hand: a real one takes minutes."""
    place = folder / "reproduction"
    episodes = place / "episodes" / "blocks" / "expert-0"
    episodes.mkdir(parents=True)
    (place / EXPERIMENT).write_text(encode(QUICK), encoding="utf-8")
    for ending in ("", ".timings"):
        lines = (folder / f"results{ending}.jsonl").read_text(encoding="utf-8").splitlines()
        known = [json.loads(line) for line in lines]
        known = [{**line, **({"policy_digest": None, "task": "blocks"} if not ending else {})} for line in known]
        text = "".join(f"{json.dumps(line)}\n" for line in known)
        (episodes / f"01{ending}.jsonl").write_text(text, encoding="utf-8")
    machine = {"cpu": "x", "cores": 2, "system": "Linux"}
    scaling = {"kind": "scaling", "task": "blocks", "solver": "rules", "objects": 10, "seconds": 0.1, "solved": True}
    parts = {
        "runs/1.json": {"machine": machine},
        "memory/blocks/expert.json": {"objects": 1, "peak_mebibytes": 99.5, "machine": machine},
        "costs/blocks/bison-paper-0.json": {"seconds": 9.5, "peak_mebibytes": 99.5, "device": "cpu", "networks": 1},
        "scaling/blocks-rules-10.json": {
            **scaling, "timed_out": False, "actions": 20, "peak_mebibytes": 50.0, "versions": {}, "machine": machine
        },
        "failures/1.json": {"unit": "train blocks", "error": "it failed"},
        "films/blocks.json": {
            "task": "blocks", "entrant": "expert", "objects": 1, "seed": 1, "outcome": "success", "steps": 9,
            "steps_per_second": 20.0, "pictures_per_second": 20.0, "seconds": 2.0,
            "beats": [{"step": 0, "action": "go", "rule": None, "appeared": [], "vanished": ["x"], "goals_left": [],
                       "events": ["y"]}],
        },
    }  # fmt: skip
    for name, value in parts.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(json.dumps(value), encoding="utf-8")
    (place / "films" / "blocks.mp4").write_bytes(b"no film, but nobody looks")
    found = summarise(ExperimentFolder(place, QUICK), "bilevel reproduce").lines()
    (folder / FINDINGS).write_text(found, encoding="utf-8")
    point = FoundPoint(0.001, 0, 10, 4, 3, {"time": 1}, 900.5, 120.5, 0.2, 0.5)
    curve = FoundCurve("teleports", "blocks-noisy", "bison", 10, [point, changed(point, value=0.002)])
    curves = Curves(read_findings(folder / FINDINGS).about, [curve, changed(curve, axis="symbols", objects=None)])
    (folder / CURVES).write_text(curves.lines(), encoding="utf-8")
