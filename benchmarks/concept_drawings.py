"""The drawings of docs/concepts.md, from one real episode of Blocks and what the program computes in it:

    python benchmarks/concept_drawings.py

All facts, numbers and rules in them come out of the code that learns and runs policies, so that a drawing cannot say
what the code does not do.
"""

from __future__ import annotations

import argparse
import base64
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import concept_episode
from concept_episode import Episode, Timestep
from svg import LINE, MARGIN, WIDTH, Chip, Drawing, letters

from bilevel.files import write_atomically
from bilevel.lowlevel.encoding import Encoding, encoding_of
from bilevel.rules.learning import rules_of_segment
from bilevel.rules.matching import unify
from bilevel.rules.traces import TraceStep, segments
from bilevel.symbolic.domain import Atom, Facts
from bilevel.symbolic.semantics import Condition, regress, substitute_all
from bilevel.tasks.scene import Array
from bilevel.tasks.spec import Position, Scalar

FOLDER = Path(__file__).parents[1] / "docs" / "images" / "concepts"
PICTURE_HEIGHT = 300
NAME_OFFSETS = {"block": -27, "place": 11}  # of what has a name in the picture: from its middle to the name
CONTROLS = ("x", "y", "z", "grip")
Rows = list[tuple[str, str]]  # names and numbers of a node
HALF = (WIDTH - 2 * MARGIN - 20) / 2  # width of each of two boxes side by side


def loop_drawing(episode: Episode) -> Drawing:
    """What happens at every timestep, with what it comes to in this one."""
    now = episode.now
    hand = ", ".join(f"{name} {value:.2f}" for name, value in zip(now.scene.spec.agent, now.scene.values, strict=True))
    boxes = (
        ("environment", "Gymnasium: step(control)", "box"),
        (f"scene: the hand and {len(now.scene.objects)} objects", hand, "box"),
        ("state and open goals", f"{len(now.state)} facts, {len(now.goal - now.state)} open goals", "third"),
        ("action", str(now.action), "first"),
        ("control", f"{len(now.control)} numbers from -1 to 1", "second"),
    )
    between = ("perceive", "label, goal", "rules: the high level", "network: the low level")
    drawing = Drawing("One timestep: environment, scene, facts, action, control, and back to the environment")
    height, gap, x, width = 50, 34, MARGIN + 44, WIDTH - 2 * MARGIN - 44
    top = drawing.y
    for (title, text, kind), label in zip(boxes, (*between, ""), strict=True):
        drawing.box(x, drawing.y, width, height, kind)
        drawing.put(x + 12, drawing.y + 20, title, "strong")
        drawing.put(x + 12, drawing.y + 39, text, "small code")
        if label:
            drawing.arrow([(x + 60, drawing.y + height + 1), (x + 60, drawing.y + height + gap - 1)])
            drawing.put(x + 74, drawing.y + height + 22, label, "faint")
            drawing.space(gap)
        drawing.space(height)
    left, first, last = MARGIN + 16, top + height / 2, drawing.y - height / 2
    drawing.arrow([(x - 1, last), (left, last), (left, first), (x - 1, first)])
    return drawing


def rule_drawing(episode: Episode) -> Drawing:
    """A scene, its facts, and the rule that fires."""
    now, match = episode.now, episode.match
    asked = substitute_all(match.rule.state_condition, match.binding)
    drawing = Drawing(f"What a rule sees: the facts of a scene, and the rule that fires: {match.action}")
    drawing.head("1. The scene: objects with numbers")
    picture(drawing, now)
    drawing.head("2. label(scene): the facts that hold")
    drawing.chips([Chip(str(fact), "third" if fact in asked else "box") for fact in sorted(now.state)])
    drawing.head("3. goal(scene): the facts that are wanted")
    drawing.chips([_wanted(fact, now.state, match.served) for fact in sorted(now.goal)])
    drawing.text("✓ holds already; the others are open goals", "small faint")
    drawing.head("4. The first rule whose conditions hold")
    drawing.chips([Chip(f"{match.rule.priority}:"), *(Chip(text, "third") for text in match.rule.conditions())])
    drawing.chips([Chip(f"-> {match.rule.action}", "first")])
    drawing.text("with " + ", ".join(f"{name} = {value}" for name, value in sorted(match.binding.items())), "code")
    drawing.head("5. The action that it gives")
    drawing.chips([Chip(str(match.action), "first")])
    return drawing


def _wanted(fact: Atom, state: Facts, served: Facts) -> Chip:
    return Chip(f"{fact} ✓" if fact in state else str(fact), "third" if fact in served else "box")


def picture(drawing: Drawing, now: Timestep) -> None:
    """The picture of the scene, with the names of things over it, where there is one."""
    if now.picture is not None:
        data = base64.b64encode(now.jpeg(2 * WIDTH, 2 * PICTURE_HEIGHT)).decode()
        drawing.add('<g class="picture">')
        drawing.add(
            f'<image x="1" y="{drawing.y}" width="{WIDTH - 2}" height="{PICTURE_HEIGHT}" preserveAspectRatio="none" '
            f'href="data:image/jpeg;base64,{data}"/>'
        )
        for name, kind in now.scene.objects.items():
            if kind in NAME_OFFSETS:
                _name(drawing, name, *now.in_picture(name), NAME_OFFSETS[kind])
        drawing.add("</g>")
    drawing.space(PICTURE_HEIGHT)


def _name(drawing: Drawing, name: str, x: float, y: float, offset: float) -> None:
    """Write a name above or below a place in the picture."""
    middle, half, top = x * WIDTH, letters(name, 12) / 2 + 3, drawing.y + y * PICTURE_HEIGHT + offset
    drawing.box(round(middle - half, 1), round(top, 1), round(2 * half, 1), 16, "tag")
    drawing.put(round(middle, 1), round(top + 12, 1), name, "small code on-tag", "middle")


def network_drawing(episode: Episode) -> Drawing:
    """The graph that the network gets for the action, with its numbers, and the control that it gives."""
    now, encoding = episode.now, encoding_of(episode.domain, episode.now.scene.spec)
    named = now.action.arguments
    drawing = Drawing(f"What the network sees for {now.action}: the hand, the action, and what the action names")
    drawing.head("The action decides what is looked at")
    drawing.chips([Chip(str(now.action), "first")])
    drawing.chips([Chip(name, "second" if name in named else "box") for name in now.scene.objects])
    drawing.text("Grey objects are not told to the network, however many there are.", "small faint")
    drawing.head("The graph: four nodes and their numbers")
    top = drawing.y
    upper = [("global: the hand", _of_hand(encoding, now)), ("the action", _of_action(encoding, now))]
    _boxes(drawing, upper, "third", "first")
    gap, middle = 34, drawing.y
    drawing.space(gap)
    lower = [(f"{name}, argument {i}", rows) for i, (name, rows) in enumerate(_of_arguments(encoding, now), 1)]
    _boxes(drawing, lower, "second", "second")
    _edges(drawing, top, middle, gap)
    drawing.head("Two rounds of messages, then the control")
    for control, kind in ((now.learned, "first"), (now.control, "box")):
        drawing.chips([_control(name, value, kind) for name, value in zip(CONTROLS, control, strict=True)])
    drawing.text("blue: what the network gives; grey: what the expert does here", "small faint")
    return drawing


def _of_hand(encoding: Encoding, now: Timestep) -> Rows:
    told: Any = encoding.features.told[0]  # columns
    names = [
        c.feature for c in told if isinstance(c.role, Scalar) or (isinstance(c.role, Position) and c.role.absolute)
    ]
    values = encoding.features.agent(now.scene.values)
    facts = encoding.global_facts(now.state, now.goal)
    return [*zip(names, map(_number, values), strict=True), *_facts(encoding.nullary, facts, "()")]


def _of_action(encoding: Encoding, now: Timestep) -> Rows:
    return [(name, str(int(name == now.action.name))) for name in encoding.schemas]


def _of_arguments(encoding: Encoding, now: Timestep) -> Iterator[tuple[str, Rows]]:
    columns: Any = encoding.features.told[1]
    rows, mask = encoding.arguments(now.scene, now.action)
    features = encoding.features.objects(now.scene.values, encoding.seen(now.scene, rows), mask)
    facts = encoding.object_facts(now.state, now.goal, now.action)
    for number, name in enumerate(now.action.arguments):
        told = zip(columns, features[number], strict=True)
        relative = [(f"{column.feature} from the hand", _number(value)) for column, value in told]
        yield name, [*relative, *_facts(encoding.unary, facts[number], "")]


def _control(name: str, value: float, kind: str) -> Chip:
    return Chip(f"{name} {round(value, 2) + 0.0:+.2f}", kind)


def _facts(names: Sequence[str], told: Array, end: str) -> Rows:
    """Whether each holds, and whether it is a goal."""
    count = len(names)
    return [(f"{name}{end}", f"{told[i]:.0f}, goal {told[count + i]:.0f}") for i, name in enumerate(names)]


def _number(value: Any) -> str:
    return f"{round(float(value), 3) + 0.0:+.3f}"  # never "-0.000"


def _boxes(drawing: Drawing, nodes: Sequence[tuple[str, Rows]], *kinds: str) -> None:
    """Draw two nodes side by side, each with its rows."""
    height = max(len(rows) for _, rows in nodes) * (LINE - 3) + 34
    for index, ((title, rows), kind) in enumerate(zip(nodes, kinds, strict=True)):
        x = MARGIN + index * (HALF + 20)
        drawing.box(x, drawing.y, HALF, height, kind)
        drawing.put(x + 9, drawing.y + 19, title, "strong")
        for line, (name, value) in enumerate(rows):
            y = drawing.y + 38 + line * (LINE - 3)
            drawing.put(x + 9, y, name, "small code")
            drawing.put(x + HALF - 9, y, value, "small code", "end")
    drawing.space(height)


def _edges(drawing: Drawing, top: float, middle: float, gap: float) -> None:
    """Draw messages between all four nodes."""
    left, right = MARGIN + HALF / 2, WIDTH - MARGIN - HALF / 2
    for start, end in ((left, left), (right, right), (left + 40, right - 40), (right - 40, left + 40)):
        drawing.arrow([(start, middle + gap - 2), (end, middle + 2)], both_ways=True)
    y = (top + middle) / 2
    drawing.arrow([(MARGIN + HALF + 1, y), (MARGIN + HALF + 19, y)], both_ways=True)


def regression_drawing(episode: Episode) -> Drawing:
    """How one segment of the trace becomes rules, step by step."""
    achieved, steps = list(segments(episode.trace))[concept_episode.PLACED]
    drawing = Drawing(f"How regression makes rules of the trace that achieves {achieved}")
    drawing.head("1. The trace: what was done, up to a goal")
    for step in steps:
        drawing.chips([Chip(str(step.action.action), "first")])
        _effects(drawing, step)
    drawing.text("The goal that is new in the end:", "small faint")
    drawing.chips([Chip(str(achieved), "second")])
    drawing.head("2. Regress: what must hold before each action?")
    condition = Condition(frozenset({achieved}))
    for distance, step in enumerate(reversed(steps), 1):
        regressed = regress(condition, step.action, step.outcome)
        assert regressed is not None
        _regression(drawing, distance, step, condition, regressed)
        condition = regressed
    drawing.head("3. Lift: objects become variables")
    rules = [rule for rule, _ in rules_of_segment(achieved, steps, episode.trace.objects, episode.domain)]
    (wanted,), last = rules[-1].goal_condition, rules[-1]
    for variable, name in (unify(wanted, achieved) or {}).items():
        drawing.text(f"{name} → {variable}, any {last.types[variable]}", "code")
    drawing.head("4. Rules: the distance is the priority")
    for rule in rules:
        drawing.chips([Chip(f"{rule.priority}:"), *map(Chip, rule.conditions()), Chip(f"-> {rule.action}", "first")])
        drawing.space(4)
    return drawing


def _effects(drawing: Drawing, step: TraceStep) -> None:
    changes = [Chip(f"+ {fact}", "third") for fact in sorted(step.outcome.add)]
    changes += [Chip(f"- {fact}", "gone") for fact in sorted(step.outcome.delete)]
    drawing.chips(changes, x=MARGIN + 22)
    drawing.space(4)


def _regression(drawing: Drawing, distance: int, step: TraceStep, after: Condition, before: Condition) -> None:
    """One action: what is wanted after it, and what must therefore hold before."""
    drawing.chips([Chip(f"{step.action.action}", "first")])
    rows = (
        ("wanted after it", after.positive, "second"),
        ("less what it adds", after.positive & step.outcome.add, "gone"),
        ("plus its precondition", step.action.condition.positive, "third"),
        (f"so before it, at distance {distance}", before.positive, "second"),
    )
    for title, facts, kind in rows:
        drawing.text(title, "small faint", MARGIN + 22)
        drawing.chips([Chip(str(fact), kind) for fact in sorted(facts)], x=MARGIN + 22)
    drawing.space(6)


DRAWINGS = {"loop": loop_drawing, "rule": rule_drawing, "network": network_drawing, "regression": regression_drawing}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to write them")
    folder: Path = parser.parse_args().folder
    episode = concept_episode.run()
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in DRAWINGS.items():
        write_atomically(folder / f"{name}.svg", str(draw(episode)))
        print(folder / f"{name}.svg")


if __name__ == "__main__":
    main()
