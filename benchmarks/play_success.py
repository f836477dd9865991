"""What is learned from recorded play alone, without goals and without an expert: python benchmarks/play_success.py

Somebody plays with OGBench's cubes, as its own data sets were made. What is kept, vectors and actions, is imported and
cloned, with each training seed, and the policies are run with 1, 3 and 8 cubes. The results are one line an episode.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from result_files import origin, write_rows

import bilevel
from bilevel.learning.dagger import DaggerConfig
from bilevel.learning.networks import LearningConfig
from bilevel.lowlevel.training import TrainingConfig

EXAMPLES = Path(__file__).parents[1] / "examples" / "ogbench"
SIZES = (1, 3, 8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--played", type=int, default=60, help="episodes of play")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--folder", type=Path, default=Path("build/recorded-play"))
    parser.add_argument("--output", type=Path, default=Path("results/recorded-play.jsonl"))
    given = parser.parse_args()
    sys.path.insert(0, str(EXAMPLES))
    from recorded_play import from_vector, hindsight, play

    task = bilevel.find_task(f"{EXAMPLES / 'first_cubes.py'}:task")
    given.folder.mkdir(parents=True, exist_ok=True)
    play(str(given.folder / "play.npz"), episodes=given.played)
    file = given.folder / "play.npz"
    data = bilevel.Demonstrations.from_npz(file, task, perceive=from_vector, hindsight=hindsight)
    training, dagger = TrainingConfig(epochs=given.epochs), DaggerConfig(rounds=0)
    config = LearningConfig(complete=True, training=training, dagger=dagger)
    rows = []
    for seed in range(given.seeds):
        policy = given.folder / f"policy-{seed}"
        bilevel.learn(data, policy, task=task, config=config, seed=seed)
        for record in bilevel.evaluate(policy, task, objects=SIZES, episodes=given.episodes, seed=seed):
            row = {"task": task.name, "objects": record.objects, "training_seed": seed, "seed": record.seed}
            row |= {"success": record.success, "steps": record.steps, "reason": record.reason}
            rows.append({**row, **origin(["ogbench", "mujoco"])})
        won = sum(row["success"] for row in rows if row["training_seed"] == seed)
        print(f"seed {seed}: {won} of {len(SIZES) * given.episodes}", flush=True)
    write_rows(given.output, rows)


if __name__ == "__main__":
    main()
