"""Problems of ten domains, at the sizes of the learning track of the International Planning Competition 2023.

`python benchmarks/ipc_problems.py FOLDER [DOMAIN...]` writes, for each domain, its file, 99 training problems and 30
problems of each of three levels. Each problem can be solved, and depends on its domain, level and number alone.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path

LEVELS = {"training": 99, "easy": 30, "medium": 30, "hard": 30}

Problem = tuple[Mapping[str, Iterable[str]], Iterable[str], Iterable[str]]  # objects by type, initial facts, goals

DOMAINS = {
    "blocksworld": """
      (:predicates (clear ?x) (on-table ?x) (arm-empty) (holding ?x) (on ?x ?y))
      (:action pickup :parameters (?x) :precondition (and (clear ?x) (on-table ?x) (arm-empty))
        :effect (and (holding ?x) (not (clear ?x)) (not (on-table ?x)) (not (arm-empty))))
      (:action putdown :parameters (?x) :precondition (holding ?x)
        :effect (and (clear ?x) (arm-empty) (on-table ?x) (not (holding ?x))))
      (:action stack :parameters (?x ?y) :precondition (and (clear ?y) (holding ?x))
        :effect (and (arm-empty) (clear ?x) (on ?x ?y) (not (clear ?y)) (not (holding ?x))))
      (:action unstack :parameters (?x ?y) :precondition (and (on ?x ?y) (clear ?x) (arm-empty))
        :effect (and (holding ?x) (clear ?y) (not (on ?x ?y)) (not (clear ?x)) (not (arm-empty))))""",
    "childsnack": """
      (:types child bread content sandwich tray place)
      (:constants kitchen - place)
      (:predicates (bread-left ?b - bread) (content-left ?c - content) (made ?s - sandwich) (unmade ?s - sandwich)
        (gluten-free-bread ?b - bread) (gluten-free-content ?c - content) (gluten-free ?s - sandwich)
        (on-tray ?s - sandwich ?t - tray) (allergic ?c - child) (not-allergic ?c - child) (served ?c - child)
        (waiting ?c - child ?p - place) (at ?t - tray ?p - place))
      (:action make-gluten-free :parameters (?s - sandwich ?b - bread ?c - content)
        :precondition (and (bread-left ?b) (content-left ?c) (gluten-free-bread ?b) (gluten-free-content ?c)
          (unmade ?s))
        :effect (and (not (bread-left ?b)) (not (content-left ?c)) (not (unmade ?s)) (made ?s) (gluten-free ?s)))
      (:action make :parameters (?s - sandwich ?b - bread ?c - content)
        :precondition (and (bread-left ?b) (content-left ?c) (unmade ?s))
        :effect (and (not (bread-left ?b)) (not (content-left ?c)) (not (unmade ?s)) (made ?s)))
      (:action put-on-tray :parameters (?s - sandwich ?t - tray) :precondition (and (made ?s) (at ?t kitchen))
        :effect (and (not (made ?s)) (on-tray ?s ?t)))
      (:action serve-gluten-free :parameters (?s - sandwich ?c - child ?t - tray ?p - place)
        :precondition (and (allergic ?c) (on-tray ?s ?t) (waiting ?c ?p) (gluten-free ?s) (at ?t ?p))
        :effect (and (not (on-tray ?s ?t)) (served ?c)))
      (:action serve :parameters (?s - sandwich ?c - child ?t - tray ?p - place)
        :precondition (and (not-allergic ?c) (on-tray ?s ?t) (waiting ?c ?p) (at ?t ?p))
        :effect (and (not (on-tray ?s ?t)) (served ?c)))
      (:action move-tray :parameters (?t - tray ?from ?to - place) :precondition (and (at ?t ?from) (not (at ?t ?to)))
        :effect (and (not (at ?t ?from)) (at ?t ?to)))""",
    "ferry": """
      (:types car location)
      (:predicates (at-ferry ?l - location) (at ?c - car ?l - location) (empty-ferry) (on ?c - car))
      (:action sail :parameters (?from ?to - location) :precondition (and (at-ferry ?from) (not (at-ferry ?to)))
        :effect (and (at-ferry ?to) (not (at-ferry ?from))))
      (:action board :parameters (?c - car ?l - location) :precondition (and (at ?c ?l) (at-ferry ?l) (empty-ferry))
        :effect (and (on ?c) (not (at ?c ?l)) (not (empty-ferry))))
      (:action debark :parameters (?c - car ?l - location) :precondition (and (on ?c) (at-ferry ?l))
        :effect (and (at ?c ?l) (empty-ferry) (not (on ?c))))""",
    "floortile": """
      (:types robot tile color)
      (:predicates (robot-at ?r - robot ?t - tile) (up ?a ?b - tile) (right ?a ?b - tile) (clear ?t - tile)
        (painted ?t - tile ?c - color) (robot-has ?r - robot ?c - color) (available ?c - color))
      (:action change-color :parameters (?r - robot ?c ?new - color)
        :precondition (and (robot-has ?r ?c) (available ?new))
        :effect (and (not (robot-has ?r ?c)) (robot-has ?r ?new)))
      (:action paint-up :parameters (?r - robot ?t ?at - tile ?c - color)
        :precondition (and (robot-has ?r ?c) (robot-at ?r ?at) (up ?t ?at) (clear ?t))
        :effect (and (not (clear ?t)) (painted ?t ?c)))
      (:action paint-down :parameters (?r - robot ?t ?at - tile ?c - color)
        :precondition (and (robot-has ?r ?c) (robot-at ?r ?at) (up ?at ?t) (clear ?t))
        :effect (and (not (clear ?t)) (painted ?t ?c)))
      (:action go-up :parameters (?r - robot ?at ?t - tile)
        :precondition (and (robot-at ?r ?at) (up ?t ?at) (clear ?t))
        :effect (and (robot-at ?r ?t) (not (robot-at ?r ?at)) (clear ?at) (not (clear ?t))))
      (:action go-down :parameters (?r - robot ?at ?t - tile)
        :precondition (and (robot-at ?r ?at) (up ?at ?t) (clear ?t))
        :effect (and (robot-at ?r ?t) (not (robot-at ?r ?at)) (clear ?at) (not (clear ?t))))
      (:action go-right :parameters (?r - robot ?at ?t - tile)
        :precondition (and (robot-at ?r ?at) (right ?t ?at) (clear ?t))
        :effect (and (robot-at ?r ?t) (not (robot-at ?r ?at)) (clear ?at) (not (clear ?t))))
      (:action go-left :parameters (?r - robot ?at ?t - tile)
        :precondition (and (robot-at ?r ?at) (right ?at ?t) (clear ?t))
        :effect (and (robot-at ?r ?t) (not (robot-at ?r ?at)) (clear ?at) (not (clear ?t))))""",
    "miconic": """
      (:types passenger floor)
      (:predicates (origin ?p - passenger ?f - floor) (destin ?p - passenger ?f - floor) (above ?low ?high - floor)
        (boarded ?p - passenger) (served ?p - passenger) (lift-at ?f - floor))
      (:action board :parameters (?f - floor ?p - passenger) :precondition (and (lift-at ?f) (origin ?p ?f))
        :effect (and (boarded ?p) (not (origin ?p ?f))))
      (:action depart :parameters (?f - floor ?p - passenger)
        :precondition (and (lift-at ?f) (destin ?p ?f) (boarded ?p)) :effect (and (not (boarded ?p)) (served ?p)))
      (:action up :parameters (?at ?to - floor) :precondition (and (lift-at ?at) (above ?at ?to))
        :effect (and (lift-at ?to) (not (lift-at ?at))))
      (:action down :parameters (?at ?to - floor) :precondition (and (lift-at ?at) (above ?to ?at))
        :effect (and (lift-at ?to) (not (lift-at ?at))))""",
    "rovers": """
      (:types rover waypoint store camera mode lander objective)
      (:predicates (at ?r - rover ?w - waypoint) (at_lander ?l - lander ?w - waypoint)
        (can_traverse ?r - rover ?a ?b - waypoint) (equipped_for_soil_analysis ?r - rover)
        (equipped_for_rock_analysis ?r - rover) (equipped_for_imaging ?r - rover) (empty ?s - store) (full ?s - store)
        (have_rock_analysis ?r - rover ?w - waypoint) (have_soil_analysis ?r - rover ?w - waypoint)
        (have_image ?r - rover ?o - objective ?m - mode) (calibrated ?c - camera ?r - rover)
        (supports ?c - camera ?m - mode) (visible ?a ?b - waypoint) (communicated_soil_data ?w - waypoint)
        (communicated_rock_data ?w - waypoint) (communicated_image_data ?o - objective ?m - mode)
        (at_soil_sample ?w - waypoint) (at_rock_sample ?w - waypoint) (visible_from ?o - objective ?w - waypoint)
        (store_of ?s - store ?r - rover) (calibration_target ?c - camera ?o - objective)
        (on_board ?c - camera ?r - rover))
      (:action navigate :parameters (?r - rover ?a ?b - waypoint)
        :precondition (and (can_traverse ?r ?a ?b) (at ?r ?a) (visible ?a ?b))
        :effect (and (not (at ?r ?a)) (at ?r ?b)))
      (:action sample_soil :parameters (?r - rover ?s - store ?w - waypoint)
        :precondition (and (at ?r ?w) (at_soil_sample ?w) (equipped_for_soil_analysis ?r) (store_of ?s ?r) (empty ?s))
        :effect (and (not (empty ?s)) (full ?s) (have_soil_analysis ?r ?w) (not (at_soil_sample ?w))))
      (:action sample_rock :parameters (?r - rover ?s - store ?w - waypoint)
        :precondition (and (at ?r ?w) (at_rock_sample ?w) (equipped_for_rock_analysis ?r) (store_of ?s ?r) (empty ?s))
        :effect (and (not (empty ?s)) (full ?s) (have_rock_analysis ?r ?w) (not (at_rock_sample ?w))))
      (:action drop :parameters (?r - rover ?s - store) :precondition (and (store_of ?s ?r) (full ?s))
        :effect (and (not (full ?s)) (empty ?s)))
      (:action calibrate :parameters (?r - rover ?c - camera ?o - objective ?w - waypoint)
        :precondition (and (equipped_for_imaging ?r) (calibration_target ?c ?o) (at ?r ?w) (visible_from ?o ?w)
          (on_board ?c ?r))
        :effect (calibrated ?c ?r))
      (:action take_image :parameters (?r - rover ?w - waypoint ?o - objective ?c - camera ?m - mode)
        :precondition (and (calibrated ?c ?r) (on_board ?c ?r) (equipped_for_imaging ?r) (supports ?c ?m)
          (visible_from ?o ?w) (at ?r ?w))
        :effect (and (have_image ?r ?o ?m) (not (calibrated ?c ?r))))
      (:action communicate_soil_data :parameters (?r - rover ?l - lander ?s ?w ?at - waypoint)
        :precondition (and (at ?r ?w) (at_lander ?l ?at) (have_soil_analysis ?r ?s) (visible ?w ?at))
        :effect (communicated_soil_data ?s))
      (:action communicate_rock_data :parameters (?r - rover ?l - lander ?s ?w ?at - waypoint)
        :precondition (and (at ?r ?w) (at_lander ?l ?at) (have_rock_analysis ?r ?s) (visible ?w ?at))
        :effect (communicated_rock_data ?s))
      (:action communicate_image_data :parameters (?r - rover ?l - lander ?o - objective ?m - mode ?w ?at - waypoint)
        :precondition (and (at ?r ?w) (at_lander ?l ?at) (have_image ?r ?o ?m) (visible ?w ?at))
        :effect (communicated_image_data ?o ?m))""",
    "satellite": """
      (:types satellite direction instrument mode)
      (:predicates (on_board ?i - instrument ?s - satellite) (supports ?i - instrument ?m - mode)
        (pointing ?s - satellite ?d - direction) (power_avail ?s - satellite) (power_on ?i - instrument)
        (calibrated ?i - instrument) (have_image ?d - direction ?m - mode)
        (calibration_target ?i - instrument ?d - direction))
      (:action turn_to :parameters (?s - satellite ?new ?old - direction)
        :precondition (and (pointing ?s ?old) (not (pointing ?s ?new)))
        :effect (and (pointing ?s ?new) (not (pointing ?s ?old))))
      (:action switch_on :parameters (?i - instrument ?s - satellite)
        :precondition (and (on_board ?i ?s) (power_avail ?s))
        :effect (and (power_on ?i) (not (calibrated ?i)) (not (power_avail ?s))))
      (:action switch_off :parameters (?i - instrument ?s - satellite)
        :precondition (and (on_board ?i ?s) (power_on ?i)) :effect (and (not (power_on ?i)) (power_avail ?s)))
      (:action calibrate :parameters (?s - satellite ?i - instrument ?d - direction)
        :precondition (and (on_board ?i ?s) (calibration_target ?i ?d) (pointing ?s ?d) (power_on ?i))
        :effect (calibrated ?i))
      (:action take_image :parameters (?s - satellite ?d - direction ?i - instrument ?m - mode)
        :precondition (and (calibrated ?i) (on_board ?i ?s) (supports ?i ?m) (power_on ?i) (pointing ?s ?d))
        :effect (have_image ?d ?m))""",
    "sokoban": """
      (:types location direction box)
      (:predicates (adjacent ?a ?b - location ?d - direction) (at-robot ?l - location) (at ?b - box ?l - location)
        (clear ?l - location))
      (:action move :parameters (?from ?to - location ?d - direction)
        :precondition (and (clear ?to) (at-robot ?from) (adjacent ?from ?to ?d))
        :effect (and (at-robot ?to) (not (at-robot ?from))))
      (:action push :parameters (?r ?from ?to - location ?d - direction ?b - box)
        :precondition (and (at-robot ?r) (at ?b ?from) (clear ?to) (adjacent ?r ?from ?d) (adjacent ?from ?to ?d))
        :effect (and (at-robot ?from) (at ?b ?to) (clear ?from)
          (not (at-robot ?r)) (not (at ?b ?from)) (not (clear ?to))))""",
    "spanner": """
      (:types location locatable - object man nut spanner - locatable)
      (:predicates (at ?m - locatable ?l - location) (carrying ?m - man ?s - spanner) (usable ?s - spanner)
        (link ?a ?b - location) (tightened ?n - nut) (loose ?n - nut))
      (:action walk :parameters (?from ?to - location ?m - man)
        :precondition (and (at ?m ?from) (link ?from ?to))
        :effect (and (not (at ?m ?from)) (at ?m ?to)))
      (:action pickup_spanner :parameters (?l - location ?s - spanner ?m - man)
        :precondition (and (at ?m ?l) (at ?s ?l))
        :effect (and (not (at ?s ?l)) (carrying ?m ?s)))
      (:action tighten_nut :parameters (?l - location ?s - spanner ?m - man ?n - nut)
        :precondition (and (at ?m ?l) (at ?n ?l) (carrying ?m ?s) (usable ?s) (loose ?n))
        :effect (and (not (loose ?n)) (not (usable ?s)) (tightened ?n)))""",
    "transport": """
      (:types location locatable - object vehicle package - locatable size)
      (:predicates (road ?a ?b - location) (at ?x - locatable ?l - location) (in ?p - package ?v - vehicle)
        (capacity ?v - vehicle ?s - size) (capacity-predecessor ?less ?more - size))
      (:action drive :parameters (?v - vehicle ?from ?to - location) :precondition (and (at ?v ?from) (road ?from ?to))
        :effect (and (not (at ?v ?from)) (at ?v ?to)))
      (:action pick-up :parameters (?v - vehicle ?l - location ?p - package ?less ?more - size)
        :precondition (and (at ?v ?l) (at ?p ?l) (capacity-predecessor ?less ?more) (capacity ?v ?more))
        :effect (and (not (at ?p ?l)) (in ?p ?v) (capacity ?v ?less) (not (capacity ?v ?more))))
      (:action drop :parameters (?v - vehicle ?l - location ?p - package ?less ?more - size)
        :precondition (and (at ?v ?l) (in ?p ?v) (capacity-predecessor ?less ?more) (capacity ?v ?less))
        :effect (and (not (in ?p ?v)) (at ?p ?l) (capacity ?v ?more) (not (capacity ?v ?less))))""",
}


def sized(level: str, number: int, sizes: dict[str, tuple[int, int]]) -> int:
    """Return the size of the problem with this number, counted from 1, between the least and the most of its level."""
    least, most = sizes[level]
    return least + round((most - least) * (number - 1) / (LEVELS[level] - 1))


def names(kind: str, count: int) -> list[str]:
    return [f"{kind}{number}" for number in range(1, count + 1)]


def towers(rng: random.Random, blocks: list[str]) -> list[str]:
    """Return the facts of blocks in random towers."""
    found, rest = [], rng.sample(blocks, len(blocks))
    while rest:
        height = rng.randint(1, len(rest))
        tower, rest = rest[:height], rest[height:]
        found += [f"(on-table {tower[0]})", f"(clear {tower[-1]})"]
        found += [f"(on {upper} {lower})" for lower, upper in pairwise(tower)]
    return found


def blocksworld(rng: random.Random, level: str, number: int) -> Problem:
    count = sized(level, number, {"training": (2, 29), "easy": (5, 30), "medium": (35, 150), "hard": (160, 500)})
    blocks = names("b", count)
    return {"object": blocks}, ["(arm-empty)", *towers(rng, blocks)], towers(rng, blocks)


def childsnack(rng: random.Random, level: str, number: int) -> Problem:
    count = sized(level, number, {"training": (1, 10), "easy": (4, 10), "medium": (15, 40), "hard": (50, 300)})
    children, places = names("child", count), names("table", 3)
    trays = names("tray", 1 + min(level != "training", 1) + count // 20)
    allergic = rng.sample(children, rng.randint(0, count))
    breads, contents = names("bread", count), names("content", count)
    sandwiches = names("sandwich", count + rng.randint(0, count // 2))
    free = [(rng.sample(breads, len(allergic)), "bread"), (rng.sample(contents, len(allergic)), "content")]
    facts = [f"(at {tray} kitchen)" for tray in trays] + [f"(unmade {sandwich})" for sandwich in sandwiches]
    facts += [f"(bread-left {bread})" for bread in breads] + [f"(content-left {content})" for content in contents]
    facts += [f"(gluten-free-{kind} {name})" for chosen, kind in free for name in chosen]
    facts += [f"({'allergic' if child in allergic else 'not-allergic'} {child})" for child in children]
    facts += [f"(waiting {child} {rng.choice(places)})" for child in children]
    objects = {"child": children, "bread": breads, "content": contents, "sandwich": sandwiches}
    return {**objects, "tray": trays, "place": places}, facts, [f"(served {child})" for child in children]


def ferry(rng: random.Random, level: str, number: int) -> Problem:
    count = sized(level, number, {"training": (1, 20), "easy": (4, 20), "medium": (25, 150), "hard": (160, 1000)})
    cars, places = names("car", count), names("loc", max(2, count // 2 + 2))
    facts = ["(empty-ferry)", f"(at-ferry {rng.choice(places)})", *(f"(at {car} {rng.choice(places)})" for car in cars)]
    return {"car": cars, "location": places}, facts, [f"(at {car} {rng.choice(places)})" for car in cars]


def floortile(rng: random.Random, level: str, number: int) -> Problem:
    side = sized(level, number, {"training": (2, 5), "easy": (3, 6), "medium": (7, 15), "hard": (16, 31)})
    rows, columns = side, max(1, side - rng.randint(0, 1))
    robots = names("robot", max(1, min(columns, 1 + side // 4)))
    tile = {(row, column): f"tile_{row}-{column}" for row in range(rows + 1) for column in range(1, columns + 1)}
    starts = rng.sample([tile[0, column] for column in range(1, columns + 1)], len(robots))
    facts = [f"(up {tile[r + 1, c]} {tile[r, c]})" for r, c in tile if r < rows]
    facts += [f"(right {tile[r, c + 1]} {tile[r, c]})" for r, c in tile if c < columns]
    facts += [f"(clear {name})" for name in tile.values() if name not in starts]
    facts += [f"(robot-at {robot} {start})" for robot, start in zip(robots, starts, strict=True)]
    facts += [f"(robot-has {robot} {rng.choice(('white', 'black'))})" for robot in robots]
    facts += ["(available white)", "(available black)"]
    goals = [f"(painted {name} {('white', 'black')[(r + c) % 2]})" for (r, c), name in tile.items() if r]
    return {"robot": robots, "tile": tile.values(), "color": ["white", "black"]}, facts, goals


def miconic(rng: random.Random, level: str, number: int) -> Problem:
    count = sized(level, number, {"training": (1, 10), "easy": (1, 10), "medium": (20, 80), "hard": (100, 500)})
    people, floors = names("p", count), names("f", max(2, 2 * count if level != "hard" else count // 2))
    facts = [f"(above {low} {high})" for place, low in enumerate(floors) for high in floors[place + 1 :]]
    facts.append(f"(lift-at {rng.choice(floors)})")
    for person in people:
        start, end = rng.sample(floors, 2)
        facts += [f"(origin {person} {start})", f"(destin {person} {end})"]
    return {"passenger": people, "floor": floors}, facts, [f"(served {person})" for person in people]


def rovers(rng: random.Random, level: str, number: int) -> Problem:
    count = sized(level, number, {"training": (1, 4), "easy": (1, 4), "medium": (5, 10), "hard": (15, 30)})
    space = sized(level, number, {"training": (4, 10), "easy": (4, 10), "medium": (15, 90), "hard": (100, 200)})
    wanted = sized(level, number, {"training": (1, 10), "easy": (1, 10), "medium": (15, 60), "hard": (70, 200)})
    robots, stores, cameras = (
        names("rover", count),
        names("store", count),
        names("camera", count + rng.randint(0, count)),
    )
    places, targets, modes = names("waypoint", space), names("objective", wanted), ["colour", "high_res", "low_res"]
    links = {(here, rng.choice(places[:place])) for place, here in enumerate(places) if place}
    links |= {tuple(rng.sample(places, 2)) for _ in range(space)}  # type: ignore[misc]
    links |= {(b, a) for a, b in links}
    kinds = ["soil_analysis", "rock_analysis", "imaging"]
    skills = {robot: set(rng.sample(kinds, rng.randint(1, 3))) for robot in robots}
    for place, kind in enumerate(kinds):
        skills[robots[place % count]].add(kind)
    facts = [f"(visible {a} {b})" for a, b in sorted(links)] + [f"(at_lander general {rng.choice(places)})"]
    facts += [f"(can_traverse {robot} {a} {b})" for robot in robots for a, b in sorted(links)]
    facts += [f"(equipped_for_{kind} {robot})" for robot in robots for kind in sorted(skills[robot])]
    facts += [f"(at {robot} {rng.choice(places)})" for robot in robots]
    for store, robot in zip(stores, robots, strict=True):
        facts += [f"(store_of {store} {robot})", f"(empty {store})"]
    imaging = [robot for robot in robots if "imaging" in skills[robot]]
    supported = set()
    for camera in cameras:
        facts += [f"(on_board {camera} {rng.choice(imaging)})", f"(calibration_target {camera} {rng.choice(targets)})"]
        chosen = rng.sample(modes, rng.randint(1, 3))
        supported.update(chosen)
        facts += [f"(supports {camera} {mode})" for mode in chosen]
    facts += [
        f"(visible_from {target} {place})" for target in targets for place in rng.sample(places, rng.randint(1, 3))
    ]
    soil, rock = (sorted(rng.sample(places, rng.randint(1, min(space, wanted)))) for _ in range(2))
    facts += [f"(at_soil_sample {place})" for place in soil] + [f"(at_rock_sample {place})" for place in rock]
    goals = [f"(communicated_soil_data {place})" for place in soil]
    goals += [f"(communicated_rock_data {place})" for place in rock]
    goals += [f"(communicated_image_data {target} {rng.choice(sorted(supported))})" for target in targets]
    objects = {"rover": robots, "store": stores, "camera": cameras, "waypoint": places, "objective": targets}
    return {**objects, "mode": modes, "lander": ["general"]}, facts, goals


def satellite(rng: random.Random, level: str, number: int) -> Problem:
    count = sized(level, number, {"training": (2, 10), "easy": (3, 10), "medium": (15, 40), "hard": (50, 100)})
    modes, ways = names("mode", rng.randint(1, 3)), names("dir", count + rng.randint(2, 2 + count))
    satellites = names("sat", count)
    facts, instruments, supported = list[str](), list[str](), set[str]()
    for satellite in satellites:
        facts += [f"(power_avail {satellite})", f"(pointing {satellite} {rng.choice(ways)})"]
        for _ in range(rng.randint(1, 2)):
            instruments.append(f"ins{len(instruments) + 1}")
            chosen = rng.sample(modes, rng.randint(1, len(modes)))
            supported.update(chosen)
            facts += [f"(supports {instruments[-1]} {mode})" for mode in chosen]
            facts.append(f"(on_board {instruments[-1]} {satellite})")
            facts.append(f"(calibration_target {instruments[-1]} {rng.choice(ways)})")
    goals = [f"(have_image {way} {rng.choice(sorted(supported))})" for way in rng.sample(ways, len(ways) // 2 + 1)]
    goals += [f"(pointing {each} {rng.choice(ways)})" for each in rng.sample(satellites, count // 3)]
    objects = {"satellite": satellites, "direction": ways, "instrument": instruments, "mode": modes}
    return objects, facts, goals


def sokoban(rng: random.Random, level: str, number: int) -> Problem:
    """Draw a room, put the boxes on their goals and pull them away, so that there is a way back."""
    side = sized(level, number, {"training": (5, 8), "easy": (6, 10), "medium": (12, 30), "hard": (35, 60)})
    count = sized(level, number, {"training": (1, 4), "easy": (1, 4), "medium": (5, 20), "hard": (25, 80)})
    cells = {(x, y) for x in range(side) for y in range(side) if rng.random() > 0.1}
    ways = {"down": (0, 1), "left": (-1, 0), "right": (1, 0), "up": (0, -1)}

    def reached(start: tuple[int, int], boxes: set[tuple[int, int]]) -> list[tuple[int, int]]:
        found, queue = {start}, [start]
        for x, y in queue:  # grows while it is read
            steps = [(x + dx, y + dy) for dx, dy in ways.values()]
            queue += (new := [cell for cell in steps if cell in cells and cell not in boxes and cell not in found])
            found.update(new)
        return queue

    cells = max((set(reached(cell, set())) for cell in sorted(cells)[: 2 * side : side // 2]), key=len)
    goals = rng.sample(sorted(cells), count)
    boxes = list(goals)
    robot = rng.choice(sorted(cells - set(boxes)))
    for _ in range(min(20 * count, 50)):
        around = set(reached(robot, set(boxes)))
        pulls = [
            (box, (x + dx, y + dy), (x + 2 * dx, y + 2 * dy))
            for box, (x, y) in enumerate(boxes) for dx, dy in ways.values()
            if (x + dx, y + dy) in around and (x + 2 * dx, y + 2 * dy) in cells - set(boxes)
        ]  # fmt: skip
        if pulls:
            box, boxes[box], robot = (chosen := rng.choice(pulls))[0], chosen[1], chosen[2]
    name = {cell: f"l{cell[0]}-{cell[1]}" for cell in sorted(cells)}
    facts = [f"(at-robot {name[robot]})", *(f"(clear {name[cell]})" for cell in name if cell not in boxes)]
    facts += [f"(at box{number} {name[cell]})" for number, cell in enumerate(boxes, 1)]
    for (x, y), here in name.items():
        steps = ((way, (x + dx, y + dy)) for way, (dx, dy) in ways.items())
        facts += [f"(adjacent {here} {name[cell]} {way})" for way, cell in steps if cell in cells]
    wanted = [f"(at box{number} {name[cell]})" for number, cell in enumerate(goals, 1)]
    return {"location": name.values(), "direction": ways, "box": names("box", count)}, facts, wanted


def spanner(rng: random.Random, level: str, number: int) -> Problem:
    count = sized(level, number, {"training": (1, 10), "easy": (1, 10), "medium": (30, 100), "hard": (150, 500)})
    nuts, spanners = names("nut", max(1, rng.randint(count // 2, count))), names("spanner", count)
    places = ["shed", *names("location", max(2, count // 2 + rng.randint(1, 4))), "gate"]
    facts = [f"(link {a} {b})" for a, b in pairwise(places)] + ["(at bob shed)"]
    facts += [f"(at {each} {rng.choice(places[1:-1])})" for each in spanners] + [
        f"(usable {each})" for each in spanners
    ]
    facts += [f"(at {nut} gate)" for nut in nuts] + [f"(loose {nut})" for nut in nuts]
    objects = {"man": ["bob"], "nut": nuts, "spanner": spanners, "location": places}
    return objects, facts, [f"(tightened {nut})" for nut in nuts]


def transport(rng: random.Random, level: str, number: int) -> Problem:
    count = sized(level, number, {"training": (1, 10), "easy": (2, 10), "medium": (12, 50), "hard": (55, 200)})
    vehicles, packages = names("truck", 1 + count // 4), names("package", count)
    places, sizes = names("city", 3 + count // 2), [f"capacity-{size}" for size in range(4)]
    roads = {(here, rng.choice(places[:place])) for place, here in enumerate(places) if place}
    roads |= {tuple(rng.sample(places, 2)) for _ in range(count // 2)}  # type: ignore[misc]
    facts = [f"(road {a} {b})" for a, b in sorted(roads | {(b, a) for a, b in roads})]
    facts += [f"(capacity-predecessor {less} {more})" for less, more in pairwise(sizes)]
    for vehicle in vehicles:
        facts += [f"(at {vehicle} {rng.choice(places)})", f"(capacity {vehicle} {rng.choice(sizes[1:])})"]
    starts = {package: rng.sample(places, 2) for package in packages}
    facts += [f"(at {package} {start})" for package, (start, _) in starts.items()]
    objects = {"vehicle": vehicles, "package": packages, "location": places, "size": sizes}
    return objects, facts, [f"(at {package} {end})" for package, (_, end) in starts.items()]


GENERATORS: dict[str, Callable[[random.Random, str, int], Problem]] = {
    "blocksworld": blocksworld, "childsnack": childsnack, "ferry": ferry, "floortile": floortile, "miconic": miconic,
    "rovers": rovers, "satellite": satellite, "sokoban": sokoban, "spanner": spanner, "transport": transport,
}  # fmt: skip


def domain_text(name: str) -> str:
    """Return the PDDL text of a domain."""
    return f"(define (domain {name})\n  (:requirements :typing :negative-preconditions){DOMAINS[name]})\n"


def problem_text(name: str, level: str, number: int) -> str:
    """Return the PDDL text of a problem."""
    objects, facts, goals = GENERATORS[name](random.Random(f"{name} {level} {number}"), level, number)
    listed = "\n    ".join(f"{' '.join(each)} - {kind}" for kind, each in objects.items())
    return (
        f"(define (problem {name}-{level}-{number:02})\n  (:domain {name})\n  (:objects\n    {listed})\n"
        f"  (:init\n    {' '.join(facts)})\n  (:goal (and\n    {' '.join(goals)})))\n"
    )


def write(folder: Path, domains: Iterable[str] = tuple(DOMAINS)) -> None:
    """Write all problems of these domains."""
    for name in domains:
        for level, count in LEVELS.items():
            (folder / name / level).mkdir(parents=True, exist_ok=True)
            for number in range(1, count + 1):
                path = folder / name / level / f"p{number:02}.pddl"
                path.write_text(problem_text(name, level, number), encoding="utf-8")
        (folder / name / "domain.pddl").write_text(domain_text(name), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2:] or DOMAINS)
