"""Pictures of a world: arrays drawn off screen."""

from __future__ import annotations

import atexit
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.opengl import backend, mujoco

Image = NDArray[np.uint8]  # (height, width, 3), the top row first

MODE = "rgb_array"
MOST_GEOMS = 1000


@dataclass(frozen=True)
class Quality:
    """How pictures are drawn."""

    width: int
    height: int
    shadows: bool
    samples: int  # per pixel, for smooth edges
    paints_arm: bool = True  # in light grey, against which every block's colour stands out


QUALITIES = {
    "fast": Quality(width=640, height=480, shadows=False, samples=0),
    "smooth": Quality(width=800, height=600, shadows=False, samples=4),
    "good": Quality(width=960, height=720, shadows=True, samples=4),
    "metaworld": Quality(width=480, height=480, shadows=False, samples=0, paints_arm=False),
}
SMALLEST, LARGEST = 16, 4096  # pixels

# Cameras look at a point, from a distance in metres, an azimuth and an elevation in degrees.
CAMERAS = {
    # From the far side of the table, back at the robot, so that the arm is behind what it handles.
    "front": {"lookat": (0.0, 0.45, 0.10), "distance": 1.12, "azimuth": -105, "elevation": -33},
    # About what models trained on MetaWorld have seen: its camera "corner2" as LeRobot moves it, upright. That one is
    # nearer, with a field of view of 60 degrees instead of 45.
    "corner": {"lookat": (-0.105, 0.6, 0.146), "distance": 1.6, "azimuth": 148.4, "elevation": -28.9},
}

# MetaWorld's arm is red, white and cyan.
METAWORLD_RED = (0.5, 0.1, 0.1)
ARM = (0.82, 0.83, 0.85)
FINGERS = (0.30, 0.31, 0.33)
FINGER_GEOMS = ("rail", "leftclaw_it", "rightclaw_it", "leftpad_geom", "rightpad_geom")


def check_choices(mode: str | None, quality: str, camera: str, size: tuple[int, int] | None = None) -> None:
    """`BadInput` for what is no mode, quality, camera or size; no mode at all is one, too."""
    if mode not in (None, MODE):
        raise BadInput(f"unknown render mode {mode!r}; the known one: {MODE}")
    if quality not in QUALITIES:
        raise BadInput(f"unknown picture quality {quality!r}; known qualities: {', '.join(QUALITIES)}")
    if camera not in CAMERAS:
        raise BadInput(f"unknown camera {camera!r}; known cameras: {', '.join(CAMERAS)}")
    if size is not None and not all(SMALLEST <= length <= LARGEST for length in size):
        raise BadInput(f"a picture has {SMALLEST} to {LARGEST} pixels across and down, not {size[0]} and {size[1]}")


class Canvas:
    """Draws into memory, pictures of a size, (width, height): that of the quality unless it is given."""

    def __init__(
        self, model: Any, quality: str = "fast", camera: str = "front", size: tuple[int, int] | None = None
    ) -> None:
        chosen = QUALITIES[quality]
        width, height = size or (chosen.width, chosen.height)
        if chosen.paints_arm:
            _paint_arm(model)
        self._view, self._options = mujoco.MjvCamera(), mujoco.MjvOption()
        for part, value in CAMERAS[camera].items():
            setattr(self._view, part, value)
        self._options.sitegroup[:] = 0  # marks on the fingers
        self._aspect = width / height
        model.vis.global_.offwidth, model.vis.global_.offheight = width, height
        model.vis.quality.offsamples = chosen.samples
        classic = import_module(mujoco.Renderer.__module__)
        classic.gl_context.GLContext = import_module(f"mujoco.{backend()}").GLContext  # whatever MUJOCO_GL has chosen
        self._renderer: Any = mujoco.Renderer(model, height, width, MOST_GEOMS)
        self._renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = chosen.shadows
        self._renderer.scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = False
        atexit.register(
            _close, ref(self._renderer)
        )  # after the context, so that it happens before EGL itself is shut down

    def draw(self, data: Any, **view: Any) -> Image:
        """Return a picture of the simulation as it is now, from the camera, which may be moved first."""
        for part, value in view.items():
            setattr(self._view, part, value)
        self._renderer.update_scene(data, self._view, self._options)
        image: Image = self._renderer.render()
        return image

    def locate(self, points: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Return (points, 2): where in the last picture (points, 3) in the world are, as parts of width and height.

        What is behind the camera is nowhere: it has nan.
        """
        position, ahead, up, right = self._axes()
        away = np.asarray(points, np.float64) - position
        depth = away @ ahead
        depth[depth <= 0] = np.nan
        across, down = (away @ side / (side @ side) / depth for side in (right, -up))
        return 0.5 + np.stack([across, down], axis=1)

    def unproject(self, places: NDArray[np.floating[Any]], heights: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Return (places, 3): what is seen at these places of the last picture, (places, 2), if it is at these heights.

        It is the inverse of `locate`.
        """
        position, ahead, up, right = self._axes()
        rays = ahead + (np.asarray(places, np.float64) - 0.5) @ np.stack([right, -up])
        found: NDArray[np.float64] = position + rays * ((heights - position[2]) / rays[:, 2])[:, None]
        return found

    def _axes(self) -> NDArray[np.float64]:
        """Where the camera was for the last picture, where it looked, and the size of what is seen a metre away."""
        eyes = self._renderer.scene.camera  # two, which are one unless the picture is stereoscopic
        seen = [[getattr(eye, part) for part in ("pos", "forward", "up")] for eye in eyes]
        position, ahead, up = np.array(seen, np.float64).mean(axis=0)
        near, bottom, top = (getattr(eyes[0], f"frustum_{part}") for part in ("near", "bottom", "top"))
        up *= (top - bottom) / near  # as long as what is seen a metre away is high, and the next one as that is wide
        right = np.cross(ahead, up) * self._aspect
        return np.stack([position, ahead, up, right])

    def close(self) -> None:
        """Free what the graphics library holds; a second time nothing happens."""
        self._renderer.close()


def _paint_arm(model: Any) -> None:
    red = np.isclose(model.geom_rgba[:, :3], METAWORLD_RED).all(axis=1)
    red &= model.geom_type == mujoco.mjtGeom.mjGEOM_MESH
    model.geom_rgba[red, :3] = ARM
    for name in FINGER_GEOMS:
        model.geom(name).rgba[:3] = FINGERS


def _close(renderer: ref[Any]) -> None:
    found = renderer()
    if found is not None:
        found.close()
