"""A learned policy as a folder that a person can open: policy.json, rules.txt, domain.pddl, weights.safetensors.

A folder stands alone: it holds the rules, the domain, the spec of what is seen, the controls and the weights. Whatever
the files hold, reading them runs nothing of it. Rules may be edited by hand, and are checked as all other files are.
policy.json is written last, so that a folder without it is not complete.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from bilevel.files import read_bytes, write_atomically
from bilevel.json_files import Count, Name, decode, encode
from bilevel.lowlevel import numpy_network
from bilevel.lowlevel.encoding import Encoding, ObjectLink, encoding_of
from bilevel.policies.policy import BilevelPolicy, LowLevelPolicy
from bilevel.policies.recovery import NO_RECOVERY, Body, RecoveringPolicy, Recovery
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import domain_line, format_rules, read_rules, require_open_world
from bilevel.rules.rule_policy import RulePolicy
from bilevel.symbolic.domain import BadInput, Domain
from bilevel.symbolic.pddl import read_adl_domain, write_domain
from bilevel.tasks.controls import BoxControls, Controls, DiscreteControls
from bilevel.tasks.estimation import Estimation, Estimator
from bilevel.tasks.registry import registered_task, task_names
from bilevel.tasks.spec import Spec
from bilevel.tasks.task import Labels, Task

FORMAT = 2
POLICY, DOMAIN, RULES, WEIGHTS = "policy.json", "domain.pddl", "rules.txt", "weights.safetensors"
UNFINISHED = "unfinished"  # where learning keeps its checkpoints
BISON = "bison"
GRAPH = "graph"  # the network that has a NumPy twin
MAX_HIDDEN = 100_000


class NetworkShape(msgspec.Struct, frozen=True):
    """Which network it is; one of the user's own kind says nothing of its inside."""

    kind: str = GRAPH
    hidden: Annotated[int, msgspec.Meta(ge=0, le=MAX_HIDDEN)] = 64
    rounds: Annotated[int, msgspec.Meta(ge=0, le=100)] = 2


class Measured(msgspec.Struct, frozen=True):
    """How often a policy succeeded in episodes that it had not seen, and how to measure it again."""

    successes: dict[int, tuple[Count, Count]]  # for each number of objects, and of how many episodes
    seed: Count  # of the evaluation
    command: str
    versions: dict[str, str]

    def __post_init__(self) -> None:
        if any(successes > episodes for successes, episodes in self.successes.values()):
            raise ValueError("there cannot be more successes than episodes")


class Card(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is in policy.json: what a policy is for, what it needs, and how it came about."""

    format: int = FORMAT
    task: Name
    method: str
    objects: Count  # in the demonstrations
    arguments: dict[str, Any]  # of the environment that the demonstrations come from
    seed: Count
    spec: Spec  # the features that the network was trained on
    controls: BoxControls | DiscreteControls
    encoding: dict[str, Any]  # which symbols the network is told, to see whether the domain is still the same
    network: NetworkShape
    settings: dict[str, Any]
    summary: dict[str, Any]
    versions: dict[str, str]
    commit: bool = False  # to a goal until it holds, where the rules need it
    recovery: Recovery = Recovery()  # what it does where it cannot go on as usual
    longest: dict[str, Count] = {}  # demonstration of each schema, in steps
    switches: list[Count] | None = None  # numbers of a control that open or close something, if that is known
    still: list[float] | None = None  # a control that does nothing, if the task names one
    links: tuple[ObjectLink, ...] = ()  # to what the network sees beside what an action names
    estimation: Estimation | None = None  # of what is seen; older policies have none
    thresholds: dict[str, float] = {}  # of labels; older policies may have some, which mean nothing
    measured: Measured | None = None  # where that was done, and kept here

    def __post_init__(self) -> None:
        """Refuse what is of another robot than the controls and the spec."""
        size = self.controls.size if isinstance(self.controls, BoxControls) else 1
        if (self.still is not None and len(self.still) != size) or max(self.switches or [0]) >= size:
            raise ValueError(f"'still' and 'switches' are of other controls than these, which have {size} numbers")
        if self.estimation:
            Estimator(self.spec, self.estimation)


@dataclass(frozen=True, repr=False)
class LearnedPolicy:
    """All that is in the folder of a policy of any method, not yet bound to labels; only bilevel ones have rules."""

    card: Card
    domain: Domain
    weights: numpy_network.Weights
    rules: tuple[Rule, ...] = ()
    domain_text: str = field(default="", kw_only=True, compare=False)  # to write, where it says more than the domain

    def __repr__(self) -> str:
        what = f"{len(self.rules)} rules" if self.rules else self.card.method
        return f"LearnedPolicy({self.card.task}: {what}, {self.parameters:,} parameters)"

    @property
    def parameters(self) -> int:
        """How many numbers the network has learned."""
        return numpy_network.count_parameters(self.weights)

    def texts(self) -> dict[str, str]:
        """Return the files that a person can read, by their names, without policy.json."""
        texts = {DOMAIN: write_domain(self.domain)}
        if self.card.method != BISON:
            return texts
        shown, statement = (self.card.summary.get(key) for key in ("rules_shown", "completion"))
        about = [domain_line(self.domain.name), f"learned from demonstrations of {self.card.task}"]
        about += map(str, self.card.links)
        if statement:
            completed = f"these show the first {shown}; the others complete them"
            about.append(f"{completed if shown != len(self.rules) else 'nothing had to be added'}:")
            about += str(statement).splitlines()
        return {RULES: format_rules(self.rules, about), **texts}

    @property
    def digest(self) -> str:
        """Equal for policies that decide and move alike."""
        parts = [*(text.encode() for text in self.texts().values()), numpy_network.weights_data(self.weights)]
        if self.card.estimation:
            parts.append(self.card.estimation.digest.encode())
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()

    def check_task(self, task: Task) -> None:
        """`BadInput` where the domain does not know all that the task's labels say."""
        known = _vocabulary(self.domain)
        for lacking in (each for each in _vocabulary(task.domain) if each not in known):
            raise BadInput(f"the policy was learned on {self.card.task!r}: its domain lacks {lacking} of '{task.name}'")

    def write(self, folder: Path) -> None:
        """Write the folder, its card last; `BadInput` where the place cannot be written to."""
        (folder / POLICY).unlink(missing_ok=True)
        contents: dict[str, str | bytes] = {**self.texts(), WEIGHTS: numpy_network.weights_data(self.weights)}
        contents[DOMAIN] = self.domain_text or contents[DOMAIN]
        for name, content in {**contents, POLICY: encode(self.card)}.items():
            write_atomically(folder / name, content)

    def bind(
        self,
        labels: Labels,
        network: Callable[[Encoding, Controls], Any] | None = None,
        recovery: Recovery | None = None,
        switches: Sequence[int] = (),
    ) -> BilevelPolicy:
        """Return the policy with given labels. A network of another kind must be handed over again, as a class.

        The `recovery` is that of the folder, if none is given; `switches` are the task's, if the folder does not say.
        """
        high, low, card = RulePolicy(self.rules, self.domain, commit=self.card.commit), self.low(network), self.card
        recovery = card.recovery if recovery is None else recovery
        estimator = Estimator(card.spec, card.estimation) if card.estimation else None
        if recovery == NO_RECOVERY:
            return BilevelPolicy(labels, high, low, estimator)
        switches = switches if card.switches is None else card.switches
        body = Body(card.controls, switches, card.longest, card.still, card.seed)
        return RecoveringPolicy(labels, high, low, recovery, body, estimator)

    def low(self, network: Callable[[Encoding, Controls], Any] | None = None) -> LowLevelPolicy:
        """Return the low level: NumPy's, or one that runs a network of another kind in torch."""
        encoding, shape = encoding_of(self.domain, self.card.spec, self.card.links), self.card.network
        if shape.kind == GRAPH:
            return numpy_network.NumpyNetwork(encoding, self.card.controls, self.weights, shape.rounds)
        if network is None:
            raise BadInput(f"the policy has a network of another kind, {shape.kind!r}: hand it over, with network=…")
        from bilevel.lowlevel.network import TorchNetwork  # only such policies need torch

        return TorchNetwork(network(encoding, self.card.controls), self.weights)


def _vocabulary(domain: Domain) -> list[str]:
    """Return the types of which a predicate can hold, and the predicates."""
    said_of = {parameter.type for predicate in domain.predicates.values() for parameter in predicate.parameters}
    types = [name for name in domain.types if any(domain.is_subtype(name, kind) for kind in said_of)]
    predicates = [f"the predicate '{name}' with {each.arity} arguments" for name, each in domain.predicates.items()]
    return [*(f"the type '{name}'" for name in types), *predicates]


# Reading


def read_policy(folder: Path) -> LearnedPolicy:
    """Return what is in a folder; `BadInput` where a file is missing, damaged, does not fit others, or not bilevel."""
    learned = read_learned(folder, BISON)
    card, domain = learned.card, learned.domain
    encoding = encoding_of(domain, card.spec, card.links)
    check_encoding(symbols_of(encoding), card.encoding, folder / DOMAIN)
    if card.network.kind == GRAPH:
        shapes = numpy_network.weight_shapes(encoding, card.controls, card.network.hidden, card.network.rounds)
        numpy_network.check_shapes(folder / WEIGHTS, learned.weights, shapes)
    rules = read_rules(folder / RULES, domain)
    try:
        require_open_world(rules)
    except BadInput as error:
        raise BadInput(f"{folder / RULES}: {error}") from None
    if not rules and not domain.adl:
        raise BadInput(f"{folder / RULES}: there is no rule in it")
    return replace(learned, rules=rules)


def symbols_of(encoding: Encoding) -> dict[str, Any]:
    """Return the symbols that a network is told of."""
    names = {"nullary": encoding.nullary, "unary": encoding.unary, "schemas": encoding.schemas}
    return {**{name: list(symbols) for name, symbols in names.items()}, "arity": encoding.arity}


def read_card(folder: Path) -> Card:
    """Return policy.json of any method."""
    path = folder / POLICY
    if not folder.is_dir():
        raise BadInput(f"{folder}: there is no such folder; `bilevel learn` makes one")
    if not path.exists():
        if (folder / UNFINISHED).exists():
            raise BadInput(f"{folder}: not complete; run the same `bilevel learn` again to go on")
        raise BadInput(f"{folder}: no policy: there is no {POLICY} in it")
    data = read_bytes(path)
    number = decode(data, dict[str, Any], path).get("format")
    if number != FORMAT:
        remedy = "upgrade bilevel" if isinstance(number, int) and number > FORMAT else "learn it again"
        raise BadInput(f"{path}: of format {number}, but this version of bilevel reads {FORMAT}; {remedy}")
    return decode(data, Card, path)


def read_learned(folder: Path, method: str) -> LearnedPolicy:
    """Return what is in a folder but rules; `BadInput` for another method's, or where the domain has no actions."""
    card, path = read_card(folder), folder / DOMAIN
    if card.method != method:
        raise BadInput(f"{folder / POLICY}: a policy of the method {card.method!r}, not of {method!r}")
    domain = read_adl_domain(path)
    if not domain.schemas:
        raise BadInput(f"{path}: the domain has no actions")
    return LearnedPolicy(card, domain, numpy_network.read_weights(folder / WEIGHTS))


def check_encoding(now: Mapping[str, Any], then: Mapping[str, Any], path: Path) -> None:
    """`BadInput` where a network was trained with other symbols than its domain gives: it fits no other."""
    if now != then:
        name = next(name for name in {**now, **then} if now.get(name) != then.get(name))
        which = f"its '{name}' would be {now.get(name)}, but {POLICY} says {then.get(name)}"
        raise BadInput(f"{path}: not the domain that the network was trained with: {which}")


# Policies that come with tasks


def pretrained_policies() -> dict[str, Path]:
    """Return the folders of all policies that come with a registered task, by the names of the tasks.

    list(pretrained_policies())              # what `bilevel policies` lists
    """
    tasks = {name: registered_task(name) for name in task_names()}
    return {name: Path(task.pretrained) for name, task in tasks.items() if task and task.pretrained}


def find_folder(source: Path | str) -> Path:
    """Return the folder of a policy: the one of this path, or else that of the pretrained policy of this name.

    What is there goes before what has the same name. `BadInput` for a mere name that is neither.
    """
    path = Path(source)
    if os.path.exists(path) or len(path.parts) != 1:
        return path
    known = pretrained_policies()
    if path.name in known:
        return known[path.name]
    remedy = f", or name a pretrained policy: {', '.join(known)}" if known else ""
    raise BadInput(f"{path}: there is no such folder; `bilevel learn` makes one{remedy}")
