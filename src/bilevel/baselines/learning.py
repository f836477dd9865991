"""Learning an end-to-end policy from demonstrations, as bilevel ones are learned, but for what is imitated.

A demonstration shows the controls of an expert that both decides and acts. In practice, too, the teacher decides by
itself what to do: it sees what the learner sees, and says what it would do next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bilevel.baselines.end_to_end import EndToEndPolicy
from bilevel.baselines.graph_architecture import GraphArchitecture
from bilevel.baselines.graph_encoding import ENCODINGS
from bilevel.baselines.graph_samples import GraphSamples, encode_graphs, together
from bilevel.demonstrations.dataset import Dataset
from bilevel.learning.bilevel import RECIPES, Curve, LearningConfig, Progress, Tell, learn_networks
from bilevel.lowlevel.architecture import Weights
from bilevel.lowlevel.dagger import Teach
from bilevel.lowlevel.samples import Situation
from bilevel.lowlevel.training import Trained
from bilevel.tabletop.observation import Array, Observation, Slots
from bilevel.tabletop.tasks import find_task


@dataclass(frozen=True)
class LearnedEndToEnd:
    """A policy, and how it came about."""

    method: str
    architecture: GraphArchitecture
    network: Trained
    curves: tuple[Curve, ...]
    samples: int  # that the network was last trained on


@dataclass(frozen=True)
class EndToEndLearner:
    """A network that does all; the teacher is the whole expert."""

    task: str
    arguments: Mapping[str, Any]  # of the environment
    architecture: GraphArchitecture
    weights: Weights
    seed: int

    def begin(self, slots: Slots) -> tuple[EndToEndPolicy, Teach]:
        task = find_task(self.task)
        return EndToEndPolicy(self.architecture, self.weights, task.labels(slots)), task.expert(slots).act

    def encode(
        self, slots: Slots, seen: Sequence[Observation], situations: Sequence[Situation], controls: Array, number: int
    ) -> GraphSamples:
        return encode_graphs(self.architecture.encoding, slots, seen, situations, controls, number)


def end_to_end_architecture(dataset: Dataset, method: str, config: LearningConfig) -> GraphArchitecture:
    return GraphArchitecture(ENCODINGS[method](dataset.task.domain), config.hidden, config.rounds)


def study_graphs(dataset: Dataset, architecture: GraphArchitecture, tell: Tell) -> GraphSamples:
    """Label every demonstration: all of its steps are samples."""
    labels = dataset.task.labels(dataset.manifest.slots)
    parts = []
    for number, demonstration in enumerate(dataset):
        seen = demonstration.observations()[:-1]
        situations = [(labels.state(observation), labels.goal(observation), None) for observation in seen]
        controls = demonstration.controls
        parts.append(encode_graphs(architecture.encoding, labels.slots, seen, situations, controls, number))
        tell(Progress("labelling", number + 1, len(dataset)))
    return together(parts)


def learn_end_to_end(
    dataset: Dataset,
    method: str,
    seeds: Sequence[int],
    config: LearningConfig = RECIPES["best"],
    *,
    workers: int = 1,
    checkpoints: Path | None = None,
    tell: Tell = lambda progress: None,
) -> list[LearnedEndToEnd]:
    """Learn a policy for each seed by one of the methods in `ENCODINGS`; otherwise as `learn_policies` does."""
    architecture = end_to_end_architecture(dataset, method, config)
    recipe = dataset.manifest.recipe

    def learner(network: Trained) -> EndToEndLearner:
        return EndToEndLearner(recipe.task, recipe.arguments, architecture, network.weights, network.seed)

    networks = learn_networks(
        study_graphs(dataset, architecture, tell),
        architecture,
        seeds,
        config,
        learner,
        workers=workers,
        checkpoints=checkpoints,
        tell=tell,
    )
    return [
        LearnedEndToEnd(method, architecture, network.trained, network.curves, network.samples) for network in networks
    ]
