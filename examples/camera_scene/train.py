"""Teach a detector: scenes of the simulator, drawn, with the simulator's poses as labels.

python examples/camera_scene/train.py examples/camera_scene/from_pictures.py:blocks
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from detector import CELL, SIZE, Array, Detector, loss
from from_pictures import Recipe
from safetensors.torch import save_file

from bilevel import find_task
from bilevel.policies.policy import expert_policy
from bilevel.policies.rollout import Transition, rollout
from bilevel.tabletop.rendering import Canvas
from bilevel.tasks.scene_env import SceneEnv

MOST = 32  # things in a picture
BATCH, RATE = 32, 4e-3


def views(model: Any, view: Any, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Change lights and textures a little, and yield where the camera is, for ever."""
    parts = [(model.vis.headlight, "ambient"), (model.vis.headlight, "diffuse")]
    parts += [(model, name) for name in ("light_diffuse", "light_dir", "mat_rgba", "mat_texrepeat")]
    usual = [(owner, name, np.array(getattr(owner, name))) for owner, name in parts]
    while True:
        for owner, name, value in usual:
            factors = rng.uniform(0.8, 1.2, (*value.shape[:-1], 1)) * rng.uniform(0.92, 1.08, value.shape)
            getattr(owner, name)[..., :3] = (value * factors)[..., :3]  # and not how transparent it is
        lookat, distance = view["lookat"] + rng.normal(0, 0.01, 3), view["distance"] + rng.normal(0, 0.02)
        azimuth, elevation = (view[name] + rng.normal(0, 1.5) for name in ("azimuth", "elevation"))
        yield {"lookat": lookat, "distance": distance, "azimuth": azimuth, "elevation": elevation}


def draw_scenes(recipe: Recipe, number: int, seed: int = 0) -> tuple[Array, Array, Array, Array]:
    """Return pictures, the hand in each, where things are in it, in squares, and their rows, padded with nan."""
    rng, worlds, pictures, hands = np.random.default_rng(seed), dict[int, Any](), list[Array](), list[Array]()
    places, rows = np.full((2, number, MOST, 7), np.nan, np.float32)

    def shoot(transition: Transition) -> None:
        index = len(pictures)
        if transition.episode.steps % (2 * recipe.every) == 0 and index < number:
            pictures.append(canvas.draw(data, **next(view)).copy())
            hands.append(transition.scene.values)
            things = recipe.rows(transition.scene)
            places[index, : len(things), :2] = canvas.locate(things[:, 2:5]) * SIZE / CELL
            rows[index, : len(things)] = things

    while len(pictures) < number:
        objects = int(rng.choice(recipe.sizes))
        if objects not in worlds:
            env = SceneEnv(recipe.task, objects)
            model, data = recipe.simulator(env.env)
            worlds[objects] = env, data, Canvas(model, recipe.quality, size=SIZE), views(model, recipe.view, rng)
        env, data, canvas, view = worlds[objects]
        rollout(env, expert_policy(env), int(rng.integers(2**31)), noise=1.0, callback=shoot)
    return np.array(pictures), np.array(hands), places[..., :2], rows


def train(recipe: Recipe, scenes: tuple[Array, ...], epochs: int, seed: int = 0) -> Detector:
    """Return a detector that was shown all scenes so many times, each time in another light."""
    torch.manual_seed(seed)
    pictures, hands, places, rows = map(torch.from_numpy, scenes)
    detector, total = recipe.detector(), epochs * (len(pictures) // BATCH)
    optimizer = torch.optim.AdamW(detector.parameters(), weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total, pct_start=0.15)
    for epoch in range(epochs):
        losses = list[float]()
        for chosen in torch.randperm(len(pictures))[: total // epochs * BATCH].view(-1, BATCH):
            most = int(rows[chosen, :, 0].isfinite().sum(1).max())
            light = 128 + (pictures[chosen].float() - 128) * (1 + 0.1 * torch.randn(len(chosen), 1, 1, 1))
            light = light + 8 * torch.randn(len(chosen), 1, 1, 3) + 4 * torch.randn(light.shape)
            value = loss(detector(light.clamp(0, 255), hands[chosen]), places[chosen, :most], rows[chosen, :most])
            optimizer.zero_grad()
            torch.autograd.backward(value)
            optimizer.step()
            schedule.step()
            losses.append(value.item())
        print(f"epoch {epoch + 1} of {epochs}: loss {np.mean(losses):.3f}", flush=True)
    return detector.eval()


def main(source: str, scenes: int = 6000, epochs: int = 8) -> None:
    recipe: Any = find_task(source).make_env
    output = Path(f"build/camera/{recipe.task.name}.safetensors")
    output.parent.mkdir(parents=True, exist_ok=True)
    save_file(train(recipe, draw_scenes(recipe, scenes), epochs).state_dict(), output)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
