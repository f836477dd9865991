"""A data set: which file is broken, and why; what is in it, and what it says at the high level."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bilevel.demonstrations.dataset import (
    DOMAIN,
    MANIFEST,
    Demonstration,
    Demonstrations,
    file_name,
    read_manifest,
    whole_episodes,
)
from bilevel.demonstrations.traces import Contents, explain, label, labelled
from bilevel.symbolic.domain import Atom, BadInput
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import Task
from tiny_demonstrations import shown
from tiny_task import TINY
from tiny_task import label as tiny_label


def problems(folder: Path) -> list[str]:
    found, manifest = list[str](), read_manifest(folder)
    assert all(number < manifest.episodes for number, *_ in whole_episodes(folder, manifest, found))
    return found


def test_each_broken_or_exchanged_file_is_named_with_its_reason(copied: Path) -> None:
    assert problems(copied) == []
    names = [copied / file_name(index) for index in range(3)]
    whole = [path.read_bytes() for path in names]
    names[0].write_bytes(whole[1])
    assert problems(copied) == [f"{names[0]}: its seed {Demonstrations.read(copied)[1].seed} is not that of episode 0"]
    names[0].unlink()
    names[1].write_bytes(whole[1][:500])
    names[2].write_bytes(whole[2] + b"0")
    missing, truncated, other = problems(copied)
    assert missing == f"{names[0]}: there is no such file"
    assert truncated.startswith(f"{names[1]}: the archive: damaged, or of another format")
    assert other == f"{names[2]}: not the file that the manifest describes (another sha256)"
    data = Demonstrations.read(copied)
    assert len(data) == 3
    with pytest.raises(BadInput, match=r"episode-00001.npz: the archive: damaged"):
        data[1]
    with pytest.raises(BadInput, match="there is no episode 3: they are counted from 0 to 2"):
        data[3]


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    value = json.loads((folder / MANIFEST).read_text())
    change(value)
    (folder / MANIFEST).write_text(json.dumps(value))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda m: m.pop("controls"), "missing required field `controls`"),
        (lambda m: m.update(mood="good"), "unknown field `mood`"),
        (lambda m: m.update(episodes=0, files=[]), "Expected `int` >= 1 - at `$.episodes`"),
        (lambda m: m["settings"]["arguments"].update(objects="1"), "'objects' among the arguments must be"),
        (lambda m: m["spec"].update(agent={"x": {"type": "mood"}}), "Invalid value 'mood' - at `$.spec"),
        (lambda m: m["files"].pop(), "'files' must list 3 files"),
        (lambda m: m.update(format=3, novelty=True), "reads format 2; upgrade bilevel"),
        (lambda m: m.update(format=1), "reads format 2; collect it again"),
        (lambda m: m.update(complete=False, files=[]), "not complete; go on with: bilevel collect tiny --objects 1"),
    ],
)
def test_a_manifest_that_makes_no_sense_is_refused(
    copied: Path, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    edit(copied, change)
    with pytest.raises(BadInput, match=re.escape(reason)):
        Demonstrations.read(copied)


def test_what_is_no_data_set_is_refused(copied: Path, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(BadInput, match="no data set: there is no manifest"):
            Demonstrations.read(folder)
    (copied / DOMAIN).write_text("(define (domain delivery)")
    with pytest.raises(BadInput, match=f"{DOMAIN}:1:"):
        Demonstrations.read(copied)
    for broken in ((copied / MANIFEST).read_text()[:99], "[" * 100_000):
        (copied / MANIFEST).write_text(broken)
        with pytest.raises(BadInput, match=f"^{copied / MANIFEST}: "):
            Demonstrations.read(copied)


def test_words_of_others_are_quoted_in_a_command(copied: Path) -> None:
    edit(copied, lambda m: m["settings"].update(task="blocks; touch X #"))
    assert Demonstrations.read(copied).command.startswith("bilevel collect 'blocks; touch X #' --objects 1")
    source = {"format": "npz", "place": "a b", "options": ["--perceive", "my file.py:f"]}
    edit(copied, lambda m: m.update(source=source))
    command = "bilevel import 'a b' --format npz --task 'blocks; touch X #' --perceive 'my file.py:f'"
    assert Demonstrations.read(copied).command == command


# What is in it


def contents(*demonstrations: Demonstration, task: Task | None = None) -> Contents:
    found = Contents(TINY.domain)
    for number, demonstration in enumerate(demonstrations):
        found.add(labelled(number, demonstration, TINY.domain, task))
    return found


def always_empty(scene: Scene) -> Iterator[Atom]:
    """Labels that forget that a spot is taken."""
    yield from (fact for fact in tiny_label(scene) if fact.predicate != "empty")
    yield from (Atom("empty", (spot,)) for spot in scene.roster.of_type("spot"))


def test_demonstrations_of_an_expert_hold_nothing_odd() -> None:
    found = contents(*shown())
    assert found.demonstrators == {"": 3}
    assert found.goals == found.reached == {"at": 6}
    assert {(kind.change, kind.reported == kind.count) for kind in found.kinds()["unexplained"]} == {
        ("+empty(?spot) +lying(?parcel)", True)
    }
    assert (found.kinds()["ambiguous"], found.kinds()["flickers"]) == ([], [])


def test_labels_that_forget_an_effect_are_found_with_the_action_they_spoil() -> None:
    found = contents(*shown(), task=replace(TINY, label=always_empty))
    kinds = [kind for kind in found.kinds()["unexplained"] if kind.change.startswith("+at")]
    assert sum(kind.count for kind in kinds) == 6
    kind = kinds[0]
    assert kind.change == "+at(?parcel, ?spot) +free() -carrying(?parcel)"
    assert kind.nearest in {"put(parcel1, spot1)", "put(parcel2, spot2)"}
    assert kind.lacks
    assert kind.lacks.startswith("empty(spot")
    state = dict(shown()[kind.episode].states)[kind.step]
    assert kind.first.split(" +")[0].removeprefix("+") in set(map(str, state))


def test_goals_that_do_not_hold_at_the_end_are_counted() -> None:
    wanted = frozenset({Atom("at", ("parcel1", "spot2"))})
    found = contents(replace(shown()[0], goals=((0, wanted),)))
    assert (found.goals, found.reached) == ({"at": 1}, {})


def test_flickers_are_counted() -> None:
    first = shown(objects=1)[0]
    (_, state), *others = first.states
    states = ((0, state), (1, state - {Atom("free")}), (2, state), *others)
    (kind,) = contents(replace(first, states=states)).kinds()["flickers"]
    assert (kind.change, kind.count, kind.step) == ("-free()", 1, 1)


# At the high level


def test_each_step_has_the_action_that_it_helped_to_bring_about(collected: Path) -> None:
    data = Demonstrations.read(collected)
    for demonstration in data:
        found = explain(demonstration, data.domain, *label(demonstration))
        assert found.actions == demonstration.actions
        assert [step.action.action.name for trace in found.traces for step in trace.steps] == ["pick", "put"]
        assert (label(demonstration, TINY), found.exogenous) == (label(demonstration), 0)  # labelled anew, too


def test_a_surprise_ends_a_trace_and_is_counted(eventful: Demonstration) -> None:
    found = explain(eventful, TINY.domain, *label(eventful))
    assert found.exogenous > 0
    assert len(found.traces) > 1
    assert len(found.actions) == eventful.steps
    assert None not in found.actions
