"""Experts: what a person would do in each world, written by hand. They show the robot how, and they are its measure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

from bilevel.symbolic.domain import Action, Facts

Plan = Callable[[Facts, Facts], "Action | None"]
Table = Mapping[str, list[tuple[str, ...]]]


class Expert:
    """A high-level policy that asks a person's program what to do next."""

    def __init__(self, program: Plan) -> None:
        self._program = program

    def reset(self, state: Facts, goal: Facts, objects: Mapping[str, str]) -> None:
        """Nothing to prepare: the program sees all it needs."""

    def declare(self, objects: Mapping[str, str]) -> None:
        """Nothing to note either."""

    def choose(self, state: Facts, goal: Facts) -> Action | None:
        return self._program(state, goal)


def _by_predicate(facts: Facts) -> Table:
    """For each predicate the terms of its facts, in order; nothing where there are none."""
    table: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for predicate, terms in sorted(facts):
        table[predicate].append(terms)
    return table


def _colours_and_trays(now: Table) -> tuple[dict[str, str], dict[str, str]]:
    """The colour of each block that has one, and the tray for each colour."""
    return {b: c for b, c in now["colour-of"]}, {c: t for t, c in now["tray-colour"]}  # noqa: C416 (types)


def sort_blocks(state: Facts, goal: Facts) -> Action | None:
    """Blocks and Factory: put what is in hand on its place; else fetch a block whose place is free."""
    now, open_goals = _by_predicate(state), _by_predicate(goal - state)["at"]
    clear = {item for (item,) in now["clear"]}
    for (held,) in now["holding"]:
        wanted = [place for block, place in open_goals if block == held and place in clear]
        elsewhere = [item for item in sorted(clear) if item.startswith("place")]
        return next((Action("place", (held, place)) for place in wanted + elsewhere), None)
    ready = [block for block, place in open_goals if block in clear and place in clear]
    return next((Action("pick", (block,)) for block in ready), None)


def colour_blocks(state: Facts, goal: Facts) -> Action | None:
    """Colour: finish with the block on the platform; else bring home one that has a colour; else colour another."""
    now = _by_predicate(state)
    wanted = {block for (block,) in _by_predicate(goal - state)["achieved-goal"]}
    colours, trays = _colours_and_trays(now)
    free_platforms = [surface for (surface,) in now["free"] if surface != "table"]
    for (held,) in now["holding"]:
        if held in colours:
            return Action("place-goal", (held, trays[colours[held]], colours[held]))
        return next((Action("place", (held, platform)) for platform in free_platforms), None)
    lying = [(block, surface) for block, surface in now["on"] if block in wanted]
    lying.sort(key=lambda pair: (pair[1] == "table", pair[0] not in colours))
    for block, surface in lying:
        if block in colours or (surface == "table" and free_platforms):
            return Action("pick", (block, surface))
        if surface != "table":
            return Action("press", (block, "button", surface))
    return None


def roll_colours(state: Facts, goal: Facts) -> Action | None:
    """Gacha: put what is in hand on its tray; else get out what is in the box; else make a new block."""
    now = _by_predicate(state)
    if goal <= state:
        return None
    colours, trays = _colours_and_trays(now)
    for (held,) in now["holding"]:
        return Action("place-goal", (held, trays[colours[held]], colours[held]))
    for block, box in now["in"]:
        return Action("pick", (block, box)) if now["opened"] else Action("open", (box,))
    for (box,) in now["opened"]:
        return Action("close", (box,))
    return next((Action("roll", (box, "button")) for (box,) in now["closed"]), None)
