"""A learned policy as a folder that a person can open: policy.json, rules.txt, domain.pddl, weights.safetensors.

A folder stands alone: it holds the rules, the domain, the spec of what is seen, the controls and the weights. Whatever
the files hold, reading them runs nothing of it. Rules may be edited by hand, and are checked as all other files are.
policy.json is written last, so that a folder without it is not complete.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

import bilevel
from bilevel.files import remove_leftovers, write_atomically
from bilevel.json_files import Damaged, decode, encode, read_bytes
from bilevel.lowlevel.encoding import Encoding, encoding_of
from bilevel.lowlevel.numpy_network import (
    NumpyNetwork,
    Weights,
    check_shapes,
    read_weights,
    weight_shapes,
    weights_data,
)
from bilevel.policies.body import Body
from bilevel.policies.policy import BilevelPolicy, LowLevelPolicy
from bilevel.policies.recovery import NO_RECOVERY, RecoveringPolicy, Recovery
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import (
    consistent_names,
    domain_line,
    format_rules,
    read_rules,
    require_open_world,
)
from bilevel.rules.rule_policy import RulePolicy
from bilevel.symbolic.adl import parse_adl_domain
from bilevel.symbolic.domain import BadInput, Domain
from bilevel.symbolic.expressions import read_text
from bilevel.symbolic.pddl import write_domain
from bilevel.tasks.controls import BoxControls, Controls, DiscreteControls
from bilevel.tasks.estimation import Estimation, Estimator
from bilevel.tasks.spec import Spec, read_spec
from bilevel.tasks.task import Labels, Task

FORMAT = 2
POLICY, DOMAIN, RULES, WEIGHTS = "policy.json", "domain.pddl", "rules.txt", "weights.safetensors"
UNFINISHED = "unfinished"  # where learning keeps its checkpoints
BISON = "bison"
GRAPH = "graph"  # the network that has a NumPy twin
MAX_ROUNDS, MAX_HIDDEN, MAX_EPISODES = 100, 100_000, 10**12


class NetworkShape(msgspec.Struct, frozen=True):
    """Which network it is; one of the user's own kind says nothing of its inside."""

    kind: str = GRAPH
    hidden: int = 64
    rounds: int = 2


class Measured(msgspec.Struct, frozen=True):
    """How often a policy succeeded in episodes that it had not seen, and how to measure it again."""

    successes: dict[int, tuple[int, int]]  # for each number of objects, and of how many episodes
    seed: int  # of the evaluation
    command: str
    versions: dict[str, str]

    def __post_init__(self) -> None:
        if not all(0 <= successes <= episodes < MAX_EPISODES for successes, episodes in self.successes.values()):
            raise ValueError("there cannot be more successes than episodes")


class Card(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is in policy.json: what a policy is for, what it needs, and how it came about."""

    format: int
    task: str
    method: str
    objects: int  # in the demonstrations
    arguments: dict[str, Any]  # of the environment that the demonstrations come from
    seed: int
    spec: dict[str, Any]
    controls: BoxControls | DiscreteControls
    encoding: dict[str, Any]  # which symbols the network is told, to see whether the domain is still the same
    network: NetworkShape
    settings: dict[str, Any]
    summary: dict[str, Any]
    versions: dict[str, str]
    commit: bool = False  # to a goal until it holds, where the rules need it
    recovery: Recovery = Recovery()  # what it does where it is at a loss
    longest: dict[str, int] = {}  # demonstration of each schema, in steps
    switches: list[int] | None = None  # numbers of a control that open or close something, if that is known
    still: list[float] | None = None  # a control that does nothing, if the task names one
    estimation: Estimation | None = None  # of what is seen; older policies have none
    thresholds: dict[str, float] = {}  # of labels; older policies may have some, which mean nothing
    measured: Measured | None = None  # where somebody did, and kept it here


def count_parameters(weights: Weights) -> int:
    """Return how many numbers of a network are learned: all but scales, which are measured."""
    return sum(array.size for name, array in weights.items() if not name.endswith("_scale"))


@dataclass(frozen=True, repr=False)
class LearnedNetwork:
    """All that is in a policy folder of any method; not yet bound to labels."""

    card: Card
    domain: Domain
    weights: Weights
    rules: tuple[Rule, ...] = field(default=(), kw_only=True)  # none but in bilevel policies
    domain_text: str = field(default="", kw_only=True, compare=False)  # to write, where it says more than the domain

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.card.task}: {self.card.method}, {self.parameters:,} parameters)"

    @property
    def spec(self) -> Spec:
        """The features that the network was trained on."""
        return read_spec(self.card.spec)

    @property
    def parameters(self) -> int:
        """How many numbers the network has learned."""
        return count_parameters(self.weights)

    def texts(self) -> dict[str, str]:
        """The files that a person can read, by their names, without policy.json."""
        return {DOMAIN: write_domain(self.domain)}

    @property
    def digest(self) -> str:
        """Equal for policies that decide and move alike."""
        found = hashlib.sha256()
        parts = [*(text.encode() for text in self.texts().values()), weights_data(self.weights)]
        if self.card.estimation:
            parts.append(self.card.estimation.digest.encode())
        for part in parts:
            found.update(hashlib.sha256(part).digest())
        return found.hexdigest()

    def check_task(self, task: Task) -> None:
        """`BadInput` where the domain does not know all that the task's labels say."""
        known, wanted = (
            [f"the type '{name}'" for name in domain.types if _is_said_of(name, domain)]
            + [f"the predicate '{name}' with {len(p.parameters)} arguments" for name, p in domain.predicates.items()]
            for domain in (self.domain, task.domain)
        )
        for what in wanted:
            if what not in known:
                raise BadInput(
                    f"the policy was learned on {self.card.task!r}: its domain lacks {what} of '{task.name}'"
                )

    def check_controls(self, controls: Controls) -> None:
        """`BadInput` for an environment with another action space than that of the demonstrations."""
        if not controls.is_like(self.card.controls):
            raise BadInput(f"the policy was learned with {self.card.controls}, but the environment has {controls}")

    def write(self, folder: Path) -> None:
        """Write the folder, its card last; `BadInput` where training diverged or the place cannot be written to."""
        if not math.isfinite(self.card.summary["validation_loss"]):
            raise BadInput("training diverged: its loss is not finite; try another --seed or a lower learning rate")
        try:
            (folder / POLICY).unlink(missing_ok=True)
        except OSError as error:
            raise BadInput(f"{folder / POLICY}: cannot be written: {error.strerror}") from None
        contents: dict[str, str | bytes] = {**self.texts(), WEIGHTS: weights_data(self.weights)}
        contents[DOMAIN] = self.domain_text or contents[DOMAIN]
        for name, content in {**contents, POLICY: encode(self.card)}.items():
            remove_leftovers(folder / name)
            write_atomically(folder / name, content)


def keep_measured(folder: Path, measured: Measured) -> None:
    """Write how often a policy succeeds into its policy.json."""
    card = msgspec.structs.replace(read_card(folder), measured=measured)
    write_atomically(folder / POLICY, encode(card))


def _is_said_of(kind: str, domain: Domain) -> bool:
    """Whether a predicate can be said of objects of this type."""
    parameters = (parameter for predicate in domain.predicates.values() for parameter in predicate.parameters)
    return any(domain.is_subtype(kind, parameter.type) for parameter in parameters)


@dataclass(frozen=True, repr=False)
class LearnedPolicy(LearnedNetwork):
    """All that is in the folder of a bilevel policy."""

    rules: tuple[Rule, ...]

    def __repr__(self) -> str:
        return f"LearnedPolicy({self.card.task}: {len(self.rules)} rules, {self.parameters:,} parameters)"

    def texts(self) -> dict[str, str]:
        shown, statement = (self.card.summary.get(key) for key in ("rules_shown", "completion"))
        about = [domain_line(self.domain.name), f"learned from demonstrations of {self.card.task}"]
        if statement:
            more = f"these show the first {shown}; the others complete them"
            about += [
                f"{more if shown != len(self.rules) else 'nothing had to be added'}:",
                *str(statement).splitlines(),
            ]
        return {RULES: format_rules(consistent_names(self.rules), about), **super().texts()}

    def bind(
        self,
        labels: Labels,
        network: Callable[[Encoding, Controls], Any] | None = None,
        recovery: Recovery | None = None,
        switches: Sequence[int] = (),
    ) -> BilevelPolicy:
        """The policy with somebody's labels. A network that is not ours must be handed over again, as a class.

        The `recovery` is that of the folder, if none is given; `switches` are the task's, if the folder does not say.
        """
        high, low, card = RulePolicy(self.rules, self.domain, commit=self.card.commit), self.low(network), self.card
        recovery = card.recovery if recovery is None else recovery
        estimator = Estimator(self.spec, card.estimation) if card.estimation else None
        if recovery == NO_RECOVERY:
            return BilevelPolicy(labels, high, low, estimator)
        switches = switches if card.switches is None else card.switches
        body = Body(card.controls, switches, card.longest, card.still, card.seed)
        return RecoveringPolicy(labels, high, low, recovery, body, estimator)

    def low(self, network: Callable[[Encoding, Controls], Any] | None = None) -> LowLevelPolicy:
        """Return the low level: NumPy's, or one that runs a network of another kind in torch."""
        encoding, shape = encoding_of(self.domain, self.spec), self.card.network
        if shape.kind == GRAPH:
            return NumpyNetwork(encoding, self.card.controls, self.weights, shape.rounds)
        if network is None:
            raise BadInput(f"the policy has a network of another kind, {shape.kind!r}: hand it over, with network=…")
        from bilevel.lowlevel.network import TorchNetwork  # only such policies need torch

        return TorchNetwork(network(encoding, self.card.controls), self.weights)


# Reading


def read_policy(folder: Path) -> LearnedPolicy:
    """`BadInput`, which names the file, where one is missing, damaged, does not fit the others, or is not bilevel."""
    card = read_card(folder)
    if card.method != BISON:
        raise BadInput(f"{folder / POLICY}: a policy of the method {card.method!r}, not of {BISON}")
    return bilevel_policy(folder, card)


def bilevel_policy(folder: Path, card: Card) -> LearnedPolicy:
    """The policy in a folder with this policy.json."""
    domain, weights = read_domain_and_weights(folder)
    encoding = encoding_of(domain, read_spec(card.spec))
    check_encoding(symbols_of(encoding), card.encoding, folder / DOMAIN)
    if card.network.kind == GRAPH:
        shapes = weight_shapes(encoding, card.controls, card.network.hidden, card.network.rounds)
        check_shapes(folder / WEIGHTS, weights, shapes)
    return LearnedPolicy(card, domain, weights, _read_rules(folder / RULES, domain))


def symbols_of(encoding: Encoding) -> dict[str, Any]:
    """The symbols that a network is told of."""
    names = {name: list(getattr(encoding, name)) for name in ("nullary", "unary", "schemas")}
    return {**names, "arity": encoding.arity}


def read_card(folder: Path) -> Card:
    """policy.json of any method."""
    path = folder / POLICY
    if not folder.is_dir():
        raise BadInput(f"{folder}: there is no such folder; `bilevel learn` makes one")
    if not path.exists():
        if (folder / UNFINISHED).exists():
            raise BadInput(f"{folder}: not complete; run the same `bilevel learn` again to go on")
        raise BadInput(f"{folder}: no policy: there is no {POLICY} in it")
    data = read_bytes(path)
    _check_format(data, path)
    card = decode(data, Card, path)
    try:
        spec = read_spec(card.spec)
        if card.estimation:
            Estimator(spec, card.estimation)
        _check_size(card)
    except BadInput as error:
        raise Damaged(f"{path}: {error}") from None
    for key, number, most in (("hidden", card.network.hidden, MAX_HIDDEN), ("rounds", card.network.rounds, MAX_ROUNDS)):
        if not 0 <= number <= most:
            raise Damaged(f"{path}: '{key}' cannot be {number}")
    return card


def _check_size(card: Card) -> None:
    """`BadInput` where the motion of the agent, its switches or the control that is still are of other controls."""
    motion = card.estimation.agent if card.estimation else None
    size = card.controls.size if isinstance(card.controls, BoxControls) else 1
    if motion and len(motion.response) != size:
        raise BadInput(f"the estimation is for controls of {len(motion.response)} numbers, not {size}")
    if card.still is not None and len(card.still) != size:
        raise BadInput(f"the control that is still has {len(card.still)} numbers, not {size}")
    for switch in card.switches or ():
        if not 0 <= switch < size:
            raise BadInput(f"there is no switch {switch}: controls have {size} numbers, from 0 on")


def _check_format(data: bytes, path: Path) -> None:
    about = decode(data, dict[str, Any], path)
    found = about.get("format")
    if found == 1:
        try:
            made = " ".join(about["summary"]["demonstrations"]["command"].split())
        except (KeyError, TypeError, AttributeError):
            made = "bilevel collect …"
        raise BadInput(
            f"{path}: of bilevel 0.1, whose policies had no spec; learn it again, after: {made} --output DIR"
        )
    if isinstance(found, int) and found > FORMAT:
        raise BadInput(f"{path}: of format {found}, but bilevel {bilevel.__version__} reads {FORMAT}; upgrade bilevel")


def read_domain_and_weights(folder: Path) -> tuple[Domain, Weights]:
    """Return both from a folder; `BadInput` where the domain has no actions."""
    path = folder / DOMAIN
    domain = parse_adl_domain(read_text(path), str(path))
    if not domain.schemas:
        raise BadInput(f"{path}: the domain has no actions")
    return domain, read_weights(folder / WEIGHTS)


def check_encoding(now: Mapping[str, Any], then: Mapping[str, Any], path: Path) -> None:
    """`BadInput` where a network was trained with other symbols than its domain gives: it fits no other."""
    for name in sorted({*now, *then}):
        if now.get(name) != then.get(name):
            raise BadInput(
                f"{path}: not the domain that the network was trained with: "
                f"its '{name}' would be {now.get(name)}, but {POLICY} says {then.get(name)}"
            )


def _read_rules(path: Path, domain: Domain) -> tuple[Rule, ...]:
    rules = read_rules(path, domain)
    try:
        require_open_world(rules)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    if not rules and not domain.adl:
        raise BadInput(f"{path}: there is no rule in it")
    return rules
