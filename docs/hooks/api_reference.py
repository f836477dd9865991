"""The reference of the package's public names: exactly `bilevel.__all__`, in the order in which one meets them."""

from __future__ import annotations

import bilevel

INTRODUCTION = """# Python

These are the public names of the package: `import bilevel` and use them as `bilevel.Task`. They are loaded when they
are first used, so importing the package is fast. Everything else is internal and may change.
"""
GROUPS = {
    "Tasks": "Task Expert Scene SceneEnv find_task register_task check_task",
    "What is seen": "Spec Position Angle Scalar LabelOnly Mirror Transpose",
    "Demonstrations": "collect Demonstrations import_demonstrations recordings_in_memory",
    "Learning": "learn learn_rules learn_from_problems complete_rules learn_domain plan_traces",
    "Policies": "load_policy BilevelPolicy HighLevelPolicy LowLevelNetwork rollout Episode",
    "Experiments": "evaluate Record reproduce benchmark_hard",
    "Domains and problems": "Domain Problem Atom Action read_domain read_problem read_adl_domain",
    "Rules and plans": "Rule read_rules solve verify plan",
}


def api_page() -> str:
    """Return the page: a heading for each group, and what mkdocstrings shall document below it."""
    public = [name for name in bilevel.__all__ if not name.startswith("_")]
    grouped = " ".join(GROUPS.values()).split()
    groups = {**GROUPS, "Others": " ".join(name for name in public if name not in grouped)}
    lines = [INTRODUCTION]
    for group, names in groups.items():
        lines += [f"## {group}", "", *(f"::: bilevel.{name}\n" for name in names.split())]
    return "\n".join(lines)
