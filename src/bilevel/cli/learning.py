"""Commands about policies: learn one, list the pretrained ones, show what is in one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bilevel.cli.options import argument, command, folder_argument, option, required, shared
from bilevel.cli.output import answer, count, listed, progress_line, say

if TYPE_CHECKING:
    from bilevel.learning.learn import LearningConfig
    from bilevel.policies.folder import LearnedPolicy

TRAINING = ("epochs", "updates", "symmetries", "batch", "learning_rate", "device")  # settings of training
CONFIG = ("complete", "relevance", "recorded_actions", "algorithm")  # and of learning


@command("learn", "build/blocks --output build/policy")
@folder_argument
@required("--output", "DIR", "New folder for the policy, and how it was trained.", metavar="POLICY")
@option("--task", "TASK", "The task, for labels and DAgger (by default the registered one of the data set).")
@option("--method", "METHOD", "What to learn: bison, which det-* and ndt-* run on, too; pddl-nn or pure-nn.", "bison")
@option(
    "--preset", ("best", "paper"), "`best` is complete rules, brief training and DAgger; `paper` 200 epochs.", "best"
)
@option("--seed", "SEED", "Decides the first weights, the order of the samples, and how DAgger rollouts begin.", 0)
@option("--epochs", "N>0", "How often training goes over the demonstrations (by default as the preset says).")
@option("--updates", "N", "Steps of training over all epochs; 0 for one pass an epoch (by default as the preset says).")
@option("--relevance", "on|off", "Find out which objects play a part in actions (by default on with `best`).")
@option("--symmetries", "on|off", "Train on mirrored samples, too, where that is possible (by default on with `best`).")
@option("--batch-size", "N>0", "How many samples each step of training is made of (by default 128).", name="batch")
@option("--learning-rate", "X>0", "Of training at first; it falls to 0 along a cosine (by default as the preset says).")
@option("--hidden", "N>0", "Width of the layers (by default 64).")
@option("--device", ("auto", "cpu", "cuda"), "What to train on; `auto` takes a GPU where torch can use one.", "auto")
@option("--dagger-rounds", "N", "How many rounds of DAgger; 0 for none (by default as the preset says).", name="rounds")
@option("--completion", "on|off", "Add rules for what was not shown (by default on with `best`).", name="complete")
@option("--algorithm", ("single-goal", "printed"), "Goal by goal, or as the paper prints it.", "single-goal")
@option("--recorded-actions", "on|off", "Count the recorded action of unexplained steps (by default on with `best`).")
@option("--from-episodes", "FILE...", "Results of evaluate --keep-incidents: learn from these states, too.")
@option("--learn-domain", bool, "Learn the actions of the domain, too, whatever domain the demonstrations have.")
@shared("workers", "log")
def learn(folder: Path, output: Path, task: str | None, **options: Any) -> None:
    """Learn a policy from demonstrations: rules that decide and a network that acts, or what a rival needs.

    Stopped or killed, it goes on where it was when the same command is given again, and comes to the same result.
    """
    from bilevel.demonstrations.dataset import Demonstrations
    from bilevel.learning.learn import PRESETS, learn
    from bilevel.tasks.registry import find_task

    began = time.perf_counter()
    settings = {name: options.pop(name) for name in (*TRAINING, *CONFIG, "hidden", "rounds")}
    config = _config(PRESETS[options["preset"]], settings)
    found_task = find_task(task) if task else None
    with progress_line(resumes=True) as callback:
        demonstrations = Demonstrations.read(folder)
        learned = learn(demonstrations, output, task=found_task, config=config, callback=callback, **options)
    seconds, found = time.perf_counter() - began, learned.card.summary
    say(*found.get("remarks", ()))
    values = {"output": str(output), "task": learned.card.task, "method": options["method"], "digest": learned.digest}
    sources = f"{found['demonstrations']['episodes']} demonstrations, {found['samples']} samples"
    answer(
        {**values, **found, "rules": [str(rule) for rule in learned.rules], "seconds": round(seconds, 1)},
        learned.texts().get("rules.txt", ""),
        *_left_out(found.get("domain"), found.get("irrelevant", {})),
        f"{count(learned.rules, 'rule')}, {learned.parameters} parameters; from {sources}",
        f"validation loss {found['validation_loss']:.5f}, best at epoch {found['best_epoch']}",
        f"written to {output} in {seconds:.1f} s",
    )


def _config(config: LearningConfig, settings: dict[str, Any]) -> LearningConfig:
    """Return the preset with those settings that are given instead."""
    from msgspec.structs import replace

    if settings["epochs"] is not None and settings["updates"] is None:
        settings["updates"] = 0
    given = {name: value for name, value in settings.items() if value is not None}
    dagger = replace(config.dagger, rounds=given.pop("rounds", config.dagger.rounds))
    training = replace(config.training, **{name: given.pop(name) for name in TRAINING if name in given})
    return replace(config, dagger=dagger, training=training, **given)


def _left_out(domain: Mapping[str, Any] | None, irrelevant: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield what was learned of the domain, if anything was, and which arguments the network does not see."""
    if domain:
        seen = ", ".join(f"{name} {sum(counts)}" for name, counts in domain["seen"].items())
        yield f"the domain was learned: {seen}; {count(domain['dropped'], 'change')} left out"
    if named := ", ".join(f"{' '.join(parameters)} in {name}" for name, parameters in irrelevant.items()):
        yield f"left out, as it plays no part in how the action is done: {named}"


# Listing


@command("policies", "", "build/policy")
@argument("policy", "TEXT", "A pretrained policy, or any policy's folder (by default a list).", required=False)
def policies(policy: str | None) -> None:
    """List the pretrained policies with how often they succeed, or show one policy: its data, settings and rules."""
    from bilevel.policies.folder import find_folder, pretrained_policies, read_policy

    if policy is not None:
        folder = find_folder(policy)
        read = read_policy(folder)
        row = _row(policy, folder, read)
        answer(row, *_card_lines(read, row))
        return
    rows = [_row(name, folder, read_policy(folder)) for name, folder in pretrained_policies().items()]
    lines = [f"{row['name']:16} {count(row['rules'], 'rule'):>8}, {_measured(row)}" for row in rows]
    answer({"policies": rows}, *(lines or ["no task here has a pretrained policy"]))


def _row(name: str, folder: Path, policy: LearnedPolicy) -> dict[str, Any]:
    """Return what is said of a policy: the sizes of its parts, its successes, and how it came about."""
    from bilevel.experiments.statistics import wilson_interval

    card, measured = policy.card, policy.card.measured
    row = {"name": name, "folder": str(folder), "rules": len(policy.rules), "parameters": policy.parameters}
    row |= {each: getattr(card, each) for each in ("task", "objects", "seed", "settings", "versions")}
    row["successes"] = {
        str(objects): {"successes": n, "episodes": of, "interval": [round(p, 4) for p in wilson_interval(n, of)]}
        for objects, (n, of) in (measured.successes if measured else {}).items()
    }
    row["evaluation"] = {"seed": measured.seed, "command": measured.command} if measured else None
    return row | {"digest": policy.digest, "demonstrations": card.summary.get("demonstrations")}


def _measured(row: Mapping[str, Any]) -> str:
    """Return how often a policy succeeded, with Wilson's intervals, which say nothing of other training seeds."""
    found = []
    for size, each in row["successes"].items():
        low, high = (100 * bound for bound in each["interval"])
        found.append(f"n = {size}: {each['successes']}/{each['episodes']} ({low:.1f}–{high:.1f}%)")
    return ", ".join(found) or "not measured"


def _card_lines(policy: LearnedPolicy, row: Mapping[str, Any]) -> list[str]:
    """Return the card of a policy, for a person to read."""
    card = policy.card
    lines = {
        "task": card.task,
        "folder": row["folder"],
        "data": f"{count(card.objects, 'object')}, {listed(row['demonstrations'])}",
        "learned": f"bilevel learn DIR --preset {card.settings.get('preset')} --seed {card.seed} --output POLICY",
        "network": f"{policy.parameters:,} parameters, {card.network.hidden} wide, {card.network.rounds} rounds",
        "measured": _measured(row),
        "measured by": card.measured.command if card.measured else "nothing yet; see `bilevel evaluate`",
        "versions": listed(card.versions),
    }
    return [*(f"{name:12} {text}" for name, text in lines.items()), "", policy.texts()["rules.txt"].rstrip()]
