"""Pictures of a world: arrays drawn off screen, or a window."""

from __future__ import annotations

import atexit
import time
import warnings
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.opengl import backend, mujoco

Image = NDArray[np.uint8]  # (height, width, 3), the top row first

FRAMES_PER_SECOND = 80  # one per control, in a window
MODES = ("human", "rgb_array")
MOST_GEOMS = 1000


@dataclass(frozen=True)
class Quality:
    """How pictures are drawn."""

    width: int
    height: int
    shadows: bool
    samples: int  # per pixel, for smooth edges


@dataclass(frozen=True)
class Viewpoint:
    """Looks at a point, from a distance in metres, an azimuth and an elevation in degrees."""

    lookat: tuple[float, float, float]
    distance: float
    azimuth: float
    elevation: float


QUALITIES = {
    "fast": Quality(width=640, height=480, shadows=False, samples=0),
    "smooth": Quality(width=800, height=600, shadows=False, samples=4),
    "good": Quality(width=960, height=720, shadows=True, samples=4),
}
SMALLEST, LARGEST = 16, 4096  # pixels

# From the far side of the table, back at the robot, so that the arm is behind what it handles.
CAMERAS = {
    "front": Viewpoint(lookat=(0.0, 0.45, 0.10), distance=1.12, azimuth=-105, elevation=-33),
    # About what models trained on MetaWorld have seen: its camera "corner2" as LeRobot moves it, upright. That one is
    # nearer, with a field of view of 60 degrees instead of 45.
    "corner": Viewpoint(lookat=(-0.105, 0.6, 0.146), distance=1.6, azimuth=148.4, elevation=-28.9),
}

# The arm in light grey, against which every block's colour stands out; MetaWorld has red, white and cyan.
METAWORLD_RED = (0.5, 0.1, 0.1)
ARM = (0.82, 0.83, 0.85)
FINGERS = (0.30, 0.31, 0.33)
FINGER_GEOMS = ("rail", "leftclaw_it", "rightclaw_it", "leftpad_geom", "rightpad_geom")


def check_choices(mode: str | None, quality: str, size: tuple[int, int] | None = None) -> None:
    """`BadInput` for what is no mode, no quality or no size; no mode at all is one, too."""
    if mode is not None and mode not in MODES:
        raise BadInput(f"unknown render mode {mode!r}; known modes: {', '.join(MODES)}")
    if quality not in QUALITIES:
        raise BadInput(f"unknown picture quality {quality!r}; known qualities: {', '.join(QUALITIES)}")
    if size is not None and not all(SMALLEST <= length <= LARGEST for length in size):
        raise BadInput(f"a picture has {SMALLEST} to {LARGEST} pixels across and down, not {size[0]} and {size[1]}")


class Canvas:
    """Draws into memory."""

    def __init__(self, model: Any, quality: Quality, camera: Viewpoint) -> None:
        self._renderer: Any = None
        self._model = model
        self._view = mujoco.MjvCamera()
        _aim(self._view, camera)
        self._options = mujoco.MjvOption()
        self._options.sitegroup[:] = 0  # marks on the fingers
        self._scene = mujoco.MjvScene(model, maxgeom=MOST_GEOMS)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = quality.shadows
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = False
        self._frame = mujoco.MjrRect(0, 0, quality.width, quality.height)
        self._pixels: Image = np.empty((quality.height, quality.width, 3), np.uint8)
        self._context = import_module(f"mujoco.{backend()}").GLContext(quality.width, quality.height)
        self._context.make_current()
        model.vis.global_.offwidth, model.vis.global_.offheight = quality.width, quality.height
        model.vis.quality.offsamples = quality.samples
        # It reads the size and smoothness of its canvas from the model.
        self._renderer = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100.value)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self._renderer)
        atexit.register(_close, ref(self))  # after the context, so that it happens before EGL itself is shut down

    def draw(self, data: Any) -> Image:
        """Return a picture of the simulation as it is now."""
        everything = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(self._model, data, self._options, None, self._view, everything, self._scene)
        self._context.make_current()
        mujoco.mjr_render(self._frame, self._scene, self._renderer)
        mujoco.mjr_readPixels(self._pixels, None, self._frame, self._renderer)
        image: Image = np.flipud(self._pixels).copy()  # OpenGL has the bottom row first
        return image

    def locate(self, points: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Return (points, 2): where in the last picture (points, 3) in the world are, as parts of width and height.

        What is behind the camera is nowhere: it has nan.
        """
        position, ahead, right, up = self._eye()
        away = np.asarray(points, np.float64) - position
        depth = away @ ahead
        depth[depth <= 0] = np.nan
        across, down = (away @ side / (side @ side) / depth for side in (right, -up))
        return 0.5 + np.stack([across, down], axis=1)

    def _eye(self) -> tuple[NDArray[np.float64], ...]:
        """Return where the last picture was seen from, and ahead of it, a metre away, the picture's width and height.

        All four are (3,); the third and fourth lead from the left to the right of what is seen there, and upwards.
        """
        eyes = self._scene.camera  # two, which are one unless the picture is stereoscopic
        seen = [[getattr(eye, part) for part in ("pos", "forward", "up")] for eye in eyes]
        position, ahead, up = np.array(seen, np.float64).mean(axis=0)
        near, bottom, top = (getattr(eyes[0], f"frustum_{part}") for part in ("near", "bottom", "top"))
        high = (top - bottom) / near
        return position, ahead, np.cross(ahead, up) * high * self._frame.width / self._frame.height, up * high

    def close(self) -> None:
        """Free what the graphics library holds; a second time nothing happens."""
        if self._renderer is not None:
            self._context.make_current()
            self._renderer.free()
            self._renderer = None
            self._context.free()

    def __del__(self) -> None:
        self.close()


def _paint_arm(model: Any) -> None:
    red = np.isclose(model.geom_rgba[:, :3], METAWORLD_RED).all(axis=1)
    red &= model.geom_type == mujoco.mjtGeom.mjGEOM_MESH
    model.geom_rgba[red, :3] = ARM
    for name in FINGER_GEOMS:
        model.geom(name).rgba[:3] = FINGERS


def _aim(view: Any, camera: Viewpoint) -> None:
    view.type = mujoco.mjtCamera.mjCAMERA_FREE
    view.lookat[:] = camera.lookat
    view.distance, view.azimuth, view.elevation = camera.distance, camera.azimuth, camera.elevation


def _close(canvas: ref[Canvas]) -> None:
    found = canvas()
    if found is not None:
        found.close()


class Window:
    """Shows what happens, as fast as it would happen. The user may look around with the mouse, and close it."""

    def __init__(self, model: Any, quality: Quality, camera: Viewpoint) -> None:
        from mujoco import viewer

        if not has_screen():
            raise BadInput("no window: there is no screen here; render_mode='rgb_array' works without one")
        self._model = model
        self._shown = mujoco.MjData(model)  # a copy: neither the viewer nor the mouse may touch the simulation itself
        model.vis.quality.offsamples = quality.samples
        try:
            self._viewer = viewer.launch_passive(model, self._shown, show_left_ui=False, show_right_ui=False)
        except RuntimeError as error:
            raise BadInput(f"no window: {error}") from None
        _aim(self._viewer.cam, camera)
        self._viewer.opt.sitegroup[:] = 0
        self._next = time.monotonic()

    def draw(self, data: Any) -> None:
        """Show the simulation as it is now, and wait until the next picture is due."""
        if self._viewer.is_running():
            with self._viewer.lock():
                mujoco.mj_copyData(self._shown, self._model, data)
            self._viewer.sync()
            time.sleep(max(0.0, self._next - time.monotonic()))
            self._next = time.monotonic() + 1 / FRAMES_PER_SECOND

    def close(self) -> None:
        """Close the window."""
        self._viewer.close()


def has_screen() -> bool:
    """Asked first, because MuJoCo's viewer waits for ever where there is none."""
    import glfw

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bool(glfw.init())


Picture = Canvas | Window


def open_picture(
    model: Any, mode: str, quality: str = "fast", camera: str = "front", size: tuple[int, int] | None = None
) -> Picture:
    """Return what draws a world: its `draw` gives an array in mode "rgb_array", and shows a window in mode "human".

    The size, (width, height), is that of the quality unless it is given.
    """
    _paint_arm(model)
    kind = Canvas if mode == "rgb_array" else Window
    chosen = QUALITIES[quality]
    width, height = size or (chosen.width, chosen.height)
    return kind(model, replace(chosen, width=width, height=height), CAMERAS[camera])
