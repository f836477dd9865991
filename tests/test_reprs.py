"""What an interpreter shows of policies, tasks, data sets and networks is one short line."""

from __future__ import annotations

import pytest

import bilevel
from bilevel.policies.folder import read_policy
from blocks_policies import idle_policy
from tiny_demonstrations import shown
from tiny_policies import still_policy
from tiny_task import TINY


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (TINY, "Task(tiny: actions pick, put; an expert)"),
        (shown(), f"Demonstrations(tiny: {len(shown())} demonstrations in {shown().folder})"),
        (bilevel.Demonstrations(shown()[:2], task="t", spec=TINY.spec, domain=TINY.domain, controls=shown().controls),
         "Demonstrations(t: 2 demonstrations)"),
        (shown()[0], f"Demonstration({len(shown()[0].objects)} objects, {shown()[0].steps} steps, success)"),
        (still_policy(), f"LearnedPolicy(tiny: 2 rules, {still_policy().parameters} parameters)"),
        (still_policy().low(), f"NumpyNetwork({still_policy().parameters} parameters)"),
        (still_policy().bind(TINY.labels),
         f"RecoveringPolicy(RulePolicy({TINY.domain.name}: 2 rules), {still_policy().low()!r})"),
        (idle_policy(), f"LearnedPolicy(blocks: 2 rules, {idle_policy().parameters} parameters)"),
    ],
    ids=["task", "data set", "data set in memory", "demonstration", "learned policy", "network", "policy", "idle"],
)  # fmt: skip
def test_a_value_says_what_it_is(value: object, text: str) -> None:
    assert repr(value) == text


def test_a_pretrained_policy_says_what_it_is() -> None:
    folder = bilevel.pretrained_policies()["blocks"]
    found = read_policy(folder)
    numbers = f"{found.parameters:,} parameters"
    assert "," in numbers
    assert repr(bilevel.load_policy("blocks")).endswith(
        f"(RulePolicy(blocks: {len(found.rules)} rules), NumpyNetwork({numbers}))"
    )
