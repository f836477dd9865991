"""The worlds, registered with Gymnasium: `bilevel/Blocks-v0`, `bilevel/BlocksNoisy-v0`, and so on."""

from __future__ import annotations

from contextlib import suppress

TELEPORT_RATE = 1 / 2000  # per object at its goal and step, in the noisy twins
WORLDS = {"Blocks": "blocks", "Factory": "factory", "Colour": "colour", "Gacha": "gacha"}  # classes and their modules

with suppress(ModuleNotFoundError):  # problems of symbols alone do without Gymnasium
    import gymnasium

    for world, module in WORLDS.items():
        for suffix, rate in (("", 0.0), ("Noisy", TELEPORT_RATE)):
            gymnasium.register(
                id=f"bilevel/{world}{suffix}-v0",
                entry_point=f"bilevel.tabletop.{module}:{world}",
                kwargs={"teleport_rate": rate},
            )
