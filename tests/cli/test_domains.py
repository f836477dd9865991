"""What `bilevel domain check` says of a right and of a wrong domain, and `bilevel domain show` of any."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bilevel.symbolic.pddl import parse_domain, write_domain
from bilevel.tabletop.problems import shipped_domain
from command_line import run
from tiny_demonstrations import shown
from tiny_task import DOMAIN

ARRIVE = """
  (:event arrive
    :effect (exists (?p - parcel ?s - spot) (and (new ?p) (new ?s) (lying ?p) (empty ?s)))))
"""
TEXT = write_domain(DOMAIN).rstrip()[:-1] + ARRIVE


@pytest.fixture
def domain(tmp_path: Path) -> Path:
    path = tmp_path / "domain.pddl"
    path.write_text(TEXT)
    return path


def test_a_right_domain_is_confirmed(domain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shown().folder
    code, out, _ = run(capsys, "domain", "check", domain, folder)
    head, explained, by_event, seen, *_ = out.splitlines()
    assert (code, head.startswith("delivery: 15 changes (3 episodes, ")) == (0, True)
    assert (explained, by_event) == ("explained: 12 (80.0%)", "by event: 3 (20.0%)")
    assert seen == "seen: arrive 3, pick 6, put 6"
    assert run(capsys, "domain", "check", domain, folder)[1] == out


def test_a_wrong_domain_is_contradicted(domain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    domain.write_text(TEXT.replace("(at ?p ?s) (free)", "(at ?p ?s)").replace("(lying ?p - parcel)", ""))
    code, out, err = run(capsys, "domain", "check", domain, shown().folder)
    assert (code, out) == (2, "")
    assert "undeclared predicate 'lying'" in err
    domain.write_text(TEXT.replace("(at ?p ?s) (free)", "(at ?p ?s)"))
    code, out, _ = run(capsys, "domain", "check", domain, shown().folder, "--json")
    found = json.loads(out)
    assert (code, found["fits"], found["changes"]) == (1, False, 14)
    assert found["contradicted"][0]["lacks"] == "free() changed as well"
    assert found["findings"][0]["sort"] == "unlisted effect"


def test_a_domain_is_shown_in_english_and_as_pddl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    domain, path = shipped_domain("gacha"), tmp_path / "domain.pddl"
    path.write_text(write_domain(domain))
    assert len(run(capsys, "domain", "show", path)[1].split("\n\n")) == 1 + len(domain.schemas)
    assert parse_domain(run(capsys, "domain", "show", path, "--format", "pddl")[1]) == domain
