(define (domain colour)
  (:requirements :strips :typing :non-deterministic)
  (:types
    block colour tray button - object
    table platform - surface
    surface - object)
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
    :precondition (and (gripper-free) (on ?x ?s))
    :effect (and (free ?s) (holding ?x) (not (gripper-free)) (not (on ?x ?s))))

  (:action place
    :parameters (?x - block ?p - platform)
    :precondition (and (free ?p) (holding ?x) (unknown ?x))
    :effect (and (gripper-free) (on ?x ?p) (not (free ?p)) (not (holding ?x))))

  (:action put-aside
    :parameters (?x - block ?t - table)
    :precondition (and (holding ?x))
    :effect (and (gripper-free) (on ?x ?t) (not (holding ?x))))

  (:action press
    :parameters (?x - block ?b - button ?p - platform)
    :precondition (and (gripper-free) (on ?x ?p) (unknown ?x))
    :effect (exists (?c - colour) (and (colour-of ?x ?c) (not (unknown ?x)))))

  (:action place-goal
    :parameters (?x - block ?t - tray ?c - colour)
    :precondition (and (colour-of ?x ?c) (holding ?x) (tray-colour ?t ?c))
    :effect (and (achieved-goal ?x) (gripper-free) (not (holding ?x)))))
