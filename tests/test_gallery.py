"""The gallery of failures: each film of the program is on the page, with why it failed."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from bilevel.policies.folder import read_policy
from bilevel.tabletop import TASKS

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "examples"))

from gallery_of_failures import FAILURES, FILMS, PAGE, attempt, with_reason, without_closing  # noqa: E402

sys.path.remove(str(ROOT / "examples"))  # in which folders have the names of packages


@pytest.mark.parametrize("name", FAILURES)
def test_each_failure_is_on_the_page_with_its_film_and_its_reason(name: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert (FILMS / f"{name}.webp").stat().st_size < 500_000
    assert f"images/films/{name}.webp)" in page
    found = re.search(f"<!-- why: {name} -->\n\n```\n(.+?)```\n\n<!-- end of why -->", page, re.DOTALL)
    assert found is not None
    assert " steps\n" in found[1]


def test_what_the_page_says_about_a_missing_rule_is_what_happens(tmp_path: Path) -> None:
    failure = FAILURES["missing-rule"]
    run, why, _ = attempt(failure, failure.policy(tmp_path / "policy"))
    assert run.reason == "no rule"
    lines = [re.sub(r"[\d,]+ steps", "N steps", line) for line in why.splitlines()]  # which another MuJoCo may change
    page = re.sub(r"[\d,]+ steps", "N steps", PAGE.read_text(encoding="utf-8"))
    assert "\n".join(["```", *lines, "```"]) in page


def test_a_reason_is_put_between_its_marks() -> None:
    page = "before\n<!-- why: x -->\nold\n<!-- end of why -->\nafter\n"
    text = with_reason(page, "x", "new")
    assert text == "before\n<!-- why: x -->\n\n```\nnew\n```\n\n<!-- end of why -->\nafter\n"
    with pytest.raises(SystemExit, match="the marks of 'y' are missing"):
        with_reason(page, "y", "new")


def test_the_rules_that_close_the_box_are_taken_out(tmp_path: Path) -> None:
    actions = [rule.action.name for rule in read_policy(without_closing(TASKS["gacha"], tmp_path / "policy")).rules]
    assert "open" in actions
    assert "close" not in actions
