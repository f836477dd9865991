"""Situations with tasks, demonstrations and policies that pages tell of, and what pages find in their folder."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from page_blocks import ROOT
from page_commands import run

from bilevel.experiments.reproduction.folder import FINDINGS
from bilevel.policies.folder import pretrained_policies

EXAMPLES = ROOT / "examples"
SCRAPYARD = EXAMPLES / "own_world" / "scrapyard.pddl"


# What is printed in other situations


def with_a_mistake(folder: Path, name: str, changes: Mapping[str, str]) -> list[str]:
    """What the check of a task says of an example after some of its text was replaced."""
    source = EXAMPLES / name
    text = source.read_text(encoding="utf-8")
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    copy = folder / "mistaken"
    copy.mkdir()
    (copy / source.name).write_text(text, encoding="utf-8")
    for domain in source.parent.glob("*.pddl"):
        (copy / domain.name).write_text(domain.read_text(encoding="utf-8"), encoding="utf-8")
    return run(["check", f"mistaken/{source.name}:task"], folder)[1]


def mistaken_label(folder: Path) -> list[str]:
    return with_a_mistake(folder, "own_world/own_world.py", {'else "clean"': 'else "washed"'})


def never_dirty(folder: Path) -> list[str]:
    changes = {'Atom("dirty" if piece.dirty else "clean", ': 'Atom("clean", '}
    changes["Expert(choose, control))"] = "Expert(choose, control), steps_per_object=20)"
    return with_a_mistake(folder, "own_world/own_world.py", changes)


def early_success(folder: Path) -> list[str]:
    changes = {"terminate_at_goal=False, ": "", ", success=success": ""}
    return with_a_mistake(folder, "ogbench/first_cubes.py", changes)


def other_objects(folder: Path) -> list[str]:
    """A data set is collected into a folder with one of another number of objects."""
    words = ["collect", "gacha", "--episodes", "1", "--output", "build/gacha", "--workers", "1", "--objects"]
    run([*words, "3"], folder)
    return run([*words, "4"], folder)[1]


UNCLEAR = """from dataclasses import replace
from bilevel.tabletop import TASKS
blocks = TASKS["blocks"]
def label(scene):
    facts = blocks.label(scene)
    return [fact for fact in facts if fact.predicate != "clear" or not fact.terms[0].startswith("place")]
task = replace(blocks, label=label)
"""


def unclear_places(folder: Path) -> list[str]:
    """Demonstrations of Blocks are labelled by somebody who never says which place is clear."""
    (folder / "unclear.py").write_text(UNCLEAR)
    return run(["demonstrations", "check", "build/three-blocks", "--task", "unclear.py:task"], folder)[1]


OLD_MANIFEST = {
    "format": 1,
    "task": "gacha",
    "arguments": {"objects": 3, "teleport_rate": 0.0, "draw": "empty"},
    "noise": None,
    "seed": 0,
    "episodes": 12,
}


def old_data(folder: Path) -> list[str]:
    """A data set of version 0.1 is checked."""
    (folder / "build/old").mkdir()
    (folder / "build/old/manifest.json").write_text(json.dumps(OLD_MANIFEST))
    return run(["demonstrations", "check", "build/old"], folder)[1]


EVENT = """
  (:event fall
    :effect (exists (?s - scrap) (and (new ?s) (lying ?s) (oneof (dirty ?s) (clean ?s)))))"""


def with_an_event(folder: Path) -> list[str]:
    """The whole domain of the scrapyard, and the event that scrap falls, are compared with demonstrations."""
    domain = SCRAPYARD.read_text(encoding="utf-8").rstrip().removesuffix(")")
    (folder / "mended.pddl").write_text(f"{domain}{EVENT})")
    return run(["domain", "check", "mended.pddl", "build/scrap"], folder)[1]


def damaged_policies(folder: Path) -> list[str]:
    """Policies are run whose rules or weights are damaged, or that are of version 0.1."""
    printed = []
    rules, weights, card = (
        folder / "build/policy" / name for name in ("rules.txt", "weights.safetensors", "policy.json")
    )
    for file, damage in ((rules, MISSPELT), (weights, SHORT), (card, None)):
        whole = file.read_bytes()
        old = json.loads(card.read_text()) | {"format": 1, "summary": OLD_SUMMARY}
        file.write_bytes(damage or json.dumps(old).encode())
        printed += run(["run", "blocks", "--policy", "build/policy"], folder)[1]
        file.write_bytes(whole)
    return [line.replace("build/policy/policy.json", "build/old/policy.json") for line in printed]


MISSPELT = b"# Rules for the domain blocks\nvariables: ?b - block\n\n\n1: hodling(?b) -> pick(?b)\n"
SHORT = (1000).to_bytes(8, "little") + b"{}"
OLD_SUMMARY = {"demonstrations": {"command": "bilevel collect blocks"}}


def with_one_rule(folder: Path, *options: str) -> list[str]:
    """The policy is run with the rule alone that picks a block up."""
    rules = folder / "build/policy/rules.txt"
    whole = rules.read_text()
    rules.write_text("".join(line for line in whole.splitlines(True) if not re.match(r"[13-9]: ", line)))
    printed = run(["run", "blocks", "--policy", "build/policy", "--objects", "2", *options], folder)[1]
    rules.write_text(whole)
    return printed


def at_a_loss(folder: Path) -> list[str]:
    return with_one_rule(folder, "--recovery", "off")


def other_noise(folder: Path) -> list[str]:
    """Results are continued with another noise."""
    words = ["evaluate", "--policy", "build/policy", "--objects", "1-3", "--episodes", "1", "--noise", "0.7"]
    return run([*words, "--output", "build/policy-results.jsonl"], folder)[1]


def uneven_recording(folder: Path) -> list[str]:
    """A file of robomimic's in which an observation is missing is imported."""
    with h5py.File(folder / "low_dim.hdf5", "w") as file:
        for name, rows in {"obs/object": 118, "obs/robot0_eef_pos": 119, "actions": 118}.items():
            file[f"data/demo_2/{name}"] = np.zeros((rows, 3))
    task = "examples/own_world/own_world.py:task"
    return run(["import", "low_dim.hdf5", "--task", task, "--output", "build/uneven"], folder)[1]


# What pages find in their folder


def cubes(folder: Path, namespace: dict[str, Any]) -> None:
    """A task of the reader's own, cubes.py:task, which here is the scrapyard, with demonstrations of it."""
    shutil.copy(EXAMPLES / "own_world" / "own_world.py", folder / "cubes.py")
    shutil.copy(SCRAPYARD, folder)
    run(["collect", "cubes.py:task", "--objects", "3", "--episodes", "40", "--output", "build/cubes"], folder)


def findings(folder: Path, namespace: dict[str, Any]) -> None:
    """What was found, where a page has it from an experiment of hours."""
    (folder / "build/some").mkdir()
    shutil.copy(ROOT / "results" / "reproduction.jsonl", folder / "build/some" / FINDINGS)


def short_play(folder: Path, namespace: dict[str, Any]) -> None:
    """Programs that record less than they would, in this page's copy of the examples."""
    changed = {"ogbench/recorded_play.py": ("play(sys.argv[1])", "play(sys.argv[1], episodes=2, steps=200)")}
    for name, (old, new) in changed.items():
        file = folder / "examples" / name
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")


def blocks(folder: Path, namespace: dict[str, Any]) -> None:
    """A data set of Blocks, and a policy that was trained briefly."""
    run(["collect", "blocks", "--objects", "1", "--episodes", "8", "--output", "build/blocks"], folder)
    shutil.copytree(pretrained_policies()["blocks"], folder / "build/policy")


def mistaken_domain(folder: Path, namespace: dict[str, Any]) -> None:
    text = SCRAPYARD.read_text(encoding="utf-8")
    for old, new in {" (not (dirty ?s))": "", "(holding ?s) (clean ?s)": "(holding ?s) (clean ?s) (free)"}.items():
        assert old in text
        text = text.replace(old, new)
    (folder / SCRAPYARD.name).write_text(text)


SITUATIONS: Mapping[str, Callable[[Path], list[str]]] = {
    "error: seed 1, step 0": mistaken_label,
    "error: the expert needs up to 83 steps": never_dirty,
    "error: seed 0, step 158": early_success,
    "bilevel: build/gacha: was begun": other_objects,
    "exogenous changes: 120": unclear_places,
    "bilevel: build/old/manifest.json": old_data,
    "bilevel: build/policy/rules.txt:5:4": damaged_policies,
    "no action after 41 steps": at_a_loss,
    "    41  no rule applies": with_one_rule,
    "bilevel: build/policy-results.jsonl: made with": other_noise,
    "bilevel: low_dim.hdf5": uneven_recording,
    "scrapyard: 100.0% of": with_an_event,
}
PREPARED: Mapping[str, Callable[[Path, dict[str, Any]], None]] = {
    "README.md": cubes,
    "import.md": short_play,
    "reproduction.md": findings,
    "tasks.md": cubes,
    "perception.md": blocks,
    "domains.md": mistaken_domain,
}
