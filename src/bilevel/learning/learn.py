"""Learning a bilevel policy from demonstrations: the rules of its high level and the network of its low level.

Every demonstration is labelled once, which gives the traces that rules are learned from and the samples that the
network is trained on. With DAgger, the policy then acts, and both are learned further from what it met.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.files import remove_leftovers, write_atomically
from bilevel.learning.completion import RuleLearner
from bilevel.learning.dagger import BilevelLearner, Practice
from bilevel.learning.estimation import fit_estimation
from bilevel.learning.learned_symbols import learn_symbols
from bilevel.learning.networks import (
    Callback,
    LearningConfig,
    LearningOptions,
    Progress,
    TrainedNetwork,
    as_it_was_trained,
    silent,
    train_network,
)
from bilevel.learning.rule_gaps import RuleGaps
from bilevel.learning.study import study, without_irrelevant
from bilevel.lowlevel.encoding import Encoding
from bilevel.lowlevel.network import GraphNetwork, LowLevelNetwork, MakeNetwork, TorchNetwork
from bilevel.lowlevel.numpy_network import NumpyNetwork, Weights
from bilevel.lowlevel.training import Trained
from bilevel.policies.policy import LowLevelPolicy
from bilevel.policies.policy_folder import (
    BISON,
    FORMAT,
    GRAPH,
    Card,
    LearnedPolicy,
    NetworkShape,
    count_parameters,
    symbols_of,
)
from bilevel.rules.learning import PRINTED
from bilevel.symbolic.domain import BadInput, Problem
from bilevel.tasks.controls import BoxControls, Controls
from bilevel.tasks.registry import registered_task
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Expert, Task
from bilevel.versions import versions

CURVES = "training.jsonl"


def learn(
    demonstrations: Demonstrations,
    output: Path | str,
    *,
    task: Task | None = None,
    preset: str = "best",
    config: LearningConfig | None = None,
    network: MakeNetwork | None = None,
    seed: int = 0,
    workers: int | None = 1,
    checkpoints: Path | None = None,
    callback: Callback = silent,
    met: Sequence[Problem] = (),
    learn_domain: bool = False,
) -> LearnedPolicy:
    """Learn both levels of a policy and write its folder.

        demonstrations = collect(task, "build/cubes", objects=3, episodes=100)
        learn(demonstrations, "build/policy", task=task)
        policy = load_policy("build/policy", task)

    The `task` gives labels and, for DAgger, the environment and the expert; by default it is the one registered under
    the name in the data set. Without one, the labels are those that were recorded, and there is no DAgger. `network`
    makes another low-level network than ours: a function of encoding and controls to a `LowLevelNetwork`. `met` are
    situations in which an earlier policy was at a loss; see `read_problems`. With `learn_domain`, the actions of the
    domain are learned from the demonstrations, too, whatever the domain that they have.
    """
    options = LearningOptions(task, preset, config, seed, workers, checkpoints, callback, met)
    if learn_domain:
        demonstrations, options = with_learned_domain(demonstrations, options)
    return learn_bilevel(demonstrations, Path(output), options, network)


def with_learned_domain(
    demonstrations: Demonstrations, options: LearningOptions
) -> tuple[Demonstrations, LearningOptions]:
    """Learn the actions of the domain; return the demonstrations in it, and the options with what was learned."""
    options = with_task(options, demonstrations)
    demonstrations, learned = learn_symbols(demonstrations, options.task)
    return demonstrations, replace(options, learned=learned)


def learn_bilevel(
    demonstrations: Demonstrations, output: Path, options: LearningOptions, network: MakeNetwork | None = None
) -> LearnedPolicy:
    """Learn both levels of a policy and write its folder."""
    config = options.settings
    require_actions(demonstrations)
    if config.algorithm == PRINTED and (config.complete or config.dagger.rounds):
        raise BadInput("rules of Algorithm 1 as printed stay as they are: without completion and without DAgger")
    options = with_task(options, demonstrations)
    found = study(demonstrations, options.task, config, options.callback)
    if config.relevance:
        demonstrations, found = without_irrelevant(demonstrations, found)
    make_network = network or partial(GraphNetwork, hidden=config.hidden, rounds=config.rounds)
    shape = _shape(make_network(found.encoding, demonstrations.controls))
    if options.network is not None:
        shape = _require_fitting(options.network, found.encoding, config).card.network

    rules = RuleLearner(
        found.rules,
        demonstrations.domain,
        found.beginnings,
        options.met,
        config.complete and not demonstrations.domain.adl,
        lambda stage, done, total: options.callback(Progress(stage, done, total)),
    )

    def learner(trained: Trained, gaps: RuleGaps) -> BilevelLearner:
        about = found.encoding, demonstrations.controls, trained.weights
        make_low: Callable[[], LowLevelPolicy]
        if shape.kind == GRAPH:
            make_low = partial(NumpyNetwork, *about, shape.rounds)
        else:
            make_low = partial(_by_torch, make_network, *about)
        known = rules.beyond(gaps)
        about_us = demonstrations.domain, known.rules, found.encoding, make_low, options.seed, known.commit
        return BilevelLearner(*about_us, options.learned.translation if options.learned else None)

    make_ours = partial(make_network, found.encoding, demonstrations.controls)
    practice = practice_for(demonstrations, options)
    if options.network is not None:
        learned = as_it_was_trained(options.network)
    else:
        learned = train_network(found.samples, make_ours, learner, practice, options)
    known = rules.beyond(learned.gaps)
    counts: dict[str, Any] = {
        "traces": found.traces,
        "exogenous": found.exogenous,
        "ambiguous": found.ambiguous,
        "irrelevant": found.irrelevant,
        "rules_shown": known.shown,
        "completion": known.statement,
    }
    if options.learned:
        counts["domain"] = options.learned.summary
    card = make_card(demonstrations, options, learned, BISON, symbols_of(found.encoding), shape, counts)
    body = _body(options.task, demonstrations.controls)
    estimation = fit_estimation(demonstrations)
    card = msgspec.structs.replace(card, longest=found.longest, commit=known.commit, estimation=estimation, **body)
    text = options.learned.text if options.learned else ""
    policy = LearnedPolicy(card, demonstrations.domain, learned.trained.weights, known.rules, domain_text=text)
    write_curve(output, learned)
    policy.write(output)
    return policy


def require_actions(demonstrations: Demonstrations) -> None:
    """`BadInput` for a domain of which no actions are known."""
    if not demonstrations.domain.schemas:
        where = demonstrations.folder or f"the data set of '{demonstrations.task}'"
        remedy = "learn them as well, with --learn-domain, or first: bilevel domain learn"
        raise BadInput(f"{where}: its domain '{demonstrations.domain.name}' has no actions; {remedy}")


def _body(task: Task | None, controls: Controls) -> dict[str, Any]:
    """What a folder says of the robot that the task knows: its switches, and the control that does nothing."""
    if task is None:
        return {}
    still = None if task.still is None else np.asarray(task.still, np.float64).reshape(-1).tolist()
    if still is not None and len(still) != (controls.size if isinstance(controls, BoxControls) else 1):
        raise BadInput(f"the task '{task.name}' names {task.still} as `still`, which is none of its controls")
    return {"switches": list(task.switches), "still": still}


def with_task(options: LearningOptions, demonstrations: Demonstrations) -> LearningOptions:
    """The options with the task that is registered under the name in the data set, where none is given."""
    return replace(options, task=options.task or registered_task(demonstrations.task))


def _shape(network: LowLevelNetwork) -> NetworkShape:
    """What a folder says of its network: all of ours, of another only its name."""
    if type(network) is GraphNetwork:
        return NetworkShape(GRAPH, network.hidden, len(network.rounds))
    return NetworkShape(type(network).__name__)


def _require_fitting(policy: LearnedPolicy, encoding: Encoding, config: LearningConfig) -> LearnedPolicy:
    """Return a policy whose network serves the rules that are learned; `BadInput` where it does not."""
    if policy.card.encoding != symbols_of(encoding):
        raise BadInput("the network that is to be kept was trained with other symbols, or other features")
    if config.dagger.rounds:
        raise BadInput("a network that is kept is not trained any further: there can be no DAgger")
    return policy


def _by_torch(make_network: MakeNetwork, encoding: Encoding, controls: Controls, weights: Weights) -> LowLevelPolicy:
    return TorchNetwork(make_network(encoding, controls), weights)


def practice_for(demonstrations: Demonstrations, options: LearningOptions, is_bilevel: bool = True) -> Practice | None:
    """Where DAgger takes place, if it is wanted and possible."""
    task = options.task
    if options.settings.dagger.rounds == 0 or task is None or why_no_dagger(demonstrations, options, is_bilevel):
        return None
    return partial(SceneEnv, task, demonstrations.objects, **demonstrations.env_arguments)


def why_no_dagger(demonstrations: Demonstrations, options: LearningOptions, is_bilevel: bool = True) -> str | None:
    """Why there can be no DAgger; `None` where there is an expert to ask: for an action's control, or for any."""
    task = options.task
    if task is None:
        return f"the task '{demonstrations.task}' is not registered here (see --task)"
    if is_bilevel and demonstrations.domain.adl:
        return "its domain is in ADL, which has no rules that could act"
    expert = task.expert
    if expert is not None and not isinstance(expert, Expert):
        with closing(SceneEnv(task, demonstrations.objects, **demonstrations.env_arguments)) as env:
            expert = env.expert
    if expert is None:
        return f"the task '{task.name}' has no expert"
    if expert.control is None if is_bilevel else not expert.can_show:
        return f"the expert of the task '{task.name}' cannot be asked for controls"
    if is_bilevel and options.learned and not options.learned.translation.forms:
        return "nobody recorded what the expert calls its actions, so it cannot be asked about learned ones"
    return None


# What any method keeps of how it was learned


def make_card(
    demonstrations: Demonstrations,
    options: LearningOptions,
    learned: TrainedNetwork,
    method: str,
    encoding: dict[str, Any],
    shape: NetworkShape,
    counts: Mapping[str, object],
) -> Card:
    """policy.json of a network that was learned from demonstrations; `counts` join its summary."""
    network = learned.trained
    return Card(
        format=FORMAT,
        task=demonstrations.task,
        method=method,
        objects=demonstrations.objects,
        arguments=demonstrations.env_arguments,
        seed=network.seed,
        spec=demonstrations.spec.as_json(),
        controls=demonstrations.controls,
        encoding=encoding,
        network=shape,
        settings={"preset": options.preset, **msgspec.to_builtins(options.settings)},
        summary={
            "parameters": count_parameters(network.weights),
            "samples": learned.samples,
            "best_epoch": network.best_epoch,
            "validation_loss": network.validation_loss,
            "device": network.device,
            "demonstrations": {"command": demonstrations.command, "episodes": len(demonstrations)},
            **counts,
        },
        versions=versions([*(options.task.packages if options.task else ()), "torch", "safetensors"]),
    )


def write_curve(folder: Path, learned: TrainedNetwork) -> None:
    """Write a line of JSON for each epoch, and one for each round of DAgger before its epochs."""
    lines: list[tuple[int, dict[str, Any]]] = [(found.round, msgspec.to_builtins(found)) for found in learned.rounds]
    lines += [(round_, {"round": round_, **msgspec.to_builtins(epoch)}) for round_, epoch in learned.curve]
    lines.sort(key=lambda line: line[0])
    remove_leftovers(folder / CURVES)
    write_atomically(folder / CURVES, "".join(f"{msgspec.json.encode(line).decode()}\n" for _, line in lines))
