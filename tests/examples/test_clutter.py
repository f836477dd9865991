"""Clutter: the expert goes round posts, which a hand that does not see them touches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import bilevel
from bilevel.experiments.evaluate import evaluate
from bilevel.tabletop.worlds import blocks

CLUTTER = Path(__file__).parents[2] / "examples" / "clutter" / "clutter.py"


@pytest.mark.parametrize("posts", [0, 3, 6])
def test_the_expert_goes_round_posts(posts: int) -> None:
    task = bilevel.find_task(f"{CLUTTER}:task")
    assert all(record.success for record in evaluate("expert", task, objects=[1, 3], episodes=3, posts=posts))


def test_an_expert_that_does_not_see_posts_touches_some() -> None:
    blind = replace(bilevel.find_task(f"{CLUTTER}:task"), expert=blocks.task.expert)
    outcomes = [record.outcome for record in evaluate("expert", blind, objects=[3], episodes=5, posts=6)]
    assert "touched a post" in outcomes


def test_labels_domain_and_expert_agree() -> None:
    assert bilevel.check_task(bilevel.find_task(f"{CLUTTER}:task")) == []
