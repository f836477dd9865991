; Stack: boxes in one stack, each but the lowest wanted on its own place; only the one on top can be taken.
; So of many goals just one can be worked on at a time. A box in the way can be put aside on the floor, which has room
; for all, and a box can be taken from a place or from the floor again.
(define (domain stack)
  (:requirements :strips :typing)
  (:types box place - item)
  (:predicates
    (at ?x - box ?l - place)
    (on ?x - box ?y - box)
    (aside ?x - box)
    (holding ?x - box)
    (clear ?i - item)
    (gripper-free))

  (:action take
    :parameters (?x - box ?y - box)
    :precondition (and (on ?x ?y) (clear ?x) (gripper-free))
    :effect (and (holding ?x) (clear ?y)
                 (not (on ?x ?y)) (not (clear ?x)) (not (gripper-free))))

  (:action place
    :parameters (?x - box ?l - place)
    :precondition (and (holding ?x) (clear ?l))
    :effect (and (at ?x ?l) (gripper-free)
                 (not (holding ?x)) (not (clear ?l))))

  (:action take-away
    :parameters (?x - box ?l - place)
    :precondition (and (at ?x ?l) (gripper-free))
    :effect (and (holding ?x) (clear ?l)
                 (not (at ?x ?l)) (not (gripper-free))))

  (:action put-aside
    :parameters (?x - box)
    :precondition (holding ?x)
    :effect (and (aside ?x) (gripper-free)
                 (not (holding ?x))))

  (:action fetch
    :parameters (?x - box)
    :precondition (and (aside ?x) (gripper-free))
    :effect (and (holding ?x)
                 (not (aside ?x)) (not (gripper-free)))))
