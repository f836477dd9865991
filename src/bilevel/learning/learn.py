"""Learning a policy from demonstrations, by any method that is learned.

For a bilevel policy, every demonstration is labelled once, which gives the traces that rules are learned from and the
samples that the network is trained on; a rival's network does all, so all steps are its samples. With DAgger, the
policy then acts, and is learned further from what it met. There is a checkpoint for each round of DAgger, in the folder
`unfinished/` of the policy: the same call goes on where an earlier one was stopped.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from bilevel.demonstrations.dataset import Demonstration, Demonstrations
from bilevel.demonstrations.traces import explain, label
from bilevel.domain_learning.goal_orders import learn_rules
from bilevel.files import folder_lock, write_atomically
from bilevel.learning.dagger import (
    BilevelAgent,
    DaggerConfig,
    DaggerEpisode,
    DaggerRollouts,
    Encode,
    MakeAgent,
    RandomPrefixPolicy,
)
from bilevel.learning.learned_domain import LearnedSymbols, learn_symbols
from bilevel.lowlevel.encoding import Encoding, ImitationSamples, Samples, Situation, encode_episode, encoding_of
from bilevel.lowlevel.network import GraphNetwork, ImitationNetwork, MakeNetwork, TorchNetwork
from bilevel.lowlevel.numpy_network import NumpyNetwork, count_parameters
from bilevel.lowlevel.relevance import Recorded, encode_all, relevant_encoding
from bilevel.lowlevel.training import Epoch, Trained, TrainingConfig, find_device, train
from bilevel.methods import end_to_end
from bilevel.methods.methods import BILEVEL, find_method
from bilevel.parallel import parallel
from bilevel.planning.planners import bounded_plan
from bilevel.policies.episode import read_problems
from bilevel.policies.folder import BISON, MAX_HIDDEN, UNFINISHED, Card, LearnedPolicy, NetworkShape, symbols_of
from bilevel.policies.policy import LowLevelPolicy
from bilevel.progress import Callback, Log, Progress, open_log, silent
from bilevel.rules.complete import complete_rules
from bilevel.rules.learning import PRINTED, SINGLE_GOAL, extend_rules
from bilevel.rules.rule import Rule
from bilevel.rules.rule_policy import RulePolicy
from bilevel.rules.traces import Trace
from bilevel.symbolic.domain import BadInput, Domain, Facts, Problem
from bilevel.tasks.controls import BoxControls
from bilevel.tasks.estimation import fit_estimation
from bilevel.tasks.registry import registered_task
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Expert, Task
from bilevel.versions import versions

CURVES, OPTIONS = "training.jsonl", "options.json"
FALLING = 0.25  # of the loss half way, or of how far it fell, is so much in the second half that more training helps
MAX_STATES = 600  # of a small problem that rules are completed for; larger ones are left to chance
RANDOM_PROBLEMS = 20
MOST_SEEDS = 4  # problems that rules are completed for
ENOUGH_FOR_ESTIMATION = 50  # demonstrations; further ones say nothing new about how things move


class LearningConfig(msgspec.Struct, frozen=True):
    """Both levels; as it is here, by the paper's settings."""

    hidden: int = 64  # width of the layers of BISON's network
    rounds: int = 2  # of messages in the network
    complete: bool = False  # the rules, for what was not demonstrated
    relevance: bool = False  # leave out arguments that play no part in how an action is done
    algorithm: str = SINGLE_GOAL  # that rules are learned by, one of `ALGORITHMS`
    recorded_actions: bool = False  # use them for steps before changes that no action explains, which are else left out
    training: TrainingConfig = msgspec.field(default_factory=TrainingConfig)
    dagger: DaggerConfig = msgspec.field(default_factory=DaggerConfig)


PRESETS: Mapping[str, LearningConfig] = {
    "paper": LearningConfig(),
    "best": LearningConfig(
        complete=True,
        relevance=True,
        recorded_actions=True,
        training=TrainingConfig(epochs=8, updates=5000, learning_rate=3e-3, symmetries=True, hold_out_from=10),
        dagger=DaggerConfig(rounds=2),
    ),
}


def learn(
    demonstrations: Demonstrations,
    output: Path | str,
    *,
    task: Task | None = None,
    method: str = BISON,
    preset: str = "best",
    seed: int = 0,
    config: LearningConfig | None = None,
    network: MakeNetwork | None = None,
    from_episodes: Sequence[Path] = (),
    learn_domain: bool = False,
    workers: int | None = 1,
    callback: Callback = silent,
    log: str | None = None,
) -> LearnedPolicy:
    """Learn a policy and write its folder; where an earlier call was stopped, go on from there.

        demonstrations = collect(task, "build/cubes", objects=3, episodes=100)
        learn(demonstrations, "build/policy", task=task)
        policy = load_policy("build/policy", task)

    The `task` gives labels and, for DAgger, the environment and the expert; by default it is the one registered under
    the name in the data set. Without one, the labels are those that were recorded, and there is no DAgger. A `config`
    goes before the `preset`. `network` makes another low-level network than ours: a function of encoding and controls
    to a `LowLevelNetwork`. With `from_episodes`, results of an evaluation that kept incidents, rules are completed for
    the situations in which that policy had none. With `learn_domain`, the actions of the domain are learned from the
    demonstrations, too, whatever the domain that they have. `log` is "tensorboard=DIR" or "wandb=PROJECT".
    """
    task = task or registered_task(demonstrations.task)
    config = config or PRESETS[preset]
    run = LearningRun(demonstrations, task, Path(output), method, preset, seed, config, network, workers, callback)
    run.check(from_episodes, learn_domain)
    options = {"task": demonstrations.task, "method": method, "preset": preset, "seed": seed}
    options |= {"learn_domain": learn_domain, **msgspec.to_builtins(config)}
    with open_log(log, options) as note, _unfinished(run.output, options):
        run = replace(run, note=note)
        if learn_domain:
            callback(Progress("learning the domain", 0, 1))
            demonstrations, learned = learn_symbols(demonstrations, task)
            run = replace(run, demonstrations=demonstrations, learned=learned)
        problems = read_problems(from_episodes, demonstrations.domain)
        policy = _learn_bilevel(run, problems) if run.is_bilevel else _learn_end_to_end(run)
        policy.write(run.output)
        shutil.rmtree(run.output / UNFINISHED)
    return policy


@contextmanager
def _unfinished(output: Path, options: Mapping[str, Any]) -> Iterator[None]:
    """Lock the folder of a policy, new or unfinished, in which there is a folder for checkpoints.

    `BadInput` where there is something else, or what is unfinished was begun with other options.
    """
    path = output / UNFINISHED / OPTIONS
    others = {file.name for file in output.iterdir()} - {UNFINISHED} if output.is_dir() else output.exists()
    if others and not path.exists():
        raise BadInput(f"{output}: already holds a policy or something else; choose another --output or remove it")
    with folder_lock(path.parent, "learning"):
        before = json.loads(path.read_text(encoding="utf-8")) if any(path.parent.glob("round-*")) else options
        for name, value in options.items():
            if before.get(name) != value:
                raise BadInput(
                    f"{output}: learning was begun here with {name} {before.get(name)} instead of {value}; "
                    "give the same options again, remove the folder, or choose another --output"
                )
        write_atomically(path, json.dumps(options) + "\n")
        yield


# Training, and rounds of DAgger: the same for policies of all kinds


@dataclass(frozen=True)
class Round:
    """A round of DAgger, or the training before the first: what was met, and the network trained on that, too."""

    network: Trained
    trained_on: int  # samples
    met: Sequence[DaggerEpisode]


@dataclass(frozen=True)
class LearningRun:
    """One run of `learn`: what it learns from and how, and whom it tells; there is a checkpoint for each round."""

    demonstrations: Demonstrations
    task: Task | None
    output: Path
    method: str
    preset: str
    seed: int
    config: LearningConfig
    network: MakeNetwork | None
    workers: int | None
    callback: Callback
    note: Log = lambda values, step: None
    learned: LearnedSymbols | None = None  # where the domain of the demonstrations was learned from them

    def check(self, from_episodes: Sequence[Path], learn_domain: bool) -> None:
        """`BadInput` for settings that do not go together, or cannot be met here."""
        config, data = self.config, self.demonstrations
        if find_method(self.method).training is None:
            how = f"`bilevel evaluate --method {self.method}` runs it as it is"
            raise BadInput(f"the method '{self.method}' is not learned: {how}")
        if config.algorithm == PRINTED and (config.complete or config.dagger.rounds):
            raise BadInput("rules of Algorithm 1 as printed stay as they are: without completion and without DAgger")
        if from_episodes and not config.complete:
            raise BadInput("--from-episodes is for completing rules: add --completion on")
        if config.hidden > MAX_HIDDEN:
            raise BadInput(f"--hidden must be at most {MAX_HIDDEN}")
        if not (learn_domain or data.domain.schemas):
            where = data.folder or f"the data set of '{data.task}'"
            remedy = "learn them as well, with --learn-domain, or first: bilevel domain learn"
            raise BadInput(f"{where}: its domain '{data.domain.name}' has no actions; {remedy}")
        if self.task and self.task.still is not None and np.size(self.task.still) != np.prod(data.controls.shape):
            named = f"the task '{self.task.name}' names {self.task.still} as `still`"
            raise BadInput(f"{named}, which is none of its controls")
        find_device(config.training.device)

    @property
    def is_bilevel(self) -> bool:
        """Whether rules are learned, too, or else a network that does all."""
        return find_method(self.method).training == BILEVEL

    @cached_property
    def why_no_dagger(self) -> str | None:
        """Why there is no DAgger where it is wanted: for want of an expert to ask, for an action's control, or any."""
        task, data = self.task, self.demonstrations
        if self.config.dagger.rounds == 0:
            return None
        if task is None:
            return f"the task '{data.task}' is not registered here (see --task)"
        if self.is_bilevel and data.domain.adl:
            return "its domain is in ADL, which has no rules that could act"
        expert = task.expert
        if expert is not None and not isinstance(expert, Expert):
            with closing(SceneEnv(task, data.objects, **data.env_arguments)) as env:
                expert = env.expert
        if expert is None or (expert.control is None if self.is_bilevel else not expert.can_show):
            return f"the task '{task.name}' has no expert that can be asked for controls"
        if self.is_bilevel and self.learned and not self.learned.translation:
            return "what the expert calls its actions is not on record, so it cannot be asked about learned ones"
        return None

    def train(
        self,
        samples: ImitationSamples,
        make_network: Callable[[], ImitationNetwork],
        make_agent: Callable[[Sequence[Round]], MakeAgent],
        encode: Encode,
    ) -> list[Round]:
        """Train on the demonstrations, then let the policy act in rounds of DAgger and train on what it met, too.

        There is a checkpoint for each round, in which arrays are their shapes, types and bytes; and in the end, a file
        with a line of JSON for each epoch, and one for each round of DAgger before its epochs.
        """
        rounds, lines = list[Round](), list[dict[str, Any]]()
        for number in range(1 if self.why_no_dagger else 1 + self.config.dagger.rounds):
            path = self.output / UNFINISHED / f"round-{number}.msgpack"
            if not path.exists():
                met = self._act(rounds, make_agent(rounds), encode) if rounds else []
                everything = samples.followed_by([type(samples)(*each.arrays) for each in met]) if met else samples
                done = Round(self._train_round(rounds, everything, make_network), len(everything), met)
                if not math.isfinite(done.network.validation_loss):
                    remedy = "try another --seed or a lower learning rate"
                    raise BadInput(f"training diverged: its loss is not finite; {remedy}")
                packed = msgspec.msgpack.encode(done, enc_hook=lambda a: (a.shape, a.dtype.str, a.tobytes()))
                write_atomically(path, packed)
            done = msgspec.msgpack.decode(path.read_bytes(), type=Round, dec_hook=lambda _, parts: np.ndarray(*parts))
            rounds.append(done)
            if done.met:
                samples = samples.followed_by([type(samples)(*each.arrays) for each in done.met])
                successes = sum(each.success for each in done.met)
                lines.append({"round": number, "rollouts": len(done.met), "successes": successes})
            lines += ({"round": number, **msgspec.to_builtins(epoch)} for epoch in done.network.curve)
        write_atomically(self.output / CURVES, "".join(f"{msgspec.json.encode(line).decode()}\n" for line in lines))
        return rounds

    def _act(self, rounds: Sequence[Round], make_agent: MakeAgent, encode: Encode) -> list[DaggerEpisode]:
        """Run the episodes of a round of DAgger, and return them in the order of their numbers."""
        assert self.task is not None
        data, dagger, number = self.demonstrations, self.config.dagger, len(rounds)
        env_factory = partial(SceneEnv, self.task, data.objects, **data.env_arguments)
        rollouts = DaggerRollouts(env_factory, make_agent, encode, dagger, number, self.seed)
        found: list[DaggerEpisode] = []
        with closing(parallel(rollouts, range(dagger.episodes), self.workers)) as episodes:
            for episode in episodes:
                found.append(episode)
                self.callback(Progress(f"DAgger, round {number}", len(found), dagger.episodes))
        share = sum(episode.success for episode in found) / dagger.episodes
        self.note({"DAgger/success rate": share, "DAgger/round": number}, _epochs_of(rounds))
        return found

    def _train_round(
        self, rounds: Sequence[Round], samples: ImitationSamples, make_network: Callable[[], ImitationNetwork]
    ) -> Trained:
        """Train on the demonstrations, or further after a round of DAgger."""
        config, stage, began = self.config.training, "training", time.perf_counter()
        if rounds:
            epochs, stage = self.config.dagger.epochs, f"training, round {len(rounds)}"
            config = msgspec.structs.replace(config, epochs=epochs, updates=config.updates * epochs // config.epochs)

        def callback(epoch: Epoch) -> None:
            values = {"loss/training": epoch.training_loss, "loss/validation": epoch.validation_loss}
            values |= {"learning rate": epoch.learning_rate, "seconds": time.perf_counter() - began}
            self.callback(Progress(stage, epoch.number, config.epochs, values))
            self.note(values, _epochs_of(rounds) + epoch.number)

        return train(samples, make_network, self.seed, config, rounds[-1].network.weights if rounds else None, callback)


def _epochs_of(rounds: Sequence[Round]) -> int:
    return sum(len(done.network.curve) for done in rounds)


# Bilevel policies


LearnedRules = tuple[tuple[Rule, ...], bool, str]  # rules, whether they need commitment, and what is proved of them


@dataclass(frozen=True)
class LabelledData:
    """What the demonstrations show, at both levels."""

    rules: tuple[Rule, ...]
    encoding: Encoding
    samples: Samples
    seeds: tuple[Problem, ...]  # a problem for each kind of beginning
    longest: dict[str, int]  # demonstration of each schema, in steps


def label_demonstrations(
    demonstrations: Demonstrations,
    task: Task | None,
    config: LearningConfig | None = None,
    callback: Callback = silent,
    with_links: bool = True,
) -> LabelledData:
    """Label every demonstration, learn the rules, and encode the samples, by the paper's settings if none are given.

    With `relevance`, it is found what the network sees; without links, it is nothing but arguments.
    """
    config = config or LearningConfig()
    domain, spec = demonstrations.domain, demonstrations.spec
    traces, longest = list[Trace](), Counter[str]()
    beginnings: list[tuple[Facts, Facts, Mapping[str, str]]] = []
    situations: list[list[Situation]] = []
    for demonstration, scenes, states, goals in _labelled(demonstrations, task, callback):
        found = explain(demonstration, domain, states, goals, use_recorded=config.recorded_actions)
        situations.append(list(zip(states, goals, found.actions, strict=False)))
        traces += found.traces
        fullest = max(range(len(scenes)), key=lambda step: len(scenes[step].objects))
        beginnings += ((states[step], goals[step], scenes[step].objects) for step in sorted({0, fullest}))
        for action, steps in groupby(found.actions):
            longest |= Counter({action.name: len(list(steps))} if action else {})
    rules = learn_rules(traces, domain, config.algorithm)
    if not rules and not domain.adl:
        raise BadInput("the demonstrations show no rule: no goal is achieved by an action in them; see `bilevel check`")

    def recorded() -> Iterator[Recorded]:
        for each, known in zip(demonstrations, situations, strict=True):
            yield each.scenes(spec)[:-1], known, each.targets(demonstrations.controls)

    encoding = encoding_of(domain, spec)
    if config.relevance:
        encoding = relevant_encoding(encoding, demonstrations.controls, recorded, with_links)
    seeds, samples = seed_problems(domain, beginnings), encode_all(encoding, recorded())
    return LabelledData(rules, encoding, samples, seeds, dict(sorted(longest.items())))


def seed_problems(domain: Domain, situations: Iterable[tuple[Facts, Facts, Mapping[str, str]]]) -> tuple[Problem, ...]:
    """Return a problem for each kind of situation (state, goal, objects), whatever its objects are called.

    Of many kinds, those with the most objects count, but each predicate of a goal shall be in one of them.
    """
    kinds: dict[object, Problem] = {}
    for state, goal, objects in situations:
        own = {name: kind for name, kind in objects.items() if name not in domain.constants}
        counts = (Counter(own.values()), Counter(fact.predicate for fact in state), {f.predicate: 1 for f in goal})
        kind = tuple(frozenset(count.items()) for count in counts)
        if goal:
            name = f"demonstration-{len(kinds) + 1}"
            kinds.setdefault(kind, Problem(name, domain.name, own, state, goal))
    order = sorted(kinds.values(), key=lambda problem: -len(problem.objects))
    first = {fact.predicate: problem for problem in reversed(order) for fact in problem.goal}.values()
    chosen = sorted(order, key=lambda problem: problem not in first)[:MOST_SEEDS]
    return tuple(sorted(chosen, key=lambda problem: -len(problem.objects)))


def _labelled(
    demonstrations: Demonstrations, task: Task | None, callback: Callback
) -> Iterator[tuple[Demonstration, list[Scene], list[Facts], list[Facts]]]:
    """Yield each demonstration with its scenes, and with state and goal at each timestep."""
    for number, demonstration in enumerate(demonstrations, 1):
        scenes = demonstration.scenes(demonstrations.spec)
        yield demonstration, scenes, *label(demonstration, task, scenes)
        callback(Progress("labelling", number, len(demonstrations)))


def _learn_bilevel(run: LearningRun, problems: Sequence[Problem]) -> LearnedPolicy:
    config, network, domain, controls = run.config, run.network, run.demonstrations.domain, run.demonstrations.controls
    data = label_demonstrations(run.demonstrations, run.task, config, run.callback, with_links=network is None)
    encoding = data.encoding
    run = replace(run, demonstrations=replace(run.demonstrations, spec=encoding.spec))
    seeds = data.seeds if config.complete and not domain.adl else ()

    def complete(rules: tuple[Rule, ...], met: Sequence[Problem] = ()) -> LearnedRules:
        if not seeds:
            return rules, False, ""
        found = complete_rules(
            rules,
            domain,
            seeds,
            met=[*problems, *met],
            plan_for=bounded_plan,
            random_problems=RANDOM_PROBLEMS,
            max_states=MAX_STATES,
            callback=lambda *done: run.callback(Progress(*done)),
        )
        return found.rules, found.commit, found.statement

    first = complete(data.rules)

    def rules_after(rounds: Sequence[Round]) -> LearnedRules:
        """Return the rules with those that fill the gaps that the rounds have shown."""
        gaps = [each.gaps for done in rounds for each in done.met]
        rules = extend_rules(first[0], [trace for each in gaps for trace in each.traces], domain)
        met = [problem for each in gaps for problem in each.problems]
        return first if rules == first[0] and not met else complete(rules, met)

    shape = NetworkShape(hidden=config.hidden, rounds=config.rounds)
    make: MakeNetwork = network or partial(GraphNetwork, hidden=shape.hidden, rounds=shape.rounds)
    make_network = partial(make, encoding, controls)

    def make_agent(rounds: Sequence[Round]) -> MakeAgent:
        (rules, commit, _), weights = rules_after(rounds), rounds[-1].network.weights
        make_low: Callable[[], LowLevelPolicy] = partial(NumpyNetwork, encoding, controls, weights, shape.rounds)
        if network:
            make_low = partial(TorchNetwork, make_network(), weights)
        translation = run.learned.translation if run.learned else None
        return partial(BilevelAgent, partial(RulePolicy, rules, domain, commit=commit), make_low, translation)

    rounds = run.train(data.samples, make_network, make_agent, partial(encode_episode, encoding))
    rules, commit, statement = rules_after(rounds)
    still = run.task.still if run.task else None
    are_numbers, shown = isinstance(controls, BoxControls), islice(run.demonstrations, ENOUGH_FOR_ESTIMATION)
    executed = ((each.scenes(encoding.spec), each.executed if are_numbers else None) for each in shown)
    card = _card(
        run,
        rounds[-1],
        {"irrelevant": encoding.spec.untold, "rules_shown": len(data.rules), "completion": statement},
        encoding=symbols_of(encoding),
        network=NetworkShape(type(make_network()).__name__) if network else shape,
        longest=data.longest,
        commit=commit,
        estimation=fit_estimation(encoding.spec, executed),
        switches=list(run.task.switches) if run.task else None,
        still=None if still is None else np.ravel(still).astype(float).tolist(),
        links=encoding.links,
    )
    text = run.learned.text if run.learned else ""
    return LearnedPolicy(card, domain, rounds[-1].network.weights, rules, domain_text=text)


# Rivals: a network that does all


def _learn_end_to_end(run: LearningRun) -> LearnedPolicy:
    demonstrations, config, domain = run.demonstrations, run.config, run.demonstrations.domain
    encoding, controls = end_to_end.GraphEncoding(run.method, domain, demonstrations.spec), demonstrations.controls
    make_network = partial(end_to_end.EndToEndNetwork, encoding, controls, config.hidden, config.rounds)
    encode = partial(end_to_end.encode_graphs, encoding)
    parts = []
    for number, (shown, scenes, states, goals) in enumerate(_labelled(demonstrations, run.task, run.callback)):
        situations = [(state, goal, None) for state, goal in zip(states[:-1], goals[:-1], strict=True)]
        parts.append(encode(scenes[:-1], situations, shown.targets(controls), number))

    def make_agent(rounds: Sequence[Round]) -> MakeAgent:
        network = partial(end_to_end.network_with, make_network, rounds[-1].network.weights)
        return partial(RandomPrefixPolicy, lambda env: end_to_end.EndToEndPolicy(network(), env.labels))

    rounds = run.train(end_to_end.GraphSamples.concatenate(parts), make_network, make_agent, encode)
    shape = NetworkShape(end_to_end.KIND, config.hidden, config.rounds)
    card = _card(run, rounds[-1], {}, encoding=encoding.symbols, network=shape)
    return LearnedPolicy(card, domain, rounds[-1].network.weights)


# What any method keeps of how it was learned


def _card(run: LearningRun, last: Round, summary: Mapping[str, Any], **further: Any) -> Card:
    """Return policy.json of a network that was learned; `summary` joins what is said of every network.

    Where the loss was still falling when training ended, that is said, too, and for how long to train instead.
    """
    network, demonstrations, training = last.network, run.demonstrations, run.config.training
    remarks = [f"{run.why_no_dagger}: learned without DAgger"] if run.why_no_dagger else []
    losses = [epoch.validation_loss for epoch in network.curve]
    first, half, end = losses[0], losses[(len(losses) - 1) // 2], losses[-1]
    if network.best_epoch == len(losses) and half - end > FALLING * min(half, first - end):
        longer = f"--updates {2 * training.updates}" if training.updates else f"--epochs {2 * training.epochs}"
        falling = "the loss was still falling when training ended; if the policy stalls, learn it with"
        remarks.append(f"{falling} {longer}")
    return Card(
        task=demonstrations.task,
        method=BISON if run.is_bilevel else run.method,
        objects=demonstrations.objects,
        arguments=demonstrations.env_arguments,
        seed=network.seed,
        spec=demonstrations.spec,
        controls=demonstrations.controls,
        settings={"preset": run.preset, **msgspec.to_builtins(run.config)},
        summary={
            "parameters": count_parameters(network.weights),
            "samples": last.trained_on,
            "best_epoch": network.best_epoch,
            "validation_loss": network.validation_loss,
            "device": network.device,
            "demonstrations": {"command": demonstrations.command, "episodes": len(demonstrations)},
            **({"remarks": remarks} if remarks else {}),
            **summary,
            **({"domain": run.learned.summary} if run.learned else {}),
        },
        versions=versions([*(run.task.packages if run.task else ()), "torch", "safetensors"]),
        **further,
    )
