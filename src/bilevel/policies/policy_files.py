"""What folders of learned policies have in common: policy.json, domain.pddl and weights.safetensors, each checked.

Whatever the files hold, reading them runs nothing of it: they are JSON, PDDL and arrays of numbers. policy.json is
written last, so that a folder without it is not complete.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from bilevel.demonstrations.json_objects import ARGUMENTS, NUMBER, Keys, check_not_newer, checked, quoted
from bilevel.demonstrations.manifest import versions
from bilevel.files import remove_leftovers, write_atomically
from bilevel.lowlevel.architecture import Shape, Weights
from bilevel.lowlevel.weights_file import read_weights, weights_data
from bilevel.symbolic.domain import BadInput, Domain
from bilevel.symbolic.expressions import read_text
from bilevel.symbolic.pddl import parse_domain
from bilevel.tabletop.problems import domain_text
from bilevel.tabletop.tasks import Task, find_task

if TYPE_CHECKING:  # they need torch, which policies do without
    from bilevel.demonstrations.dataset import Dataset
    from bilevel.learning.bilevel import LearningConfig
    from bilevel.lowlevel.training import Trained

FORMAT = 1
POLICY, DOMAIN, WEIGHTS = "policy.json", "domain.pddl", "weights.safetensors"
UNFINISHED = "unfinished"  # where learning keeps its checkpoints
MOST_ROUNDS, MOST_HIDDEN = 100, 100_000
LEARNING_PACKAGES = ("torch", "safetensors")
BISON = "bison"  # the method of folders that do not name one

KEYS: Keys = {
    "format": int,
    "task": str,
    "method": str,
    "arguments": dict,
    "seed": int,
    "encoding": dict,
    "hidden": int,
    "rounds": int,
    "settings": dict,
    "summary": dict,
    "versions": dict,
}
SETTINGS: Keys = {"recipe": str, "training": dict, "dagger": dict}
SUMMARY: Keys = {
    "samples": int,
    "best_epoch": int,
    "validation_loss": NUMBER,
    "demonstrations": dict,
    "seconds": NUMBER,
}
DEMONSTRATIONS: Keys = {"command": str, "episodes": int}


@dataclass(frozen=True)
class SavedNetwork(ABC):
    """All that is in a folder of any kind; not yet bound to an environment."""

    encoding_keys: ClassVar[Keys]  # of policy.json's 'encoding'
    summary_keys: ClassVar[Keys]

    task: str
    arguments: Mapping[str, Any]  # of the environment that the demonstrations come from
    seed: int
    domain_text: str
    domain: Domain
    architecture: Shape
    weights: Weights
    settings: Mapping[str, Any]
    summary: Mapping[str, Any]
    versions: Mapping[str, str]

    @property
    @abstractmethod
    def method(self) -> str: ...

    @property
    @abstractmethod
    def encoding(self) -> Any:
        """Which numbers the network is told."""

    @property
    def texts(self) -> dict[str, str]:
        """The files that a person can read, by their names, without policy.json."""
        return {DOMAIN: self.domain_text}

    @property
    def digest(self) -> str:
        """Equal for policies that decide and move alike, whatever comments their rules have."""
        found = hashlib.sha256()
        for part in (*(text.encode() for text in self.texts.values()), weights_data(self.weights)):
            found.update(hashlib.sha256(part).digest())
        return found.hexdigest()

    @property
    def known_task(self) -> Task:
        try:
            return find_task(self.task)
        except BadInput as error:
            raise BadInput(f"{POLICY}: {error}") from None

    def check_domain(self, task: Task) -> None:
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


def common_parts(
    dataset: Dataset, network: Trained, samples: int, config: LearningConfig, recipe: str, seconds: float
) -> dict[str, Any]:
    """What is saved of any policy that was learned from a data set, by the names of the fields above."""
    task, manifest = dataset.task, dataset.manifest
    if not math.isfinite(network.validation_loss):
        raise BadInput("training diverged: its loss is not finite; try another --seed or a lower learning rate")
    return {
        "task": task.name,
        "arguments": manifest.recipe.arguments,
        "seed": network.seed,
        "domain_text": domain_text(task.domain_name),
        "domain": task.domain,
        "weights": network.weights,
        "settings": {"recipe": recipe, "training": asdict(config.training), "dagger": asdict(config.dagger)},
        "summary": {
            "samples": samples,
            "best_epoch": network.best_epoch,
            "validation_loss": network.validation_loss,
            "demonstrations": {"command": manifest.command, "episodes": len(dataset)},
            "seconds": round(seconds, 1),
        },
        "versions": versions() | {package: metadata.version(package) for package in LEARNING_PACKAGES},
    }


# Writing


def write_policy(folder: Path, saved: SavedNetwork) -> None:
    about = {
        "format": FORMAT,
        "task": saved.task,
        "method": saved.method,
        "arguments": dict(saved.arguments),
        "seed": saved.seed,
        "encoding": {name: getattr(saved.encoding, name) for name in saved.encoding_keys},
        "hidden": saved.architecture.hidden,
        "rounds": saved.architecture.rounds,
        "settings": dict(saved.settings),
        "summary": dict(saved.summary),
        "versions": dict(saved.versions),
    }
    _remove(folder / POLICY)
    contents: dict[str, str | bytes] = {
        **saved.texts,
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


def read_about(folder: Path, kinds: Mapping[str, type[SavedNetwork]]) -> dict[str, Any]:
    """policy.json, which is one of these kinds, by their methods."""
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
        return _checked_about({"method": BISON, **value} if isinstance(value, dict) else value, kinds)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no finite number")
    return number


def _checked_about(value: Any, kinds: Mapping[str, type[SavedNetwork]]) -> dict[str, Any]:
    about = checked(value, KEYS, "the policy")
    if about["method"] not in kinds:
        raise BadInput(f"a policy of the method {quoted(about['method'])}, not of {' or '.join(kinds)}")
    kind, given = kinds[about["method"]], about["arguments"]
    checked(given, {name: ARGUMENTS[name] for name in ARGUMENTS if name == "objects" or name in given}, "'arguments'")
    checked(about["encoding"], kind.encoding_keys, "'encoding'")
    checked(about["settings"], SETTINGS, "'settings'")
    checked(about["summary"], kind.summary_keys, "'summary'")
    checked(about["summary"]["demonstrations"], DEMONSTRATIONS, "'demonstrations'")
    checked(about["versions"], dict.fromkeys(about["versions"], str), "'versions'")
    for key, least, most in (("format", FORMAT, FORMAT), ("hidden", 1, MOST_HIDDEN), ("rounds", 0, MOST_ROUNDS)):
        if not least <= about[key] <= most:
            raise BadInput(f"'{key}' cannot be {about[key]}")
    return about


def read_parts(folder: Path, about: Mapping[str, Any], shape: Callable[[Domain], Shape]) -> dict[str, Any]:
    """What is read of any policy, by the names of its fields; `shape` is that of its network for a domain."""
    path = folder / DOMAIN
    text = read_text(path)
    domain = parse_domain(text, str(path))
    if not domain.schemas:
        raise BadInput(f"{path}: the domain has no actions")
    architecture = shape(domain)
    weights = read_weights(folder / WEIGHTS, architecture.layers)
    taken = {name: about[name] for name in ("task", "arguments", "seed", "settings", "summary", "versions")}
    return {**taken, "domain_text": text, "domain": domain, "architecture": architecture, "weights": weights}


def check_encoding(encoding: Any, told: Mapping[str, Any], path: Path) -> None:
    """`BadInput` where a network was trained with another encoding than its domain gives: it fits no other."""
    for name, value in told.items():
        now, then = getattr(encoding, name), tuple(value) if isinstance(value, list) else value
        if now != then:
            raise BadInput(
                f"{path}: not the domain that the network was trained with: "
                f"its '{name}' would be {json.dumps(now)}, but {POLICY} says {json.dumps(then)}"
            )
