"""Learning an end-to-end policy from demonstrations, as bilevel ones are learned, but for what is imitated.

A demonstration shows the controls of an expert that both decides and acts. In DAgger, too, the teacher decides by
itself what to do: it sees what the learner sees, and says what it would do next.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from bilevel.baselines.end_to_end import EndToEndPolicy
from bilevel.baselines.end_to_end_folder import END_TO_END, LearnedEndToEnd
from bilevel.baselines.graph_encoding import ENCODINGS, GraphEncoding
from bilevel.baselines.graph_network import EndToEndNetwork
from bilevel.baselines.graph_samples import GraphSamples, concatenate, encode_graphs
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.traces import label
from bilevel.learning.config import PRESETS, LearningConfig
from bilevel.learning.dagger import Teacher
from bilevel.learning.learn import make_card, practice_for, silent, write_curves
from bilevel.learning.networks import Callback, Progress, train_network
from bilevel.lowlevel.samples import Situation
from bilevel.lowlevel.training import Trained
from bilevel.lowlevel.weights_file import Weights
from bilevel.policies.experts import expert_policy
from bilevel.policies.policy_folder import NetworkShape
from bilevel.tasks.controls import Controls
from bilevel.tasks.registry import registered_task
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Task


@dataclass(frozen=True)
class EndToEndLearner:
    """A network that does all; the teacher is the whole expert."""

    encoding: GraphEncoding
    controls: Controls
    weights: Weights
    rounds: int
    seed: int

    def begin(self, env: SceneEnv) -> tuple[EndToEndPolicy, Teacher]:
        policy = EndToEndPolicy(self.encoding, self.controls, self.weights, self.rounds, env.labels)
        return policy, expert_policy(env).act

    def encode(
        self, scenes: Sequence[Scene], situations: Sequence[Situation], targets: Array, number: int
    ) -> GraphSamples:
        return encode_graphs(self.encoding, scenes, situations, targets, number)


def study_graphs(
    demonstrations: Demonstrations, encoding: GraphEncoding, task: Task | None, callback: Callback = silent
) -> GraphSamples:
    """Label every demonstration: all of its steps are samples."""
    parts = []
    for number, demonstration in enumerate(demonstrations):
        scenes = demonstration.scenes(demonstrations.spec)
        labels = zip(*label(demonstration, task, scenes), strict=True)
        situations = [(state, goal, None) for state, goal in labels]
        targets = demonstrations.controls.encode(demonstration.controls)
        parts.append(encode_graphs(encoding, scenes[:-1], situations[:-1], targets, number))
        callback(Progress("labelling", number + 1, len(demonstrations)))
    return concatenate(parts)


def learn_end_to_end(
    demonstrations: Demonstrations,
    output: Path | str,
    method: str,
    *,
    task: Task | None = None,
    preset: str = "best",
    config: LearningConfig | None = None,
    seed: int = 0,
    workers: int = 1,
    checkpoints: Path | None = None,
    callback: Callback = silent,
) -> LearnedEndToEnd:
    """Learn a policy by one of the methods in `ENCODINGS` and write its folder; otherwise as `learn` does."""
    began = time.perf_counter()
    task = task or registered_task(demonstrations.task)
    config = config or PRESETS[preset]
    encoding, controls = ENCODINGS[method](demonstrations.domain, demonstrations.spec), demonstrations.controls

    def learner(trained: Trained) -> EndToEndLearner:
        return EndToEndLearner(encoding, controls, trained.weights, config.rounds, seed)

    learned = train_network(
        study_graphs(demonstrations, encoding, task, callback),
        partial(EndToEndNetwork, encoding, controls, config.hidden, config.rounds),
        seed,
        config,
        learner,
        practice_for(demonstrations, task, config, is_bilevel=False),
        workers=workers,
        checkpoints=checkpoints,
        callback=callback,
    )
    card = make_card(demonstrations, task, learned, config, preset, time.perf_counter() - began)
    card = msgspec.structs.replace(
        card,
        method=method,
        encoding=encoding.symbols,
        network=NetworkShape(END_TO_END, config.hidden, config.rounds),
    )
    policy = LearnedEndToEnd(card, demonstrations.domain, learned.trained.weights)
    write_curves(Path(output), learned.curves)
    policy.write(Path(output))
    return policy
