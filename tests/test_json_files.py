"""JSON from files: what is nested so deeply that something would fail on it later is refused at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bilevel.cli.options import env_arguments
from bilevel.demonstrations.dataset import MANIFEST, Demonstrations
from bilevel.json_files import DEEPEST, Damaged, decode, is_too_deep
from bilevel.policies.folder import POLICY, read_policy
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import BoxControls
from tiny_demonstrations import shown
from tiny_policies import learned_folder
from tiny_task import TINY

Nest = Callable[[int], str]
NESTS: dict[str, Nest] = {
    "lists": lambda levels: "[" * levels + "]" * levels,
    "objects": lambda levels: '{"a":' * levels + "1" + "}" * levels,
    "both": lambda levels: '[{"a":' * (levels // 2) + "1" + "}]" * (levels // 2),
}


@pytest.mark.parametrize("nest", NESTS.values(), ids=NESTS)
@pytest.mark.parametrize("levels", [250, 900, 100_000])
def test_what_is_nested_deeply_is_damaged(nest: Nest, levels: int) -> None:
    with pytest.raises(Damaged, match=r"^here: lists and objects are nested too deeply$"):
        decode(nest(levels), object, "here")


@pytest.mark.parametrize("nest", NESTS.values(), ids=NESTS)
def test_what_is_long_but_not_deep_is_read(nest: Nest) -> None:
    deep = nest(DEEPEST // 2)
    text = f"[{deep}" + f",{deep}" * 500 + ', "' + "[{" * 500 + r'\" [[" ]'
    assert decode(text, object, "here") == json.loads(text)
    assert not is_too_deep(text)


def nested(path: Path, key: str, levels: int) -> None:
    """Put something deep under a key of an object in a file."""
    known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    known[key] = "HERE"
    path.write_text(json.dumps(known).replace('"HERE"', NESTS["objects"](levels)), encoding="utf-8")


@pytest.mark.parametrize("levels", [300, 990])
@pytest.mark.parametrize("key", ["spec", "settings", "summary"])
def test_policies_and_data_sets_with_deep_parts_are_refused(tmp_path: Path, key: str, levels: int) -> None:
    for folder, file, read in (
        (learned_folder(), POLICY, read_policy),
        (shown(TINY).folder, MANIFEST, Demonstrations.read),
    ):
        assert folder is not None
        copy = tmp_path / file
        copy.mkdir()
        for path in folder.iterdir():
            (copy / path.name).write_bytes(path.read_bytes()) if path.is_file() else None
        nested(copy / file, key, levels)
        with pytest.raises(Damaged, match=rf"{file}: .*nested too deeply"):
            read(copy)


@pytest.mark.parametrize("levels", [300, 100_000])
def test_arguments_of_environments_are_not_nested_deeply(levels: int) -> None:
    with pytest.raises(BadInput, match="--env-args: lists and objects are nested too deeply in 'map'"):
        env_arguments([f"map={NESTS['lists'](levels)}"])


@pytest.mark.parametrize(
    "bounds", ['"low": [0], "high": [1e308]', '"low": [1], "high": [1]', '"low": [2], "high": [1]']
)
def test_controls_that_cannot_be_normalised_are_refused(bounds: str) -> None:
    with pytest.raises(Damaged, match="'low' must be less than 'high'"):
        decode('{"type": "box", "shape": [1], ' + bounds + "}", BoxControls, "manifest.json")
