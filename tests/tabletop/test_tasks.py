"""The table of tasks: every row is complete, and a wrong name is met with the right ones."""

from __future__ import annotations

import gymnasium
import pytest

from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TELEPORT_RATE
from bilevel.tabletop.observation import FEATURES_OF
from bilevel.tabletop.skills import SKILLS
from bilevel.tabletop.tasks import TASKS, find_task


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_found_by_its_name(name: str) -> None:
    assert find_task(name) is TASKS[name]
    assert find_task(name).name == name


def test_an_unknown_task_is_answered_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match="unknown task 'block'; known tasks: blocks, blocks-noisy, factory"):
        find_task("block")


@pytest.mark.parametrize("name", TASKS)
def test_a_row_fits_together(name: str) -> None:
    task = TASKS[name]
    environment = task.make(2)
    assert environment.teleport_rate == task.teleport_rate == (TELEPORT_RATE if "noisy" in name else 0.0)
    assert task.noisy == ("noisy" in name)
    assert environment.most_objects == task.most_objects
    assert task.domain.name == task.domain_name
    assert set(task.domain.schemas) == set(SKILLS[task.domain_name])
    assert {slot.type for slot in environment.slots} <= set(FEATURES_OF)
    assert {slot.type for slot in environment.slots} <= set(task.domain.types)
    assert gymnasium.spec(task.environment).kwargs == {"teleport_rate": task.teleport_rate}


def test_twins_differ_in_noise_alone() -> None:
    for name, task in TASKS.items():
        if not task.noisy:
            twin = TASKS[f"{name}-noisy"]
            assert (twin.label, twin.program, twin.domain_name) == (task.label, task.program, task.domain_name)
            assert twin.make(1).slots == task.make(1).slots


def test_only_blocks_goes_to_twenty() -> None:
    assert {name for name, task in TASKS.items() if task.most_objects == 20} == {"blocks", "blocks-noisy"}
    assert {task.most_objects for task in TASKS.values()} == {10, 20}
