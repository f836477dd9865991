"""A learned end-to-end policy as a folder: policy.json, domain.pddl, weights.safetensors. There are no rules in it.

Who does not mind which kind of policy a folder holds reads it with `read_any`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from bilevel.baselines.end_to_end import EndToEndPolicy
from bilevel.baselines.graph_architecture import GraphArchitecture
from bilevel.baselines.graph_encoding import ENCODINGS, GraphEncoding
from bilevel.demonstrations.json_objects import Keys
from bilevel.policies.policy_files import (
    BISON,
    DOMAIN,
    SUMMARY,
    SavedNetwork,
    check_encoding,
    common_parts,
    read_about,
    read_parts,
)
from bilevel.policies.policy_folder import SavedPolicy, bilevel_from
from bilevel.symbolic.domain import Domain
from bilevel.tabletop.observation import Slots

if TYPE_CHECKING:  # they need torch, which policies do without
    from bilevel.baselines.learning import LearnedEndToEnd
    from bilevel.demonstrations.dataset import Dataset
    from bilevel.learning.bilevel import LearningConfig


@dataclass(frozen=True)
class SavedEndToEnd(SavedNetwork):
    """All that is in a folder; not yet bound to an environment."""

    encoding_keys: ClassVar[Keys] = {"types": list, "nullary": list, "unary": list, "relations": list, "arity": int}
    summary_keys: ClassVar[Keys] = SUMMARY

    architecture: GraphArchitecture
    kind: str  # one of `ENCODINGS`

    @property
    def method(self) -> str:
        return self.kind

    @property
    def encoding(self) -> GraphEncoding:
        return self.architecture.encoding

    def bind(self, slots: Slots) -> EndToEndPolicy:
        """The policy for an environment with these slots."""
        task = self.known_task
        self.check_domain(task)
        return EndToEndPolicy(self.architecture, self.weights, task.labels(slots))


KINDS: Mapping[str, type[SavedNetwork]] = {BISON: SavedPolicy, **dict.fromkeys(ENCODINGS, SavedEndToEnd)}


def saved_end_to_end(
    dataset: Dataset, learned: LearnedEndToEnd, config: LearningConfig, *, recipe: str, seconds: float
) -> SavedEndToEnd:
    """What was learned from a data set, with how it came about; `recipe` is the name of the configuration."""
    parts = common_parts(dataset, learned.network, learned.samples, config, recipe, seconds)
    return SavedEndToEnd(**parts, architecture=learned.architecture, kind=learned.method)


def read_any(folder: Path) -> SavedPolicy | SavedEndToEnd:
    """`BadInput`, which names the file, where one is missing, damaged, or does not fit the others."""
    about = read_about(folder, KINDS)
    return bilevel_from(folder, about) if about["method"] == BISON else _end_to_end_from(folder, about)


def _end_to_end_from(folder: Path, about: Mapping[str, Any]) -> SavedEndToEnd:
    """The policy in a folder with this policy.json."""

    def shape(domain: Domain) -> GraphArchitecture:
        encoding = ENCODINGS[about["method"]](domain)
        check_encoding(encoding, about["encoding"], folder / DOMAIN)
        return GraphArchitecture(encoding, about["hidden"], about["rounds"])

    return SavedEndToEnd(**read_parts(folder, about, shape), kind=about["method"])
