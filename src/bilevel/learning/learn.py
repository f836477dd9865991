"""Learning a bilevel policy from demonstrations: the rules of its high level and the network of its low level.

Every demonstration is labelled once, which gives the traces that rules are learned from and the samples that the
network is trained on. With DAgger, the policy then acts, and its network is trained further on what it met.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.traces import explain, label
from bilevel.files import remove_leftovers, write_atomically
from bilevel.learning.config import PRESETS, LearningConfig
from bilevel.learning.dagger import BilevelLearner, Practice
from bilevel.learning.networks import Callback, Curve, Progress, TrainedNetwork, train_network
from bilevel.lowlevel.encoding import Encoding, encoding_of
from bilevel.lowlevel.network import GraphNetwork, MakeNetwork
from bilevel.lowlevel.numpy_network import NumpyNetwork
from bilevel.lowlevel.samples import Samples, concatenate, encode_episode
from bilevel.lowlevel.torch_network import TorchNetwork
from bilevel.lowlevel.training import Trained
from bilevel.lowlevel.weights_file import Weights
from bilevel.policies.policy import LowLevelPolicy
from bilevel.policies.policy_folder import BISON, FORMAT, GRAPH, Card, LearnedPolicy, NetworkShape, symbols_of
from bilevel.rules.learning import learn_rules
from bilevel.rules.rule import Rule
from bilevel.rules.traces import Abstraction
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import Controls
from bilevel.tasks.registry import registered_task
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Expert, Task
from bilevel.versions import versions

CURVES = "training.jsonl"


def silent(progress: Progress) -> None:
    """The callback of those who do not want to know how far it is."""


def learn(
    demonstrations: Demonstrations,
    output: Path | str,
    *,
    task: Task | None = None,
    preset: str = "best",
    config: LearningConfig | None = None,
    network: MakeNetwork | None = None,
    seed: int = 0,
    workers: int = 1,
    checkpoints: Path | None = None,
    callback: Callback = silent,
) -> LearnedPolicy:
    """Learn both levels of a policy and write its folder.

        demonstrations = collect(task, "build/cubes", objects=3, episodes=100)
        learn(demonstrations, "build/policy", task=task)
        policy = load_policy("build/policy", task)

    The `task` gives labels and, for DAgger, the environment and the expert; by default it is the one registered under
    the name in the data set. Without one, the labels are those that were recorded, and there is no DAgger. `network`
    makes another low-level network than ours: a function of encoding and controls to a `LowLevelNetwork`.
    """
    began = time.perf_counter()
    task = task or registered_task(demonstrations.task)
    config = config or PRESETS[preset]
    found = study(demonstrations, task, callback)
    make_network = network or partial(GraphNetwork, hidden=config.hidden, rounds=config.rounds)
    kind = GRAPH if network is None else getattr(network, "__name__", type(network).__name__)

    def learner(trained: Trained) -> BilevelLearner:
        about = found.encoding, demonstrations.controls, trained.weights
        make_low: Callable[[], LowLevelPolicy]
        if kind == GRAPH:
            make_low = partial(NumpyNetwork, *about, config.rounds)
        else:
            make_low = partial(_by_torch, make_network, *about)
        return BilevelLearner(demonstrations.domain, found.rules, found.encoding, make_low, seed)

    learned = train_network(
        found.samples,
        partial(make_network, found.encoding, demonstrations.controls),
        seed,
        config,
        learner,
        practice_for(demonstrations, task, config),
        workers=workers,
        checkpoints=checkpoints,
        callback=callback,
    )
    card = make_card(demonstrations, task, learned, config, preset, time.perf_counter() - began)
    counts = {"traces": found.traces, "exogenous": found.exogenous, "ambiguous": found.ambiguous}
    card = msgspec.structs.replace(
        card,
        encoding=symbols_of(found.encoding),
        network=NetworkShape(kind, config.hidden, config.rounds),
        summary=card.summary | counts,
    )
    policy = LearnedPolicy(card, demonstrations.domain, learned.trained.weights, found.rules)
    write_curves(Path(output), learned.curves)
    policy.write(Path(output))
    return policy


def _by_torch(make_network: MakeNetwork, encoding: Encoding, controls: Controls, weights: Weights) -> LowLevelPolicy:
    return TorchNetwork(make_network(encoding, controls), weights)


@dataclass(frozen=True)
class Study:
    """What the demonstrations show, at both levels."""

    rules: tuple[Rule, ...]
    encoding: Encoding
    samples: Samples
    traces: int
    exogenous: int  # changes that no action explains
    ambiguous: int  # changes that several actions explain


def study(demonstrations: Demonstrations, task: Task | None, callback: Callback = silent) -> Study:
    """Label every demonstration, learn the rules, and encode the samples."""
    encoding = encoding_of(demonstrations.domain, demonstrations.spec)
    abstractions: list[Abstraction] = []
    parts: list[Samples] = []
    for number, demonstration in enumerate(demonstrations):
        scenes = demonstration.scenes(demonstrations.spec)
        states, goals = label(demonstration, task, scenes)
        found = explain(demonstration, demonstrations.domain, states, goals)
        situations = list(zip(states, goals, found.actions, strict=False))
        targets = demonstrations.controls.encode(demonstration.controls)
        abstractions.append(found)
        parts.append(encode_episode(encoding, scenes[:-1], situations, targets, number))
        callback(Progress("labelling", number + 1, len(demonstrations)))
    traces = [trace for abstraction in abstractions for trace in abstraction.traces]
    rules = learn_rules(traces, demonstrations.domain)
    if not rules:
        raise BadInput("the demonstrations show no rule: no goal is achieved by an action in them; see `bilevel check`")
    return Study(
        rules=rules,
        encoding=encoding,
        samples=concatenate(parts),
        traces=len(traces),
        exogenous=sum(abstraction.exogenous for abstraction in abstractions),
        ambiguous=sum(abstraction.ambiguous for abstraction in abstractions),
    )


def practice_for(
    demonstrations: Demonstrations, task: Task | None, config: LearningConfig, is_bilevel: bool = True
) -> Practice | None:
    """Where DAgger takes place, if it is wanted and possible."""
    if config.dagger.rounds == 0 or task is None or why_no_dagger(demonstrations, task, is_bilevel):
        return None
    return Practice(task, demonstrations.objects, demonstrations.env_arguments)


def why_no_dagger(demonstrations: Demonstrations, task: Task | None, is_bilevel: bool = True) -> str | None:
    """Why there can be no DAgger; `None` where there is an expert to ask: for an action's control, or for any."""
    if task is None:
        return f"the task '{demonstrations.task}' is not registered here (see --task)"
    expert = task.expert
    if expert is not None and not isinstance(expert, Expert):
        with closing(SceneEnv(task, demonstrations.objects, **demonstrations.env_arguments)) as env:
            expert = env.expert
    if expert is None:
        return f"the task '{task.name}' has no expert"
    if expert.control is None if is_bilevel else not expert.can_show:
        return f"the expert of the task '{task.name}' cannot be asked for controls"
    return None


# What any method keeps of how it was learned


def make_card(
    demonstrations: Demonstrations,
    task: Task | None,
    learned: TrainedNetwork,
    config: LearningConfig,
    preset: str,
    seconds: float,
) -> Card:
    """policy.json of a network that was learned from demonstrations; a method fills in what is its own."""
    network = learned.trained
    settings: dict[str, Any] = {"preset": preset, **msgspec.to_builtins(config)}
    return Card(
        format=FORMAT,
        task=demonstrations.task,
        method=BISON,
        objects=demonstrations.objects,
        arguments=demonstrations.env_arguments,
        seed=network.seed,
        spec=demonstrations.spec.as_json(),
        controls=demonstrations.controls,
        encoding={},
        network=NetworkShape(),
        settings=settings,
        summary={
            "samples": learned.samples,
            "best_epoch": network.best_epoch,
            "validation_loss": network.validation_loss,
            "demonstrations": {"command": demonstrations.command, "episodes": len(demonstrations)},
            "seconds": round(seconds, 1),
        },
        versions=versions([*(task.packages if task else ()), "torch", "safetensors"]),
    )


def write_curves(folder: Path, curves: Iterable[Curve]) -> None:
    """A line of JSON for each epoch."""
    lines = [{"round": curve.round, **msgspec.to_builtins(epoch)} for curve in curves for epoch in curve.epochs]
    remove_leftovers(folder / CURVES)
    write_atomically(folder / CURVES, "".join(f"{msgspec.json.encode(line).decode()}\n" for line in lines))
