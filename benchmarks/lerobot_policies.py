"""How often policies succeed that LeRobot trained on our demonstrations, with BISON cloned from the same ones:

    python benchmarks/lerobot_policies.py                                     # an hour of one core, if it is alone
    python benchmarks/lerobot_policies.py --only act-blocks-1 --episodes 5    # a first impression
    python benchmarks/lerobot_policies.py --trained                           # the last checkpoints, as they are

LeRobot's environment is needed; `bilevel lerobot install` makes it. Everything is kept in a folder, so an interrupted
run is taken up at LeRobot's last checkpoint. Rows say how many objects were shown, and how many were there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench import RESULTS, ROOT, Row, print_table, run, write_rows
from success import summary

from bilevel.methods.lerobot import environment_folder

BATCH, RATE, SECONDS = 128, 5e-4, "seconds.txt"
# Small networks, which a core can train, with settings other than LeRobot's own: actions are planned further ahead than
# they are carried out; there is one right action, so ACT does without its variational part and without dropout.
KINDS = {
    "act": "--policy.dim_model=128 --policy.n_heads=4 --policy.dim_feedforward=512 --policy.chunk_size=16 "
    "--policy.n_action_steps=8 --policy.use_vae=false --policy.dropout=0.0",
    "diffusion": "--policy.down_dims=[64,128] --policy.noise_scheduler_type=DDIM --policy.num_inference_steps=10",
}
OPTIMISER = f"""--use_policy_training_preset=false --optimizer.type=adamw --optimizer.weight_decay=1e-4
  --optimizer.lr={RATE} --optimizer.grad_clip_norm=10 --scheduler.type=cosine_decay_with_warmup
  --scheduler.peak_lr={RATE} --scheduler.decay_lr=1e-6 --scheduler.num_warmup_steps=200"""
PROGRAM = "--policy.push_to_hub=false --num_workers=0 --seed=0 --save_freq=500 --log_freq=100"


class Training(NamedTuple):
    """What is trained on what, for so many updates."""

    kind: str
    task: str
    objects: int
    demonstrations: int
    updates: int

    @property
    def data(self) -> str:
        return f"{self.task}-{self.objects}"

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.data}"


TRAININGS = (
    Training("act", "blocks", 1, 400, 20_000),
    Training("act", "blocks", 3, 400, 20_000),
    Training("diffusion", "blocks", 1, 400, 15_000),
    Training("act", "colour", 3, 400, 10_000),
    Training("diffusion", "blocks", 3, 400, 15_000),
    Training("diffusion", "colour", 3, 400, 8_000),
)


def collect(training: Training, folder: Path) -> None:
    """Collect demonstrations of a pushed expert, and export them for LeRobot."""
    data, about = folder / training.data, ("--objects", training.objects, "--episodes", training.demonstrations)
    run("collect", training.task, *about, "--seed", 0, "--noise", 0.7, "--workers", 1, "--output", data)
    exported = folder / f"{training.data}-lerobot"
    if not exported.exists():
        run("demonstrations", "export", data, "--lerobot", exported)


def last_checkpoint(training: Training, folder: Path) -> Path:
    """Return where LeRobot keeps the last checkpoint."""
    return folder / training.name / "checkpoints" / "last"


def train(training: Training, folder: Path, device: str) -> Path:
    """Let LeRobot train, from its last checkpoint if there is one; return the folder of the last one."""
    output, last = folder / training.name, last_checkpoint(training, folder)
    about = {
        "dataset.repo_id": f"bilevel/{training.data}",
        "dataset.root": f"{folder / training.data}-lerobot",
        "output_dir": output,
        "policy.type": training.kind,
        "policy.device": device,
        "batch_size": BATCH,
        "steps": training.updates,
        "scheduler.num_decay_steps": training.updates,
    }
    words = [f"--{name}={value}" for name, value in about.items()]
    words += [*KINDS[training.kind].split(), *OPTIMISER.split(), *PROGRAM.split()]
    if last.exists():
        words = [f"--config_path={last / 'pretrained_model' / 'train_config.json'}", "--resume=true"]
    if not last.exists() or int(last.resolve().name) < training.updates:
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        environment.pop("PYTHONPATH", None)
        program = [str(environment_folder() / "bin" / "python"), str(ROOT / "benchmarks" / "lerobot_train.py")]
        with (folder / f"{training.name}.log").open("a", encoding="utf-8") as log:
            subprocess.run([*program, *words], check=True, env=environment, stdout=log, stderr=log)
    return last.resolve()


def evaluate(name: str, policy: Path, training: Training, folder: Path, episodes: int, method: str) -> Iterator[Row]:
    """Yield how often a policy succeeds with as many objects as it was shown, and fewer."""
    output, numbers = folder / f"{name}.jsonl", range(1, training.objects + 1)
    about = ("--objects", f"1-{training.objects}", "--episodes", episodes, "--seed", 0, "--workers", 1)
    run("evaluate", training.task, "--policy", policy, "--method", method, *about, "--output", output)
    records = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    for objects in numbers:
        yield {"objects": objects, **summary([record for record in records if record["objects"] == objects])}


def rows_of(training: Training, folder: Path, episodes: int, is_trained: bool, device: str) -> Iterator[Row]:
    """Train, unless that is done, evaluate, and yield the rows of LeRobot's policy and of BISON's."""
    about = {"task": training.task, "shown": training.objects, "demonstrations": training.demonstrations}
    collect(training, folder)
    checkpoint = last_checkpoint(training, folder).resolve() if is_trained else train(training, folder, device)
    updates, noted = int(checkpoint.name), checkpoint / SECONDS
    seconds = round(float(noted.read_text(encoding="utf-8"))) if noted.exists() else None
    trained = {"updates": updates, "of_updates": training.updates, "samples": updates * BATCH}
    trained |= {"training_seconds": seconds} if seconds else {}
    policy = checkpoint / "pretrained_model"
    trained["device"] = json.loads((policy / "config.json").read_text(encoding="utf-8"))["device"]
    options = f"lerobot-train --policy.type={training.kind} {KINDS[training.kind]}"
    for row in evaluate(f"{training.name}-{updates}", policy, training, folder, episodes, "lerobot"):
        yield {"method": training.kind, **about, **row, **trained, "trained_by": options}
    policy, options = folder / f"bison-{training.data}", "bilevel learn --dagger-rounds 0"
    if not (policy / "policy.json").exists():
        done = run(
            "learn", folder / training.data, "--dagger-rounds", 0, "--seed", 0, "--workers", 1, "--output", policy
        )
        (policy / SECONDS).write_text(f"{done.seconds:.1f}\n", encoding="utf-8")
    seconds = round(float((policy / SECONDS).read_text(encoding="utf-8")))
    for row in evaluate(policy.name, policy, training, folder, episodes, "bison"):
        yield {"method": "bison", **about, **row, "training_seconds": seconds, "trained_by": options}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="+", default=[""], help="only trainings whose names begin so, such as act-blocks"
    )
    parser.add_argument("--trained", action="store_true", help="evaluate what was trained, and train no further")
    parser.add_argument("--device", default="cpu", help="what LeRobot trains on, such as cuda")
    parser.add_argument("--episodes", type=int, default=20, help="for each number of objects")
    parser.add_argument("--folder", type=Path, default=Path("build/lerobot-benchmark"))
    parser.add_argument("--output", type=Path, default=RESULTS / "lerobot.jsonl")
    given = parser.parse_args()
    rows: dict[str, Row] = {}  # BISON's come twice where two policies were trained on the same data
    given.folder.mkdir(parents=True, exist_ok=True)
    for training in TRAININGS:
        there = last_checkpoint(training, given.folder).exists()
        if training.name.startswith(tuple(given.only)) and (there or not given.trained):
            for row in rows_of(training, given.folder.absolute(), given.episodes, given.trained, given.device):
                rows[json.dumps(row)] = row
            print_table(list(rows.values()))
            write_rows(given.output, rows.values(), ["torch"])


if __name__ == "__main__":
    main()
