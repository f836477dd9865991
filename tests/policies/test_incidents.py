"""Incidents are kept as JSON and read again as problems; what does not fit is refused with its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bilevel.policies.incidents import Incident, count_incidents, read_problems
from bilevel.symbolic.domain import Action, Atom, BadInput, Problem
from tiny_task import DOMAIN

STATE = frozenset({Atom("free"), Atom("lying", ("p1",)), Atom("empty", ("s1",))})
GOAL = frozenset({Atom("at", ("p1", "s1"))})
MET = Incident(3, "plan", "no rule", STATE, GOAL, {"p1": "parcel", "s1": "spot"}, Action("pick", ("p1",)))


def results(path: Path, *episodes: list[dict[str, Any]] | None) -> Path:
    path.write_text("".join(json.dumps({"task": "tiny", "steps": 9, "incidents": met}) + "\n" for met in episodes))
    return path


def test_an_incident_comes_back_as_it_was() -> None:
    text = json.dumps(MET.as_json())
    assert msgspec.json.decode(text, type=Incident) == MET
    assert json.loads(text)["state"] == [["empty", ["s1"]], ["free", []], ["lying", ["p1"]]]


def test_kinds_are_counted() -> None:
    stop = replace(MET, kind="stop")
    assert count_incidents([stop, MET, MET]) == {"plan": 2, "stop": 1}
    assert count_incidents([]) == {}


def test_each_situation_becomes_one_problem(tmp_path: Path) -> None:
    other = {**MET.as_json(), "state": [["free", []]], "action": None}
    path = results(tmp_path / "a.jsonl", [MET.as_json(), other], [], [MET.as_json()])
    objects = {"p1": "parcel", "s1": "spot"}
    assert read_problems([path, path], DOMAIN) == [
        Problem("met-1", "delivery", objects, STATE, GOAL),
        Problem("met-2", "delivery", objects, frozenset({Atom("free")}), GOAL),
    ]
    assert read_problems([], DOMAIN) == []


def changed(**parts: Any) -> Callable[[Path], object]:
    return lambda path: results(path, [], [{**MET.as_json(), **parts}])


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "no file": (lambda path: None, "there is no such file"),
    "no json": (lambda path: path.write_text("hello\n"), "line 1: not the result of an episode"),
    "no incidents": (lambda path: results(path, [], None), "line 2: incidents were not kept; run `bilevel evaluate`"),
    "no facts": (changed(state=["free"]), "line 2: not the result of an episode: "),
    "type": (changed(objects={"p1": "box"}), "line 2: the domain 'delivery' does not know the type 'box'"),
    "predicate": (changed(goal=[["on", ["p1"]]]), "line 2: .* does not know the predicate of on\\(p1\\)"),
    "arity": (changed(goal=[["at", ["p1"]]]), "line 2: .* does not know the predicate of at\\(p1\\)"),
    "object": (changed(goal=[["at", ["p1", "s2"]]]), "line 2: .* does not know the object 's2' of at\\(p1, s2\\)"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_does_not_fit_is_refused_with_its_place(name: str, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    write, message = BROKEN[name]
    write(path)
    with pytest.raises(BadInput, match=message) as refused:
        read_problems([path], DOMAIN)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)
