"""A learned policy as a folder that a person can open: policy.json, rules.txt, domain.pddl, weights.safetensors.

Rules may be edited by hand. Whatever the files hold, reading them runs nothing of it: they are JSON, rules, PDDL and
arrays of numbers, and each is checked. policy.json is written last, so that a folder without it is not complete.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bilevel.demonstrations.json_objects import ARGUMENTS, NUMBER, Keys, check_not_newer, checked
from bilevel.demonstrations.manifest import versions
from bilevel.environments.observation import Slots
from bilevel.execution.policies import BilevelPolicy
from bilevel.files import remove_leftovers, write_atomically
from bilevel.library import domain_text
from bilevel.lowlevel.architecture import Architecture, Weights
from bilevel.lowlevel.encoding import encoding_of
from bilevel.lowlevel.gnn_policy import GnnPolicy
from bilevel.lowlevel.weights_file import read_weights, weights_data
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import (
    check_rules,
    consistent_names,
    domain_line,
    format_rules,
    parse_rules,
    require_open_world,
)
from bilevel.rules.rule_policy import RulePolicy
from bilevel.symbolic.domain import BadInput, Domain
from bilevel.symbolic.expressions import read_text
from bilevel.symbolic.pddl import parse_domain
from bilevel.tasks import Task, find_task

if TYPE_CHECKING:  # it needs torch, which policies do without
    from bilevel.demonstrations.dataset import Dataset
    from bilevel.learning import Learned, LearningConfig

FORMAT = 1
POLICY, RULES, DOMAIN, WEIGHTS = "policy.json", "rules.txt", "domain.pddl", "weights.safetensors"
UNFINISHED = "unfinished"  # where learning keeps its checkpoints
MOST_ROUNDS, MOST_HIDDEN = 100, 100_000
LEARNING_PACKAGES = ("torch", "safetensors")

KEYS: Keys = {
    "format": int,
    "task": str,
    "arguments": dict,
    "seed": int,
    "encoding": dict,
    "hidden": int,
    "rounds": int,
    "settings": dict,
    "summary": dict,
    "versions": dict,
}
ENCODING: Keys = {"nullary": list, "unary": list, "schemas": list, "arity": int}
SETTINGS: Keys = {"recipe": str, "training": dict, "dagger": dict}
SUMMARY: Keys = {
    "samples": int,
    "traces": int,
    "exogenous": int,
    "ambiguous": int,
    "best_epoch": int,
    "validation_loss": NUMBER,
    "demonstrations": dict,
    "seconds": NUMBER,
}
DEMONSTRATIONS: Keys = {"command": str, "episodes": int}


@dataclass(frozen=True)
class SavedPolicy:
    """All that is in a folder; not yet bound to an environment."""

    task: str
    arguments: Mapping[str, Any]  # of the environment that the demonstrations come from
    seed: int
    domain_text: str
    domain: Domain
    rules: tuple[Rule, ...]
    architecture: Architecture
    weights: Weights
    settings: Mapping[str, Any]
    summary: Mapping[str, Any]
    versions: Mapping[str, str]

    @property
    def rules_text(self) -> str:
        return format_rules(self.rules, [domain_line(self.domain.name), f"learned from demonstrations of {self.task}"])

    @property
    def digest(self) -> str:
        """Equal for policies that decide and move alike, whatever comments their rules have."""
        found = hashlib.sha256()
        for part in (self.rules_text.encode(), self.domain_text.encode(), weights_data(self.weights)):
            found.update(hashlib.sha256(part).digest())
        return found.hexdigest()

    @property
    def known_task(self) -> Task:
        try:
            return find_task(self.task)
        except BadInput as error:
            raise BadInput(f"{POLICY}: {error}") from None

    def bind(self, slots: Slots) -> BilevelPolicy:
        """The policy for an environment with these slots."""
        task = self.known_task
        self._check_domain(task)
        low = GnnPolicy(self.architecture, self.weights, slots)
        return BilevelPolicy(task.labels(slots), RulePolicy(self.rules, self.domain), low)

    def _check_domain(self, task: Task) -> None:
        """`BadInput` where it does not know all that the task's labels say and its skills do."""
        known, wanted = (
            [f"the type '{name}'" for name in domain.types]
            + [f"the predicate '{name}' with {len(p.parameters)} arguments" for name, p in domain.predicates.items()]
            + [f"the action '{name}' with {len(s.parameters)} arguments" for name, s in domain.schemas.items()]
            for domain in (self.domain, task.domain)
        )
        for what in wanted:
            if what not in known:
                raise BadInput(f"{DOMAIN} of the policy lacks {what}, which the task '{self.task}' uses")


def saved_policy(
    dataset: Dataset, learned: Learned, config: LearningConfig, *, recipe: str, seconds: float
) -> SavedPolicy:
    """What was learned from a data set, with how it came about; `recipe` is the name of the configuration."""
    task, manifest, network = dataset.task, dataset.manifest, learned.network
    if not math.isfinite(network.validation_loss):
        raise BadInput("training diverged: its loss is not finite; try another --seed or a lower learning rate")
    return SavedPolicy(
        task=task.name,
        arguments=manifest.recipe.arguments,
        seed=network.seed,
        domain_text=domain_text(task.domain_name),
        domain=task.domain,
        rules=consistent_names(learned.rules),
        architecture=learned.architecture,
        weights=network.weights,
        settings={"recipe": recipe, "training": asdict(config.training), "dagger": asdict(config.dagger)},
        summary={
            "samples": learned.samples,
            "traces": learned.traces,
            "exogenous": learned.exogenous,
            "ambiguous": learned.ambiguous,
            "best_epoch": network.best_epoch,
            "validation_loss": network.validation_loss,
            "demonstrations": {"command": manifest.command, "episodes": len(dataset)},
            "seconds": round(seconds, 1),
        },
        versions=versions() | {package: metadata.version(package) for package in LEARNING_PACKAGES},
    )


# Writing


def write_policy(folder: Path, saved: SavedPolicy) -> None:
    about = {
        "format": FORMAT,
        "task": saved.task,
        "arguments": dict(saved.arguments),
        "seed": saved.seed,
        "encoding": {name: getattr(saved.architecture.encoding, name) for name in ENCODING},
        "hidden": saved.architecture.hidden,
        "rounds": saved.architecture.rounds,
        "settings": dict(saved.settings),
        "summary": dict(saved.summary),
        "versions": dict(saved.versions),
    }
    _remove(folder / POLICY)
    contents: dict[str, str | bytes] = {
        RULES: saved.rules_text,
        DOMAIN: saved.domain_text,
        WEIGHTS: weights_data(saved.weights),
        POLICY: json.dumps(about, indent=2, allow_nan=False) + "\n",
    }
    for name, content in contents.items():
        remove_leftovers(folder / name)
        write_atomically(folder / name, content)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror}") from None


# Reading


def read_policy(folder: Path) -> SavedPolicy:
    """`BadInput`, which names the file, where one is missing, damaged, or does not fit the others."""
    about = _read_about(folder)
    path = folder / DOMAIN
    text = read_text(path)
    domain = parse_domain(text, str(path))
    architecture = _architecture(about, domain, path)
    return SavedPolicy(
        task=about["task"],
        arguments=about["arguments"],
        seed=about["seed"],
        domain_text=text,
        domain=domain,
        rules=_read_rules(folder / RULES, domain),
        architecture=architecture,
        weights=read_weights(folder / WEIGHTS, architecture.layers),
        settings=about["settings"],
        summary=about["summary"],
        versions=about["versions"],
    )


def _read_about(folder: Path) -> dict[str, Any]:
    path = folder / POLICY
    if not folder.is_dir():
        raise BadInput(f"{folder}: there is no such folder; `bilevel learn` makes one")
    if not path.exists():
        if (folder / UNFINISHED).exists():
            raise BadInput(f"{folder}: not complete; run the same `bilevel learn` again to go on")
        raise BadInput(f"{folder}: no policy: there is no {POLICY} in it")
    try:
        value = json.loads(read_text(path), parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: not JSON: {error}") from None
    check_not_newer(value, FORMAT, path)
    try:
        return _checked_about(value)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no finite number")
    return number


def _checked_about(value: Any) -> dict[str, Any]:
    about = checked(value, KEYS, "the policy")
    given = about["arguments"]
    checked(given, {name: ARGUMENTS[name] for name in ARGUMENTS if name == "objects" or name in given}, "'arguments'")
    checked(about["encoding"], ENCODING, "'encoding'")
    checked(about["settings"], SETTINGS, "'settings'")
    checked(about["summary"], SUMMARY, "'summary'")
    checked(about["summary"]["demonstrations"], DEMONSTRATIONS, "'demonstrations'")
    checked(about["versions"], dict.fromkeys(about["versions"], str), "'versions'")
    for key, least, most in (("format", FORMAT, FORMAT), ("hidden", 1, MOST_HIDDEN), ("rounds", 0, MOST_ROUNDS)):
        if not least <= about[key] <= most:
            raise BadInput(f"'{key}' cannot be {about[key]}")
    return about


def _architecture(about: Mapping[str, Any], domain: Domain, path: Path) -> Architecture:
    """The network's shape; it was trained with the predicates and actions of one domain, and fits no other."""
    if not domain.schemas:
        raise BadInput(f"{path}: the domain has no actions")
    encoding, told = encoding_of(domain), about["encoding"]
    for name in ENCODING:
        now, then = getattr(encoding, name), told[name] if name == "arity" else tuple(told[name])
        if now != then:
            raise BadInput(
                f"{path}: not the domain that the network was trained with: "
                f"its '{name}' would be {json.dumps(now)}, but {POLICY} says {json.dumps(then)}"
            )
    return Architecture(encoding, about["hidden"], about["rounds"])


def _read_rules(path: Path, domain: Domain) -> tuple[Rule, ...]:
    file = parse_rules(read_text(path), str(path))
    check_rules(file, domain)
    try:
        require_open_world(file.rules)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    if not file.rules:
        raise BadInput(f"{path}: there is no rule in it")
    return file.rules
