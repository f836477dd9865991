"""A bilevel policy made of parts: python examples/own_policy.py [POLICY]

Rules that a person wrote decide. What moves the hand is the network of a learned policy, if its folder is given, and
otherwise the expert's hand-written skills.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bilevel.policies.policies import BilevelPolicy, LowLevelPolicy
from bilevel.policies.rollout import Moment, rollout
from bilevel.rules.explanation.formats import explain_match
from bilevel.rules.rule_file import check_rules, parse_rules
from bilevel.rules.rule_policy import RulePolicy
from bilevel.tabletop.tasks import find_task

RULES = """\
variables: ?b - block, ?p - place

1: holding(?b) & clear(?p) & goal at(?b, ?p) -> place(?b, ?p)
2: clear(?b) & clear(?p) & gripper-free() & goal at(?b, ?p) -> pick(?b)
"""
SEED = 1


def main(folder: Path | None) -> None:
    task = find_task("blocks")
    world = task.make(objects=2)
    file = parse_rules(RULES)
    check_rules(file, task.domain)
    low: LowLevelPolicy = (BilevelPolicy.load(folder, world.slots) if folder else task.expert(world.slots)).low
    high = RulePolicy(file.rules, task.domain)
    policy = BilevelPolicy(task.labels(world.slots), high, low)

    steps, decided = 0, None

    def watch(moment: Moment) -> None:
        nonlocal steps, decided
        if policy.action != decided and (match := high.explain(policy.state, policy.goal)):
            decided = policy.action
            print(f"{steps:5}  {decided}: rule {match.rule.priority}\n       {explain_match(match)}")
        steps += 1

    episode = rollout(world, policy, SEED, watch=watch)
    print(f"{episode.steps:5}  {episode.outcome}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
