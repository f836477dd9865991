"""A proposal as a Python file: thresholds by their names, a labelling function and a goal, to be read and edited."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from math import isclose

from bilevel.domain_learning.predicates.definitions import (
    AGENT,
    Constant,
    Definition,
    Quantified,
    identifier,
    in_order,
    variables_of,
)
from bilevel.domain_learning.predicates.goals import Goal
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.spec import Spec

WIDTH = 120
PLAIN = re.compile(r"[\w.+:/-]+", re.ASCII)
NUMBER = '''
def number(thing: Thing) -> float:
    """The number at the end of a thing's name."""
    digits = thing.name[len(thing.name.rstrip("0123456789")) :]
    return float(digits or "nan")

'''


def require_plain_names(spec: Spec, task: str, predicates: Iterable[str] = ()) -> None:
    """Raise `BadInput` for names that cannot stand in Python text as they are: a data set may come from anywhere."""
    features = [name for roles in (spec.agent_roles, *spec.object_roles.values()) for name in roles]
    for name in (task, *spec.objects, *features, *predicates):
        if not PLAIN.fullmatch(name):
            raise BadInput(f"the name {name!r} cannot be written in Python; use letters, digits, - and _")
    if len({identifier(kind) for kind in spec.objects}) < len(spec.objects):
        raise BadInput(f"the types {', '.join(spec.objects)} cannot be told apart in Python; name them otherwise")


def python_file(
    definitions: Sequence[Definition], goals: Sequence[Goal], heading: str, counts: dict[str, int], task: str | None
) -> str:
    """Return the text of a file with the functions `label` and `goal`.

    `counts` says how often each predicate changed; `task` is where the goal is to be found that only the task can tell.
    """
    definitions = in_order(definitions)
    given = any(goal.given for goal in goals)
    if given and task is None:
        raise BadInput("what the goal is about is seen in no feature, only the task can tell: say where it is (--task)")
    body = [*_label(definitions, counts), *([] if given else _goal(goals))]
    text = "\n".join(body)
    functions = [name for name in ("hypot", "remainder") if f"{name}(" in text]
    constants = _constants([*definitions, *(goal.where for goal in goals if goal.where and not given)])
    lines = [f'"""{heading}', "", *_ADVICE, '"""', "", "from collections.abc import Iterator"]
    lines += [f"from math import {', '.join(functions)}"] if functions else []
    lines += ["", f"from bilevel import Atom, Scene{', find_task' if given else ''}"]
    lines += ["from bilevel.tasks.scene import Thing"] if "number(" in text else []
    lines += ["", *(f"{name} = {one.value!r}  # {one.comment}" for name, one in constants.items()), ""]
    lines += [NUMBER] if "number(" in text else [""]
    lines += body
    lines += (
        ["", "", f"goal = find_task({task!r}).goal  # only the task can tell what belongs together"] if given else []
    )
    return "\n".join(lines).rstrip() + "\n"


_ADVICE = (
    "The file is yours: rename a predicate here and in the PDDL file beside it, move a threshold, delete what is of no",
    "use.",
)


def _constants(definitions: Sequence[Definition]) -> dict[str, Constant]:
    found: dict[str, Constant] = {}
    for definition in definitions:
        for name, constant in definition.constants.items():
            known = found.setdefault(name, constant)
            assert isclose(known.value, constant.value), name
    return found


def _label(definitions: Sequence[Definition], counts: dict[str, int]) -> Iterator[str]:
    """Give the lines of the labelling function."""
    kinds = list(dict.fromkeys(kind for definition in definitions for kind in definition.types))
    yield "def label(scene: Scene) -> Iterator[Atom]:"
    yield '    """The facts that hold."""'
    if any(f"{AGENT}." in test or f"{AGENT}[" in test for definition in definitions for test in definition.tests):
        yield f"    {AGENT} = scene.{AGENT}"
    yield from (f'    {_plural(kind)} = list(scene.of_type("{kind}"))' for kind in kinds)
    for definition in definitions:
        yield ""
        yield f"    # {definition.signature}: {definition.comment} It changed {counts[definition.name]} times."
        yield from _definition(definition)


def _definition(definition: Definition) -> Iterator[str]:
    """Give the lines for one predicate: of what it holds, and the facts."""
    name, conditions = (
        _set(definition.name),
        [*definition.tests, *(_other(definition, one) for one in definition.others)],
    )
    if definition.types[1:] and len(set(definition.types)) == 1:
        conditions = [f"{definition.variables[0]}.name != {definition.variables[1]}.name", *conditions]
    if not definition.types:
        yield f"    {name} = {' and '.join(conditions) or 'True'}"
        yield f"    if {name}:"
        yield f'        yield Atom("{definition.name}")'
        return
    terms = ", ".join(f"{variable}.name" for variable in definition.variables)
    loops = " ".join(f"for {v} in {_plural(k)}" for v, k in zip(definition.variables, definition.types, strict=True))
    yield f"    {name} = {{"
    yield f"        ({terms},)" if len(definition.types) == 1 else f"        ({terms})"
    yield f"        {loops}"
    yield from (f"        {'and' if place else 'if'} {test}" for place, test in enumerate(conditions))
    yield "    }"
    yield f'    yield from (Atom("{definition.name}", names) for names in sorted({name}))'


def _other(definition: Definition, one: Quantified) -> str:
    """Return the condition that another predicate holds of nothing, or of something."""
    name = _set(one.of)
    if one.position is None:
        return name if one.some else f"not {name}"
    thing = f"{definition.variables[one.about]}.name"
    return f"{'' if one.some else 'not '}any({thing} == names[{one.position}] for names in {name})"


def _goal(goals: Sequence[Goal]) -> Iterator[str]:
    """Give the lines of the goal."""
    yield from ("", "", "def goal(scene: Scene) -> Iterator[Atom]:")
    yield '    """The facts that are wanted, achieved or not."""'
    for goal in goals:
        types = goal.predicate.types
        tests = list(goal.where.tests) if goal.where else []
        if types[1:] and len(set(types)) == 1:
            one, other = variables_of(types)
            tests = [f"{one}.name != {other}.name", *tests]
        indent = "    "
        for variable, kind in zip(variables_of(types), types, strict=True):
            yield f'{indent}for {variable} in scene.of_type("{kind}"):'
            indent += "    "
        terms = ", ".join(f"{variable}.name" for variable in variables_of(types))
        atom = f'yield Atom("{goal.predicate.name}", ({terms}{"," if len(types) == 1 else ""}))'
        if tests:
            yield from _if(tests, indent)
            indent += "    "
        yield f"{indent}{atom}"


def _if(tests: Sequence[str], indent: str) -> Iterator[str]:
    """Give an `if` on one line, or on several where it is long."""
    line = f"{indent}if {' and '.join(tests)}:"
    if len(line) <= WIDTH:
        yield line
        return
    yield f"{indent}if ("
    yield from (f"{indent}    {'and ' if place else ''}{test}" for place, test in enumerate(tests))
    yield f"{indent}):"


def _plural(kind: str) -> str:
    return f"{identifier(kind)}s"


def _set(name: str) -> str:
    return f"{identifier(name)}_facts" if identifier(name) in _TAKEN else identifier(name)


_TAKEN = (AGENT, "scene", "names", "hypot", "abs", "number", "remainder", "label", "goal", "list", "sorted", "any")
