"""Policies for blocks with rules that know what to do: one that moves as the expert does, one that does nothing."""

from __future__ import annotations

from bilevel.methods.methods import RunnablePolicy
from bilevel.policies.folder import BISON, LearnedPolicy
from bilevel.policies.policy import AskedExpert, BilevelPolicy
from bilevel.rules.rule_file import parse_rules
from bilevel.rules.rule_policy import RulePolicy
from bilevel.tabletop import TASKS
from bilevel.tasks.controls import BoxControls
from bilevel.tasks.scene_env import SceneEnv
from tiny_policies import still_policy

PLACE = "1: holding(?b) & clear(?p) & goal at(?b, ?p) -> place(?b, ?p)"
PICK = "2: clear(?b) & clear(?p) & gripper-free() & goal at(?b, ?p) -> pick(?b)"
RULES = f"variables: ?b - block, ?p - place\n{PLACE}\n{PICK}"


def moving_policy() -> RunnablePolicy:
    """Decides by rules, moves as the expert does."""

    def make(env: SceneEnv) -> BilevelPolicy:
        assert env.expert is not None
        rules = RulePolicy(parse_rules(RULES), env.task.domain)
        return BilevelPolicy(env.labels, rules, AskedExpert(env.expert))

    return RunnablePolicy(BISON, make)


def idle_policy() -> LearnedPolicy:
    """What would be in the folder of a policy whose network does nothing."""
    return still_policy(TASKS["blocks"], RULES, BoxControls([-1.0] * 4, [1.0] * 4, [4]))
