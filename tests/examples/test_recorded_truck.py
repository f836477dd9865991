"""The example with recorded vectors, of the page about one's own data: its code is there, and rules come of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bilevel.demonstrations.importing.importer import import_demonstrations
from bilevel.demonstrations.traces import Contents
from bilevel.rules.learning import learn_rules
from bilevel.tasks.registry import find_function, find_task

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "examples" / "own_world" / "recorded.py"


def test_rules_are_learned_from_vectors(tmp_path: Path) -> None:
    vectors, controls, ends = zip(*find_function(f"{RECORDED}:recorded")(episodes=12), strict=True)
    np.savez(tmp_path / "scrap.npz", observations=vectors, actions=controls, terminals=ends)
    task = find_task(f"{RECORDED.with_name('own_world.py')}:task")
    data = import_demonstrations(tmp_path / "scrap.npz", task, perceive=find_function(f"{RECORDED}:from_vector"))
    assert len(data) == 12
    rules = learn_rules(Contents.of(data).traces, data.domain)
    assert [rule.action.name for rule in rules] == ["drop", "grab", "wash", "grab"]


def test_the_page_shows_the_code_of_the_example() -> None:
    page = (ROOT / "docs" / "own_data.md").read_text(encoding="utf-8")
    _, _, rest = page.partition("```python\n")
    shown, _, _ = rest.partition("```")
    assert shown.startswith("def from_vector")
    assert shown in RECORDED.read_text(encoding="utf-8")
