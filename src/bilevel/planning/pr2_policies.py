"""Policies as PR2 and PRP write them: a list over the variables of the translated problem, or a graph in JSON.

In the list, a second file forbids actions under further conditions: a decision counts only where none of these holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from bilevel.planning.contingent import ContingentPolicy, Decision
from bilevel.symbolic.domain import Action, Atom, Facts
from bilevel.symbolic.expressions import quoted
from bilevel.symbolic.semantics import Condition

POLICY, FORBIDDEN = "policy.out", "policy.fsap"
TRANSLATIONS = ("output", "output.sas")  # PRP works on the first, which is made from the second; PR2 has only that

MOST_DECISIONS = 100_000  # once what is forbidden is taken out of the conditions

NONE_OF_THOSE = "<none of those>"
GOALS = ("goal", "goal_action")  # stand for no action

_VARIABLE = re.compile(r"begin_variable\n(\S+)\n-?\d+\n(\d+)\n(.*?)end_variable", re.DOTALL)
_ENTRY = re.compile(r"If holds:(?P<facts>[^\n]*)\n(?P<verb>Execute|Forbid):(?P<action>[^\n]*)")
_ATOM = re.compile(r"(?P<negated>Negated)?Atom (?P<predicate>[^\s()]+)\((?P<terms>[^()]*)\)")
_OUTCOME = re.compile(r"_detdup_\d+", re.IGNORECASE)


class Unreadable(Exception):
    """The files are not as they should be."""


class Names(NamedTuple):
    """What the planner calls things, and what we do."""

    actions: Mapping[str, str]
    predicates: Mapping[str, str]
    objects: Mapping[str, str]

    def action(self, text: str) -> Action:
        """Of `a1 o2 o3`, or of one outcome of it, `a1_DETDUP_1 o2 o3`."""
        words = _OUTCOME.sub("", text).lower().split()
        if not words or words[0] not in self.actions or not self.objects.keys() >= set(words[1:]):
            raise Unreadable(f"unknown action {quoted(text.strip())}")
        return Action(self.actions[words[0]], tuple(self.objects[word] for word in words[1:]))

    def literal(self, text: str) -> tuple[Atom, bool]:
        """The fact of `Atom p1(o1, o2)`, and whether it holds."""
        match = _ATOM.fullmatch(text.strip())
        terms = [term.strip().lower() for term in match["terms"].split(",") if term.strip()] if match else []
        if match is None or match["predicate"] not in self.predicates or not self.objects.keys() >= set(terms):
            raise Unreadable(f"unknown fact {quoted(text.strip())}")
        atom = Atom(self.predicates[match["predicate"]], tuple(self.objects[term] for term in terms))
        return atom, match["negated"] is None


def read_policy_files(directory: Path, names: Names) -> ContingentPolicy | None:
    """The policy in a planner's directory; `None` where it wrote none."""
    text = _text(directory / POLICY)
    if text is None:
        return None
    if text.lstrip().startswith("{"):
        return _policy_of_graph(text, names)
    translation = next((found for found in map(_text, (directory / f for f in TRANSLATIONS)) if found), None)
    if translation is None:
        raise Unreadable(f"there is no file {TRANSLATIONS[-1]}")
    return _policy_of_list(text, _text(directory / FORBIDDEN) or "", _variables(translation, names), names)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise Unreadable(f"{path.name} is not text") from None
    except OSError:
        return None


# --- A list of conditions and actions

PartialState = dict[str, int]  # from variables to values


@dataclass(frozen=True)
class _Variable:
    """For each value, what it says of facts."""

    values: tuple[Condition, ...]


def _variables(translation: str, names: Names) -> dict[str, _Variable]:
    variables = {}
    for name, count, lines in _VARIABLE.findall(translation.replace("\r\n", "\n")):
        values = lines.splitlines()
        if len(values) != int(count):
            raise Unreadable(f"variable {quoted(name)} has {len(values)} values, not {count}")
        literals = [names.literal(value) for value in values if value.strip() != NONE_OF_THOSE]
        anything = frozenset(atom for atom, _ in literals)
        conditions = []
        for value in values:
            if value.strip() == NONE_OF_THOSE:
                conditions.append(Condition(negative=anything))
            else:
                atom, holds = names.literal(value)
                conditions.append(Condition(frozenset({atom})) if holds else Condition(negative=frozenset({atom})))
        variables[name] = _Variable(tuple(conditions))
    return variables


class _Entry(NamedTuple):
    state: PartialState
    action: str
    distance: int | None


def _entries(text: str, verb: str, variables: Mapping[str, _Variable]) -> Iterator[_Entry]:
    """The entries that are about actions, in order."""
    if text.strip() and not _ENTRY.search(text):
        raise Unreadable(f"expected 'If holds: …' and '{verb}: …' but found {quoted(text.strip().splitlines()[0])}")
    for match in _ENTRY.finditer(text):
        action, *remarks = match["action"].split("/")
        if match["verb"] == verb and action.strip() not in GOALS:
            distance = re.search(r"d=(\d{1,9})\b", "/".join(remarks))
            state = dict(_value(word, variables) for word in match["facts"].split())
            yield _Entry(state, action.strip(), int(distance[1]) if distance else None)


def _value(word: str, variables: Mapping[str, _Variable]) -> tuple[str, int]:
    name, _, value = word.rpartition(":")
    if name not in variables or not re.fullmatch(r"\d{1,6}", value) or int(value) >= len(variables[name].values):
        raise Unreadable(f"unknown value {quoted(word)} of a variable")
    return name, int(value)


def _policy_of_list(text: str, forbidding: str, variables: Mapping[str, _Variable], names: Names) -> ContingentPolicy:
    forbidden: dict[str, list[PartialState]] = {}
    for entry in _entries(forbidding, "Forbid", variables):
        forbidden.setdefault(entry.action, []).append(entry.state)
    decisions: list[Decision] = []
    for place, entry in enumerate(_entries(text, "Execute", variables), start=1):
        states = [entry.state]
        for taboo in forbidden.get(entry.action, ()):
            states = [part for state in states for part in _outside(state, taboo, variables)]
            if len(decisions) + len(states) > MOST_DECISIONS:
                raise Unreadable(f"more than {MOST_DECISIONS} decisions")
        action = names.action(entry.action)
        distance = place if entry.distance is None else entry.distance
        decisions += [Decision(_condition(state, variables), action, distance) for state in states]
    return ContingentPolicy(tuple(decisions))


def _outside(state: PartialState, taboo: PartialState, variables: Mapping[str, _Variable]) -> Iterator[PartialState]:
    """Partial states that do not overlap and make up what lies in `state` and not in `taboo`."""
    inside = dict(state)
    for name, value in taboo.items():
        if name in inside and inside[name] == value:
            continue
        if name in inside:
            yield inside
            return
        others = (other for other in range(len(variables[name].values)) if other != value)
        yield from ({**inside, name: other} for other in others)
        inside[name] = value


def _condition(state: PartialState, variables: Mapping[str, _Variable]) -> Condition:
    parts = [variables[name].values[value] for name, value in state.items()]
    return Condition(_union([part.positive for part in parts]), _union([part.negative for part in parts]))


def _union(sets: Sequence[Facts]) -> Facts:
    return frozenset[Atom]().union(*sets)


# --- A graph in JSON


def _policy_of_graph(text: str, names: Names) -> ContingentPolicy:
    """The nodes, those first that are known to be strong-cyclic, then the nearest to the goal."""
    try:
        document = json.loads(text)
        nodes = [node for node in document["nodes"].values() if not node["is_goal"] and node["action"] not in GOALS]
        nodes.sort(key=lambda node: (not node.get("is_sc", True), int(node["distance"])))
        return ContingentPolicy(tuple(_decision(node, document["states"], names) for node in nodes))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable(f"{POLICY}: {type(error).__name__}: {error}".splitlines()[0]) from None


def _decision(node: Mapping[str, Any], states: Mapping[str, Sequence[str]], names: Names) -> Decision:
    facts = states[node["state"]]
    if any(NONE_OF_THOSE in fact for fact in facts):
        raise Unreadable(f"'{NONE_OF_THOSE}' says nothing in JSON; ask for --output-format 2")
    literals = [names.literal(fact) for fact in facts]
    condition = Condition(
        frozenset(atom for atom, holds in literals if holds), frozenset(atom for atom, holds in literals if not holds)
    )
    return Decision(condition, names.action(node["action"]), int(node["distance"]))
