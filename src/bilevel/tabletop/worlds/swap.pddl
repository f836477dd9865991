; Swap: every block belongs on its own place, and another block may stand there, which may stand on yet another's.
; Where the places go round in a circle, one block has to be put aside on the table first; there is always room there.
(define (domain swap)
  (:requirements :strips :typing)
  (:types
    place table - surface
    block)
  (:predicates
    (at ?x - block ?s - surface)
    (holding ?x - block)
    (free ?s - surface)
    (gripper-free))

  (:action pick
    :parameters (?x - block ?s - surface)
    :precondition (and (at ?x ?s) (gripper-free))
    :effect (and (holding ?x) (free ?s)
                 (not (at ?x ?s)) (not (gripper-free))))

  (:action place
    :parameters (?x - block ?l - place)
    :precondition (and (holding ?x) (free ?l))
    :effect (and (at ?x ?l) (gripper-free)
                 (not (holding ?x)) (not (free ?l))))

  (:action put-aside
    :parameters (?x - block ?t - table)
    :precondition (holding ?x)
    :effect (and (at ?x ?t) (gripper-free)
                 (not (holding ?x)))))
