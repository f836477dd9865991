"""How methods and causes of failure look in charts and on the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bilevel.tasks.scene_env import SUCCESS

# Looks: a colour for each family, told apart by marker and line too. The hues are those of Okabe and Ito, which
# colour-blind people can tell apart.


@dataclass(frozen=True)
class Style:
    """A look: the colour on light and on dark ground, the marker of a series, and whether marker and line are full."""

    light: str
    dark: str
    marker: str = "o"  # as matplotlib names it
    full: bool = True


SERIES: Mapping[str, Style] = {
    "bison-printed": Style("#4a9bd1", "#9ad2f5", "d", full=False),
    "bison-paper": Style("#4a9bd1", "#9ad2f5", full=False),
    "bison-recorded": Style("#4a9bd1", "#9ad2f5", "h", full=False),
    "bison-without-dagger": Style("#0072b2", "#56b4e9", "v", full=False),
    "bison": Style("#0072b2", "#56b4e9"),
    "expert": Style("#6b7280", "#a3abb8", "+", full=False),
    "expert-estimating": Style("#6b7280", "#a3abb8", "x", full=False),
    "det-plan": Style("#e08a2e", "#f6b26b", "^", full=False),
    "det-replan": Style("#c8500a", "#ff8a3d", "^"),
    "det-replan-lama": Style("#c8500a", "#ff8a3d", "d", full=False),
    "det-replan-search": Style("#8f3b06", "#ffb27d", "v"),
    "det-replan-dagger": Style("#8f3a07", "#ffb58a", ">"),
    "ndt-plan": Style("#35b78f", "#7fe0c0", "s", full=False),
    "ndt-replan": Style("#00805c", "#2cc795", "s"),
    "ndt-replan-dagger": Style("#005c42", "#8ff0cf", "P"),
    "pddl-nn": Style("#a2447f", "#e387bf", "D"),
    "pddl-nn-dagger": Style("#6f2b86", "#c79bea", "*"),
    "pure-nn": Style("#cc79a7", "#f2b3d6", "D", full=False),
    "pure-nn-dagger": Style("#9b72c9", "#d9c2f2", "*", full=False),
    "smolvla": Style("#8a6d3b", "#cfb27a", "v", full=False),
    "smolvla-metaworld": Style("#8a6d3b", "#cfb27a", "v"),
    "bison-paper-fixed-trays": Style("#4a9bd1", "#9ad2f5", "<", full=False),
    "bison-fixed-trays": Style("#0072b2", "#56b4e9", "<"),
    "expert-fixed-trays": Style("#6b7280", "#a3abb8", "2", full=False),
    "pddl-nn-dagger-fixed-trays": Style("#6f2b86", "#c79bea", "<"),
    "bison-paper-belts": Style("#4a9bd1", "#9ad2f5", "p", full=False),
    "bison-belts": Style("#0072b2", "#56b4e9", ">"),
    "expert-belts": Style("#6b7280", "#a3abb8", "3", full=False),
    "bison-missing-draws": Style("#0072b2", "#56b4e9", "p"),
    "expert-missing-draws": Style("#6b7280", "#a3abb8", "1", full=False),
    "rules": Style("#0072b2", "#56b4e9"),
    "lama": Style("#c8500a", "#ff8a3d", "^", full=False),
    "search": Style("#8f3b06", "#ffb27d", "s", full=False),
    "limit": Style("#171a21", "#e8ebf0", "", full=False),  # no method: what is too much
}


@dataclass(frozen=True)
class Cause:
    """How an episode may have ended: its colour on light and on dark ground, and what it means."""

    light: str
    dark: str
    meaning: str


CAUSES: Mapping[str, Cause] = {
    SUCCESS: Cause("#cfe3d8", "#28453a", "all goals were achieved in time"),
    "no rule": Cause("#56b4e9", "#56b4e9", "the policy did not know what to do: no rule applied"),
    "no model": Cause("#8d99ae", "#7d889c", "the planner cannot express what may happen, such as objects to come"),
    "no plan": Cause("#4c5a73", "#a9b4c8", "the planner found no plan, or none in time"),
    "plan broken": Cause("#e69f00", "#e8a91c", "what happened is not in the plan, and it did not plan again"),
    "unseen": Cause("#44aa99", "#5fbfae", "an object that it needed was not seen"),
    "physics": Cause("#222222", "#f5f5f5", "the simulation became unstable"),
    "terminated": Cause("#882255", "#b8527f", "the environment ended the episode, for a reason of its own"),
    "label": Cause("#f0e442", "#f0e442", "the labels flickered: changes of the symbolic state were undone at once"),
    "control": Cause("#b3de69", "#b3de69", "its control was unsteady: things moved to and fro"),
    "stall": Cause("#cc79a7", "#d583b2", "stuck: nothing that it did had an effect any more"),
    "drop": Cause("#d55e00", "#e56a10", "it kept losing what it held or needed"),
    "collision": Cause("#8c2d04", "#b5501f", "it kept upsetting things that it had nothing to do with"),
    "time": Cause("#0072b2", "#3a8fc4", "it was still making progress when the steps were up"),
}  # fmt: skip


def palette(dark: bool) -> str:
    """Return the colours as CSS variables."""
    named = [(f"series-{key}", style.light, style.dark) for key, style in SERIES.items()]
    named += [(f"cause-{key.replace(' ', '-')}", cause.light, cause.dark) for key, cause in CAUSES.items()]
    return "".join(f"--{name}:{at_night if dark else by_day};" for name, by_day, at_night in named)
