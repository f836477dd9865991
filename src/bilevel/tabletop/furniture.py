"""The scene as MuJoCo reads it: MetaWorld's Sawyer arm behind a table of our own, and what may stand on the table.

All lengths are in metres, all sizes are half sizes, as MuJoCo has them. The arm's own files come from the `metaworld`
package; nothing of it is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from bilevel.symbolic.domain import BadInput

Colour = tuple[float, float, float]

TIMESTEP = 0.0025  # s
FLOOR = -0.913
SEEN_FLOOR = FLOOR + 0.05  # what is painted as floor; it covers the blocks that are parked below

BLOCK = 0.02  # a block is a cube of 4 cm
BLOCK_MASS = 0.1  # kg
SPOT = 0.001  # thickness of what is painted on the table: places, trays, the platform

BOX = (0.036, 0.066, 0.05)  # inside of the Gacha box: half x, half y, height of the walls
WALL = 0.004
LID_HEIGHT = BOX[2] + 0.005
LID_TRAVEL = 0.085  # the lid slides along x from 0, closed
KNOB_HEIGHT = LID_HEIGHT + 0.025
LID_DETENT = 2.0  # newtons towards the nearer end, so that the lid neither bounces nor creeps

BUTTON = (0.024, 0.07, 0.016)  # a bar: both open fingers land on it
BUTTON_HOUSING = 0.015
BUTTON_TOP = 0.056
BUTTON_TRAVEL = 0.02

BROWN: Colour = (0.45, 0.30, 0.18)
PINK: Colour = (0.95, 0.55, 0.70)
PALETTE: dict[str, Colour] = {
    "red": (0.84, 0.15, 0.16),
    "blue": (0.12, 0.40, 0.78),
    "green": (0.17, 0.60, 0.22),
    "yellow": (0.95, 0.80, 0.12),
    "purple": (0.52, 0.24, 0.68),
    "orange": (0.95, 0.50, 0.08),
    "cyan": (0.15, 0.75, 0.80),
    "magenta": (0.85, 0.15, 0.55),
    "lime": (0.62, 0.85, 0.20),
    "navy": (0.10, 0.16, 0.42),
    "teal": (0.05, 0.45, 0.43),
    "maroon": (0.48, 0.07, 0.13),
    "white": (0.96, 0.96, 0.94),
    "black": (0.10, 0.10, 0.11),
    "grey": (0.50, 0.52, 0.55),
    "lavender": (0.72, 0.66, 0.92),
    "mint": (0.62, 0.92, 0.74),
    "coral": (0.98, 0.62, 0.52),
    "olive": (0.48, 0.47, 0.12),
    "sky": (0.58, 0.80, 0.96),
}

COLOURS = np.array(list(PALETTE.values()), np.float32)

SOLID = 'solimp="0.95 0.99 0.001" solref="0.01 1" condim="3" friction="1 0.005 0.0001" group="1"'
PAINTED = 'contype="0" conaffinity="0" group="1"'


@cache
def assets() -> Path:
    """Where the metaworld package keeps its files."""
    spec = find_spec("metaworld")
    if spec is None or spec.origin is None:
        raise BadInput("the worlds need the metaworld package; install it with: pip install 'bilevel[tabletop]'")
    return Path(spec.origin).parent / "assets"


def numbers(*values: float) -> str:
    """Return numbers as MuJoCo's XML has them."""
    return " ".join(f"{value:.6g}" for value in values)


def block(name: str) -> str:
    """A cube that can be picked up. Its inertia is explicit: MetaWorld's defaults leave out that of other geoms."""
    inertia = BLOCK_MASS * (2 * BLOCK) ** 2 / 6
    return f"""
    <body name="{name}" pos="0 0 1">
      <freejoint name="{name}"/>
      <inertial pos="0 0 0" mass="{BLOCK_MASS}" diaginertia="{numbers(inertia, inertia, inertia)}"/>
      <geom name="{name}" type="box" size="{numbers(BLOCK, BLOCK, BLOCK)}" rgba="{numbers(*BROWN)} 1" condim="4"
            friction="1 0.1 0.002" solimp="0.99 0.99 0.01" solref="0.01 1" group="1"/>
    </body>"""


def spot(name: str, half_x: float = 0.03, half_y: float = 0.03, colour: Colour = BROWN) -> str:
    """Something painted on the table, which can be moved about: a place, a tray, the platform."""
    return f"""
    <body name="{name}" mocap="true" pos="0 0 1">
      <geom name="{name}" type="box" size="{numbers(half_x, half_y, SPOT)}" rgba="{numbers(*colour)} 0.7" {PAINTED}/>
    </body>"""


def button(name: str = "button") -> str:
    """Return the XML of a button that a spring lifts again."""
    x, y, z = BUTTON
    return f"""
    <body name="{name}-housing">
      <geom type="box" pos="0 0 {BUTTON_HOUSING}" size="{numbers(x + 0.008, y + 0.008, BUTTON_HOUSING)}"
            rgba="0.25 0.25 0.28 1" {SOLID}/>
      <body name="{name}" pos="0 0 {2 * BUTTON_HOUSING}" gravcomp="1">
        <joint name="{name}" type="slide" axis="0 0 1" range="{-BUTTON_TRAVEL} 0" limited="true" stiffness="100"
               damping="3" armature="0.02"/>
        <inertial pos="0 0 0" mass="0.05" diaginertia="1e-4 1e-4 1e-4"/>
        <geom name="{name}" type="box" pos="0 0 0.01" size="{numbers(x, y, z)}" rgba="0.85 0.1 0.1 1" {SOLID}/>
      </body>
    </body>"""


def box(name: str = "box") -> str:
    """Four walls without a floor, and a lid that slides along x when its knob is pulled."""
    x, y, height = BOX
    outer_y = y + 2 * WALL
    colour = 'rgba="0.85 0.45 0.65 1"'
    walls = [
        *((sign * (x + WALL), 0.0, WALL, outer_y) for sign in (-1, 1)),
        *((0.0, sign * (y + WALL), x, WALL) for sign in (-1, 1)),
    ]
    geoms = "".join(
        f'<geom type="box" pos="{numbers(px, py, height / 2)}" size="{numbers(sx, sy, height / 2)}" {colour} {SOLID}/>'
        for px, py, sx, sy in walls
    )
    return f"""
    <body name="{name}">{geoms}
      <body name="{name}-lid" pos="0 0 {LID_HEIGHT}" gravcomp="1">
        <joint name="{name}-lid" type="slide" axis="1 0 0" range="0 {LID_TRAVEL}" limited="true" damping="5"
               frictionloss="0.5" armature="0.05"/>
        <inertial pos="0 0 0" mass="0.2" diaginertia="5e-4 5e-4 5e-4"/>
        <geom type="box" size="{numbers(x + 2 * WALL, outer_y, 0.003)}" rgba="0.95 0.75 0.85 0.55" {SOLID}/>
        <geom type="box" pos="0 0 {KNOB_HEIGHT - LID_HEIGHT}" size="0.012 0.016 0.022" rgba="0.3 0.3 0.35 1" {SOLID}/>
      </body>
    </body>"""


@dataclass(frozen=True)
class Furnishing:
    """What stands on a world's table, as XML, and the names of what moves.

    `blocks` and `spots` can be put anywhere at any time, `fixtures` only while the simulation is reset; `joints` are
    those of buttons and lids. Sparse algebra pays from about five free bodies on.
    """

    bodies: Sequence[str]
    blocks: Sequence[str]
    spots: Sequence[str]
    fixtures: Sequence[str] = ()
    joints: Sequence[str] = ()
    excluded_contacts: Sequence[tuple[str, str]] = ()
    sparse: bool = True

    def xml(self) -> str:
        """Return the whole scene as one XML document."""
        folder = assets()
        contacts = "".join(f'<exclude body1="{first}" body2="{second}"/>' for first, second in self.excluded_contacts)
        return f"""<mujoco model="bilevel">
  <compiler meshdir="{folder}/sawyer_xyz" texturedir="{folder}/sawyer_xyz" angle="radian"/>
  {_SURROUNDINGS.replace("TEXTURES", f"{folder}/textures")}
  <include file="{folder}/objects/assets/xyz_base_dependencies.xml"/>
  <option timestep="{TIMESTEP}" iterations="50" tolerance="1e-10" solver="Newton" cone="elliptic"
          jacobian="{"sparse" if self.sparse else "dense"}"><flag sleep="enable" island="enable"/></option>
  <worldbody><include file="{folder}/objects/assets/xyz_base.xml"/>{"".join(self.bodies)}</worldbody>
  <actuator>
    <position ctrllimited="true" ctrlrange="-1 1" joint="r_close" kp="400"/>
    <position ctrllimited="true" ctrlrange="-1 1" joint="l_close" kp="400"/>
  </actuator>
  <contact>{contacts}</contact>
  <equality>
    <weld body1="mocap" body2="hand" anchor="0 0 0" relpose="0 0 0 1 0 0 0" torquescale="5" solref="0.012 1"/>
  </equality>
</mujoco>"""


def _table() -> str:
    """The top, four legs and a low rim."""
    legs = "".join(
        f'<geom type="box" size="0.03 0.03 0.42" pos="{numbers(x, y, -0.48)}" material="rim" {PAINTED}/>'
        for x in (-0.62, 0.62)
        for y in (0.26, 0.94)
    )
    rims = [(0.7, 0.008, 0.0, 0.208), (0.7, 0.008, 0.0, 0.992), (0.008, 0.392, 0.692, 0.6), (0.008, 0.392, -0.692, 0.6)]
    edges = "".join(
        f'<geom type="box" size="{numbers(sx, sy, 0.02)}" pos="{numbers(x, y, 0)}" material="rim" contype="0"/>'
        for sx, sy, x, y in rims
    )
    return f"""<geom name="table" type="box" size="0.7 0.4 0.03" pos="0 0.6 -0.03" material="table" contype="0"
                     conaffinity="1" group="1" friction="1 0.005 0.0001"/>{legs}{edges}"""


_SURROUNDINGS = f"""
  <statistic center="0 0.55 0" extent="1"/>
  <visual>
    <map znear="0.05" zfar="30" shadowclip="1.1" shadowscale="0.5" fogstart="4" fogend="11"/>
    <quality shadowsize="2048"/>
    <rgba haze="0.86 0.89 0.93 1" fog="0.86 0.89 0.93 1"/>
    <headlight ambient="0.40 0.40 0.42" diffuse="0.22 0.22 0.22" specular="0.05 0.05 0.05"/>
  </visual>
  <asset>
    <texture type="skybox" builtin="gradient" rgb1="0.86 0.89 0.93" rgb2="0.62 0.68 0.76" width="256" height="256"/>
    <texture name="table" type="2d" file="TEXTURES/light_wood_v3.png"/>
    <material name="table" texture="table" texrepeat="1 1" specular="0.1" shininess="0.2" rgba="1 0.98 0.95 1"/>
    <material name="rim" rgba="0.22 0.24 0.28 1" specular="0.2" shininess="0.3"/>
    <material name="floor" rgba="0.80 0.82 0.85 1" specular="0" shininess="0"/>
  </asset>
  <worldbody>
    <light directional="true" castshadow="true" diffuse="0.58 0.57 0.54" specular="0.2 0.2 0.2" pos="1.1 1.3 2"
           dir="-0.55 -0.4 -1"/>
    <light directional="true" castshadow="false" diffuse="0.14 0.14 0.16" specular="0 0 0" pos="-1 0 2"
           dir="0.5 0.3 -1"/>
    <geom name="floor" type="plane" size="4 4 .1" pos="0 0 {FLOOR}" group="3"/>
    <geom type="plane" size="0 0 1" pos="0 0 {SEEN_FLOOR}" material="floor" {PAINTED}/>
    {_table()}
  </worldbody>"""
