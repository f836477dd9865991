"""Learning a policy from demonstrations, by any method that is learned.

For a bilevel policy, every demonstration is labelled once, which gives the traces that rules are learned from and the
samples that the network is trained on; a rival's network does all, so all steps are its samples. With DAgger, the
policy then acts, and is learned further from what it met. There is a checkpoint for each round of DAgger, in the folder
`unfinished/` of the policy: the same call goes on where an earlier one was stopped.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.traces import explain, label
from bilevel.files import folder_lock, write_atomically
from bilevel.learning.dagger import BilevelAgent, DaggerAgent, RandomPrefixPolicy
from bilevel.learning.learned_domain import LearnedSymbols, learn_symbols
from bilevel.learning.networks import PRESETS, LearningConfig, LearningRun, Round, TrainedNetwork
from bilevel.learning.rules import RuleCompletion, seed_problems
from bilevel.lowlevel.encoding import Encoding, Samples, encode_episode, encoding_of
from bilevel.lowlevel.network import GraphNetwork, LowLevelNetwork, MakeNetwork, TorchNetwork
from bilevel.lowlevel.numpy_network import NumpyNetwork, Weights
from bilevel.lowlevel.relevance import irrelevant_arguments, without
from bilevel.lowlevel.training import Trained, find_device
from bilevel.methods.end_to_end import (
    ENCODINGS,
    KIND,
    EndToEndNetwork,
    EndToEndPolicy,
    GraphSamples,
    encode_graphs,
    matching_hidden,
)
from bilevel.methods.methods import BILEVEL, find_method
from bilevel.metrics import open_log
from bilevel.policies.episode import read_problems
from bilevel.policies.folder import (
    BISON,
    FORMAT,
    GRAPH,
    MAX_HIDDEN,
    POLICY,
    UNFINISHED,
    Card,
    LearnedNetwork,
    LearnedPolicy,
    NetworkShape,
    count_parameters,
    symbols_of,
)
from bilevel.policies.policy import LowLevelPolicy
from bilevel.progress import Callback, Progress, silent
from bilevel.rules.learning import PRINTED, learn_rules
from bilevel.rules.rule import Rule
from bilevel.rules.traces import Abstraction
from bilevel.symbolic.domain import BadInput, Facts, Problem
from bilevel.tasks import estimation_fitting
from bilevel.tasks.controls import BoxControls
from bilevel.tasks.estimation import Estimation
from bilevel.tasks.registry import registered_task
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Expert, Task
from bilevel.versions import versions

CURVES, PICTURE, OPTIONS = "training.jsonl", "training.png", "options.json"
ENOUGH_FOR_ESTIMATION = 50  # demonstrations; further ones say nothing new about how things move


def learn(
    demonstrations: Demonstrations,
    output: Path | str,
    *,
    task: Task | None = None,
    method: str = BISON,
    preset: str = "best",
    seed: int = 0,
    config: LearningConfig | None = None,
    network: MakeNetwork | LearnedPolicy | None = None,
    from_episodes: Sequence[Path] = (),
    learn_domain: bool = False,
    workers: int | None = 1,
    callback: Callback = silent,
    log: str | None = None,
) -> LearnedNetwork:
    """Learn a policy and write its folder; where an earlier call was stopped, go on from there.

        demonstrations = collect(task, "build/cubes", objects=3, episodes=100)
        learn(demonstrations, "build/policy", task=task)
        policy = load_policy("build/policy", task)

    The `task` gives labels and, for DAgger, the environment and the expert; by default it is the one registered under
    the name in the data set. Without one, the labels are those that were recorded, and there is no DAgger. A `config`
    goes before the `preset`. `network` makes another low-level network than ours: a function of encoding and controls
    to a `LowLevelNetwork`; or it is a learned policy, whose network is kept, so that rules alone are learned. With
    `from_episodes`, results of an evaluation that kept incidents, rules are completed for the situations in which that
    policy had none. With `learn_domain`, the actions of the domain are learned from the demonstrations, too, whatever
    the domain that they have. `log` is "tensorboard=DIR" or "wandb=PROJECT".
    """
    output, config, learned = Path(output), config or PRESETS[preset], None
    training = find_method(method).training
    if training is None:
        raise BadInput(f"the method '{method}' is not learned: `bilevel evaluate --method {method}` runs it as it is")
    _check_config(config, seed, from_episodes)
    task = task or registered_task(demonstrations.task)
    if not learn_domain:
        _require_actions(demonstrations)
    options = {"method": method, "preset": preset, "seed": seed, "learn_domain": learn_domain}
    about = {"task": demonstrations.task, **options, **msgspec.to_builtins(config)}
    with open_log(log, about) as note, _output_folder(output, about) as unfinished:
        if learn_domain:
            callback(Progress("learning the domain", 0, 1))
            demonstrations, learned = learn_symbols(demonstrations, task)
        problems = read_problems(from_episodes, demonstrations.domain)
        why_not = why_no_dagger(demonstrations, task, training == BILEVEL, learned) if config.dagger.rounds else None
        run = LearningRun(
            demonstrations, task, method, preset, config, seed, workers, learned, why_not, unfinished, callback, note
        )
        if training == BILEVEL:
            policy, trained = _learn_bilevel(run, network, problems)
        else:
            policy, trained = _learn_end_to_end(run)
        _write_curve(output, trained, config.dagger.episodes)
        policy.write(output)
        shutil.rmtree(unfinished)
    return policy


def _check_config(config: LearningConfig, seed: int, from_episodes: Sequence[Path]) -> None:
    """`BadInput` for settings that do not go together, or cannot be met here."""
    if not 0 <= seed < 2**63:
        raise BadInput(f"--seed must be from 0 to {2**63 - 1}, but is {seed}")
    if config.algorithm == PRINTED and (config.complete or config.dagger.rounds):
        raise BadInput("rules of Algorithm 1 as printed stay as they are: without completion and without DAgger")
    if from_episodes and not config.complete:
        raise BadInput("--from-episodes is for completing rules: add --completion on")
    for hidden in (config.hidden, config.end_to_end_hidden or 1):
        if not 1 <= hidden <= MAX_HIDDEN:
            raise BadInput(f"--hidden must be from 1 to {MAX_HIDDEN}, but is {hidden}")
    find_device(config.training.device)


def _require_actions(demonstrations: Demonstrations) -> None:
    """`BadInput` for a domain of which no actions are known."""
    if not demonstrations.domain.schemas:
        where = demonstrations.folder or f"the data set of '{demonstrations.task}'"
        remedy = "learn them as well, with --learn-domain, or first: bilevel domain learn"
        raise BadInput(f"{where}: its domain '{demonstrations.domain.name}' has no actions; {remedy}")


# Bilevel policies


@dataclass(frozen=True)
class LabelledData:
    """What the demonstrations show, at both levels."""

    rules: tuple[Rule, ...]
    encoding: Encoding
    samples: Samples
    seeds: tuple[Problem, ...]  # a problem for each kind of beginning
    longest: dict[str, int]  # demonstration of each schema, in steps
    summary: dict[str, Any]  # what policy.json says of them


def label_demonstrations(
    demonstrations: Demonstrations,
    task: Task | None,
    config: LearningConfig | None = None,
    callback: Callback = silent,
) -> LabelledData:
    """Label every demonstration, learn the rules, and encode the samples, by the paper's settings if none are given."""
    config = config or LearningConfig()
    domain, encoding = demonstrations.domain, encoding_of(demonstrations.domain, demonstrations.spec)
    abstractions: list[Abstraction] = []
    beginnings: list[tuple[Facts, Facts, Mapping[str, str]]] = []
    parts: list[Samples] = []
    for number, demonstration in enumerate(demonstrations):
        scenes = demonstration.scenes(demonstrations.spec)
        states, goals = label(demonstration, task, scenes)
        found = explain(demonstration, domain, states, goals, use_recorded=config.recorded_actions)
        situations = list(zip(states, goals, found.actions, strict=False))
        targets = demonstration.targets(demonstrations.controls)
        abstractions.append(found)
        fullest = max(range(len(scenes)), key=lambda step: len(scenes[step].objects))
        beginnings += ((states[step], goals[step], scenes[step].objects) for step in sorted({0, fullest}))
        parts.append(encode_episode(encoding, scenes[:-1], situations, targets, number))
        callback(Progress("labelling", number + 1, len(demonstrations)))
    traces = [trace for abstraction in abstractions for trace in abstraction.traces]
    rules = learn_rules(traces, domain, config.algorithm)
    if not rules and not domain.adl:
        raise BadInput("the demonstrations show no rule: no goal is achieved by an action in them; see `bilevel check`")
    longest: dict[str, int] = {}
    for abstraction in abstractions:
        for action, steps in groupby(abstraction.actions):
            if action is not None:
                longest[action.name] = max(longest.get(action.name, 0), len(list(steps)))
    return LabelledData(
        rules=rules,
        encoding=encoding,
        samples=Samples.concatenate(parts),
        seeds=seed_problems(domain, beginnings),
        longest=dict(sorted(longest.items())),
        summary={
            "traces": len(traces),
            "exogenous": sum(abstraction.exogenous for abstraction in abstractions),
            "ambiguous": sum(abstraction.ambiguous for abstraction in abstractions),
            "irrelevant": {},
        },
    )


def _without_irrelevant(demonstrations: Demonstrations, data: LabelledData) -> tuple[Demonstrations, LabelledData]:
    """Leave arguments out that play no part in how their actions are done, as far as the samples show."""
    spec, domain = demonstrations.spec, demonstrations.domain
    more = irrelevant_arguments(data.samples, data.encoding)
    irrelevant = {
        name: tuple(domain.schemas[name].parameters[number].name for number in sorted(numbers))
        for name, numbers in more.items()
    }
    untold = {name: (*spec.untold.get(name, ()), *irrelevant.get(name, ())) for name in {**spec.untold, **irrelevant}}
    spec = replace(spec, untold=untold)
    samples, encoding = without(data.samples, data.encoding, more), encoding_of(domain, spec)
    summary = {**data.summary, "irrelevant": irrelevant}
    return demonstrations.with_spec(spec), replace(data, encoding=encoding, samples=samples, summary=summary)


def _learn_bilevel(
    run: LearningRun, network: MakeNetwork | LearnedPolicy | None, problems: Sequence[Problem]
) -> tuple[LearnedNetwork, TrainedNetwork]:
    config, learned, domain = run.config, run.learned, run.demonstrations.domain
    data = label_demonstrations(run.demonstrations, run.task, config, run.callback)
    if config.relevance:
        demonstrations, data = _without_irrelevant(run.demonstrations, data)
        run = replace(run, demonstrations=demonstrations)
    controls, encoding = run.demonstrations.controls, data.encoding
    kept = network if isinstance(network, LearnedPolicy) else None
    make = partial(GraphNetwork, hidden=config.hidden, rounds=config.rounds)
    make_network = partial(network if network and not isinstance(network, LearnedPolicy) else make, encoding, controls)
    made = make_network()
    is_own = type(made) is GraphNetwork
    shape = NetworkShape(GRAPH, config.hidden, config.rounds) if is_own else NetworkShape(type(made).__name__)
    completion = RuleCompletion(
        domain,
        data.seeds if config.complete and not domain.adl else (),
        problems,
        lambda stage, done, total: run.callback(Progress(stage, done, total)),
    )
    first = completion.complete(data.rules, len(data.rules))

    def make_agent(trained: TrainedNetwork) -> Callable[[SceneEnv], DaggerAgent]:
        rules = completion.fill(first, trained.gaps)
        weights = trained.network.weights
        make_low: Callable[[], LowLevelPolicy] = partial(_in_torch, make_network, weights)
        if is_own:
            make_low = partial(NumpyNetwork, encoding, controls, weights, config.rounds)
        translation = learned.translation if learned else None
        return partial(BilevelAgent, domain, rules.rules, rules.commit, make_low, translation)

    if kept:
        trained, shape = _kept_network(kept, encoding, config), kept.card.network
    else:
        trained = run.train(data.samples, make_network, make_agent, partial(encode_episode, encoding))
    rules = completion.fill(first, trained.gaps)
    summary = {**data.summary, "rules_shown": rules.shown, "completion": rules.statement}
    if learned:
        summary["domain"] = learned.summary
    card = msgspec.structs.replace(
        _card(run, trained, BISON, symbols_of(encoding), shape, summary),
        longest=data.longest,
        commit=rules.commit,
        estimation=fit_estimation(run.demonstrations),
        switches=list(run.task.switches) if run.task else None,
        still=_still_control(run),
    )
    text = learned.text if learned else ""
    return LearnedPolicy(card, domain, trained.network.weights, rules.rules, domain_text=text), trained


def _kept_network(policy: LearnedPolicy, encoding: Encoding, config: LearningConfig) -> TrainedNetwork:
    """Return the network of a policy as it was trained; `BadInput` where it does not serve what is learned."""
    if policy.card.encoding != symbols_of(encoding):
        raise BadInput("the network that is to be kept was trained with other symbols, or other features")
    if config.dagger.rounds:
        raise BadInput("a network that is kept is not trained any further: there can be no DAgger")
    about = policy.card.summary
    network = Trained(policy.weights, policy.card.seed, about["best_epoch"], about["validation_loss"], about["device"])
    return TrainedNetwork((Round(network),), about["samples"])


def _in_torch(make_network: Callable[[], LowLevelNetwork], weights: Weights) -> LowLevelPolicy:
    return TorchNetwork(make_network(), weights)


def _still_control(run: LearningRun) -> list[float] | None:
    """Return the control that does nothing, if the task names one."""
    if run.task is None or run.task.still is None:
        return None
    still: list[float] = np.asarray(run.task.still, np.float64).reshape(-1).tolist()
    controls = run.demonstrations.controls
    if len(still) != (controls.size if isinstance(controls, BoxControls) else 1):
        raise BadInput(f"the task '{run.task.name}' names {run.task.still} as `still`, which is none of its controls")
    return still


def fit_estimation(demonstrations: Demonstrations) -> Estimation:
    """Return what demonstrations show of how things move, for an `Estimator`."""
    spec, are_numbers = demonstrations.spec, isinstance(demonstrations.controls, BoxControls)

    def episodes() -> Iterator[tuple[Sequence[Scene], Array | None]]:
        for number in range(min(len(demonstrations), ENOUGH_FOR_ESTIMATION)):
            shown = demonstrations[number]
            controls = shown.executed.reshape(shown.steps, -1) if are_numbers else None
            yield shown.scenes(spec), controls

    return estimation_fitting.fit_estimation(spec, episodes())


# Rivals: a network that does all


def _learn_end_to_end(run: LearningRun) -> tuple[LearnedNetwork, TrainedNetwork]:
    demonstrations, config, domain = run.demonstrations, run.config, run.demonstrations.domain
    encoding, controls = ENCODINGS[run.method](domain, demonstrations.spec), demonstrations.controls
    parts = []
    for number, demonstration in enumerate(demonstrations):
        scenes = demonstration.scenes(demonstrations.spec)
        labels = zip(*label(demonstration, run.task, scenes), strict=True)
        situations = [(state, goal, None) for state, goal in labels]
        targets = demonstration.targets(controls)
        parts.append(encode_graphs(encoding, scenes[:-1], situations[:-1], targets, number))
        run.callback(Progress("labelling", number + 1, len(demonstrations)))
    like = encoding_of(domain, demonstrations.spec)
    hidden = config.end_to_end_hidden or matching_hidden(encoding, like, controls, config.hidden, config.rounds)
    make_network = partial(EndToEndNetwork, encoding, controls, hidden, config.rounds)

    def make_agent(trained: TrainedNetwork) -> Callable[[SceneEnv], DaggerAgent]:
        return partial(RandomPrefixPolicy, partial(_end_to_end_policy, make_network, trained.network.weights))

    samples = GraphSamples.concatenate(parts)
    trained = run.train(samples, make_network, make_agent, partial(encode_graphs, encoding))
    shape = NetworkShape(KIND, hidden, config.rounds)
    card = _card(run, trained, run.method, encoding.symbols, shape, {})
    return LearnedNetwork(card, domain, trained.network.weights), trained


def _end_to_end_policy(make_network: Callable[[], EndToEndNetwork], weights: Weights, env: SceneEnv) -> EndToEndPolicy:
    network = make_network()
    network.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})
    return EndToEndPolicy(network, env.labels)


def why_no_dagger(
    demonstrations: Demonstrations, task: Task | None, is_bilevel: bool, learned: LearnedSymbols | None
) -> str | None:
    """Return why there can be no DAgger; `None` where there is an expert to ask: for an action's control, or any."""
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
    if is_bilevel and learned and not learned.translation.forms:
        return "nobody recorded what the expert calls its actions, so it cannot be asked about learned ones"
    return None


# The folder while it is unfinished


@contextmanager
def _output_folder(output: Path, options: Mapping[str, Any]) -> Iterator[Path]:
    """Lock the folder of a policy, new or unfinished, and give the folder in it for checkpoints.

    `BadInput` where there is something else, or what is unfinished was begun with other options.
    """
    unfinished = output / UNFINISHED
    path, now = unfinished / OPTIONS, dict(_flat(options))
    if not path.exists():
        if (output / POLICY).exists():
            raise BadInput(f"{output}: already holds a policy; choose another --output or remove it")
        if output.exists() and (not output.is_dir() or any(file.name != UNFINISHED for file in output.iterdir())):
            raise BadInput(f"{output}: there is something else; choose a new folder as --output")
    with folder_lock(unfinished, "learning"):
        if any(unfinished.glob("*.safetensors")):
            _check_resume_options(output, json.loads(path.read_text(encoding="utf-8")), now)
        write_atomically(path, json.dumps(now) + "\n")
        yield unfinished


def _check_resume_options(output: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """`BadInput` where learning was begun with other options."""
    changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if changed:
        differences = ", ".join(f"{name} {before.get(name)} instead of {now.get(name)}" for name in changed[:3])
        raise BadInput(
            f"{output}: learning was begun here with {differences}; "
            "give the same options again, remove the folder, or choose another --output"
        )


def _flat(options: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all options in one level, those of a part with its name before them."""
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name} ")
        else:
            yield prefix + name.replace("_", " "), value


# What any method keeps of how it was learned


def _card(
    run: LearningRun,
    trained: TrainedNetwork,
    method: str,
    encoding: dict[str, Any],
    shape: NetworkShape,
    summary: Mapping[str, object],
) -> Card:
    """Return policy.json of a network that was learned; `summary` joins what is said of every network."""
    network, demonstrations = trained.network, run.demonstrations
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
        settings={"preset": run.preset, **msgspec.to_builtins(run.config)},
        summary={
            "parameters": count_parameters(network.weights),
            "samples": trained.samples,
            "best_epoch": network.best_epoch,
            "validation_loss": network.validation_loss,
            "device": network.device,
            "demonstrations": {"command": demonstrations.command, "episodes": len(demonstrations)},
            **({"remarks": run.remarks} if run.remarks else {}),
            **summary,
        },
        versions=versions([*(run.task.packages if run.task else ()), "torch", "safetensors"]),
    )


def _write_curve(folder: Path, trained: TrainedNetwork, episodes: int) -> None:
    """Write a line of JSON for each epoch, and one for each round of DAgger before its epochs; draw them, too."""
    lines: list[dict[str, Any]] = []
    for number, done in enumerate(trained.rounds):
        if number:
            lines.append({"round": number, "rollouts": episodes, "successes": done.successes})
        lines += ({"round": number, **msgspec.to_builtins(epoch)} for epoch in done.network.curve)
    write_atomically(folder / CURVES, "".join(f"{msgspec.json.encode(line).decode()}\n" for line in lines))
    if lines and find_spec("matplotlib") is not None:
        from bilevel.learning.training_curve import draw_training_curve

        write_atomically(folder / PICTURE, draw_training_curve(lines, trained.network.best_epoch))
