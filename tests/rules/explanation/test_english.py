"""Plain English: golden sentences for the paper's domains and for domains the wording was not made for."""

from __future__ import annotations

import pytest

from bilevel.rules.explanation.formats import FORMATS
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules

BLOCKS = (
    "variables: ?x - block, ?l - place\n"
    "\n"
    "1: holding(?x) & clear(?l) & goal at(?x, ?l) -> place(?x, ?l)\n"
    "2: clear(?x) & clear(?l) & gripper-free() & goal at(?x, ?l) -> pick(?x)\n"
)
BLOCKS_ENGLISH = (
    "Two rules. So that a block is at a place: pick the block, then place the block at the place.\n"
    "\n"
    "1. If you hold a block, a place is clear and the block belongs there, place it there.\n"
    "2. If a block is clear, a place is clear, the gripper is free and the block belongs at the place, pick "
    "it.\n"
)
PICK_PLACE = (
    "variables: ?x - item, ?l - location, ?l2 - location, ?l3 - location\n"
    "\n"
    "1: hold(?x) & robot-at(?l) & goal at(?x, ?l) -> place(?x, ?l)\n"
    "2: robot-at(?l) & hold(?x) & goal at(?x, ?l2) -> move(?l, ?l2)\n"
    "3: at(?x, ?l) & robot-at(?l) & free() & goal at(?x, ?l2) -> pick(?x, ?l)\n"
    "4: robot-at(?l2) & at(?x, ?l) & free() & goal at(?x, ?l3) -> move(?l2, ?l)\n"
)
PICK_PLACE_ENGLISH = (
    "Four rules. So that an item is at a location: pick the item from the location, move from the first "
    "location to the second location, then place the item at the location.\n"
    "\n"
    "1. If you hold an item, the robot is at a location and the item belongs there, place it there.\n"
    "2. If the robot is at a location, you hold an item and it belongs at a second location, move from the "
    "first location to the second location.\n"
    "3. If an item is at a location, the robot is there, you are free and the item belongs at a second "
    "location, pick it from the first location.\n"
    "4. If the robot is at a location, an item is at a second location, you are free and the item belongs at "
    "a third location, move from the first location to the second location.\n"
)
COLOUR = (
    "variables: ?x - block, ?t - tray, ?c - colour, ?s - surface, ?b - button, ?p - platform\n"
    "\n"
    "1: holding(?x) & colour-of(?x, ?c) & tray-colour(?t, ?c) & goal achieved-goal(?x) -> place-goal(?x, ?t, "
    "?c)\n"
    "2: on(?x, ?s) & colour-of(?x, ?c) & tray-colour(?t, ?c) & gripper-free() & goal achieved-goal(?x) -> "
    "pick(?x, ?s)\n"
    "3: unknown(?x) & on(?x, ?p) & tray-colour(?t, ?c) & gripper-free() & goal achieved-goal(?x) -> press(?x, "
    "?b, ?p)\n"
    "4: holding(?x) & unknown(?x) & free(?p) & tray-colour(?t, ?c) & goal achieved-goal(?x) -> place(?x, ?p)\n"
    "5: unknown(?x) & on(?x, ?s) & free(?p) & tray-colour(?t, ?c) & gripper-free() & goal achieved-goal(?x) "
    "-> pick(?x, ?s)\n"
)
COLOUR_ENGLISH = (
    "Five rules. So that a block's goal is achieved: place the block on the platform, press the button for "
    "the block on the platform, pick the block from the surface, then place the block on the tray.\n"
    "\n"
    "1. If you hold a block, it has a colour, a tray has the colour and the block's goal is not achieved "
    "yet, place it on the tray.\n"
    "2. If a block is on a surface, it has a colour, a tray has the colour, the gripper is free and the "
    "block's goal is not achieved yet, pick it from the surface.\n"
    "3. If a block is unknown, it is on a platform, a tray has a colour, the gripper is free and the block's "
    "goal is not achieved yet, press a button for the block on the platform.\n"
    "4. If you hold a block, it is unknown, a platform is free, a tray has a colour and the block's goal is "
    "not achieved yet, place it on the platform.\n"
    "5. If a block is unknown, it is on a surface, a platform is free, a tray has a colour, the gripper is "
    "free and the block's goal is not achieved yet, pick it from the surface.\n"
)
GACHA = (
    "variables: ?x - block, ?t - tray, ?c - colour, ?d - box, ?b - button, ?c2 - colour, ?t2 - tray\n"
    "\n"
    "1: holding(?x) & colour-of(?x, ?c) & tray-colour(?t, ?c) & goal achieved-goal(?c) -> place-goal(?x, ?t, "
    "?c)\n"
    "2: in(?x, ?d) & colour-of(?x, ?c) & opened(?d) & tray-colour(?t, ?c) & gripper-free() & goal "
    "achieved-goal(?c) -> pick(?x, ?d)\n"
    "3: tray-colour(?t, ?c) & in(?x, ?d) & colour-of(?x, ?c) & gripper-free() & goal achieved-goal(?c) -> "
    "open(?d)\n"
    "4: clear(?d) & closed(?d) & tray-colour(?t, ?c) & gripper-free() & goal achieved-goal(?c) -> roll(?d, ?b)\n"
    "5: clear(?d) & opened(?d) & tray-colour(?t, ?c) & gripper-free() & goal achieved-goal(?c) -> close(?d)\n"
    "6: holding(?x) & colour-of(?x, ?c) & tray-colour(?t, ?c) & clear(?d) & opened(?d) & tray-colour(?t2, "
    "?c2) & goal achieved-goal(?c2) -> place-goal(?x, ?t, ?c)\n"
    "7: in(?x, ?d) & colour-of(?x, ?c) & opened(?d) & tray-colour(?t, ?c) & tray-colour(?t2, ?c2) & "
    "gripper-free() & goal achieved-goal(?c2) -> pick(?x, ?d)\n"
)
GACHA_ENGLISH = (
    "Seven rules. So that a colour's goal is achieved: close the box, roll the box with the button, open the "
    "box, pick the block from the box, then place the block on the tray.\n"
    "\n"
    "1. If you hold a block, it has a colour, a tray has the colour and the colour's goal is not achieved "
    "yet, place the block on the tray.\n"
    "2. If a block is in a box, it has a colour, the box is open, a tray has the colour, the gripper is free "
    "and the colour's goal is not achieved yet, pick the block from the box.\n"
    "3. If a tray has a colour, a block is in a box, it has the colour, the gripper is free and the colour's "
    "goal is not achieved yet, open the box.\n"
    "4. If a box is clear, it is closed, a tray has a colour, the gripper is free and the colour's goal is "
    "not achieved yet, roll the box with a button.\n"
    "5. If a box is clear, it is open, a tray has a colour, the gripper is free and the colour's goal is not "
    "achieved yet, close the box.\n"
    "6. If you hold a block, it has a colour, a tray has the first colour, a box is clear, it is open, a "
    "second tray has a second colour and the second colour's goal is not achieved yet, place the block on "
    "the first tray.\n"
    "7. If a block is in a box, it has a colour, the box is open, a tray has the first colour, a second tray "
    "has a second colour, the gripper is free and the second colour's goal is not achieved yet, pick the "
    "block from the box.\n"
)
FERRY = (
    "variables: ?c - car, ?l - location, ?l2 - location, ?l3 - location\n"
    "\n"
    "1: on(?c) & at-ferry(?l) & goal at(?c, ?l) -> debark(?c, ?l)\n"
    "2: at-ferry(?l) & on(?c) & not at-ferry(?l2) & goal at(?c, ?l2) -> sail(?l, ?l2)\n"
    "3: at(?c, ?l) & at-ferry(?l) & empty-ferry() & not at-ferry(?l2) & goal at(?c, ?l2) -> board(?c, ?l)\n"
    "4: at-ferry(?l) & at(?c, ?l2) & empty-ferry() & not at-ferry(?l2) & goal at(?c, ?l3) -> sail(?l, ?l2)\n"
)
FERRY_ENGLISH = (
    "Four rules. So that a car is at a location: board the car at the location, sail from the first location "
    "to the second location, then debark the car at the location. Some rules test that a fact is absent, so "
    "they need a closed world.\n"
    "\n"
    "1. If a car is on board, the ferry is at a location and the car belongs there, debark it there.\n"
    "2. If the ferry is at a location, a car is on board, the ferry is not at a second location and the car "
    "belongs there, sail from the first location to the second location.\n"
    "3. If a car is at a location, the ferry is there, the ferry is empty, the ferry is not at a second "
    "location and the car belongs there, board it at the first location.\n"
    "4. If the ferry is at a location, a car is at a second location, the ferry is empty, the ferry is not "
    "at the second location and the car belongs at a third location, sail from the first location to the "
    "second location.\n"
)
GRIPPER = (
    "1: ball(?x) & carry(?x, ?g) & at-robby(?r) & room(?r) & gripper(?g) & goal at(?x, ?r) -> drop(?x, ?r, ?g)\n"
    "2: at-robby(?q) & room(?q) & room(?r) & gripper(?g) & ball(?x) & carry(?x, ?g) & goal at(?x, ?r) -> "
    "move(?q, ?r)\n"
    "3: ball(?x) & at(?x, ?q) & at-robby(?q) & room(?q) & free(?g) & gripper(?g) & room(?r) & goal at(?x, ?r) "
    "-> pick(?x, ?q, ?g)\n"
    "4: at-robby(?r) & room(?r) & room(?q) & free(?g) & gripper(?g) & ball(?x) & at(?x, ?q) & goal at(?x, ?r) "
    "-> move(?r, ?q)\n"
)
GRIPPER_ENGLISH = (
    "Four rules. So that a ball is in a room: pick the ball from the room with the gripper, move from the "
    "first room to the second room, then drop the ball in the room with the gripper.\n"
    "\n"
    "1. If a gripper carries a ball, robby is in a room and the ball belongs there, drop it there with the "
    "gripper.\n"
    "2. If robby is in a room, a gripper carries a ball and the ball belongs in a second room, move from the "
    "first room to the second room.\n"
    "3. If a ball is in a room, robby is there, a gripper is free and the ball belongs in a second room, "
    "pick it from the first room with the gripper.\n"
    "4. If robby is in a room, a gripper is free, a ball is in a second room and it belongs in the first "
    "room, move from the first room to the second room.\n"
)
SATELLITE = (
    "variables: ?s - satellite, ?d - direction, ?e - direction, ?i - instrument, ?m - mode\n"
    "\n"
    "1: pointing(?s, ?e) & goal pointing(?s, ?d) -> turn-to(?s, ?d, ?e)\n"
    "1: pointing(?s, ?d) & calibrated(?i) & power-on(?i) & on-board(?i, ?s) & supports(?i, ?m) & goal "
    "have-image(?d, ?m) -> take-image(?s, ?d, ?i, ?m)\n"
    "2: on-board(?i, ?s) & calibration-target(?i, ?d) & power-avail(?s) & goal have-image(?d, ?m) -> "
    "switch-on(?i, ?s)\n"
)
SATELLITE_ENGLISH = (
    "Three rules. So that you have an image for a direction and a mode: switch on the instrument on board "
    "the satellite, then take an image for the satellite, the direction, the instrument and the mode. So "
    "that a satellite is pointing at a direction: turn the satellite to the first direction from the second "
    "direction.\n"
    "\n"
    "1. If a satellite is pointing at a direction and it still has to be pointing at a second direction, "
    "turn it to the second direction from the first direction.\n"
    "1. If a satellite is pointing at a direction, an instrument is calibrated, its power is on, it is on "
    "board the satellite, it supports a mode and you still have to have an image for the direction and the "
    "mode, take an image for the satellite, the direction, the instrument and the mode.\n"
    "2. If an instrument is on board a satellite, its calibration target is a direction, the satellite's "
    "power is available and you still have to have an image for the direction and a mode, switch on the "
    "instrument on board the satellite.\n"
)
BLOCKSWORLD = (
    "variables: ?x - block, ?y - block, ?z - block\n"
    "\n"
    "1: holding(?x) & clear(?y) & goal on(?x, ?y) -> stack(?x, ?y)\n"
    "2: clear(?x) & ontable(?x) & clear(?y) & handempty() & goal on(?x, ?y) -> pick-up(?x)\n"
    "3: clear(?x) & on(?x, ?z) & clear(?y) & handempty() & ?y != ?z & goal on(?x, ?y) -> unstack(?x, ?z)\n"
    "4: holding(?x) & goal ontable(?x) -> put-down(?x)\n"
)
BLOCKSWORLD_ENGLISH = (
    "Four rules. So that a block is on a second block: unstack the first block from the second block, pick "
    "up the block, then stack the first block on the second block. So that a block is on the table: put down "
    "the block.\n"
    "\n"
    "1. If you hold a block, a second block is clear and the first block belongs on the second block, stack "
    "it on the second block.\n"
    "2. If a block is clear, it is on the table, a second block is clear, the hand is empty and the first "
    "block belongs on the second block, pick up the first block.\n"
    "3. If a block is clear, it is on a second block, a third block is clear, the hand is empty, the third "
    "block is not the second block and the first block belongs on the third block, unstack it from the "
    "second block.\n"
    "4. If you hold a block and it still has to be on the table, put down the block.\n"
)


def rules(text: str) -> tuple[Rule, ...]:
    return parse_rules(text)


@pytest.mark.parametrize(
    ("text", "english"),
    [
        (BLOCKS, BLOCKS_ENGLISH),
        (PICK_PLACE, PICK_PLACE_ENGLISH),
        (COLOUR, COLOUR_ENGLISH),
        (GACHA, GACHA_ENGLISH),
        (FERRY, FERRY_ENGLISH),
        (GRIPPER, GRIPPER_ENGLISH),
        (SATELLITE, SATELLITE_ENGLISH),
        (BLOCKSWORLD, BLOCKSWORLD_ENGLISH),
    ],
)
def test_plain_english(text: str, english: str) -> None:
    assert FORMATS["english"](rules(text)) == english
