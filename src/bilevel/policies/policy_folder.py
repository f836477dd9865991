"""A learned policy as a folder that a person can open: policy.json, rules.txt, domain.pddl, weights.safetensors.

Rules may be edited by hand, and are checked as all other files are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from bilevel.demonstrations.json_objects import Keys
from bilevel.lowlevel.architecture import Architecture
from bilevel.lowlevel.encoding import Encoding, encoding_of
from bilevel.lowlevel.gnn_policy import GnnPolicy
from bilevel.policies.policies import BilevelPolicy
from bilevel.policies.policy_files import (
    BISON,
    DOMAIN,
    FORMAT,
    POLICY,
    SUMMARY,
    UNFINISHED,
    WEIGHTS,
    SavedNetwork,
    check_encoding,
    common_parts,
    read_about,
    read_parts,
    write_policy,
)
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
from bilevel.tabletop.observation import Slots

if TYPE_CHECKING:  # they need torch, which policies do without
    from bilevel.demonstrations.dataset import Dataset
    from bilevel.learning.bilevel import Learned, LearningConfig

__all__ = [
    "DOMAIN",
    "FORMAT",
    "POLICY",
    "RULES",
    "UNFINISHED",
    "WEIGHTS",
    "SavedPolicy",
    "bilevel_from",
    "read_policy",
    "saved_policy",
    "write_policy",
]

RULES = "rules.txt"


@dataclass(frozen=True)
class SavedPolicy(SavedNetwork):
    """All that is in the folder of a bilevel policy; not yet bound to an environment."""

    encoding_keys: ClassVar[Keys] = {"nullary": list, "unary": list, "schemas": list, "arity": int}
    summary_keys: ClassVar[Keys] = {**SUMMARY, "traces": int, "exogenous": int, "ambiguous": int}

    architecture: Architecture
    rules: tuple[Rule, ...]

    @property
    def method(self) -> str:
        return BISON

    @property
    def encoding(self) -> Encoding:
        return self.architecture.encoding

    @property
    def rules_text(self) -> str:
        return format_rules(self.rules, [domain_line(self.domain.name), f"learned from demonstrations of {self.task}"])

    @property
    def texts(self) -> dict[str, str]:
        return {RULES: self.rules_text, DOMAIN: self.domain_text}

    def bind(self, slots: Slots) -> BilevelPolicy:
        """The policy for an environment with these slots."""
        task = self.known_task
        self.check_domain(task)
        low = GnnPolicy(self.architecture, self.weights, slots)
        return BilevelPolicy(task.labels(slots), RulePolicy(self.rules, self.domain), low)


def saved_policy(
    dataset: Dataset, learned: Learned, config: LearningConfig, *, recipe: str, seconds: float
) -> SavedPolicy:
    """What was learned from a data set, with how it came about; `recipe` is the name of the configuration."""
    parts = common_parts(dataset, learned.network, learned.samples, config, recipe, seconds)
    counts = {"traces": learned.traces, "exogenous": learned.exogenous, "ambiguous": learned.ambiguous}
    parts["summary"] |= counts
    return SavedPolicy(**parts, architecture=learned.architecture, rules=consistent_names(learned.rules))


def read_policy(folder: Path) -> SavedPolicy:
    """`BadInput`, which names the file, where one is missing, damaged, does not fit the others, or is not bilevel."""
    return bilevel_from(folder, read_about(folder, {BISON: SavedPolicy}))


def bilevel_from(folder: Path, about: Mapping[str, Any]) -> SavedPolicy:
    """The policy in a folder with this policy.json."""

    def shape(domain: Domain) -> Architecture:
        encoding = encoding_of(domain)
        check_encoding(encoding, about["encoding"], folder / DOMAIN)
        return Architecture(encoding, about["hidden"], about["rounds"])

    parts = read_parts(folder, about, shape)
    return SavedPolicy(**parts, rules=_read_rules(folder / RULES, parts["domain"]))


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
