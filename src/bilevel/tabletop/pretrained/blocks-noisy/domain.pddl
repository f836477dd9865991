(define (domain blocks)
  (:requirements :strips :typing)
  (:types
    block place - item
    table item - object)
  (:predicates
    (at ?x - block ?l - place)
    (holding ?x - block)
    (clear ?i - item)
    (gripper-free))

  (:action pick
    :parameters (?x - block)
    :precondition (and (clear ?x) (gripper-free))
    :effect (and (holding ?x) (not (clear ?x)) (not (gripper-free))))

  (:action take
    :parameters (?x - block ?l - place)
    :precondition (and (at ?x ?l) (gripper-free))
    :effect (and (clear ?l) (holding ?x) (not (at ?x ?l)) (not (gripper-free))))

  (:action place
    :parameters (?x - block ?l - place)
    :precondition (and (clear ?l) (holding ?x))
    :effect (and (at ?x ?l) (gripper-free) (not (clear ?l)) (not (holding ?x))))

  (:action put-aside
    :parameters (?x - block ?t - table)
    :precondition (and (holding ?x))
    :effect (and (clear ?x) (gripper-free) (not (holding ?x)))))
