(define (domain swap)
  (:requirements :strips :typing)
  (:types
    place table - surface
    block surface - object)
  (:predicates
    (at ?x - block ?s - surface)
    (holding ?x - block)
    (free ?s - surface)
    (gripper-free))

  (:action pick
    :parameters (?x - block ?s - surface)
    :precondition (and (at ?x ?s) (gripper-free))
    :effect (and (free ?s) (holding ?x) (not (at ?x ?s)) (not (gripper-free))))

  (:action place
    :parameters (?x - block ?l - place)
    :precondition (and (free ?l) (holding ?x))
    :effect (and (at ?x ?l) (gripper-free) (not (free ?l)) (not (holding ?x))))

  (:action put-aside
    :parameters (?x - block ?t - table)
    :precondition (and (holding ?x))
    :effect (and (at ?x ?t) (gripper-free) (not (holding ?x)))))
