; Colour: blocks of unknown colour get one on a platform, when its button is pressed, and belong on a tray of that colour.
; A block that is not held and not on its tray is always `on` some surface, the table or the platform, so one `pick`
; serves both, and a coloured block that fell on the table is picked up by the rule learned at the platform.
(define (domain colour)
  (:requirements :strips :typing :non-deterministic)
  (:types
    block colour tray button - object
    table platform - surface)
  (:predicates
    (holding ?x - block)
    (gripper-free)
    (on ?x - block ?s - surface)
    (free ?s - surface)
    (unknown ?x - block)
    (colour-of ?x - block ?c - colour)
    (tray-colour ?t - tray ?c - colour)
    (achieved-goal ?x - block))

  (:action pick
    :parameters (?x - block ?s - surface)
    :precondition (and (on ?x ?s) (gripper-free))
    :effect (and (holding ?x) (free ?s)
                 (not (on ?x ?s)) (not (gripper-free))))

  (:action place
    :parameters (?x - block ?p - platform)
    :precondition (and (holding ?x) (free ?p) (unknown ?x))
    :effect (and (on ?x ?p) (gripper-free)
                 (not (holding ?x)) (not (free ?p))))

  (:action put-aside
    :parameters (?x - block ?t - table)
    :precondition (holding ?x)
    :effect (and (on ?x ?t) (gripper-free)
                 (not (holding ?x))))

  (:action press
    :parameters (?x - block ?b - button ?p - platform)
    :precondition (and (on ?x ?p) (unknown ?x) (gripper-free))
    :effect (and (not (unknown ?x))
                 (exists (?c - colour) (colour-of ?x ?c))))

  (:action place-goal
    :parameters (?x - block ?t - tray ?c - colour)
    :precondition (and (holding ?x) (colour-of ?x ?c) (tray-colour ?t ?c))
    :effect (and (achieved-goal ?x) (gripper-free)
                 (not (holding ?x)))))
