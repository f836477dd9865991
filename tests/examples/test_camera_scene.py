"""The example of a camera: what its detector learns, and whether what is seen now and then suffices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bilevel
from bilevel.methods.methods import find_policy
from bilevel.policies.rollout import rollout
from bilevel.tasks.scene_env import SceneEnv
from drawing import can_draw

torch = pytest.importorskip("torch", reason="the example needs torch")

FOLDER = Path(__file__).parents[2] / "examples" / "camera_scene"
needs_pictures = pytest.mark.skipif(not can_draw(), reason="no pictures can be drawn here")


def with_detector(name: str, detector: Any, folder: Path, objects: int) -> SceneEnv:
    """Return the environment of a task as this detector sees it."""
    from safetensors.torch import save_file

    save_file(detector.state_dict(), folder / "detector.safetensors")
    task = bilevel.find_task(f"{FOLDER}/from_pictures.py:{name}")
    return SceneEnv(task, objects, weights=str(folder / "detector.safetensors"))


def recipe(name: str) -> Any:
    return bilevel.find_task(f"{FOLDER}/from_pictures.py:{name}").make_env


@needs_pictures
@pytest.mark.parametrize("name", ["blocks", "colour"])
def test_now_and_then_a_picture_suffices_in_which_the_arm_hides_things(name: str, tmp_path: Path) -> None:
    env = with_detector(name, recipe(name).detector(), tmp_path, 3)
    inner: Any = env.env
    unseen = []

    def detect(*_: Any) -> Any:
        """Find everything, a few millimetres off; what the arm may hide is left out by whoever asks."""
        rows = inner.recipe.rows(inner.truth)
        unseen.append(np.sum(~inner.in_view(rows, inner.truth.values)))
        rows[:, 2:4] += rng.normal(0, 0.003, (len(rows), 2))
        return rows

    rng = np.random.default_rng(0)
    inner._detector.detect = detect
    policy = find_policy(name, task=env.task)
    assert policy.make is not None
    episode = rollout(env, policy.make(env), seed=1)
    assert episode.outcome == "success"
    assert len(unseen) <= episode.steps / inner.recipe.every + 3  # two at first, one at last
    assert sum(unseen) > len(unseen)


@needs_pictures
def test_a_detector_learns_where_blocks_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    import train  # type: ignore[import-not-found, unused-ignore]

    one = replace(recipe("blocks"), sizes=(1,))
    scenes = pictures, hands, places, rows = train.draw_scenes(one, 32)
    torch.set_num_threads(1)
    detector = train.train(one, scenes, 60)
    with torch.no_grad():
        sure = detector(torch.from_numpy(pictures), torch.from_numpy(hands))[:, 0, :, :, 0]
    down, across = np.divmod(sure.flatten(1).argmax(1).numpy(), sure.shape[2])
    off = np.stack([across, down], 1) + 0.5 - places[rows[:, :, 0] == 0]
    assert np.mean(np.abs(off).max(axis=1) < 2) > 0.7
