"""How to draw: the first of EGL, OSMesa and the like that works here.

MuJoCo decides it by MUJOCO_GL when it is first imported, and cannot be imported where the choice does not work. Here it
is decided when the first picture is drawn, and physics never depends on it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from importlib import import_module
from typing import Any

from bilevel.symbolic.domain import BadInput

PACKAGES = "libegl1 libgl1-mesa-dri libgles2 libglx-mesa0 (or libosmesa6)"  # Debian's; newer ones have no OSMesa
BACKENDS = ("egl", "osmesa", "cgl", "glfw")  # modules of mujoco, in the order in which they are tried

NONE = ("0", "off", "false", "disable", "disabled")  # what MUJOCO_GL may say, to have no pictures

# Run in a process of its own: PyOpenGL cannot change its mind once it has tried one library, and drivers may crash.
_PROBE = """
import mujoco
from mujoco.{backend} import GLContext
context = GLContext(64, 64)
context.make_current()
mujoco.MjrContext(mujoco.MjModel.from_xml_string("<mujoco/>"), 100).free()
context.free()
"""
_PROBE_LIMIT = 60  # s


def _import_mujoco() -> Any:
    """MuJoCo, also where MUJOCO_GL asks for what is not here; then it comes without its own way to draw."""
    try:
        return import_module("mujoco")
    except ModuleNotFoundError as error:
        raise BadInput(f"{error.name} is missing; install it with: pip install 'bilevel[tabletop]'") from None
    except Exception:  # whatever the drivers' wrappers raise
        wish = os.environ.get("MUJOCO_GL", "")
        os.environ["MUJOCO_GL"] = "off"
        try:
            return import_module("mujoco")
        finally:
            os.environ["MUJOCO_GL"] = wish


mujoco = _import_mujoco()


@cache
def backend() -> str:
    """The first of BACKENDS that works, or the one that MUJOCO_GL names; `BadInput` if there is none."""
    wish = os.environ.get("MUJOCO_GL", "").lower().strip()
    if wish in NONE:
        raise BadInput(f"pictures are switched off by MUJOCO_GL={wish}; unset it to have them")
    for candidate in (wish,) if wish in BACKENDS else BACKENDS:
        if works(candidate):
            return candidate
    cause = f"MUJOCO_GL={wish} does not work here" if wish in BACKENDS else "neither EGL nor OSMesa works here"
    raise BadInput(f"no pictures: {cause}; on Debian: apt-get install {PACKAGES}")


def works(candidate: str) -> bool:
    """Whether something can be drawn that way."""
    environment = {**os.environ, "MUJOCO_GL": "off"}  # or importing mujoco would already try to draw
    command = [sys.executable, "-c", _PROBE.format(backend=candidate)]
    try:
        return subprocess.run(command, env=environment, capture_output=True, timeout=_PROBE_LIMIT).returncode == 0
    except subprocess.TimeoutExpired:
        return False
