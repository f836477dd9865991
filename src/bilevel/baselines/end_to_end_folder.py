"""A learned end-to-end policy as a folder: policy.json, domain.pddl, weights.safetensors. There are no rules in it.

Who does not mind which kind of policy a folder holds reads it with `read_any`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bilevel.baselines.end_to_end import EndToEndPolicy, weight_shapes
from bilevel.baselines.graph_encoding import ENCODINGS, GraphEncoding
from bilevel.lowlevel.weights_file import check_shapes
from bilevel.policies.policy_folder import (
    BISON,
    DOMAIN,
    POLICY,
    WEIGHTS,
    Card,
    LearnedNetwork,
    LearnedPolicy,
    bilevel_policy,
    check_encoding,
    read_card,
    read_domain_and_weights,
)
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Labels

END_TO_END = "end-to-end"  # the kind of network


@dataclass(frozen=True)
class LearnedEndToEnd(LearnedNetwork):
    """All that is in the folder of an end-to-end policy; its method is one of `ENCODINGS`."""

    @property
    def encoding(self) -> GraphEncoding:
        return ENCODINGS[self.card.method](self.domain, self.spec)

    def bind(self, labels: Labels) -> EndToEndPolicy:
        """The policy with somebody's labels."""
        return EndToEndPolicy(self.encoding, self.card.controls, self.weights, self.card.network.rounds, labels)

    def for_environment(self, env: SceneEnv) -> EndToEndPolicy:
        """The policy with the labels of an environment."""
        return self.bind(env.labels)


def read_any(folder: Path) -> LearnedPolicy | LearnedEndToEnd:
    """`BadInput`, which names the file, where one is missing, damaged, or does not fit the others."""
    card = read_card(folder)
    if card.method == BISON:
        return bilevel_policy(folder, card)
    if card.method not in ENCODINGS:
        known = " or ".join([BISON, *ENCODINGS])
        raise BadInput(f"{folder / POLICY}: a policy of the method {card.method!r}, not of {known}")
    return _end_to_end_policy(folder, card)


def read_end_to_end(folder: Path, method: str) -> LearnedEndToEnd:
    """The same for a policy of this method; `BadInput` where it is of another."""
    found = read_any(folder)
    if not isinstance(found, LearnedEndToEnd) or found.card.method != method:
        raise BadInput(f"{folder}: a policy of the method '{found.card.method}', not of '{method}'")
    return found


def _end_to_end_policy(folder: Path, card: Card) -> LearnedEndToEnd:
    """The policy in a folder with this policy.json."""
    learned = LearnedEndToEnd(card, *read_domain_and_weights(folder))
    encoding, shape = learned.encoding, card.network
    check_encoding(encoding.symbols, card.encoding, folder / DOMAIN)
    check_shapes(folder / WEIGHTS, learned.weights, weight_shapes(encoding, card.controls, shape.hidden, shape.rounds))
    return learned
