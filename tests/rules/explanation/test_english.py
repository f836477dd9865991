"""Plain English: golden sentences for the paper's domains and for domains the wording was not made for."""

from __future__ import annotations

import pytest

from bilevel.rules.explanation.formats import explain
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules

BLOCKS = (
    "variables: ?x - block, ?l - place\n"
    "\n"
    "1: holding(?x) & clear(?l) & goal at(?x, ?l) -> place(?x, ?l)\n"
    "2: clear(?x) & clear(?l) & gripper-free() & goal at(?x, ?l) -> pick(?x)\n"
)
BLOCKS_ENGLISH = (
    "Two rules. For every block that is not yet at its goal place: pick it, then place it there.\n"
    "\n"
    "1. If you hold a block and its goal place is clear, place it there.\n"
    "2. If a block is clear, its goal place is clear and the gripper is free, pick the block.\n"
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
    "Four rules. For every item that is not yet at its goal location: move from one location to another, pick "
    "it from the location, move from the location to the goal location, then place it there.\n"
    "\n"
    "1. If you hold an item and the robot is at the item's goal location, place the item there.\n"
    "2. If the robot is at a location, you hold an item and it is not at its goal location yet, move from the "
    "location to the goal location.\n"
    "3. If an item is at a location, the robot is at the location, you are free and the item is not at its "
    "goal location yet, pick it from the location.\n"
    "4. If the robot is at a location, an item is at another location, you are free and the item is not at "
    "its goal location yet, move from the location to the other location.\n"
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
    "Five rules. For every block whose goal is not yet achieved: place it on the platform, press the button "
    "for the block on the platform, pick it from the surface, then place it on the tray.\n"
    "\n"
    "1. If you hold a block, it has a colour, a tray has the same colour and the block's goal is not achieved "
    "yet, place it on the tray.\n"
    "2. If a block is on a surface, it has a colour, a tray has the same colour, the gripper is free and the "
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
    "Seven rules. For every colour whose goal is not yet achieved: close the box, roll the box with the "
    "button, open the box, pick the block from the box, then place the block on the tray.\n"
    "\n"
    "1. If you hold a block, it has a colour, a tray has the same colour and the colour's goal is not "
    "achieved yet, place the block on the tray.\n"
    "2. If a block is in a box, it has a colour, the box is open, a tray has the same colour, the gripper is "
    "free and the colour's goal is not achieved yet, pick the block from the box.\n"
    "3. If a tray has a colour, a block is in a box, it has the same colour, the gripper is free and the "
    "colour's goal is not achieved yet, open the box.\n"
    "4. If a box is clear, it is closed, a tray has a colour, the gripper is free and the colour's goal is "
    "not achieved yet, roll the box with a button.\n"
    "5. If a box is clear, it is open, a tray has a colour, the gripper is free and the colour's goal is not "
    "achieved yet, close the box.\n"
    "6. If you hold a block, it has a colour, a tray has the same colour, a box is clear, it is open, a "
    "second tray has a second colour and the second colour's goal is not achieved yet, place the block on the "
    "first tray.\n"
    "7. If a block is in a box, it has a colour, the box is open, a tray has the same colour, a second tray "
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
    "Four rules. For every car that is not yet at its goal location: sail from one location to another, board "
    "it at the location, sail from the location to the goal location, then debark it there. Some rules test "
    "that a fact is absent, so they need a closed world.\n"
    "\n"
    "1. If a car is on board and the ferry is at the car's goal location, debark the car there.\n"
    "2. If the ferry is at a location, a car is on board and the ferry is not at the car's goal location, "
    "sail from the location to the goal location.\n"
    "3. If a car is at a location, the ferry is at the location, the ferry is empty and the ferry is not at "
    "the car's goal location, board the car at the location.\n"
    "4. If the ferry is at a location, a car is at another location, the ferry is empty, the ferry is not at "
    "the other location and the car is not at its goal location yet, sail from the location to the other "
    "location.\n"
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
    "Four rules. For every ball that is not yet in its goal room: move from the goal room to the room, pick "
    "it from the room with the gripper, move from the room to the goal room, then drop it there with the "
    "gripper.\n"
    "\n"
    "1. If a gripper carries a ball and robby is in the ball's goal room, drop the ball there with the "
    "gripper.\n"
    "2. If robby is in a room, a gripper carries a ball and the ball is not in its goal room yet, move from "
    "the room to the goal room.\n"
    "3. If a ball is in a room, robby is in the room, a gripper is free and the ball is not in its goal room "
    "yet, pick it from the room with the gripper.\n"
    "4. If robby is in a room, a gripper is free, a ball is in another room and it belongs in the room, move "
    "from the room to the other room.\n"
)
MICONIC = (
    "variables: ?f - floor, ?p - passenger, ?f2 - floor, ?f3 - floor\n"
    "\n"
    "1: lift-at(?f) & boarded(?p) & destin(?p, ?f) & goal served(?p) -> depart(?f, ?p)\n"
    "2: lift-at(?f) & above(?f, ?f2) & boarded(?p) & destin(?p, ?f2) & goal served(?p) -> up(?f, ?f2)\n"
    "3: lift-at(?f) & origin(?p, ?f) & destin(?p, ?f2) & goal served(?p) -> board(?f, ?p)\n"
    "4: lift-at(?f) & above(?f2, ?f) & origin(?p, ?f2) & destin(?p, ?f3) & goal served(?p) -> down(?f, ?f2)\n"
)
MICONIC_ENGLISH = (
    "Four rules. For every passenger that is not yet served: go down from one floor to another, let the "
    "passenger board at the floor, go up from one floor to another, then let the passenger depart at the "
    "floor.\n"
    "\n"
    "1. If the lift is at a floor, a passenger is on board, the passenger's destination is the floor and the "
    "passenger still has to be served, let the passenger depart there.\n"
    "2. If the lift is at a floor, the floor is above another floor, a passenger is on board, the passenger's "
    "destination is the other floor and the passenger still has to be served, go up from the floor to the "
    "other floor.\n"
    "3. If the lift is at a floor, a passenger's origin is the first floor, the passenger's destination is a "
    "second floor and the passenger still has to be served, let the passenger board at the first floor.\n"
    "4. If the lift is at a floor, a second floor is above the first floor, a passenger's origin is the "
    "second floor, the passenger's destination is a third floor and the passenger still has to be served, go "
    "down from the first floor to the second floor.\n"
)
LOGISTICS = (
    "variables: ?p - package, ?t - truck, ?l - location, ?l2 - location, ?c - city, ?a - airplane\n"
    "variables: ?m - airport\n"
    "\n"
    "1: in(?p, ?t) & at(?t, ?l) & goal at(?p, ?l) -> unload-truck(?p, ?t, ?l)\n"
    "2: at(?t, ?l) & in-city(?l, ?c) & in-city(?l2, ?c) & in(?p, ?t) & goal at(?p, ?l2) -> drive-truck(?t, "
    "?l, ?l2, ?c)\n"
    "3: at(?p, ?l) & at(?t, ?l) & goal at(?p, ?l2) -> load-truck(?p, ?t, ?l)\n"
    "4: at(?a, ?m) & in(?p, ?a) & goal at(?p, ?l) -> fly-airplane(?a, ?m, ?l)\n"
)
LOGISTICS_ENGLISH = (
    "Four rules. For every package that is not yet at its goal location: fly the airplane from the airport to "
    "the goal location, load it into the truck at the location, drive the truck from the location to the goal "
    "location in the city, then unload it from the truck there.\n"
    "\n"
    "1. If a package is in a truck and the truck is at the package's goal location, unload the package from "
    "the truck there.\n"
    "2. If a truck is at a location, the location is in a city, another location is in the city, a package is "
    "in the truck and it belongs at the other location, drive the truck from the location to the other "
    "location in the city.\n"
    "3. If a package is at a location, a truck is at the location and the package is not at its goal location "
    "yet, load it into the truck at the location.\n"
    "4. If an airplane is at an airport, a package is in the airplane and it is not at its goal location yet, "
    "fly the airplane from the airport to the goal location.\n"
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
    "Three rules. For every unachieved goal have-image: switch on the instrument on board the satellite, then "
    "take an image for the satellite, the direction, the instrument and the mode. For every satellite that is "
    "not yet pointing at a direction: turn it to one direction from another.\n"
    "\n"
    "1. If a satellite is pointing at a direction and it still has to be pointing at another direction, turn "
    "it to the other direction from the direction.\n"
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
    "Four rules. For every block that is not yet on its goal block: unstack it from another, pick it up, then "
    "stack it there. For every block that is not yet on the table: put it down.\n"
    "\n"
    "1. If you hold a block, another block is clear and the block belongs on the other block, stack it on the "
    "other block.\n"
    "2. If a block is clear, it is on the table, a second block is clear, the hand is empty and the first "
    "block belongs on the second block, pick it up.\n"
    "3. If a block is clear, it is on a second block, a third block is clear, the hand is empty, the third "
    "block is not the second block and the first block belongs on the third block, unstack it from the second "
    "block.\n"
    "4. If you hold a block and it still has to be on the table, put it down.\n"
)


def rules(text: str) -> tuple[Rule, ...]:
    return parse_rules(text).rules


@pytest.mark.parametrize(
    ("text", "english"),
    [
        (BLOCKS, BLOCKS_ENGLISH),
        (PICK_PLACE, PICK_PLACE_ENGLISH),
        (COLOUR, COLOUR_ENGLISH),
        (GACHA, GACHA_ENGLISH),
        (FERRY, FERRY_ENGLISH),
        (GRIPPER, GRIPPER_ENGLISH),
        (MICONIC, MICONIC_ENGLISH),
        (LOGISTICS, LOGISTICS_ENGLISH),
        (SATELLITE, SATELLITE_ENGLISH),
        (BLOCKSWORLD, BLOCKSWORLD_ENGLISH),
    ],
)
def test_plain_english(text: str, english: str) -> None:
    assert explain(rules(text), "english") == english
